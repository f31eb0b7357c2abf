//! Wrong clients: what the oracle must catch.

use crate::world::{Actor, WorldEnv, name};
use areo_core::config::{Members, ServerId};
use areo_core::dap::{self, FoundVersion, Scope};
use areo_core::dsm::Client;
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::gather::Visit;
use areo_core::instant::Instant;
use areo_core::message::{Note, Request};
use areo_core::tag::Tag;
use areo_core::tally::{Decision, Event, Tally};
use std::time::Duration;

/// A read that believes every version to be complete.
pub fn read_without_write_back(
    actor: &Actor,
    key: &str,
) -> impl Future<Output = Option<FoundVersion>> + use<> {
    let (client, c, name) = (actor.client(), actor.c.clone(), name(key));
    async move {
        let found = dap::get_data(&client.env, &Visit::new(&c), &name, None, Scope::Whole).await;
        found.ok()
    }
}

/// A world in which the first reply to every quorum call counts twice: quorums have one member too few.
#[derive(Clone)]
pub struct Hasty(WorldEnv);

impl Hasty {
    pub fn read(actor: &Actor, key: &str) -> impl Future<Output = Option<FoundVersion>> + use<> {
        let (client, c, name) = (
            Client::new(Hasty(actor.client().env)),
            actor.c.clone(),
            name(key),
        );
        async move { client.domain(&c).read(&name, None).await.ok() }
    }

    pub fn write(
        actor: &Actor,
        key: &str,
        value: Value,
    ) -> impl Future<Output = Option<Tag>> + use<> {
        let (client, c, name) = (
            Client::new(Hasty(actor.client().env)),
            actor.c.clone(),
            name(key),
        );
        async move { client.domain(&c).write(&name, &value).await.ok() }
    }
}

struct Twice<T> {
    tally: T,
    members: usize,
    lied: bool,
}

impl<T: Tally> Tally for Twice<T> {
    type Output = T::Output;

    fn needed(&self) -> usize {
        self.tally.needed()
    }

    fn ask(&mut self, position: usize) -> Option<Request> {
        self.tally.ask(position)
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<T::Output> {
        let lie = matches!(event, Event::Reply(_)) && !self.lied;
        match self.tally.add(from, event.clone()) {
            Decision::Pending if lie => {
                self.lied = true;
                self.tally.add((from + 1) % self.members, event)
            }
            decision => decision,
        }
    }

    fn tick(&mut self) -> Decision<T::Output> {
        self.tally.tick()
    }

    fn patience(&self) -> Option<Duration> {
        self.tally.patience()
    }
}

impl Env for Hasty {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let (members, lied) = (to.len(), false);
        self.0.gather(
            to,
            Twice {
                tally,
                members,
                lied,
            },
        )
    }

    fn tell(&self, to: &Members, note: Note) {
        self.0.tell(to, note);
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        self.0.sleep(time)
    }

    fn now(&self) -> Instant {
        self.0.now()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn slow(&self, server: ServerId) -> bool {
        self.0.slow(server)
    }
}
