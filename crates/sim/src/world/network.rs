//! Links between clients and servers. Every message is carried as the bytes that the codec makes of it.

use super::call::OpenCall;
use super::{Event as Happening, World};
use crate::cluster::SERVERS_MAX;
use crate::fault::Fault;
use crate::random::{Random, digest};
use areo_core::instant::Instant;
use areo_core::message::Refusal;
use areo_core::tally::Event;
use areo_wire::codec;
use areo_wire::frame::NO_DEADLINE;
use bytes::Bytes;
use std::time::Duration;

/// An encoded message, with its payload.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) body: Bytes,
    pub(super) payload: Vec<(Bytes, u32)>,
}

#[derive(Clone)]
pub(super) struct Message {
    client: usize,
    server: usize,
    pub(super) content: Content,
    /// Counts the messages of the world, to see them overtake each other.
    number: u64,
    /// Number of changes of the server's address when the message was sent.
    moves: u64,
}

#[derive(Clone)]
pub(super) enum Content {
    Request {
        call: u64,
        /// Time left until its deadline, as in a frame.
        deadline_ms: u32,
        body: Body,
    },
    Note(Body),
    Reply(u64, Result<Body, Refusal>),
}

impl Content {
    fn is_reply(&self) -> bool {
        matches!(self, Content::Reply(..))
    }

    /// The call that it belongs to; a note belongs to none.
    pub(super) fn call(&self) -> Option<u64> {
        match self {
            Content::Request { call, .. } | Content::Reply(call, _) => Some(*call),
            Content::Note(_) => None,
        }
    }

    /// A number and a word that identify the content.
    fn identity(&self) -> (u64, &'static str) {
        match self {
            Content::Request { call, body, .. } => (call << 2 ^ digest(&body.body), "request"),
            Content::Note(body) => (digest(&body.body) ^ 1, "note"),
            Content::Reply(call, Ok(body)) => (call << 2 ^ digest(&body.body) ^ 2, "reply"),
            Content::Reply(call, Err(refusal)) => (call << 2 ^ *refusal as u64 ^ 3, "refusal"),
        }
    }
}

/// Channels below this are the servers' disks.
const FIRST_LINK: usize = SERVERS_MAX;

impl Message {
    /// A message of this link with another content.
    pub(super) fn with(self, content: Content) -> Message {
        Message { content, ..self }
    }

    /// The caller and the server of the message.
    pub(super) fn ends(&self) -> (usize, usize) {
        (self.client, self.server)
    }

    pub(super) fn is_reply(&self) -> bool {
        self.content.is_reply()
    }

    /// Bytes of its body and its payload.
    pub(super) fn bytes(&self) -> usize {
        let (Content::Request { body, .. } | Content::Note(body) | Content::Reply(_, Ok(body))) =
            &self.content
        else {
            return 0;
        };
        let payload = body.payload.iter().map(|(bytes, _)| bytes.len());
        body.body.len() + payload.sum::<usize>()
    }

    /// The direction of a link that it travels on.
    pub(super) fn channel(&self) -> usize {
        let link = self.client * FIRST_LINK + self.server;
        FIRST_LINK + link * 2 + usize::from(self.content.is_reply())
    }
}

/// State of all links.
pub(super) struct Links {
    /// True if the link is blocked, by client, server and direction (0: to the server).
    blocked: Vec<Vec<[bool; 2]>>,
    /// For each client and server the time of the last fault of a message, of the link or of the server.
    disturbed: Vec<Vec<Instant>>,
    /// The last message that arrived, by client, server and direction.
    arrived: Vec<Vec<[u64; 2]>>,
    /// Messages that were sent into a blocked link and not lost. They arrive when it is open again.
    held: Vec<Message>,
    /// Until then they stay as they are.
    kept_until: Instant,
    sent: u64,
    calls: u64,
    /// Bounds of the usual time of a message.
    latency_us: (u64, u64),
}

impl Links {
    pub(super) fn new(clients: usize, servers: usize, random: &Random) -> Links {
        let fast = random.between(20, 500);
        Links {
            blocked: vec![vec![[false; 2]; servers]; clients],
            disturbed: vec![vec![Instant::default(); servers]; clients],
            arrived: vec![vec![[0; 2]; servers]; clients],
            held: Vec::new(),
            kept_until: Instant::default(),
            sent: 0,
            calls: 0,
            latency_us: (fast, fast * random.between(1, 10)),
        }
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.blocked.len(), self.blocked[0].len())
    }

    fn is_blocked(&self, message: &Message) -> bool {
        let direction = usize::from(message.content.is_reply());
        self.blocked[message.client][message.server][direction]
    }
}

impl World {
    /// Sends a request, which may be answered until it is forgotten. False: the server cannot be reached now, the request
    /// goes out when it can.
    pub(super) fn call(&self, outstanding: OpenCall, only_reads: bool) -> (u64, bool) {
        let call = {
            let mut links = self.0.links.borrow_mut();
            links.calls += 1;
            links.calls
        };
        if only_reads {
            self.note_reader(call);
        }
        let reachable = self.is_reachable(&outstanding);
        let (client, server) = (outstanding.client, outstanding.server);
        let content = self.request(call, &outstanding);
        self.0.calls.borrow_mut().insert(call, outstanding);
        if reachable {
            self.send(client, server, content);
        }
        (call, reachable)
    }

