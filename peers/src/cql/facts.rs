//! Questions and steps before anything is measured: the identity of the cluster, and a table in a keyspace of ours.

use areo_bench::target::TargetOptions;
use scylla::client::session::Session;
use std::collections::HashMap;

/// The settings that a cluster reports about itself.
pub(super) struct Facts {
    pub(super) version: String,
    pub(super) nodes: usize,
    /// The mode in which its commit log is synced, `periodic`, `batch` or `group`; below the period of `periodic`.
    pub(super) sync: Option<String>,
    pub(super) period: Option<String>,
    /// The protocol of its lightweight transactions.
    pub(super) paxos: Option<String>,
}

/// Makes the keyspace and the table, unless they are there.
///
/// # Errors
/// What is not as it is wanted, as a sentence.
pub(super) async fn make(
    session: &Session,
    table: &str,
    wanted: &TargetOptions,
) -> Result<Facts, String> {
    let facts = facts(session).await?;
    suits(&facts, wanted)?;
    let replicas = wanted.servers;
    let keyspace = format!(
        "CREATE KEYSPACE IF NOT EXISTS areo_bench WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    );
    let made = session.query_unpaged(keyspace, ()).await;
    made.map_err(|why| format!("the keyspace areo_bench cannot be created: {why}"))?;
    check_replicas(session, replicas).await?;
    let table =
        format!("CREATE TABLE IF NOT EXISTS areo_bench.{table} (key text PRIMARY KEY, value blob)");
    let made = session.query_unpaged(table, ()).await;
    made.map_err(|why| format!("a table in the keyspace areo_bench cannot be created: {why}"))?;
    Ok(facts)
}

async fn facts(session: &Session) -> Result<Facts, String> {
    let version = word(session, "SELECT release_version FROM system.local").await?;
    // Scylla has no such table.
    let setting = async |name: &str| {
        let asked = format!("SELECT value FROM system_views.settings WHERE name = '{name}'");
        word(session, &asked).await.ok().flatten()
    };
    Ok(Facts {
        version: version.unwrap_or_else(|| "not told".into()),
        nodes: session.get_cluster_state().get_nodes_info().len(),
        sync: setting("commitlog_sync").await,
        period: setting("commitlog_sync_period").await,
        paxos: setting("paxos_variant").await,
    })
}

/// The first thing that a statement tells.
async fn word(session: &Session, statement: &str) -> Result<Option<String>, String> {
    let rows = session.query_unpaged(statement, ()).await;
    let rows = rows.map_err(|why| why.to_string())?.into_rows_result();
    let rows = rows.map_err(|why| why.to_string())?;
    let row = rows.maybe_first_row::<(Option<String>,)>();
    Ok(row.map_err(|why| why.to_string())?.and_then(|(word,)| word))
}

/// That the comparison would be one of equals.
fn suits(facts: &Facts, wanted: &TargetOptions) -> Result<(), String> {
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
async fn check_replicas(session: &Session, wanted: usize) -> Result<(), String> {
    const REPLICATION: &str =
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'areo_bench'";
    let rows = session.query_unpaged(REPLICATION, ()).await;
    let rows = rows.map_err(|why| why.to_string())?.into_rows_result();
    let rows = rows.map_err(|why| why.to_string())?;
    let (told,) = rows
        .single_row::<(HashMap<String, String>,)>()
        .map_err(|why| why.to_string())?;
    match told.get("replication_factor") {
        Some(have) if *have == wanted.to_string() => Ok(()),
        have => Err(format!(
            "the keyspace areo_bench is there with {} replicas instead of {wanted}: drop it, or compare with as many --servers",
            have.map_or("other", String::as_str)
        )),
    }
}
