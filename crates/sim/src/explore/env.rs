//! [`Env`] for exploration: a quorum call puts its requests into a list and waits to be fed. Nothing is delivered, lost
//! or timed here; whoever explores or scripts decides what a client is fed next.

use areo_core::config::{Members, ServerId};
use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::gather::{Call, Deadline};
use areo_core::instant::Instant;
use areo_core::message::{Note, Request};
use areo_core::tally::{Event, Tally};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::random::mix;

/// The world of one client of a case.
#[derive(Clone)]
pub struct ExploreEnv(Rc<World>);

/// The environment of one client: the messages that it sent and the quorum calls that it waits for.
pub(super) struct World {
    client: u64,
    drawn: Cell<u64>,
    sent: RefCell<Vec<Sent>>,
    /// Quorum calls by number; a call is dropped once it is decided.
    calls: RefCell<Vec<Weak<dyn Sink>>>,
    /// Pauses that the operation under way may make yet; `None`: as many as it wants.
    pauses: Cell<Option<usize>>,
    /// The operation wanted more pauses than it may make.
    gave_up: Cell<bool>,
    /// Counts everything that others can see: messages, and quorum calls that were decided.
    visible: Cell<u64>,
}

/// A message on its way.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) to: ServerId,
    /// The quorum call that waits for the answer, and the position there; a note has none.
    pub(super) call: Option<(usize, usize)>,
    pub(super) what: Message,
}

/// A message to a server, or an event at a server.
#[derive(Clone, Debug)]
pub enum Message {
    /// Somebody waits for its reply.
    Request(Request),
    /// A note, which has no reply.
    Note(Note),
    /// No message: the time after which a server lets superseded versions of quiet objects go
    /// (`[X-3 unconfirmed-cap]`).
    Quiet,
    /// It is time to gossip.
    Gossip,
    /// No message: the server's disk has no room for any put from now on.
    Full,
}

/// A quorum call that waits.
trait Sink {
    fn feed(&self, position: usize, event: Event);
    fn tick(&self);
    fn is_open(&self) -> bool;
    fn wants_tick(&self) -> bool;
}

impl World {
    pub(super) fn new(client: usize) -> Rc<World> {
        Rc::new(World {
            client: client as u64 + 1,
            drawn: Cell::new(0),
            sent: RefCell::default(),
            calls: RefCell::default(),
            pauses: Cell::new(None),
            gave_up: Cell::new(false),
            visible: Cell::new(0),
        })
    }

    pub(super) fn env(self: &Rc<World>) -> ExploreEnv {
        ExploreEnv(Rc::clone(self))
    }

    /// A counter of everything that other processes could have seen so far.
    pub(super) fn visible(&self) -> u64 {
        self.visible.get()
    }

    pub(super) fn sent(&self) -> std::cell::Ref<'_, Vec<Sent>> {
        self.sent.borrow()
    }

    fn call(&self, number: usize) -> Option<Rc<dyn Sink>> {
        self.calls.borrow()[number].upgrade()
    }

    /// The quorum calls that are not decided.
    pub(super) fn open(&self) -> Vec<usize> {
        let calls = self.calls.borrow();
        let open = |number: &usize| calls[*number].upgrade().is_some_and(|call| call.is_open());
        (0..calls.len()).filter(open).collect()
    }

    /// The quorum calls for which time may run out.
    pub(super) fn impatient(&self) -> Vec<usize> {
        let wants = |number: &usize| self.call(*number).is_some_and(|call| call.wants_tick());
        let mut open = self.open();
        open.retain(wants);
        open
    }

    /// Feeds the answer to a message to the call that waits for it; one that was decided does not hear it.
    pub(super) fn answer(&self, message: usize, event: Event) {
        let call = self.sent.borrow()[message].call;
        let (number, position) = call.expect("notes are not answered");
        if let Some(call) = self.call(number) {
            call.feed(position, event);
        }
    }

    /// Lets a call's patience run out.
    pub(super) fn tick(&self, call: usize) {
        if let Some(call) = self.call(call) {
            call.tick();
        }
    }

    fn show(&self) {
        self.visible.set(self.visible.get() + 1);
    }
}