    /// The server is up, and where the client takes it to be. If it is elsewhere the client asks where.
    fn is_reachable(&self, outstanding: &OpenCall) -> bool {
        let lost = outstanding
            .id
            .filter(|id| !self.reaches(outstanding.client, *id));
        if let Some(id) = lost {
            self.seek(outstanding.client, id);
        }
        lost.is_none() && self.is_up(outstanding.server)
    }

    /// The request as it is sent now, with the time left until its deadline.
    fn request(&self, call: u64, outstanding: &OpenCall) -> Content {
        let now = self.clock(outstanding.client);
        let left = |deadline: Instant| deadline.since(now).as_millis();
        let left_ms = |deadline| u32::try_from(left(deadline)).expect("operations are short");
        Content::Request {
            call,
            deadline_ms: outstanding.deadline.map_or(NO_DEADLINE, left_ms),
            body: outstanding.request.clone(),
        }
    }

    pub(super) fn forget(&self, calls: &[u64]) {
        let mut outstanding = self.0.calls.borrow_mut();
        for call in calls {
            outstanding.remove(call);
        }
    }

    pub(super) fn send_reply(
        &self,
        (client, server): (usize, usize),
        call: u64,
        reply: Result<codec::EncodedMessage, Refusal>,
    ) {
        let body = reply.map(|codec::EncodedMessage { body, payload }| Body { body, payload });
        self.send(client, server, Content::Reply(call, body));
    }

    /// Sends a call again, over a new connection.
    pub(super) fn resend(&self, call: u64) {
        let known = {
            let calls = self.0.calls.borrow();
            let unanswered = calls.get(&call).filter(|call| !call.answered);
            unanswered.map(|it| {
                let is_reachable = self.is_reachable(it);
                let content = self.request(call, it);
                (it.client, it.server, content, it.sink.clone(), is_reachable)
            })
        };
        if let Some((client, server, content, sink, true)) = known {
            sink.sent();
            self.send(client, server, content);
        }
    }

    /// The server's connections are gone: every call to it hears of that, and waits for the next one.
    pub(super) fn disconnect(&self, server: usize) {
        for (_, position, sink) in self.unanswered(server, None) {
            sink.on_event(position, Event::Unreachable);
        }
    }

    /// The server can be reached again, by one client or by all: requests that it did not answer go out again.
    pub(super) fn reconnect(&self, server: usize, client: Option<usize>) {
        for (call, ..) in self.unanswered(server, client) {
            self.resend(call);
        }
    }

    fn unanswered(
        &self,
        server: usize,
        client: Option<usize>,
    ) -> Vec<(u64, usize, std::rc::Rc<dyn super::Sink>)> {
        let calls = self.0.calls.borrow();
        let unanswered = calls
            .iter()
            .filter(|(_, call)| call.server == server && !call.answered)
            .filter(|(_, call)| client.is_none_or(|client| call.client == client));
        let unanswered =
            unanswered.map(|(number, call)| (*number, call.position, call.sink.clone()));
        let mut oldest_first: Vec<_> = unanswered.collect();
        oldest_first.sort_by_key(|(number, ..)| *number);
        oldest_first
    }

    pub(super) fn send(&self, client: usize, server: usize, content: Content) {
        let mut links = self.0.links.borrow_mut();
        links.sent += 1;
        let message = Message {
            client,
            server,
            content,
            number: links.sent,
            moves: self.moves(server),
        };
        let (low, high) = links.latency_us;
        let delay = Duration::from_micros(self.random().between(low, high));
        if links.is_blocked(&message) {
            links.disturbed[client][server] = self.now();
            // What TCP sends again arrives when the link is open; what was on a connection that died does not.
            if self.random().chance(500) {
                links.held.push(message);
            } else {
                drop(links);
                self.break_connection(&message);
            }
            return;
        }
        drop(links);
        if self.strikes(Fault::Drop) {
            return self.disturb_link(client, server);
        }
        if self.strikes(Fault::Reset) {
            self.break_connection(&message);
            return self.disturb_link(client, server);
        }
        let delay = self.way(&message, delay);
        let Some(message) = self.through_frames(message) else {
            return self.disturb_link(client, server);
        };
        let duplicate = match message.content.is_reply() {
            true => Fault::DuplicateReply,
            false => Fault::DuplicateRequest,
        };
        if self.strikes(duplicate) {
            let later = Duration::from_micros(self.random().between(0, 100 * high));
            self.at(later, Happening::Deliver(message.clone()));
        }
        let delay = match self.strikes(Fault::Delay) {
            true => {
                self.disturb_link(client, server);
                delay * 100
            }
            false => delay,
        };
        self.at(delay, Happening::Deliver(message));
    }

