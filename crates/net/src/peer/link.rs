//! One of the two connections to a server, with the calls that travel on it.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use areo_wire::frame::{Header, Kind, Limits, Refusal};
use areo_wire::hello::Channel;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::connection::{
    CloseReason, Connection, ConnectionConfig, Handler, SendError, drive, now,
};
use crate::encryption::Tls;
use crate::handshake::HandshakeError;
use crate::message::{Incoming, Outgoing};
use crate::peer::backoff::Backoff;
use crate::peer::calls::{Calls, Entry};
use crate::peer::known::PeerKnowledge;
use crate::peer::liveness::{Liveness, Verdict};
use crate::peer::opening::{Opened, open};
use crate::peer::standing::Standing;
use crate::peer::{Answer, CallRefusal, PeerConfig, Sink, Status, Traffic};

/// The longest interval between two looks at deadlines and silence.
const TICK_PERIOD: Duration = Duration::from_secs(1);
/// Looks within the time after which a silent server is cut off, at least.
const LOOKS: u32 = 15;

/// A connection that is kept up, and its table of calls.
pub(crate) struct Link {
    channel: Channel,
    config: PeerConfig,
    known: Rc<PeerKnowledge>,
    calls: RefCell<Calls>,
    status: Standing,
    connection: RefCell<Option<Connection>>,
    last_error: RefCell<Option<String>>,
    /// The last attempt failed because one end did not take the other by TLS.
    is_distrusted: Cell<bool>,
    /// Since when an answer has been owed; forgotten calls are owed one too.
    owed_since: Cell<Option<Instant>>,
    liveness: RefCell<Liveness>,
    /// Ends a wait between two attempts.
    hurry: Notify,
    stopped: Cell<bool>,
    /// Connections made so far: what waited for one went out with the next.
    connections_made: Cell<u64>,
    /// The traffic of connections that have ended.
    past: Cell<Traffic>,
    myself: Weak<Link>,
}

impl Link {
    pub(crate) fn new(channel: Channel, config: PeerConfig, known: Rc<PeerKnowledge>) -> Rc<Link> {
        let limit = config.silence_timeout.saturating_sub(tick_period(&config));
        Rc::new_cyclic(|myself| Link {
            channel,
            config,
            known,
            calls: RefCell::default(),
            status: Standing::new(),
            connection: RefCell::default(),
            last_error: RefCell::default(),
            is_distrusted: Cell::default(),
            owed_since: Cell::new(None),
            liveness: RefCell::new(Liveness::new(limit, now())),
            hurry: Notify::new(),
            stopped: Cell::new(false),
            connections_made: Cell::new(0),
            past: Cell::default(),
            myself: myself.clone(),
        })
    }

    /// Takes a call; gives its id, and whether the server is believed to be reachable.
    pub(crate) fn call(
        &self,
        message: Outgoing,
        sink: Rc<dyn Sink>,
        token: u64,
    ) -> Result<(u64, bool), CallRefusal> {
        if let Status::Refused(refusal) = self.status.get() {
            return Err(CallRefusal::ByServer { refusal });
        }
        let mut calls = self.calls.borrow_mut();
        let (count, held) = (calls.len(), calls.held_bytes());
        let over = count > 0 && held + message.queue_bytes() > self.config.max_bytes;
        if count >= self.config.max_calls || over {
            return Err(CallRefusal::QueueFull {
                calls: count,
                bytes: held,
            });
        }
        message
            .check(&Limits::default())
            .map_err(|error| CallRefusal::TooLarge { error })?;
        if let Some(connection) = self.connection.borrow().as_ref() {
            let header = message.header(Kind::Request, calls.next_id(), message.started);
            match connection.send(&header, &message.body, &message.payload) {
                // One that closed a moment ago: the calls in the table will get its end.
                Ok(()) | Err(SendError::Closed) => {}
                Err(SendError::Full { queued_bytes }) => {
                    return Err(CallRefusal::QueueFull {
                        calls: count,
                        bytes: queued_bytes,
                    });
                }
                Err(SendError::TooLarge { error }) => return Err(CallRefusal::TooLarge { error }),
            }
        }
        if self.owed_since.get().is_none() {
            self.owed_since.set(Some(message.started));
        }
        let unreachable = self.status.get() == Status::Unreachable;
        let id = calls.insert(Entry {
            message,
            sink,
            token,
            told: unreachable,
        });
        drop(calls);
        if self.status.get() == Status::Idle {
            self.start();
        }
        Ok((id, !unreachable))
    }

