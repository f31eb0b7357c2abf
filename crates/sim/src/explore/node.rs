//! One client and one server of a case, alive: driven message by message. An exploration replays them from their start,
//! because a future cannot be copied; a script drives them directly.

use super::disk::ExploredRecords;
use super::env::{ExploreEnv, Message, World};
use super::{Answers, Case, Operation, Outcome};
use areo_core::config::{Configuration, ServerId};
use areo_core::dsm::Client;
use areo_core::instant::Instant;
use areo_core::message::{Access, Answer, Body, Note, Reply, Request, Want};
use areo_core::object::Name;
use areo_core::pointer::Successors;
use areo_core::server::Identity;
use areo_core::shard::Shard;
use areo_core::tag::Tag;
use areo_core::tally::Event;
use areo_node::{Job, Node, Sizes};
use areo_wire::codec;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type OperationFuture = Pin<Box<dyn Future<Output = Outcome>>>;

/// A client with the operations of its program.
pub(super) struct LiveClient {
    pub(super) world: Rc<World>,
    client: Client<ExploreEnv>,
    program: Rc<[Operation]>,
    running: Option<OperationFuture>,
    pub(super) invoked: usize,
    pub(super) ended: Vec<Outcome>,
}

impl LiveClient {
    pub(super) fn new(number: usize, program: &Rc<[Operation]>) -> LiveClient {
        let world = World::new(number);
        LiveClient {
            client: Client::new(world.env()),
            world,
            program: Rc::clone(program),
            running: None,
            invoked: 0,
            ended: Vec::new(),
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Begins the next operation.
    pub(super) fn invoke(&mut self) {
        assert!(!self.is_busy(), "one operation at a time");
        let operation = &self.program[self.invoked];
        self.running = Some((operation.run)(self.client.clone()));
        self.invoked += 1;
        self.poll();
    }

    /// Feeds the answer to the message of this number.
    pub(super) fn answer(&mut self, message: usize, answer: &Answers) {
        let event = match answer {
            Ok(reply) => Event::Reply(reply.clone()),
            Err(refusal) => Event::Refused(*refusal),
        };
        self.world.answer(message, event);
        self.poll();
    }

    /// Lets the patience of a quorum call run out.
    pub(super) fn tick(&mut self, call: usize) {
        self.world.tick(call);
        self.poll();
    }

    fn poll(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(ended) = running.as_mut().poll(&mut context) {
            self.ended.push(ended);
            self.running = None;
        }
    }
}

/// An object that a case is about, and where it is kept.
pub(super) type Subject = (Arc<Configuration>, Name);

/// A server takes one message in a turn, however large.
const SIZES: Sizes = Sizes {
    batch: 32 << 20,
    slack: 64 << 10,
    scrub: 0,
};

/// A production server over records in memory.
pub(super) struct LiveServer {
    node: Node<ExploredRecords, ()>,
    /// Notes that it sent without a request since [`LiveServer::said`] was last called.
    said: Vec<(ServerId, Note)>,
}

impl LiveServer {
    /// A server that knows the configurations of which it is a member, and has handled the earlier requests of the
    /// case.
    pub(super) fn new(case: &Case, id: ServerId) -> LiveServer {
        let root = case.configurations.first();
        let identity = Identity {
            id,
            incarnation: 1,
            root: root.expect("a case has a configuration").clone(),
            durable: true,
            max_value_bytes: 1 << 20,
            max_unconfirmed: case.max_unconfirmed,
            max_ranked: case.max_ranked,
        };
        let mut node = Node::new(Shard::new(identity), ExploredRecords::default(), SIZES);
        node.serve();
        let said = Vec::new();
        let mut server = LiveServer { node, said };
        let member = |c: &&Arc<Configuration>| c.position(id).is_some();
        for configuration in case.configurations.iter().filter(member) {
            let described = Request::Configured {
                configuration: configuration.id(),
                descriptor: Some(configuration.clone()),
                successors: Successors::default(),
                body: Body::Access(Vec::new()),
            };
            let known = server.take(&Message::Request(described));
            assert!(known.is_some_and(|answer| answer.is_ok()), "it is a member");
        }
        for (_, request) in case.before.iter().filter(|(server, _)| *server == id) {
            let known = server.take(&Message::Request(request.clone()));
            assert!(known.is_some_and(|answer| answer.is_ok()), "it can be had");
        }
        if case.full.contains(&id) {
            server.take(&Message::Full);
        }
        server
    }

    /// Takes a message; everything that it changes is durable before the answer is given.
    pub(super) fn take(&mut self, message: &Message) -> Option<Answers> {
        let job = match message {
            Message::Request(request) => Job::Request {
                request: request.clone(),
                caller: (),
                deadline: None,
            },
            Message::Note(note) => Job::Note(note.clone()),
            Message::Quiet | Message::Gossip => {
                // Gossip is due from the start on, and once.
                let now = match message {
                    Message::Quiet => Instant(u64::MAX),
                    _ => Instant::default(),
                };
                let upkeep = self.node.upkeep(now, &mut ());
                let turn = upkeep.expect("memory does not fail").turn;
                let turn = turn.expect("no commit takes time");
                assert!(turn.released.replies.is_empty(), "nothing was asked");
                self.said.extend(turn.released.sends);
                return None;
            }
            Message::Full => {
                self.node.keep().fill();
                return None;
            }
        };
        self.node.push(job);
        let turn = self.node.turn(Instant::default(), &mut ());
        let mut turn = turn.expect("memory does not fail");
        assert!(!self.node.is_ready(), "one turn takes one message");
        self.said.extend(turn.released.sends);
        turn.released.replies.pop().map(|((), answer)| answer)
    }

    /// Takes the notes that it sent without a request since the last call.
    pub(super) fn said(&mut self) -> Vec<(ServerId, Note)> {
        std::mem::take(&mut self.said)
    }

    /// Gossip about the subjects that shows in no answer, and whether the server is about to gossip.
    pub(super) fn heard(&self, subjects: &[Subject]) -> Vec<u8> {
        let server = self.node.shard().server();
        let heard = subjects
            .iter()
            .map(|(c, name)| server.heard_of(c.id(), name));
        let heard: Vec<_> = heard.collect();
        format!("{heard:?} {}", server.gossip_is_due(Instant::default())).into_bytes()
    }

    /// The records that it would find if it started now. A record that it no longer needs is freed with the next
    /// batch only.
    pub(super) fn found_again(&mut self) -> Vec<u8> {
        let status = self.ask(Request::Status);
        assert!(status.is_ok(), "a server has a status");
        self.node.keep().found_again()
    }

    /// The observable state: the answers to queries of every subject, its successors of the configurations, and the
    /// answers to the case's probes.
    pub(super) fn look(&mut self, subjects: &[Subject], probes: &[Request]) -> Vec<Answers> {
        let mut seen = Vec::new();
        let of = |c: &Arc<Configuration>, body| Request::Configured {
            configuration: c.id(),
            descriptor: None,
            successors: Successors::default(),
            body,
        };
        let access = |c: &Arc<Configuration>, name: &Name, access| {
            of(c, Body::Access(vec![(name.clone(), access)]))
        };
        for (c, name) in subjects {
            let query = Access::query(Want::Tags, Tag::INITIAL);
            let answer = self.ask(access(c, name, query));
            let mut stored = Vec::new();
            let answers = answer.as_ref().ok().and_then(Reply::answers);
            if let Some([Answer::Held(held)]) = answers.map(Vec::as_slice) {
                stored.extend(held.stored.iter().map(|(tag, _)| *tag));
            }
            seen.push(answer);
            for tag in stored {
                let payload = true;
                seen.push(self.ask(access(c, name, Access::Fetch { tag, payload })));
            }
        }
        for (c, _) in subjects {
            seen.push(self.ask(of(c, Body::ReadConfig)));
        }
        for probe in probes {
            seen.push(self.ask(probe.clone()));
        }
        seen
    }

    fn ask(&mut self, request: Request) -> Answers {
        let answer = self.take(&Message::Request(request));
        answer.expect("requests are answered")
    }
}

/// The bytes of an answer: equal bytes, equal answers.
pub(super) fn bytes_of_answer(answer: &Answers) -> Vec<u8> {
    match answer {
        Ok(reply) => bytes(0, codec::encode_reply(reply)),
        Err(refusal) => vec![1, *refusal as u8],
    }
}

/// The bytes of a message: equal bytes, equal messages.
pub(super) fn bytes_of_message(message: &Message) -> Vec<u8> {
    match message {
        Message::Request(request) => bytes(0, codec::encode_request(request)),
        Message::Note(note) => bytes(1, codec::encode_note(note)),
        Message::Quiet => vec![2],
        Message::Full => vec![3],
        Message::Gossip => vec![4],
    }
}

fn bytes(kind: u8, encoded: codec::EncodedMessage) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&encoded.body);
    for (payload, _) in encoded.payload {
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&payload);
    }
    bytes
}