    /// The message is lost with its connection; its call, if it has one, is made again.
    pub(super) fn break_connection(&self, message: &Message) {
        if let Some(call) = message.content.call() {
            let later = Duration::from_millis(self.random().between(1, 60));
            self.at(later, Happening::Resend(call));
        }
    }

    pub(super) fn deliver(&self, message: Message) {
        let Message {
            client,
            server,
            content,
            number,
            moves,
        } = message;
        if !content.is_reply() && moves < self.moves(server) {
            return self.disturb_link(client, server);
        }
        let (identity, kind) = content.identity();
        self.record([1, client as u64, server as u64, identity], || {
            let arrow = if content.is_reply() { "<-" } else { "->" };
            let said = describe(&content);
            let caller = match client.checked_sub(self.caller_of(0)) {
                Some(server) => format!("server {server}"),
                None => format!("client {client}"),
            };
            format!("{caller} {arrow} server {server}  {kind} {said}")
        });
        self.note_order(client, server, number, content.is_reply());
        match content {
            Content::Request {
                call,
                deadline_ms,
                body,
            } if self.is_of_reader(call) => {
                self.on_request_of_reader((client, server), (call, deadline_ms), body);
            }
            Content::Request {
                call,
                deadline_ms,
                body,
            } => self.on_request((client, server), (call, deadline_ms), body),
            Content::Note(body) => self.on_note(server, &body),
            Content::Reply(call, reply) => self.on_reply(call, reply),
        }
    }

    fn note_order(&self, client: usize, server: usize, number: u64, is_reply: bool) {
        let mut links = self.0.links.borrow_mut();
        let last = &mut links.arrived[client][server][usize::from(is_reply)];
        if *last > number {
            self.plan().note(Fault::Reorder);
        }
        *last = number.max(*last);
    }

    fn on_reply(&self, call: u64, reply: Result<Body, Refusal>) {
        let known = {
            let mut calls = self.0.calls.borrow_mut();
            calls.get_mut(&call).map(|call| {
                call.answered = true;
                (call.position, call.sink.clone())
            })
        };
        // The operation may have ended meanwhile.
        let Some((position, sink)) = known else {
            return;
        };
        let event = match reply {
            Ok(Body { body, payload }) => match codec::decode_reply(&body, payload) {
                Ok(reply) => Event::Reply(reply),
                Err(error) => {
                    self.violate(format!("codec: a reply cannot be read: {error}"));
                    return;
                }
            },
            Err(refusal) => Event::Refused(refusal),
        };
        sink.on_event(position, event);
    }

    pub(super) fn disturb_link(&self, client: usize, server: usize) {
        self.0.links.borrow_mut().disturbed[client][server] = self.now();
    }

    /// Something happens to a server, so that it may not answer for a while.
    pub(super) fn disturb(&self, server: usize) {
        let clients = self.size().0;
        (0..clients).for_each(|client| self.disturb_link(client, server));
    }

    /// Since then nothing has kept the server from answering the client: neither is it cut off, nor was a message lost or
    /// late.
    pub(super) fn was_in_reach(&self, client: usize, server: usize, since: Instant) -> bool {
        let links = self.0.links.borrow();
        let is_open = links.blocked[client][server] == [false; 2];
        is_open && links.disturbed[client][server] < since
    }

    /// Cuts, or mends, one direction of a link (0: to the server).
    pub(super) fn block(&self, client: usize, server: usize, direction: usize, blocked: bool) {
        self.0.links.borrow_mut().blocked[client][server][direction] = blocked;
    }

    /// Blocked links are not opened before then.
    pub(super) fn keep_links_until(&self, until: Instant) {
        let kept_until = &mut self.0.links.borrow_mut().kept_until;
        *kept_until = until.max(*kept_until);
    }

    pub(super) fn are_links_to_open(&self) -> bool {
        self.0.links.borrow().kept_until <= self.now()
    }

    /// Any message may be the last of those that leave at once, wherever it goes.
    pub(crate) fn spread_latencies(&self) {
        self.0.links.borrow_mut().latency_us = (10, 1000);
    }

    /// Opens all links; what waited in them arrives.
    pub(super) fn open_links(&self) {
        let held = {
            let mut links = self.0.links.borrow_mut();
            links
                .blocked
                .iter_mut()
                .flatten()
                .for_each(|link| *link = [false; 2]);
            std::mem::take(&mut links.held)
        };
        for message in held {
            let delay = Duration::from_micros(self.random().between(1, 2000));
            self.at(delay, Happening::Deliver(message));
        }
    }
}

/// A message as people read it.
fn describe(content: &Content) -> String {
    let text = match content {
        Content::Request { call, body, .. } => {
            let request = codec::decode_request(&body.body, body.payload.clone());
            format!("{call} {request:?}")
        }
        Content::Note(body) => format!("{:?}", codec::decode_note(&body.body, Vec::new())),
        Content::Reply(call, Ok(body)) => {
            let reply = codec::decode_reply(&body.body, body.payload.clone());
            format!("{call} {reply:?}")
        }
        Content::Reply(call, Err(refusal)) => format!("{call} {refusal}"),
    };
    text.chars().take(600).collect()
}
