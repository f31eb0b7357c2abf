//! A case driven by hand: the known counterexample schedules, message by message, as readable tests.
//!
//! ```
//! use areo_core::config::Dap;
//! use areo_sim::explore::{cases, script::Script};
//! let c = cases::configuration(3, Dap::Abd);
//! let mut script = Script::new(cases::register(&c, &[&["a"], &["R"]]));
//! script.invoke(0);
//! script.exchange(0, 0, "query"); // server 0 takes the query of client 0, which reads the answer
//! script.exchange(0, 1, "query");
//! script.take(0, 0, "put"); // the put arrives at server 0; its answer is on its way
//! script.finish(1); // client 1 does everything that it has to do, with all servers
//! assert!(script.is_busy(0) && script.ended(1)[0].to_string().starts_with("reads a"));
//! assert_eq!(script.broken(), None);
//! ```

use super::env::Message;
use super::judge::ObservedOperation;
use super::node::{LiveClient, LiveServer};
use super::{Answers, Case, Outcome, schedule};

/// A case under way.
///
/// Every method that makes something happen panics with the schedule so far if that cannot happen: a script that no
/// longer fits the code fails.
pub struct Script {
    case: Case,
    clients: Vec<ScriptedEnv>,
    servers: Vec<LiveServer>,
    lines: Vec<String>,
}

struct ScriptedEnv {
    live: LiveClient,
    /// For each message: whether a server took it. `unread` has the answers that the client has not read.
    taken: Vec<bool>,
    unread: Vec<Option<Answers>>,
    after: Vec<Vec<usize>>,
}

impl Script {
    /// Starts the case: no client has begun.
    pub fn new(case: Case) -> Script {
        let client = |(number, program)| ScriptedEnv {
            live: LiveClient::new(number, program),
            taken: Vec::new(),
            unread: Vec::new(),
            after: Vec::new(),
        };
        let server = |id: &_| LiveServer::new(&case, *id);
        Script {
            clients: case.clients.iter().enumerate().map(client).collect(),
            servers: case.servers.iter().map(server).collect(),
            lines: Vec::new(),
            case,
        }
    }

    /// The next operation of the client begins.
    pub fn invoke(&mut self, client: usize) {
        let ended = self.clients.iter().map(|of| of.live.ended.len()).collect();
        let of = &mut self.clients[client];
        of.after.push(ended);
        let label = &self.case.clients[client][of.live.invoked].label;
        self.lines.push(format!("client {client} begins: {label}"));
        of.live.invoke();
        self.moved(client, 0);
    }

    /// The server takes the oldest message that the client sent to it and that it has not taken, of those whose text (as
    /// in [`Script::on_way`]) begins with `what`. The answer is on its way then.
    pub fn take(&mut self, client: usize, server: usize, what: &str) {
        let Some(number) = self.waiting(client, server, what) else {
            let on_way = self.on_way(client);
            self.fail(&format!(
                "nothing of client {client} for server {server} begins with {what:?}; on its way: {on_way:#?}"
            ));
        };
        let of = &mut self.clients[client];
        let message = of.live.world.sent()[number].what.clone();
        of.taken[number] = true;
        of.unread[number] = self.servers[server].take(&message);
        let text = schedule::message(&message);
        self.lines
            .push(format!("client {client} -> server {server}: {text}"));
    }

    /// The client reads the oldest answer of the server that it has not read.
    pub fn read(&mut self, client: usize, server: usize) {
        let of = &mut self.clients[client];
        let is_of = |number: &usize| {
            let to = of.live.world.sent()[*number].to;
            of.unread[*number].is_some() && to == self.case.servers[server]
        };
        let found = (0..of.unread.len()).find(is_of);
        let Some(number) = found else {
            self.fail(&format!("server {server} has not answered client {client}"));
        };
        let answered = of.unread[number].take().expect("it was found");
        let text = schedule::answer(&answered);
        self.lines
            .push(format!("server {server} -> client {client}: {text}"));
        let ended = of.live.ended.len();
        of.live.answer(number, &answered);
        self.moved(client, ended);
    }

    /// Calls [`Script::take`], then [`Script::read`].
    pub fn exchange(&mut self, client: usize, server: usize, what: &str) {
        self.take(client, server, what);
        self.read(client, server);
    }

