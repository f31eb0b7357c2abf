//! The quorum call of the tiny world: [`Env`] over a list of messages.

use super::{Content, Reached, World};
use areo_core::config::{Decider, Members, ServerId};
use areo_core::env::Env;
use areo_core::error::{Response, Unavailable, Undecided};
use areo_core::instant::Instant;
use areo_core::message::{Note, Refusal, Reply};
use areo_core::tally::{Decision, Event, Tally};
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
    started: Instant,
    deadline: Instant,
}

impl WorldEnv {
    pub fn new(world: World, timeout: Duration) -> WorldEnv {
        let started = world.now();
        WorldEnv {
            deadline: started.plus(timeout),
            world,
            started,
        }
    }
}

/// Who waits for the answer to a request.
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

struct Call<T: Tally> {
    env: WorldEnv,
    members: Members,
    myself: Weak<Call<T>>,
    state: RefCell<State<T>>,
}

struct State<T: Tally> {
    /// `None` once it is decided: a tally is dropped with its call.
    tally: Option<T>,
    needed: usize,
    responses: Vec<Response>,
    handed_over: bool,
    outcome: Outcome<T::Output>,
    last_event: Instant,
}

enum Outcome<T> {
    Open,
    Done(T),
    /// Impossible, or out of time.
    Failed,
}

impl<T: Tally + 'static> Call<T> {
    fn carry_out(&self, decision: Decision<T::Output>) {
        let mut decisions = vec![decision];
        while let Some(decision) = decisions.pop() {
            match decision {
                Decision::Pending => {}
                Decision::Done(output) => self.finish(Outcome::Done(output)),
                Decision::Impossible => self.finish(Outcome::Failed),
                Decision::Ask(positions) => {
                    for position in positions {
                        if let Some(event) = self.ask(position) {
                            decisions.push(self.fold(position, event));
                        }
                    }
                }
            }
        }
    }

    fn finish(&self, outcome: Outcome<T::Output>) {
        let mut state = self.state.borrow_mut();
        if state.tally.take().is_some() {
            state.outcome = outcome;
        }
    }

    fn fold(&self, position: usize, event: Event) -> Decision<T::Output> {
        let mut state = self.state.borrow_mut();
        state.last_event = self.env.world.now();
        state.responses[position] = match &event {
            Event::Reply(reply) => reply
                .refusal()
                .map_or(Response::Answered, Response::Refused),
            Event::Refused(refusal) => Response::Refused(*refusal),
            Event::Unreachable => Response::Unreachable,
        };
        match &mut state.tally {
            Some(tally) => tally.add(position, event),
            None => Decision::Pending,
        }
    }

    fn ask(&self, position: usize) -> Option<Event> {
        let mut state = self.state.borrow_mut();
        let request = state.tally.as_mut()?.ask(position)?;
        let server = self.members[position];
        let sink: Rc<dyn Sink> = self.myself.upgrade().expect("whoever asks holds it");
        let content = Content::Request(Origin(sink, position), request);
        let world = &self.env.world;
        if !world.is_server_up(server) {
            world.park(server, content);
            return Some(Event::Unreachable);
        }
        state.handed_over = true;
        world.send(server, content);
        None
    }

    /// Ends the call if its time has come; lets the tally tick if it has waited long enough.
    fn poll(&self) -> Option<Result<T::Output, Unavailable>> {
        let (world, deadline) = (&self.env.world, self.env.deadline);
        let now = world.now();
        let patience = {
            let state = self.state.borrow();
            state
                .tally
                .as_ref()
                .and_then(|tally| Some(state.last_event.plus(tally.patience()?)))
        };
        if patience.is_some_and(|patience| patience <= now) {
            let decision = {
                let mut state = self.state.borrow_mut();
                state.last_event = now;
                state.tally.as_mut().map_or(Decision::Pending, Tally::tick)
            };
            self.carry_out(decision);
            return self.poll();
        }
        if deadline <= now {
            self.finish(Outcome::Failed);
        }
        let mut timers = world.0.timers.borrow_mut();
        timers.extend(
            [deadline]
                .into_iter()
                .chain(patience)
                .filter(|time| *time > now),
        );
        let mut state = self.state.borrow_mut();
        match std::mem::replace(&mut state.outcome, Outcome::Open) {
            Outcome::Open => None,
            Outcome::Done(output) => Some(Ok(output)),
            Outcome::Failed => Some(Err(Unavailable {
                configuration: None,
                needed: state.needed,
                servers: (self.members.iter().copied())
                    .zip(state.responses.iter().copied())
                    .collect(),
                waited: now.since(self.env.started),
                handed_over: state.handed_over,
                obstacle: None,
            })),
        }
    }
}

impl<T: Tally + 'static> Sink for Call<T> {
    fn event(&self, position: usize, event: Event) {
        self.state.borrow_mut().handed_over |= event != Event::Unreachable;
        let decision = self.fold(position, event);
        self.carry_out(decision);
    }
}

/// Dropped calls fold nothing any more.
struct Abandon<T: Tally + 'static>(Rc<Call<T>>);

impl<T: Tally + 'static> Drop for Abandon<T> {
    fn drop(&mut self) {
        self.0.finish(Outcome::Failed);
    }
}

impl Env for WorldEnv {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let state = State {
            needed: tally.needed(),
            tally: Some(tally),
            responses: vec![Response::Silent; to.len()],
            handed_over: false,
            outcome: Outcome::Open,
            last_event: self.world.now(),
        };
        let (env, members) = (self.clone(), to.clone());
        let call = Rc::new_cyclic(|myself| Call {
            env,
            members,
            myself: myself.clone(),
            state: RefCell::new(state),
        });
        let gathers = &self.world.0.gathers;
        gathers.set(gathers.get() + 1);
        async move {
            let call = Abandon(call);
            call.0
                .carry_out(Decision::Ask((0..call.0.members.len()).collect()));
            poll_fn(|_| call.0.poll().map_or(Poll::Pending, Poll::Ready)).await
        }
    }

    fn tell(&self, to: &Members, note: Note) {
        for server in to.iter() {
            self.world.send(*server, Content::Note(note.clone()));
        }
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
    ) -> Result<Bytes, Undecided> {
        // Others may come first.
        self.sleep(Duration::from_micros(self.random() % 1000))
            .await;
        let mut outside = self.world.outside();
        let reached = outside.reached;
        if reached != Reached::Refused {
            let decided = outside.decided.entry(key.to_owned());
            let decided = decided.or_insert_with(|| proposal.clone());
            if reached == Reached::Answered {
                return Ok(decided.clone());
            }
        }
        Err(Undecided {
            service: service.to_string(),
            reason: "nobody answers".into(),
            handed_over: reached == Reached::Decided,
        })
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
    };
}
pub(crate) use like_the_inner_world;
