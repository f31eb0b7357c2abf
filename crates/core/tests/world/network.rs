//! The network of the tiny world: a list of messages in flight. Nothing is delivered but by the test or the scheduler.

use super::call::Origin;
use super::{World, server};
use areo_core::config::ServerId;
use areo_core::element::ReplyElement;
use areo_core::instant::Instant;
use areo_core::message::{
    Access, Answer, Body, CellRequest, Enrolment, HeldVersions, Note, Refusal, Reply, Request, Want,
};
use areo_core::object::{Kind, Name};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

pub(super) type Filter = Box<dyn Fn(&Message) -> bool>;

#[derive(Clone)]
pub struct Message {
    /// The receiver; the sender if it is a reply.
    pub server: ServerId,
    pub content: Content,
    /// The earliest time of its arrival.
    due: Instant,
}

#[derive(Clone)]
pub enum Content {
    Request(Origin, Request),
    /// A reply, with what it answers.
    Reply(Origin, Request, Result<Reply, Refusal>),
    Note(Note),
}

impl Message {
    pub fn is_reply(&self) -> bool {
        matches!(self.content, Content::Reply(..))
    }

    /// The access that it asks for, or that it answers.
    pub fn access(&self) -> Option<&Access> {
        self.first().map(|(_, access)| access)
    }

    fn first(&self) -> Option<&(Name, Access)> {
        match &self.content {
            Content::Request(_, Request::Configured { body, .. })
            | Content::Reply(_, Request::Configured { body, .. }, _) => match body {
                Body::Access(accesses) => accesses.first(),
                _ => None,
            },
            _ => None,
        }
    }

    /// It is about a block with data.
    pub fn is_of_block(&self) -> bool {
        self.first()
            .is_some_and(|(name, _)| name.kind() == Kind::Block)
    }

    /// It is about the genesis block of a file.
    pub fn is_of_genesis(&self) -> bool {
        self.first()
            .is_some_and(|(name, _)| name.kind() == Kind::Genesis)
    }

    pub fn is_put(&self) -> bool {
        matches!(self.access(), Some(Access::Put { .. }))
    }

    /// A proposal for a ranked register at an ordinary ballot, or its answer.
    pub fn is_proposal(&self) -> bool {
        matches!(self.access(), Some(Access::Accept(proposal)) if !proposal.ballot.is_closing())
    }

    /// A proposal for a ranked register at a closing ballot, or its answer.
    pub fn is_closing_proposal(&self) -> bool {
        matches!(self.access(), Some(Access::Accept(proposal)) if proposal.ballot.is_closing())
    }

    pub fn is_fetch(&self) -> bool {
        matches!(self.access(), Some(Access::Fetch { .. }))
    }

    /// FIN, of a writer or a reader, or its answer.
    pub fn is_fin(&self) -> bool {
        matches!(self.access(), Some(Access::Finalize { .. }))
    }

    /// FIN2, or its answer.
    pub fn completes(&self) -> bool {
        matches!(self.access(), Some(Access::Finalize { complete: true, .. }))
    }

    /// FIN of a reader that takes an element.
    pub fn is_taking(&self) -> bool {
        matches!(self.access(), Some(Access::Finalize { want, .. }) if *want != Want::Tags)
    }

    pub fn is_query(&self) -> bool {
        matches!(self.access(), Some(Access::Query { .. }))
    }

    /// A proposer asks to accept a value, or is answered.
    pub fn is_cell_accept(&self) -> bool {
        let request = match &self.content {
            Content::Request(_, request) | Content::Reply(_, request, _) => request,
            Content::Note(_) => return false,
        };
        let accept = |step: &CellRequest| matches!(step, CellRequest::Accept { .. });
        matches!(request, Request::Configured { body: Body::Cell { step, .. }, .. } if accept(step))
    }

    /// A proposer asks for a promise, or is answered.
    pub fn is_prepare(&self) -> bool {
        let (Content::Request(_, request) | Content::Reply(_, request, _)) = &self.content else {
            return false;
        };
        let prepare = |step: &CellRequest| matches!(step, CellRequest::Prepare { .. });
        matches!(request, Request::Configured { body: Body::Cell { step, .. }, .. } if prepare(step))
    }

    /// A reconfigurer posts a change, or is answered.
    pub fn is_posting(&self) -> bool {
        let (Content::Request(_, request) | Content::Reply(_, request, _)) = &self.content else {
            return false;
        };
        let join = |step: &CellRequest| matches!(step, CellRequest::Join(_));
        matches!(request, Request::Configured { body: Body::Cell { step, .. }, .. } if join(step))
    }

    /// It makes a record of a server known to a member that has not registered it.
    pub fn is_hand_on(&self) -> bool {
        self.is_enrolment(Enrolment::HandOn)
    }

