//! A Cassandra cluster that runs already, as a target: with reads and writes at a quorum, and with lightweight transactions.

mod connection;
mod frame;
mod keyspace;

use super::{
    About, Answer, Caller, Cost, Target, TargetError, TargetName, Wanted, in_time, start_failed,
};
use crate::system;
use bytes::Bytes;
use connection::{Connection, told};
use frame::{Cell, Consistency, Reply, Request};
use keyspace::Facts;
use std::cell::Cell as Count;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Where a node listens for clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    host: String,
    port: u16,
}

impl Node {
    /// From `HOST:PORT`.
    ///
    /// # Errors
    /// A sentence that says how it is written.
    pub fn parse(text: &str) -> Result<Node, String> {
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let parsed = text.rsplit_once(':').and_then(|(host, port)| {
            let port = port.parse::<u16>().ok().filter(|&port| port > 0)?;
            let host = (!host.is_empty() && host.chars().all(is_host)).then(|| host.to_owned())?;
            Some(Node { host, port })
        });
        parsed.ok_or_else(|| format!("'{text}' is no address of a node: write HOST:PORT"))
    }

    /// The process that listens there, if it is on loopback and may be looked at.
    fn process(&self) -> Option<u32> {
        let mut addresses = self.to_string().to_socket_addrs().ok()?;
        addresses.find_map(|address| match address {
            SocketAddr::V4(address) if address.ip().is_loopback() => system::listener(address),
            _ => None,
        })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What makes the two ways of asking it different.
struct Way {
    target: TargetName,
    table: &'static str,
    /// One after the other until one is applied.
    puts: &'static [&'static str],
    get: &'static str,
    get_at: Consistency,
}

const QUORUM: Way = Way {
    target: TargetName::Cassandra,
    table: "objects",
    puts: &["INSERT INTO areo_bench.objects (value, key) VALUES (?, ?)"],
    get: "SELECT value FROM areo_bench.objects WHERE key = ?",
    get_at: Consistency::Quorum,
};

/// A row that is there is updated; one that is not is inserted, unless somebody else was first.
const SERIAL: Way = Way {
    target: TargetName::CassandraSerial,
    table: "objects_serial",
    puts: &[
        UPDATE,
        "INSERT INTO areo_bench.objects_serial (value, key) VALUES (?, ?) IF NOT EXISTS",
        UPDATE,
    ],
    get: "SELECT value FROM areo_bench.objects_serial WHERE key = ?",
    get_at: Consistency::Serial,
};
const UPDATE: &str = "UPDATE areo_bench.objects_serial SET value = ? WHERE key = ? IF EXISTS";

/// A cluster with a table for us.
pub(super) struct Cassandra {
    about: About,
    pool: Rc<Pool>,
    callers: Count<usize>,
    processes: Vec<u32>,
}

impl Cassandra {
    pub(super) async fn start(wanted: &Wanted, serial: bool) -> Result<Cassandra, TargetError> {
        let (way, nodes) = match serial {
            false => (&QUORUM, &wanted.cassandra),
            true => (&SERIAL, &wanted.cassandra_serial),
        };
        let opened = Cassandra::open(way, nodes, wanted).await;
        opened.map_err(|why| start_failed(way.target)(&why))
    }

    async fn open(way: &'static Way, nodes: &[Node], wanted: &Wanted) -> Result<Cassandra, String> {
        let first = nodes.first().ok_or("nobody says where it is")?.to_string();
        let connection = in_time(wanted.timeout, Connection::open(&first)).await;
        let connection = connection.map_err(|why| name(&first, why))?;
        let facts = keyspace::make(&connection, way.table, wanted).await?;
        let pool = Pool {
            way,
            nodes: nodes.iter().map(ToString::to_string).collect(),
            prepared: nodes.iter().map(|_| Mutex::default()).collect(),
            timeout: wanted.timeout,
        };
        // That one of them does not answer is told now.
        for place in 0..nodes.len() {
            pool.prepared(place).await?;
        }
        let mut processes: Vec<u32> = nodes.iter().filter_map(Node::process).collect();
        processes.sort_unstable();
        processes.dedup();
        if processes.len() != facts.nodes {
            // Some of it is no figure.
            processes.clear();
        }
        Ok(Cassandra {
            about: about(way, &facts, (nodes.len(), !processes.is_empty()), wanted),
            pool: Rc::new(pool),
            callers: Count::new(0),
            processes,
        })
    }
}

fn about(way: &Way, facts: &Facts, (nodes, looked_at): (usize, bool), wanted: &Wanted) -> About {
    let asked = match way.target {
        TargetName::CassandraSerial => format!(
            "puts are lightweight transactions (IF), gets SERIAL: linearizable (paxos_variant: {})",
            facts.paxos.as_deref().unwrap_or("not told")
        ),
        _ => "puts and gets at QUORUM, the latest timestamp wins: not linearizable when writers are concurrent".into(),
    };
    let known = match looked_at {
        true => "disk of its servers is not known",
        false => "CPU time, memory and disk of its servers are not known",
    };
    About {
        target: way.target,
        version: facts.version.clone(),
        servers: facts.nodes,
        keeps: format!("{} replicas; {asked}; {known}", wanted.servers),
        durability: match &facts.sync {
            None => "not told".into(),
            Some(sync) if sync == "periodic" => format!(
                "commit log written, synced later (commitlog_sync: periodic, {})",
                facts.period.as_deref().unwrap_or("period not told")
            ),
            Some(sync) => format!("commit log synced at a quorum (commitlog_sync: {sync})"),
        },
        connections: format!(
            "one to each of {nodes} nodes, shared by the clients, which take them in turn"
        ),
    }
}

/// Adds which node it was, unless that is said.
fn name(node: &str, why: String) -> String {
    match why.contains(node) {
        true => why,
        false => format!("{node}: {why}"),
    }
}

/// A connection to each node, for all callers.
struct Pool {
    way: &'static Way,
    nodes: Vec<String>,
    prepared: Vec<Mutex<Option<Prepared>>>,
    timeout: Duration,
}

/// A connection, and what its node calls the statements.
#[derive(Clone)]
struct Prepared {
    connection: Connection,
    puts: Vec<Bytes>,
    get: Bytes,
}

impl Pool {
    /// Another one if the last one ended.
    async fn prepared(&self, place: usize) -> Result<Prepared, String> {
        let mut slot = self.prepared[place].lock().await;
        if let Some(prepared) = &*slot
            && prepared.connection.ended().is_none()
        {
            return Ok(prepared.clone());
        }
        let node = &self.nodes[place];
        let prepared = in_time(self.timeout, self.prepare(node)).await;
        let prepared = prepared.map_err(|why| name(node, why))?;
        *slot = Some(prepared.clone());
        Ok(prepared)
    }