/// True if this message cannot change a server's state. The exploration checks this wherever it relies on it.
pub(super) fn is_question(message: &Message) -> bool {
    use areo_core::message::{CellRequest, Enrolment};
    let Message::Request(request) = message else {
        return false;
    };
    match request {
        Request::Directory | Request::Status | Request::View => true,
        Request::Know(_) => false,
        Request::Latest { known, .. } => known.is_none(),
        Request::Configured {
            descriptor,
            successors,
            body,
            ..
        } => {
            descriptor.is_none()
                && successors.is_empty()
                && match body {
                    Body::Access(accesses) => accesses.iter().all(|(_, access)| {
                        let asks = |access: &Access| {
                            matches!(
                                access,
                                Access::Query { .. }
                                    | Access::Fetch { .. }
                                    | Access::Rank { ballot: None, .. }
                            )
                        };
                        asks(access)
                    }),
                    Body::List(_) | Body::ReadConfig | Body::Cells { .. } | Body::Servers => true,
                    Body::Register { step, .. } => *step == Enrolment::Ask,
                    Body::Cell { step, .. } => matches!(step, CellRequest::Query),
                }
        }
    }
}

/// True if a register may promise or accept because of this message.
pub(super) fn is_proposal(message: &Message) -> bool {
    let Message::Request(Request::Configured {
        body: Body::Access(accesses),
        ..
    }) = message
    else {
        return false;
    };
    let proposes = |access: &Access| {
        let prepares = matches!(access, Access::Rank { ballot, .. } if ballot.is_some());
        prepares || matches!(access, Access::Accept(_))
    };
    accesses.iter().all(|(_, access)| proposes(access))
}