    /// It registers a start.
    pub fn is_registration(&self) -> bool {
        self.is_enrolment(Enrolment::Register)
    }

    fn is_enrolment(&self, wanted: Enrolment) -> bool {
        let Content::Request(_, Request::Configured { body, .. }) = &self.content else {
            return false;
        };
        matches!(body, Body::Register { step, .. } if *step == wanted)
    }

    /// It asks which servers are registered.
    pub fn asks_for_servers(&self) -> bool {
        let Content::Request(_, Request::Configured { body, .. }) = &self.content else {
            return false;
        };
        matches!(body, Body::Servers)
    }

    /// It asks what comes next, or answers that.
    pub fn is_config(&self) -> bool {
        let request = match &self.content {
            Content::Request(_, request) | Content::Reply(_, request, _) => request,
            Content::Note(_) => return false,
        };
        let body = |request: &Request| match request {
            Request::Configured { body, .. } => Some(body.clone()),
            _ => None,
        };
        body(request) == Some(Body::ReadConfig)
    }

    pub fn is_note(&self) -> bool {
        matches!(self.content, Content::Note(_))
    }

    /// It goes to, or comes from, one of these servers, numbered from 0.
    pub fn at(&self, servers: &[usize]) -> bool {
        servers.iter().any(|s| server(*s) == self.server)
    }
}

impl World {
    /// Messages for which `filter` holds stay where they are until [`World::release`].
    pub fn hold(&self, filter: impl Fn(&Message) -> bool + 'static) {
        self.0.held.borrow_mut().push(Box::new(filter));
    }

    /// Nothing is held any more.
    pub fn release(&self) {
        self.0.held.borrow_mut().clear();
    }

    /// Sets the latency of messages that are sent from now on.
    pub fn latency(&self, time: Duration) {
        self.0.latency.set(time);
    }

    /// Adds a random time up to `most` to the latency.
    pub fn jitter(&self, most: Duration) {
        self.0.jitter.set(most);
    }

    /// Hints to clients that this server was slow lately.
    pub fn hint_slow(&self, number: usize) {
        self.0.slow.borrow_mut().insert(server(number));
    }

    /// The number of such messages in flight.
    pub fn in_flight(&self, filter: impl Fn(&Message) -> bool) -> usize {
        let flight = self.0.flight.borrow();
        flight.iter().filter(|message| filter(message)).count()
    }

    /// Loses messages; returns how many.
    pub fn lose(&self, filter: impl Fn(&Message) -> bool) -> usize {
        self.take(filter).len()
    }

    /// Takes messages out of the network, for [`World::put_back`].
    pub fn set_aside(&self, filter: impl Fn(&Message) -> bool) -> Vec<Message> {
        self.take(filter)
    }

