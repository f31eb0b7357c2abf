//! What is asked once, before anything is measured: which cluster it is, and a table in a keyspace of ours.

use super::connection::{Connection, told};
use super::frame::{self, Cell, Reply, Request};
use crate::target::{Wanted, in_time};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long a statement that changes the schema may take, and all nodes until they have heard of it.
const SCHEMA: Duration = Duration::from_mins(1);

/// What a cluster tells of itself.
pub(super) struct Facts {
    pub(super) version: String,
    pub(super) nodes: usize,
    /// When its commit log is synced: `periodic`, `batch` or `group`; and how often, if that is periodic.
    pub(super) sync: Option<String>,
    pub(super) period: Option<String>,
    /// By which protocol it does lightweight transactions.
    pub(super) paxos: Option<String>,
}

/// Makes the keyspace and the table, unless they are there.
///
/// # Errors
/// What is not as it is wanted, as a sentence.
pub(super) async fn make(
    connection: &Connection,
    table: &str,
    wanted: &Wanted,
) -> Result<Facts, String> {
    let facts = facts(connection).await?;
    suits(&facts, wanted)?;
    let replicas = wanted.servers;
    let keyspace = format!(
        "CREATE KEYSPACE IF NOT EXISTS areo_bench WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    );
    let made = rows(connection, &keyspace).await;
    made.map_err(|why| format!("the keyspace areo_bench cannot be created: {why}"))?;
    check_replicas(connection, replicas).await?;
    let table =
        format!("CREATE TABLE IF NOT EXISTS areo_bench.{table} (key text PRIMARY KEY, value blob)");
    let made = rows(connection, &table).await;
    made.map_err(|why| format!("a table in the keyspace areo_bench cannot be created: {why}"))?;
    agreement(connection).await?;
    Ok(facts)
}

async fn facts(connection: &Connection) -> Result<Facts, String> {
    let version = word(connection, "SELECT release_version FROM system.local").await?;
    let peers = rows(connection, "SELECT peer FROM system.peers").await?;
    Ok(Facts {
        version: version.unwrap_or_else(|| "not told".into()),
        nodes: 1 + peers.len(),
        sync: setting(connection, "commitlog_sync").await,
        period: setting(connection, "commitlog_sync_period").await,
        paxos: setting(connection, "paxos_variant").await,
    })
}

/// That the comparison would be one of equals.
fn suits(facts: &Facts, wanted: &Wanted) -> Result<(), String> {
    let (nodes, servers) = (facts.nodes, wanted.servers);
    if nodes < servers {
        return Err(format!(
            "the cluster has {nodes} of the {servers} nodes that keep a value: start more, or compare with --servers {nodes}"
        ));
    }
    let Some(sync) = &facts.sync else {
        return Ok(());
    };
    match (wanted.memory, sync == "periodic") {
        (true, false) => Err(format!(
            "its nodes sync before they acknowledge (commitlog_sync: {sync}): compare with --durability fsync, or start them with \
             commitlog_sync: periodic"
        )),
        (false, true) => Err(
            "its nodes acknowledge before they sync (commitlog_sync: periodic): compare with --durability memory, or start them \
             with commitlog_sync: batch"
                .into(),
        ),
        _ => Ok(()),
    }
}

/// That a keyspace that was there is as it would have been made.
async fn check_replicas(connection: &Connection, wanted: usize) -> Result<(), String> {
    const REPLICATION: &str =
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'areo_bench'";
    let found = first(rows(connection, REPLICATION).await?);
    let found = found.and_then(frame::map).unwrap_or_default();
    match found.get("replication_factor") {
        Some(replicas) if *replicas == wanted.to_string() => Ok(()),
        _ => Err(format!(
            "the keyspace areo_bench is there, with the replication {found:?} instead of {wanted} replicas: drop it, or compare \
             with as many --servers"
        )),
    }
}

/// Waits until all nodes have the same schema.
async fn agreement(connection: &Connection) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let mut versions = rows(connection, "SELECT schema_version FROM system.local").await?;
        versions.extend(rows(connection, "SELECT schema_version FROM system.peers").await?);
        versions.dedup();
        if versions.len() == 1 {
            return Ok(());
        }
        if begun.elapsed() > SCHEMA {
            return Err("its nodes do not agree on the schema".into());
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Of this node; `None` of versions before 4.0, which do not tell.
async fn setting(connection: &Connection, name: &str) -> Option<String> {
    let statement = format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
    word(connection, &statement).await.ok().flatten()
}

async fn word(connection: &Connection, statement: &str) -> Result<Option<String>, String> {
    let cell = first(rows(connection, statement).await?);
    Ok(cell.map(|word| String::from_utf8_lossy(&word).into_owned()))
}

/// The first value of the first row.
fn first(rows: Vec<Vec<Cell>>) -> Cell {
    rows.into_iter().next()?.into_iter().next()?
}

async fn rows(connection: &Connection, statement: &str) -> Result<Vec<Vec<Cell>>, String> {
    match in_time(SCHEMA, connection.ask(&Request::Query(statement))).await? {
        Reply::Rows(rows) => Ok(rows),
        Reply::Done => Ok(Vec::new()),
        other => Err(told(&other)),
    }
}