    pub(crate) fn forget(&self, id: u64) {
        let forgotten = self.calls.borrow_mut().remove(id);
        // Dropped outside the borrow: a payload's owner may have a destructor of its own.
        drop(forgotten);
    }

    pub(crate) fn tell(&self, message: &Outgoing) -> bool {
        let connection = self.connection.borrow();
        let Some(connection) = connection.as_ref() else {
            return false;
        };
        let header = message.header(Kind::Note, 0, message.started);
        connection
            .send_lazily(&header, &message.body, &message.payload)
            .is_ok()
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        let connection = self.connection.borrow();
        connection.as_ref().map_or(0, Connection::queued_bytes)
    }

    pub(crate) fn flush(&self) {
        if let Some(connection) = self.connection.borrow().as_ref() {
            connection.flush();
        }
    }

    pub(crate) fn connect(&self) {
        if self.status.get() == Status::Idle {
            self.start();
        } else {
            self.hurry.notify_one();
        }
    }

    /// Ends both tasks and the connection. Waiting callers get no more events.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
        self.status.end();
        self.hurry.notify_one();
        if let Some(connection) = self.connection.borrow().as_ref() {
            connection.close(CloseReason::Finished);
        }
        let calls = std::mem::take(&mut *self.calls.borrow_mut());
        // Dropped outside the borrow: what a sink holds may have a destructor that comes back here.
        drop(calls);
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel
    }

    pub(crate) fn known(&self) -> &PeerKnowledge {
        &self.known
    }

    pub(crate) fn status(&self) -> &Standing {
        &self.status
    }

    pub(crate) fn connections_made(&self) -> u64 {
        self.connections_made.get()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let connection = self.connection.borrow();
        let present = connection.as_ref().map(moved_by).unwrap_or_default();
        self.past.get() + present
    }

    pub(crate) fn is_distrusted(&self) -> bool {
        self.is_distrusted.get()
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.borrow().clone()
    }

    pub(crate) fn calls_in_flight(&self) -> usize {
        self.calls.borrow().len()
    }

    pub(crate) fn oldest_call(&self) -> Option<Instant> {
        self.calls
            .borrow()
            .iter()
            .map(|(_, entry)| entry.message.started)
            .min()
    }

    pub(crate) fn silent_for(&self, now: Instant) -> Duration {
        let Some(owed_since) = self.owed_since.get() else {
            return Duration::ZERO;
        };
        let heard = self
            .connection
            .borrow()
            .as_ref()
            .map(Connection::last_received);
        now.saturating_duration_since(heard.map_or(owed_since, |heard| heard.max(owed_since)))
    }

    /// Starts the two tasks of this link: one connects and reads, one looks at the clock.
    fn start(&self) {
        let link = self.myself.upgrade().expect("a link in use is alive");
        self.status.set(Status::Connecting);
        spawn_local(Rc::clone(&link).keep_connected());
        spawn_local(link.keep_time());
    }

    /// Connects, reads until the connection ends, waits, connects again.
    async fn keep_connected(self: Rc<Self>) {
        let seed = getrandom::u64().unwrap_or(self.config.own_id as u64);
        let mut backoff = Backoff::new(seed);
        while !self.stopped.get() {
            match open(self.channel, &self.config, &self.known).await {
                Ok(opened) => {
                    let (reason, useful) = self.converse(opened).await;
                    if useful {
                        backoff.reset();
                    }
                    if self.stopped.get() {
                        return;
                    }
                    tracing::info!(server = %self.known.address.borrow(), %reason, "connection lost");
                    self.failed(Status::Unreachable, reason.to_string());
                }
                Err(error) => {
                    tracing::debug!(server = %self.known.address.borrow(), %error, "cannot connect");
                    let is_distrusted = matches!(error, HandshakeError::Tls { .. });
                    self.is_distrusted.set(is_distrusted);
                    let status = match error {
                        // There will be another ticket: calls wait for it.
                        HandshakeError::Refused {
                            refusal: Refusal::Unauthorised,
                            ..
                        } if self.config.tls.as_ref().is_some_and(Tls::ask_for_ticket) => {
                            Status::Unreachable
                        }
                        HandshakeError::Refused { refusal, .. } => Status::Refused(refusal),
                        // It talks to those that show something.
                        HandshakeError::Encrypted => Status::Refused(Refusal::Unauthorised),
                        _ => Status::Unreachable,
                    };
                    self.failed(status, error.to_string());
                }
            }
            // Either way the next attempt is made, or this link is over.
            let _ = timeout(backoff.next(), self.hurry.notified()).await;
        }
    }

    /// Sends what waits, then reads until the connection ends. Also says whether anything was ever received.
    async fn converse(self: &Rc<Self>, opened: Opened) -> (CloseReason, bool) {
        let Opened {
            stream,
            remote,
            welcome,
        } = opened;
        let limits = Limits::default();
        let config = ConnectionConfig {
            window_bytes: match self.channel {
                Channel::Calls => self.config.window_bytes,
                // What of a large payload lands in the window has to be moved: keep that small.
                Channel::Bulk => 0,
            },
            limits: self.config.limits,
            peer_limits: Limits {
                max_body_bytes: welcome.max_body_bytes.min(limits.max_body_bytes),
                max_payload_bytes: welcome.max_payload_bytes.min(limits.max_payload_bytes),
                ..limits
            },
            max_queued_bytes: self.config.max_bytes,
            pool: self.config.pool.clone(),
        };
        let session = stream.session();
        let (connection, driver) = drive(
            stream,
            remote,
            &config,
            LinkHandler {
                link: Rc::clone(self),
            },
        );
        connection.bind(session);
        *self.connection.borrow_mut() = Some(connection.clone());
        self.connections_made.set(self.connections_made.get() + 1);
        self.status.set(Status::Connected);
        self.last_error.borrow_mut().take();
        self.is_distrusted.set(false);
        self.resend(&connection);
        let reason = driver.await;
        self.connection.borrow_mut().take();
        self.past.set(self.past.get() + moved_by(&connection));
        (reason, connection.bytes_read() > 0)
    }

    /// Sends every call in the table on a fresh connection, with the time left until its deadline.
    fn resend(&self, connection: &Connection) {
        let now = Instant::now();
        let mut too_large = Vec::new();
        for id in self.ids(|_| true) {
            let mut calls = self.calls.borrow_mut();
            let Some(entry) = calls.get_mut(id) else {
                continue;
            };
            let header = entry.message.header(Kind::Request, id, now);
            match connection.send_bounded_elsewhere(
                &header,
                &entry.message.body,
                &entry.message.payload,
            ) {
                Ok(()) => entry.told = false,
                Err(SendError::TooLarge { .. }) => too_large.push(id),
                Err(error @ (SendError::Closed | SendError::Full { .. })) => {
                    unreachable!(
                        "a connection that was just made, whose queue the table bounds: {error}"
                    )
                }
            }
        }
        self.owed_since
            .set((self.calls_in_flight() > 0).then_some(now));
        for id in too_large {
            self.refuse(id, Refusal::TooLarge, &[]);
        }
    }

    /// An attempt or a connection has failed: tells every call that does not know.
    fn failed(&self, status: Status, error: String) {
        self.status.set(status);
        *self.last_error.borrow_mut() = Some(error);
        self.owed_since.set(None);
        if let Status::Refused(refusal) = status {
            for id in self.ids(|_| true) {
                self.refuse(id, refusal, &[]);
            }
            return;
        }
        for id in self.ids(|entry| !entry.told) {
            let told = self.calls.borrow_mut().get_mut(id).map(|entry| {
                entry.told = true;
                (Rc::clone(&entry.sink), entry.token)
            });
            // A sink that got an event before may have forgotten this one.
            if let Some((sink, token)) = told {
                sink.on_answer(token, Answer::Unreachable { will_retry: true });
            }
        }
    }

    fn ids(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<u64> {
        let calls = self.calls.borrow();
        calls
            .iter()
            .filter(|(_, entry)| wanted(entry))
            .map(|(id, _)| id)
            .collect()
    }

    fn refuse(&self, id: u64, refusal: Refusal, body: &[u8]) {
        let entry = self.calls.borrow_mut().remove(id);
        if let Some(entry) = entry {
            entry
                .sink
                .on_answer(entry.token, Answer::Refused { refusal, body });
        }
    }

    /// Once a period: ends calls whose deadline has passed, sends off notes that found no company, pings and cuts off a server
    /// without a sign of life, also one that owes no answer: others are shown whether it is there.
    async fn keep_time(self: Rc<Self>) {
        while !self.stopped.get() {
            sleep(tick_period(&self.config)).await;
            let now = now();
            let passed = |entry: &Entry| {
                entry
                    .message
                    .deadline
                    .is_some_and(|deadline| deadline <= now)
            };
            for id in self.ids(passed) {
                let entry = self.calls.borrow_mut().remove(id);
                if let Some(entry) = entry {
                    entry
                        .sink
                        .on_answer(entry.token, Answer::Unreachable { will_retry: false });
                }
            }
            self.look_after_connection(now);
            self.config.pool.give_back(now);
        }
    }

    fn look_after_connection(&self, now: Instant) {
        let connection = self.connection.borrow();
        let Some(connection) = connection.as_ref() else {
            return;
        };
        if connection.close_if_distrusted(self.config.tls.as_ref()) {
            return;
        }
        connection.flush();
        let last_sign = connection.last_sign_of_life();
        match self.liveness.borrow_mut().look(now, last_sign) {
            Verdict::Alive => {}
            // A full queue needs no ping: it already waits for the other side.
            Verdict::Doubtful => {
                let _ = connection.send(&Header::new(Kind::Ping, 0), &[][..], &[]);
            }
            Verdict::Dead => connection.close(CloseReason::Silent),
        }
    }
}

