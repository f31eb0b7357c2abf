//! The work of clients when everything was mended: every operation once more, on every key. All of it must succeed.

use super::operation::One;
use super::{DOMAINS, End, PATIENT, PROCESSES, TASKS, Workload, moving};
use areo_core::dsm::Client;
use std::rc::Rc;

impl Workload {
    /// Runs every operation once more, on every key, and reports those that fail.
    pub(crate) fn start_finale(self: &Rc<Self>) {
        for process in 0..PROCESSES {
            self.busy.set(self.busy.get() + 1);
            let work = Rc::clone(self);
            self.world.spawn(async move {
                Box::pin(work.finale(process)).await;
                work.busy.set(work.busy.get() - 1);
            });
        }
    }

    async fn finale(self: &Rc<Self>, process: usize) {
        let client = Client::new(self.env(process, PATIENT));
        let who = self.live();
        let root = One {
            work: self,
            client: client.with(self.env(process, PATIENT)),
            c: self.root.clone(),
            object: (moving::ROOT, String::new()),
            process,
            who,
            task: process * TASKS,
        };
        if matches!(root.resume().await, End::TimedOut) {
            return self.stuck("reconfig --resume of the root domain", process);
        }
        if !self.start_again(process).await {
            return self.stuck("a start with --hardware-id", process);
        }
        if matches!(self.trust_again(&root).await, End::TimedOut) {
            return self.stuck("a change of tokens and keys", process);
        }
        for (domain, name) in DOMAINS.into_iter().enumerate() {
            let Some(c) = self
                .create(&client.with(self.env(process, PATIENT)), name)
                .await
            else {
                return self.stuck("create", process);
            };
            let one = |key: usize| One {
                work: self,
                client: client.with(self.env(process, PATIENT)),
                c: c.clone(),
                object: (domain, format!("key-{key}")),
                process,
                who,
                task: process * TASKS,
            };
            if matches!(one(0).resume().await, End::TimedOut) {
                return self.stuck("reconfig --resume", process);
            }
            let mut ends = vec![
                ("file pull", one(0).pull_file().await),
                ("file push", one(0).push_file().await),
                ("sweep of files", one(0).sweep_files().await),
                ("writing of blocks", one(0).rewrite_blocks().await),
            ];
            for key in 0..self.shape.keys {
                ends.extend([
                    ("get", one(key).get().await),
                    ("put", one(key).put().await),
                    ("put --if-version", one(key).cover().await),
                    ("put in blocks", one(key).put_large().await),
                    ("get", one(key).get().await),
                    ("sweep", one(key).sweep().await),
                    ("stat", one(key).stat().await),
                    ("list", one(key).list().await),
                    ("delete", one(key).delete().await),
                    ("put", one(key).put().await),
                    ("get", one(key).get().await),
                ]);
            }
            for (what, end) in ends {
                if matches!(end, End::TimedOut) {
                    self.stuck(what, process);
                }
            }
        }
    }

    /// Starts a client of the hardware of this process twice; whether that was possible. A start covers the last complete number, and may so write below a
    /// number that another start has left half way. The second one writes above it, so that everything that was written in trouble is confirmed then.
    async fn start_again(&self, process: usize) -> bool {
        let named = Client::new(self.env(process, PATIENT));
        self.reincarnate(process, &named).await && self.reincarnate(process, &named).await
    }

    /// Sweeps both domains once more, of all that may go.
    pub(crate) fn start_closing(self: &Rc<Self>) {
        self.busy.set(self.busy.get() + 1);
        let work = Rc::clone(self);
        self.world.spawn(async move {
            Box::pin(work.closing()).await;
            work.busy.set(work.busy.get() - 1);
        });
    }

    async fn closing(self: &Rc<Self>) {
        let client = Client::new(self.env(0, PATIENT));
        let who = self.live();
        for (domain, name) in DOMAINS.into_iter().enumerate() {
            let c = self.decided.borrow()[name].clone();
            let one = One {
                work: self,
                client: client.with(self.env(0, PATIENT)),
                c,
                object: (domain, String::new()),
                process: 0,
                who,
                task: 0,
            };
            let ends = [
                ("sweep of all", one.sweep_all().await),
                ("sweep of files", one.sweep_files().await),
            ];
            for (what, end) in ends {
                if matches!(end, End::TimedOut) {
                    self.stuck(what, 0);
                }
            }
        }
    }

    pub(super) fn stuck(&self, what: &str, process: usize) {
        let sentence =
            format!("liveness: {what} of client {process} does not finish when all is mended");
        self.world.violate(sentence);
    }
}
