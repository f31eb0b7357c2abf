//! The quorum call of the tiny world: [`Env`] over a list of messages.

use super::{CallReach, Content, World};
use areo_core::config::{Decider, Members, ServerId};
use areo_core::env::Env;
use areo_core::error::{DeciderError, Unavailable};
use areo_core::gather::{Call, Deadline};
use areo_core::instant::Instant;
use areo_core::message::{Note, Refusal, Reply};
use areo_core::tally::{Event, Tally};
use bytes::Bytes;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

/// The world of one operation.
#[derive(Clone)]
pub struct WorldEnv {
    pub world: World,
    deadline: Deadline,
    /// The time by which the client's time of day is ahead.
    ahead: Duration,
}

impl WorldEnv {
    pub fn new(world: World, timeout: Duration) -> WorldEnv {
        WorldEnv {
            deadline: Deadline::after(world.now(), timeout),
            world,
            ahead: Duration::ZERO,
        }
    }

    /// The environment of a client whose time of day is ahead by this time.
    pub fn ahead(self, ahead: Duration) -> WorldEnv {
        WorldEnv { ahead, ..self }
    }
}

/// The call that waits for the answer to a request, and the place of the member in it.
#[derive(Clone)]
pub struct Origin(Rc<dyn Sink>, usize);

impl Origin {
    pub(super) fn nobody() -> Origin {
        Origin(Rc::new(()), 0)
    }

    pub(super) fn answer(&self, reply: Result<Reply, Refusal>) {
        self.0
            .event(self.1, reply.map_or_else(Event::Refused, Event::Reply));
    }

    pub(super) fn unreachable(&self) {
        self.0.event(self.1, Event::Unreachable);
    }
}

trait Sink {
    fn event(&self, position: usize, event: Event);
}

impl Sink for () {
    fn event(&self, _position: usize, _event: Event) {}
}

struct Gather<T: Tally> {
    env: WorldEnv,
    myself: Weak<Gather<T>>,
    call: RefCell<Call<T>>,
}

impl<T: Tally + 'static> Gather<T> {
    fn send(&self) {
        let (world, call) = (&self.env.world, &mut *self.call.borrow_mut());
        while let Some(next) = call.next_request() {
            let sink: Rc<dyn Sink> = self.myself.upgrade().expect("the operation holds it");
            let is_up = world.is_server_up(next.server);
            match is_up {
                true => call.sent(&next, 0),
                false => call.held_back(&next, Event::Unreachable, world.now()),
            }
            let content = Content::Request(Origin(sink, next.position), next.request);
            match is_up {
                true => world.send(next.server, content),
                false => world.park(next.server, content),
            }
        }
    }

    /// Lets time pass for the call; the result, if there is one.
    fn poll(&self) -> Option<Result<T::Output, Unavailable>> {
        let world = &self.env.world;
        self.call.borrow_mut().pass(world.now(), |_| 0);
        self.send();
        let call = &mut *self.call.borrow_mut();
        let outcome = call.take();
        if outcome.is_none() {
            world.0.timers.borrow_mut().insert(call.next_time());
        }
        outcome
    }
}

impl<T: Tally + 'static> Sink for Gather<T> {
    fn event(&self, position: usize, event: Event) {
        let now = self.env.world.now();
        self.call.borrow_mut().hear(position, event, now);
        self.send();
    }
}

/// Dropped calls fold nothing any more.
struct Abandon<T: Tally + 'static>(Rc<Gather<T>>);

impl<T: Tally + 'static> Drop for Abandon<T> {
    fn drop(&mut self) {
        self.0.call.borrow_mut().abandon();
    }
}

impl Env for WorldEnv {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let call = Call::new(to, tally, &self.deadline, self.world.now());
        let gather = Rc::new_cyclic(|myself| Gather {
            env: self.clone(),
            myself: myself.clone(),
            call: RefCell::new(call),
        });
        let gathers = &self.world.0.gathers;
        gathers.set(gathers.get() + 1);
        async move {
            let gather = Abandon(gather);
            gather.0.send();
            poll_fn(|_| gather.0.poll().map_or(Poll::Pending, Poll::Ready)).await
        }
    }

    fn tell(&self, to: &Members, note: Note) {
        for server in to.iter() {
            self.world.send(*server, Content::Note(note.clone()));
        }
    }

    fn clock_us(&self) -> u64 {
        self.now().plus(self.ahead).0 / 1000
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> {
        let (world, until) = (self.world.clone(), self.world.now().plus(time));
        poll_fn(move |_| {
            if world.now() >= until {
                return Poll::Ready(());
            }
            world.0.timers.borrow_mut().insert(until);
            Poll::Pending
        })
    }

    fn now(&self) -> Instant {
        self.world.now()
    }

    fn random(&self) -> u64 {
        self.world.draw()
    }

    async fn decide_outside(
        &self,
        service: &Decider,
        key: &str,
        proposal: &Bytes,
    ) -> Result<Bytes, DeciderError> {
        // Others may come first.
        self.sleep(Duration::from_micros(self.random() % 1000))
            .await;
        let mut outside = self.world.outside();
        let reached = outside.reached;
        if reached != CallReach::Refused {
            let decided = outside.decided.entry(key.to_owned());
            let decided = decided.or_insert_with(|| proposal.clone());
            if reached == CallReach::Answered {
                return Ok(decided.clone());
            }
        }
        Err(DeciderError {
            service: service.to_string(),
            reason: "nobody answers".into(),
            handed_over: reached == CallReach::Decided,
        })
    }

    fn progressed(&self) {
        self.deadline.progressed();
    }

    fn slow(&self, server: ServerId) -> bool {
        let down = !self.world.is_server_up(server);
        down || self.world.0.slow.borrow().contains(&server)
    }
}

/// Everything of an [`Env`] around another one (`self.env`) but the quorum call, which is what it is there for.
#[allow(unused_macros)] // every test uses a part of the world
macro_rules! like_the_inner_world {
    () => {
        fn tell(&self, to: &areo_core::config::Members, note: areo_core::message::Note) {
            self.env.tell(to, note);
        }

        fn sleep(&self, time: std::time::Duration) -> impl Future<Output = ()> {
            self.env.sleep(time)
        }

        fn now(&self) -> areo_core::instant::Instant {
            self.env.now()
        }

        fn random(&self) -> u64 {
            self.env.random()
        }

        fn slow(&self, server: areo_core::config::ServerId) -> bool {
            self.env.slow(server)
        }

        async fn decide_outside(
            &self,
            service: &areo_core::config::Decider,
            key: &str,
            proposal: &bytes::Bytes,
        ) -> Result<bytes::Bytes, areo_core::error::DeciderError> {
            self.env.decide_outside(service, key, proposal).await
        }
    };
}
pub(crate) use like_the_inner_world;