/// A server is silent for no longer than it may be when it is cut off by the look before that.
fn tick_period(config: &PeerConfig) -> Duration {
    TICK_PERIOD.min(config.silence_timeout / LOOKS)
}

fn moved_by(connection: &Connection) -> Traffic {
    Traffic {
        sent_bytes: connection.bytes_written(),
        received_bytes: connection.bytes_read(),
    }
}

/// Hands the messages of one connection to the calls of its link.
struct LinkHandler {
    link: Rc<Link>,
}

impl Handler for LinkHandler {
    fn on_frame(&self, _connection: &Connection, frame: Incoming<'_>) {
        let link = &self.link;
        let header = frame.header;
        match header.kind {
            Kind::Reply => {
                let entry = link.calls.borrow_mut().remove(header.call_id);
                // No such call: it was decided without this answer.
                if let Some(entry) = entry {
                    entry.sink.on_answer(entry.token, Answer::Reply(frame));
                }
            }
            Kind::Refusal => {
                let refusal = header
                    .refusal
                    .expect("the decoder checked that a refusal has a code");
                link.refuse(header.call_id, refusal, frame.body);
            }
            // Calls in flight are still answered; the rest gets the connection's end.
            Kind::Goodbye => link.status.set(Status::Refused(Refusal::Draining)),
            // A client is not asked anything.
            Kind::Request | Kind::Note | Kind::Ping | Kind::Pong => {}
        }
    }

    fn on_batch_end(&self, connection: &Connection) {
        let owed = self.link.calls_in_flight() > 0;
        self.link
            .owed_since
            .set(owed.then(|| connection.last_received()));
    }
}
