//! A Cassandra or Scylla cluster that runs already, through `scylla`: with reads and writes at a quorum, and with lightweight
//! transactions.

mod facts;

use areo_bench::system;
use areo_bench::target::{
    About, Answer, CallError, Caller, Cost, Target, TargetError, TargetName, TargetOptions,
    start_failed,
};
use bytes::Bytes;
use facts::Facts;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::query_result::QueryResult;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::{CqlValue, Row};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::rc::Rc;

/// The difference between the two targets of Cassandra: with lightweight transactions and without.
pub(crate) struct Way {
    target: TargetName,
    table: &'static str,
    /// One after the other until one is applied.
    puts: &'static [&'static str],
    get: &'static str,
    get_at: Consistency,
}

/// Puts and gets at a quorum.
pub(crate) const QUORUM: Way = Way {
    target: TargetName::Cassandra,
    table: "objects",
    puts: &["INSERT INTO areo_bench.objects (value, key) VALUES (?, ?)"],
    get: "SELECT value FROM areo_bench.objects WHERE key = ?",
    get_at: Consistency::Quorum,
};

/// Lightweight transactions: a row that is there is updated, one that is not is inserted unless another client was first.
pub(crate) const SERIAL: Way = Way {
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

/// A cluster with a table of ours.
pub(crate) struct Cluster {
    about: About,
    statements: Rc<Statements>,
    processes: Vec<u32>,
}

/// The driver, and what it asks.
struct Statements {
    session: Session,
    puts: Vec<PreparedStatement>,
    get: PreparedStatement,
}

/// Connects to the cluster, and makes the table unless it is there.
pub(crate) async fn open(
    way: &'static Way,
    nodes: &[String],
    wanted: &TargetOptions,
) -> Result<Cluster, TargetError> {
    let opened = connect(way, nodes, wanted).await;
    opened.map_err(|why| start_failed(way.target)(&format!("{}: {why}", nodes.join(","))))
}

async fn connect(way: &Way, nodes: &[String], wanted: &TargetOptions) -> Result<Cluster, String> {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .serial_consistency(Some(SerialConsistency::Serial))
        .request_timeout(Some(wanted.timeout))
        .build();
    let session = SessionBuilder::new()
        .known_nodes(nodes)
        .connection_timeout(wanted.timeout)
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await
        .map_err(|error| error.to_string())?;
    let facts = facts::make(&session, way.table, wanted).await?;
    let mut puts = Vec::new();
    for put in way.puts {
        puts.push(prepare(&session, put).await?);
    }
    let mut get = prepare(&session, way.get).await?;
    get.set_consistency(way.get_at);
    let mut processes: Vec<u32> = nodes.iter().filter_map(|node| process(node)).collect();
    processes.sort_unstable();
    processes.dedup();
    if processes.len() != facts.nodes {
        // Some of it is no figure.
        processes.clear();
    }
    Ok(Cluster {
        about: about(way, &facts, !processes.is_empty(), wanted),
        statements: Rc::new(Statements { session, puts, get }),
        processes,
    })
}

async fn prepare(session: &Session, statement: &str) -> Result<PreparedStatement, String> {
    let prepared = session.prepare(statement).await;
    prepared.map_err(|error| format!("'{statement}': {error}"))
}

/// The process that listens there, if it is on loopback and may be looked at.
fn process(node: &str) -> Option<u32> {
    let mut addresses = node.to_socket_addrs().ok()?;
    addresses.find_map(|address| match address {
        SocketAddr::V4(address) if address.ip().is_loopback() => system::listener(address),
        _ => None,
    })
}

fn about(way: &Way, facts: &Facts, looked_at: bool, wanted: &TargetOptions) -> About {
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
        connections:
            "scylla: its pool for each node, shared by all clients; a replica of the key is asked"
                .into(),
    }
}

impl Statements {
    async fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        for put in &self.puts {
            let done = self.session.execute_unpaged(put, (value, key)).await;
            if is_applied(done.map_err(|error| error.to_string())?)? {
                return Ok(());
            }
        }
        Err("a row was there, and then it was not, and then it was again".into())
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        let rows = self.session.execute_unpaged(&self.get, (key,)).await;
        let rows = rows.map_err(|error| error.to_string())?.into_rows_result();
        let rows = rows.map_err(|error| error.to_string())?;
        let row = rows.maybe_first_row::<(Option<Vec<u8>>,)>();
        let row = row.map_err(|error| error.to_string())?;
        Ok(row.and_then(|(value,)| value).map(Bytes::from))
    }
}

/// True if a statement had an effect: one without a condition always has, one with a condition reports it in its
/// first column.
fn is_applied(done: QueryResult) -> Result<bool, String> {
    if !done.is_rows() {
        return Ok(true);
    }
    let rows = done.into_rows_result().map_err(|error| error.to_string())?;
    let row = rows.maybe_first_row::<Row>();
    let row = row.map_err(|error| error.to_string())?;
    let told = row.and_then(|row| row.columns.into_iter().next().flatten());
    Ok(matches!(told, Some(CqlValue::Boolean(true))))
}

impl Target for Cluster {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        let caller: Box<dyn Caller> = Box::new(CqlCaller(self.statements.clone()));
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

struct CqlCaller(Rc<Statements>);

impl Caller for CqlCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            self.0.put(key, &value).await?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move { Ok((self.0.get(key).await?, Cost::default())) })
    }
}