struct Gather<T: Tally> {
    world: Rc<World>,
    number: usize,
    call: RefCell<Call<T>>,
}

impl<T: Tally> Gather<T> {
    /// Puts the requests of the call into the list of sent messages.
    fn carry_out(&self) {
        let mut call = self.call.borrow_mut();
        while let Some(next) = call.next_request() {
            call.sent(&next, 0);
            let sent = Sent {
                to: next.server,
                call: Some((self.number, next.position)),
                what: Message::Request(next.request),
            };
            self.world.sent.borrow_mut().push(sent);
            self.world.show();
        }
        if !call.is_open() {
            self.world.show();
        }
    }
}

impl<T: Tally> Sink for Gather<T> {
    fn feed(&self, position: usize, event: Event) {
        if self.is_open() {
            let mut call = self.call.borrow_mut();
            call.hear(position, event, Instant::default());
            drop(call);
            self.carry_out();
        }
    }

    fn tick(&self) {
        if self.is_open() {
            self.call.borrow_mut().tick();
            self.carry_out();
        }
    }

    fn is_open(&self) -> bool {
        self.call.borrow().is_open()
    }

    fn wants_tick(&self) -> bool {
        self.call.borrow().is_impatient()
    }
}

impl ExploreEnv {
    /// Lets an operation begin that gives up when it wants to pause once more.
    pub(super) fn allow_pauses(&self, pauses: usize) {
        self.0.pauses.set(Some(pauses));
        self.0.gave_up.set(false);
    }

    pub(super) fn gave_up(&self) -> bool {
        self.0.gave_up.get()
    }
}

impl Env for ExploreEnv {
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>> {
        let (world, members) = (Rc::clone(&self.0), to.clone());
        async move {
            let number = world.calls.borrow().len();
            let now = Instant::default();
            let call = Call::new(&members, tally, &Deadline::after(now, Duration::MAX), now);
            let gather = Rc::new(Gather {
                call: RefCell::new(call),
                world: Rc::clone(&world),
                number,
            });
            let sink: Rc<dyn Sink> = gather.clone();
            world.calls.borrow_mut().push(Rc::downgrade(&sink));
            drop(sink);
            gather.carry_out();
            poll_fn(|_| {
                let outcome = gather.call.borrow_mut().take();
                outcome.map_or(Poll::Pending, Poll::Ready)
            })
            .await
        }
    }

    fn tell(&self, to: &Members, note: Note) {
        for server in to.iter() {
            let sent = Sent {
                to: *server,
                call: None,
                what: Message::Note(note.clone()),
            };
            self.0.sent.borrow_mut().push(sent);
        }
        self.0.show();
    }

    /// Over at once: nothing orders a client's pause and other events but messages, and those may take as long. After as many as
    /// the operation may make it gives up.
    fn sleep(&self, _time: Duration) -> impl Future<Output = ()> {
        let World {
            pauses, gave_up, ..
        } = &*self.0;
        match pauses.get() {
            Some(0) => gave_up.set(true),
            allowed => pauses.set(allowed.map(|allowed| allowed - 1)),
        }
        let gave_up = gave_up.get();
        async move {
            if gave_up {
                std::future::pending::<()>().await;
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::default()
    }

    /// Numbers that are equal in every run, and different for every client.
    fn random(&self) -> u64 {
        let World { client, drawn, .. } = &*self.0;
        drawn.set(drawn.get() + 1);
        match drawn.get() {
            // What a client draws first is its identity: small numbers can be read.
            1 => *client,
            number => mix(*client << 32 | number),
        }
    }

    fn slow(&self, _server: ServerId) -> bool {
        false
    }
}