    /// Begins an operation of which these messages stay on their way, for [`World::put_back`]. Where it ends, and they.
    pub fn begin<T: 'static>(
        &self,
        late: impl Fn(&Message) -> bool + Clone + 'static,
        operation: impl Future<Output = T> + 'static,
    ) -> (Rc<RefCell<Option<T>>>, Vec<Message>) {
        self.hold(late.clone());
        let begun = self.spawn(operation);
        self.settle();
        let late = self.set_aside(late);
        self.release();
        (begun, late)
    }

    /// Puts these messages in flight again, as late ones.
    pub fn put_back(&self, messages: Vec<Message>) {
        self.0.flight.borrow_mut().extend(messages);
    }

    /// Delivers these now, held or not, in the order of sending; returns how many. Clients notice at the next step.
    pub fn deliver(&self, filter: impl Fn(&Message) -> bool) -> usize {
        let chosen = self.take(filter);
        let count = chosen.len();
        for message in chosen {
            self.carry(message);
        }
        count
    }

    /// Doubles messages in flight.
    pub fn duplicate(&self, filter: impl Fn(&Message) -> bool) {
        let mut flight = self.0.flight.borrow_mut();
        let twice: Vec<Message> = flight.iter().filter(|m| filter(m)).cloned().collect();
        flight.extend(twice);
    }

    /// Delivers all puts and their answers, and loses all notes: what clients leave behind that end at once.
    pub fn settle_puts_and_lose_notes(&self) {
        while self.in_flight(|_| true) > 0 {
            self.lose(Message::is_note);
            self.deliver(|_| true);
        }
    }

    fn take(&self, filter: impl Fn(&Message) -> bool) -> Vec<Message> {
        let mut flight = self.0.flight.borrow_mut();
        flight.extract_if(.., |message| filter(message)).collect()
    }

    pub(super) fn send(&self, server: ServerId, content: Content) {
        let mut due = self.now().plus(self.0.latency.get());
        let jitter = self.0.jitter.get().as_nanos() as u64;
        if jitter > 0 {
            due = due.plus(Duration::from_nanos(self.draw() % jitter));
        }
        if due > self.now() {
            self.0.timers.borrow_mut().insert(due);
        }
        let message = Message {
            server,
            content,
            due,
        };
        self.0.flight.borrow_mut().push(message);
    }

    /// Keeps a request until its server is back.
    pub(super) fn park(&self, server: ServerId, content: Content) {
        let due = self.now();
        let message = Message {
            server,
            content,
            due,
        };
        self.0.parked.borrow_mut().push(message);
    }

    pub(super) fn deliver_one(&self) -> bool {
        let Some(message) = self.choose() else {
            return false;
        };
        let chaos = self.0.chaos.get();
        if chaos.is_some_and(|chaos| self.chance(chaos.duplicate)) {
            self.0.flight.borrow_mut().push(message.clone());
        }
        if !chaos.is_some_and(|chaos| self.chance(chaos.lose)) {
            self.carry(message);
        }
        true
    }

    fn choose(&self) -> Option<Message> {
        let (held, now) = (self.0.held.borrow(), self.now());
        let free = |m: &Message| m.due <= now && !held.iter().any(|filter| filter(m));
        let mut flight = self.0.flight.borrow_mut();
        if self.0.chaos.get().is_none() {
            let first = flight.iter().position(free)?;
            return Some(flight.remove(first));
        }
        let candidates: Vec<usize> = (0..flight.len()).filter(|i| free(&flight[*i])).collect();
        match candidates.len() {
            0 => None,
            several => Some(flight.swap_remove(candidates[self.below(several)])),
        }
    }

    fn carry(&self, message: Message) {
        let Message {
            server, content, ..
        } = message;
        let now = self.now();
        let replies = {
            let mut machines = self.0.machines.borrow_mut();
            let machine = machines.get_mut(&server).expect("servers are known");
            match content {
                Content::Reply(origin, _, mut reply) => {
                    drop(machines);
                    if let (Some(bend), Ok(reply)) = (&*self.0.bent.borrow(), &mut reply) {
                        bend(server, reply);
                    }
                    return origin.answer(reply);
                }
                Content::Note(note) => machine.batch(|shard| shard.note(now, note)),
                Content::Request(origin, request) => {
                    self.0.put_bytes.update(|bytes| bytes + put_bytes(&request));
                    self.0.requests.update(|requests| requests + 1);
                    let caller = (origin, request.clone());
                    machine.receive(now, caller, request)
                }
            }
        };
        for ((origin, request), reply) in replies {
            let carried = reply.as_ref().map_or(0, element_bytes);
            self.0.element_bytes.update(|bytes| bytes + carried);
            self.send(server, Content::Reply(origin, request, reply));
        }
    }

    /// Changes replies like this from now on, before they arrive.
    pub fn bend_replies(&self, bend: impl Fn(ServerId, &mut Reply) + 'static) {
        *self.0.bent.borrow_mut() = Some(Box::new(bend));
    }

    /// Kills a server: its memory and its connections are gone, its disk is not. What was asked of it and not answered is
    /// asked again when it is back.
    pub fn crash(&self, number: usize) {
        let id = server(number);
        self.stop_machine(id);
        for message in self.take(|message| message.server == id) {
            if let Content::Request(origin, request) | Content::Reply(origin, request, _) =
                message.content
            {
                self.park(id, Content::Request(origin.clone(), request));
                origin.unreachable();
            }
        }
    }

    /// Starts it again, from its disk. `resurrect`: some of the records that it had dropped are found again, too.
    pub fn restart(&self, number: usize, resurrect: bool) {
        self.start(number, resurrect, true);
    }

    /// Starts it again, and no server confirms that yet.
    pub fn start_unconfirmed(&self, number: usize) {
        self.start(number, false, false);
    }

    fn start(&self, number: usize, resurrect: bool, serves: bool) {
        let id = server(number);
        self.start_machine(id, resurrect, serves);
        let mut parked = self.0.parked.borrow_mut();
        let back = parked.extract_if(.., |message| message.server == id);
        self.0.flight.borrow_mut().extend(back);
    }
}

fn put_bytes(request: &Request) -> usize {
    let Request::Configured {
        body: Body::Access(accesses),
        ..
    } = request
    else {
        return 0;
    };
    let put = |(_, access): &(_, Access)| match access {
        Access::Put { element, .. } => element.payload.len(),
        _ => 0,
    };
    accesses.iter().map(put).sum()
}

fn element_bytes(reply: &Reply) -> usize {
    let Some(answers) = reply.answers() else {
        return 0;
    };
    let carried = |answer: &Answer| match answer {
        Answer::Held(HeldVersions {
            element: Some((_, ReplyElement::Whole(element))),
            ..
        })
        | Answer::Fetched(ReplyElement::Whole(element)) => element.payload.len(),
        _ => 0,
    };
    answers.iter().map(carried).sum()
}