    async fn prepare(&self, node: &str) -> Result<Prepared, String> {
        let connection = Connection::open(node).await?;
        let mut puts = Vec::new();
        for put in self.way.puts {
            puts.push(prepare(&connection, put).await?);
        }
        let get = prepare(&connection, self.way.get).await?;
        Ok(Prepared {
            connection,
            puts,
            get,
        })
    }
}

async fn prepare(connection: &Connection, statement: &str) -> Result<Bytes, String> {
    match connection.ask(&Request::Prepare(statement)).await? {
        Reply::Prepared(id) => Ok(id),
        other => Err(format!("'{statement}': {}", told(&other))),
    }
}

impl Prepared {
    async fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        for id in &self.puts {
            let request = Request::Execute {
                id,
                consistency: Consistency::Quorum,
                values: &[value, key.as_bytes()],
            };
            match self.connection.ask(&request).await? {
                Reply::Done => return Ok(()),
                Reply::Rows(rows) if is_applied(&rows) => return Ok(()),
                Reply::Rows(_) => {}
                other => return Err(told(&other)),
            }
        }
        Err("a row was there, and then it was not, and then it was again".into())
    }

    async fn get(&self, key: &str, at: Consistency) -> Result<Option<Bytes>, String> {
        let request = Request::Execute {
            id: &self.get,
            consistency: at,
            values: &[key.as_bytes()],
        };
        match self.connection.ask(&request).await? {
            Reply::Rows(mut rows) => Ok(rows.pop().and_then(|mut row| row.pop().flatten())),
            other => Err(told(&other)),
        }
    }
}

/// Whether a conditional statement had an effect: the first thing that it tells.
fn is_applied(rows: &[Vec<Cell>]) -> bool {
    let told = rows.first().and_then(|row| row.first()?.as_ref());
    told.is_some_and(|told| told[..] == [1])
}

impl Target for Cassandra {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        let number = self.callers.get();
        self.callers.set(number + 1);
        let caller: Box<dyn Caller> = Box::new(CassandraCaller {
            place: number % self.pool.nodes.len(),
            pool: self.pool.clone(),
        });
        Box::pin(async move { Ok(caller) })
    }

    fn processes(&self) -> Vec<u32> {
        let runs = |process: &u32| Path::new(&format!("/proc/{process}/stat")).exists();
        self.processes.iter().copied().filter(runs).collect()
    }

    fn stored(&self) -> u64 {
        0
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        let target = self.about.target;
        Box::pin(async move {
            Err(TargetError::Kill {
                target,
                why: "its servers are not ours".into(),
            })
        })
    }
}

struct CassandraCaller {
    pool: Rc<Pool>,
    place: usize,
}

impl CassandraCaller {
    /// The next one is asked from then on if this node cannot be reached.
    async fn prepared(&mut self) -> Result<Prepared, String> {
        let prepared = self.pool.prepared(self.place).await;
        if prepared.is_err() {
            self.place = (self.place + 1) % self.pool.nodes.len();
        }
        prepared
    }
}

impl Caller for CassandraCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, String> {
        Box::pin(async move {
            let prepared = self.prepared().await?;
            in_time(self.pool.timeout, prepared.put(key, &value)).await?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), String> {
        Box::pin(async move {
            let prepared = self.prepared().await?;
            let got = prepared.get(key, self.pool.way.get_at);
            let value = in_time(self.pool.timeout, got).await?;
            Ok((value, Cost::default()))
        })
    }
}

#[cfg(test)]
mod tests;
