//! A domain of its own, on which clients work after everything else: nothing else is in trouble then, and nothing of it comes before.

use super::operation::One;
use super::{End, PATIENT, PROCESSES, TASKS, Workload};
use crate::world::call::SimEnv;
use areo_core::config::Configuration;
use areo_core::dsm::Client;
use areo_core::object::Name;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A client of the domain.
pub(super) struct Begun {
    pub(super) client: Client<SimEnv>,
    /// The number of the domain to the history.
    domain: usize,
    pub(super) c: Arc<Configuration>,
    pub(super) process: usize,
    who: usize,
}

pub(super) fn name(key: usize) -> Name {
    Name::user(&format!("key-{key}")).expect("keys are short")
}

impl Workload {
    /// Clients that begin now.
    pub(super) fn begin(&self, domain: usize, c: &Arc<Configuration>) -> Rc<[Rc<Begun>]> {
        let begun = |process| Begun {
            client: Client::new(self.env(process, PATIENT)),
            domain,
            c: c.clone(),
            process,
            who: self.live(),
        };
        (0..PROCESSES)
            .map(|process| Rc::new(begun(process)))
            .collect()
    }

    /// Has these clients do this at once, until all are done.
    pub(super) fn each(
        self: &Rc<Self>,
        clients: &[Rc<Begun>],
        run: impl AsyncFn(&Workload, &Begun) + Clone + 'static,
    ) {
        for client in clients {
            self.busy.set(self.busy.get() + 1);
            let (work, client, run) = (Rc::clone(self), Rc::clone(client), run.clone());
            self.world.spawn(async move {
                Box::pin(run(&work, &client)).await;
                work.busy.set(work.busy.get() - 1);
            });
        }
        while self.is_busy() && self.world.violation().is_none() {
            if !self.world.step() {
                let sentence = "liveness: nothing happens any more";
                return self.world.violate(sentence.to_owned());
            }
        }
    }

    /// The client's next operation, on this key.
    pub(super) fn one(&self, begun: &Begun, key: usize) -> One<'_> {
        One {
            work: self,
            client: begun.client.with(self.env(begun.process, PATIENT)),
            c: begun.c.clone(),
            object: (begun.domain, format!("key-{key}")),
            process: begun.process,
            who: begun.who,
            task: begun.process * TASKS,
        }
    }

    pub(super) fn must_end(&self, what: &str, begun: &Begun, end: &End) {
        if matches!(end, End::TimedOut) {
            self.stuck(what, begun.process);
        }
    }

    /// Creates the domain, under a name that no other one has. False: it was not possible, which is a violation.
    pub(super) async fn found(&self, begun: &Begun, name: &str) -> bool {
        let root = begun.client.root(&self.root);
        let created = root.create_domain(name, &begun.c).await;
        if created.is_err() {
            self.stuck("create", begun.process);
            return false;
        }
        self.world.know(&begun.c);
        true
    }

    /// Everything on each of these keys.
    pub(super) async fn go_on(&self, begun: &Begun, keys: Range<usize>) {
        for key in keys {
            let one = || self.one(begun, key);
            let ends = [
                ("get", one().get().await),
                ("put", one().put().await),
                ("put --if-version", one().cover().await),
                ("stat", one().stat().await),
                ("list", one().list().await),
                ("delete", one().delete().await),
                ("put", one().put().await),
                ("get", one().get().await),
            ];
            for (what, end) in ends {
                self.must_end(what, begun, &end);
            }
        }
    }
}