    /// The patience of the client's quorum calls runs out.
    pub fn tick(&mut self, client: usize) {
        self.lines.push(format!("client {client} waits no longer"));
        let of = &mut self.clients[client];
        let ended = of.live.ended.len();
        for call in of.live.world.impatient() {
            of.live.tick(call);
        }
        self.moved(client, ended);
    }

    /// The client's operation goes on to its end; it begins one if none is under way, and then does all that are left. Each
    /// of its messages is taken at once, in the order of sending, and answered at once. Notes are not.
    pub fn finish(&mut self, client: usize) {
        let all = !self.is_busy(client);
        loop {
            if !self.is_busy(client) {
                if !all || self.clients[client].live.invoked == self.case.clients[client].len() {
                    return;
                }
                self.invoke(client);
            }
            let of = &self.clients[client];
            let unread = of.unread.iter().position(Option::is_some);
            let is_request =
                |number: &usize| !of.taken[*number] && of.live.world.sent()[*number].call.is_some();
            let asked = (0..of.taken.len()).find(is_request);
            let place = |number: usize| {
                let to = of.live.world.sent()[number].to;
                let place = self.case.servers.iter().position(|id| *id == to);
                place.expect("members are servers of the case")
            };
            match (unread.map(place), asked.map(place)) {
                (Some(server), _) => self.read(client, server),
                (None, Some(server)) => self.take(client, server, ""),
                (None, None) => self.tick(client),
            }
        }
    }

    /// True if an operation of the client is under way.
    pub fn is_busy(&self, client: usize) -> bool {
        self.clients[client].live.is_busy()
    }

    /// Results of the client's operations so far.
    pub fn ended(&self, client: usize) -> &[Outcome] {
        &self.clients[client].live.ended
    }

    /// Messages of the client that no server took: `server 1: put 1-... of x`.
    pub fn on_way(&self, client: usize) -> Vec<String> {
        let of = &self.clients[client];
        let sent = of.live.world.sent();
        let on_way = sent.iter().zip(&of.taken).filter(|(_, taken)| !**taken);
        let line = |(sent, _): (&super::env::Sent, &bool)| {
            let server = self.case.servers.iter().position(|id| *id == sent.to);
            let server = server.expect("members are servers of the case");
            format!("server {server}: {}", schedule::message(&sent.what))
        };
        on_way.map(line).collect()
    }

    /// The server's answers to a query of every subject, to a fetch of every version listed there, and to the case's
    /// probes.
    pub fn view(&mut self, server: usize) -> Vec<Answers> {
        let Case {
            subjects, probes, ..
        } = &self.case;
        self.servers[server].look(subjects, probes)
    }

    /// The server lets superseded versions of quiet objects go.
    pub fn quiet(&mut self, server: usize) {
        self.lines
            .push(format!("server {server}: quiet time passes"));
        self.servers[server].take(&Message::Quiet);
    }

    /// The rule that is broken by what clients saw so far.
    pub fn broken(&self) -> Option<String> {
        let mut observed = Vec::new();
        for (client, of) in self.clients.iter().enumerate() {
            for (number, after) in of.after.iter().enumerate() {
                let operation = &self.case.clients[client][number];
                observed.push(ObservedOperation {
                    client,
                    number,
                    label: operation.label.clone(),
                    kind: operation.kind.clone(),
                    after: after.clone(),
                    ended: of.live.ended.get(number).cloned(),
                });
            }
        }
        (self.case.judge.seen)(&observed)
    }

    /// The schedule so far, one line for each event.
    pub fn schedule(&self) -> &[String] {
        &self.lines
    }

    fn waiting(&self, client: usize, server: usize, what: &str) -> Option<usize> {
        let of = &self.clients[client];
        let sent = of.live.world.sent();
        let fits = |number: &usize| {
            let sent = &sent[*number];
            let text = schedule::message(&sent.what);
            !of.taken[*number] && sent.to == self.case.servers[server] && text.starts_with(what)
        };
        (0..of.taken.len()).find(fits)
    }

    /// Makes room for the messages of a client that went on, and writes the ends of its operations into the schedule.
    fn moved(&mut self, client: usize, known: usize) {
        let of = &mut self.clients[client];
        let sent = of.live.world.sent().len();
        of.taken.resize(sent, false);
        of.unread.resize_with(sent, || None);
        for (number, ended) in of.live.ended.iter().enumerate().skip(known) {
            let label = &self.case.clients[client][number].label;
            self.lines.push(format!("client {client}: {label} {ended}"));
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\nso far:\n{}", self.lines.join("\n"))
    }
}
