//! `areo status`: servers and domains.

mod problems;
mod ready;

use super::server::{show_labels, show_state};
use super::{domain, sweep};
use crate::args;
use crate::exit::Outcome;
use crate::output::{Column, Output};
use crate::session::{self, Session, failure};
use areo_client::units::{show_age, show_count, show_size};
use areo_client::{
    Client, ClusterStatus, ClusterSummary, DomainHealth, DomainInfo, Error, Health, ServerHealth,
};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The age of the command at which silent servers are named.
const FIRST_SENTENCE: Duration = Duration::from_millis(850);
/// The least wait for servers before the silent ones are named.
const FIRST_LOOK: Duration = Duration::from_millis(250);
/// The time for which blocks are counted before a line says that they are being counted.
const COUNTING: Duration = Duration::from_secs(1);

pub(super) fn run(session: &Session, args: &args::Status) -> Outcome {
    session::run(status(session, args), "")
}

async fn status(session: &Session, args: &args::Status) -> Outcome {
    let out = session.out;
    let (client, status) = if let Some(time) = args.wait {
        ready::wait(session, &session.domain_name()?, time).await?
    } else {
        let begun = Instant::now();
        let client = session.connect().await?;
        let first = FIRST_SENTENCE.saturating_sub(begun.elapsed());
        let status = look(out, &client, first.max(FIRST_LOOK)).await;
        (client, status)
    };
    if let Some(refused) = ready::refused(&status) {
        return Err(refused);
    }
    print(out, &status)?;
    // Others would be waited for in vain.
    let domains = status.domains.iter().flatten();
    let serving = domains.filter(|it| status.health_of(it).serves);
    let names: Vec<String> = serving.map(|it| it.name.clone()).collect();
    print_blocks(out, &client, &names).await?;
    client.close().await;
    // What can be seen was shown; what cannot decides how this ends.
    let domain = session.global.domain.clone();
    let all = status.all_domains();
    let missing = domain.filter(|name| all.iter().all(|it| it.name != *name));
    status.domains.map_err(failure)?;
    match missing {
        Some(domain) => Err(failure(Error::NotFound { domain, key: None })),
        None => Ok(()),
    }
}

/// Counts blocks, which takes long where there are many, and says so then.
async fn print_blocks(out: Output, client: &Client, domains: &[String]) -> Outcome {
    let mut counting = std::pin::pin!(sweep::print_blocks(out, client, domains));
    if let Ok(counted) = tokio::time::timeout(COUNTING, &mut counting).await {
        return counted;
    }
    out.note("counting the blocks of large values");
    counting.await
}

/// The state of the cluster. Servers that are connected and silent are named before they are waited for, with the
/// domains that do not work without them.
async fn look(out: Output, client: &Client, first: Duration) -> ClusterStatus {
    let status = client.status_within(first).await;
    let silent = |it: &&ServerHealth| matches!(&it.status, Health::Unreachable { reason } if reason == Health::SILENT);
    let silent = status.servers.iter().filter(silent);
    let silent: Vec<&str> = silent.map(|it| it.server.name.as_str()).collect();
    if silent.is_empty() {
        return status;
    }
    for outage in status.problems().iter().filter(|it| it.is_outage) {
        out.note(&outage.text);
    }
    out.note(&format!("waiting for {}", silent.join(", ")));
    client.status().await
}

fn print(out: Output, status: &ClusterStatus) -> Outcome {
    problems::print(out, &status.problems())?;
    print_cluster(out, status)?;
    if out.json {
        let mut servers = status.servers.iter();
        servers.try_for_each(|server| out.object(server))?;
    } else {
        print_servers(out, status)?;
    }
    if out.terminal {
        out.line("")?;
    }
    print_domains(out, status)
}

/// The output of a domain with `--json`.
#[derive(Serialize)]
struct DomainReport<'a> {
    #[serde(flatten)]
    domain: &'a DomainInfo,
    #[serde(flatten)]
    health: DomainHealth,
}

fn print_domains(out: Output, status: &ClusterStatus) -> Outcome {
    let domains = status.all_domains();
    if out.json {
        return domains.iter().try_for_each(|domain| {
            out.object(&DomainReport {
                domain,
                health: status.health_of(domain),
            })
        });
    }
    let more = [
        Column::Number("up"),
        Column::Number("objects"),
        Column::Text("redundancy"),
        Column::Text("verified"),
    ];
    let columns = [&domain::COLUMNS[..], &more].concat();
    let row = |it: &DomainInfo| {
        let health = status.health_of(it);
        let more = [
            format!("{} of {}", health.serving, it.configuration.shape.n()),
            health.objects.map_or("-".into(), |it| it.to_string()),
            health.show_redundancy(),
            health.show_verified(),
        ];
        domain::row(it).into_iter().chain(more).collect()
    };
    let short = [
        "domain",
        "dap",
        "quorum",
        "f",
        "up",
        "objects",
        "redundancy",
    ];
    let rows: Vec<Vec<String>> = domains.iter().map(row).collect();
    out.short_table(&columns, &short, &rows)
}

fn print_cluster(out: Output, status: &ClusterStatus) -> Outcome {
    let cluster = status.summary();
    match (out.json, out.terminal) {
        (true, _) => out.object(&cluster),
        (false, true) => {
            for line in for_people(status, &cluster) {
                out.line(&line)?;
            }
            out.line("")
        }
        (false, false) => {
            let columns = [
                Column::Text("cluster"),
                Column::Number("up"),
                Column::Number("servers"),
                Column::Number("element bytes"),
                Column::Number("stored bytes"),
                Column::Number("tombstones"),
            ];
            let row = vec![
                cluster.cluster.to_string(),
                cluster.serving.to_string(),
                cluster.servers.to_string(),
                cluster.element_bytes.to_string(),
                cluster.stored_bytes.to_string(),
                cluster.tombstones.to_string(),
            ];
            out.table(&columns, &[row])
        }
    }
}

fn for_people(status: &ClusterStatus, cluster: &ClusterSummary) -> Vec<String> {
    let tombstones = match cluster.tombstones {
        0 => String::new(),
        count => format!(", {} of deleted objects", show_count(count, "tombstone")),
    };
    let mut lines = vec![
        format!(
            "cluster {}: {} of {} servers serve",
            cluster.cluster, cluster.serving, cluster.servers
        ),
        format!(
            "{} in fragments and copies, {} stored{tombstones}",
            show_size(cluster.element_bytes),
            show_size(cluster.stored_bytes)
        ),
        status.show_redundancy(),
    ];
    lines.extend(status.show_upgrade());
    if let Some(seconds) = cluster.pending_seconds {
        let age = show_age(seconds);
        lines.extend([
            format!("a change has been pending for {age}: if no client is at work on it,"),
            "`areo reconfig start DOMAIN --resume` finishes it".into(),
        ]);
    }
    lines
}

/// The head of a table has no word that is a state: a script that counts lines with `serving` counts servers.
fn print_servers(out: Output, status: &ClusterStatus) -> Outcome {
    let columns = [
        Column::Text("name"),
        Column::Text("address"),
        Column::Text("state"),
        Column::Number("start"),
        Column::Text("durability"),
        Column::Number("objects"),
        Column::Number("damaged"),
        Column::Number("lacking"),
        Column::Number("tombstones"),
        Column::Number("elements"),
        Column::Number("stored"),
        Column::Number("domains"),
        Column::Text("version"),
        Column::Text("labels"),
        Column::Text("plans"),
    ];
    let short = ["name", "address", "state", "objects", "stored", "domains"];
    let row = |health| row(out.terminal, health);
    let rows: Vec<_> = status.servers.iter().map(row).collect();
    out.short_table(&columns, &short, &rows)
}

fn row(people: bool, health: &ServerHealth) -> Vec<String> {
    let status = health.status.answered();
    let number = |number: Option<u64>| number.map_or("-".into(), |number| number.to_string());
    let size = |bytes: Option<u64>| {
        if people {
            bytes.map_or("-".into(), show_size)
        } else {
            number(bytes)
        }
    };
    let durability = match status.map(|status| status.durable) {
        Some(true) => "fsync",
        Some(false) => "memory",
        None => "-",
    };
    let address = match health.server.address.as_str() {
        "" => "-",
        address => address,
    };
    vec![
        health.server.name.clone(),
        address.into(),
        match health.is_full() {
            true => "disk full".into(),
            false => health.state().into(),
        },
        health.incarnation().to_string(),
        durability.into(),
        number(status.map(|status| status.objects)),
        number(status.map(|status| status.damaged)),
        number(status.map(|status| status.lacking)),
        number(status.map(|status| status.tombstones)),
        size(status.map(|status| status.element_bytes)),
        size(status.map(|status| status.stored_bytes)),
        number(health.domains),
        match health.server.version.as_str() {
            "" => "-".into(),
            version => version.into(),
        },
        show_labels(&health.server),
        show_state(&health.server),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{Health, ServerId, ServerInfo, ServerStatus};
    use std::collections::BTreeMap;

    fn health(status: Health) -> ServerHealth {
        ServerHealth {
            server: ServerInfo {
                id: ServerId(1),
                name: "s1".into(),
                address: "127.0.0.1:7400".into(),
                admin: "127.0.0.1:7490".into(),
                incarnation: 3,
                leaving: false,
                version: "0.1.0".into(),
                level: 0,
                labels: BTreeMap::from([("zone".into(), "a".into())]),
                maintenance: None,
            },
            status,
            domains: Some(2),
        }
    }

    fn answered(serving: bool, durable: bool) -> ServerHealth {
        health(Health::Answered(ServerStatus {
            incarnation: 4,
            serving,
            durable,
            objects: 7,
            element_bytes: 2048,
            stored_bytes: 4096,
            ..ServerStatus::default()
        }))
    }

    #[test]
    fn rows_are_for_people_or_for_programs() {
        let row = |people, health: &ServerHealth| super::row(people, health).join(" ");
        let serving = answered(true, true);
        assert_eq!(
            row(true, &serving),
            "s1 127.0.0.1:7400 serving 4 fsync 7 0 0 0 2.0 KiB 4.0 KiB 2 0.1.0 zone=a -"
        );
        assert_eq!(
            row(false, &serving),
            "s1 127.0.0.1:7400 serving 4 fsync 7 0 0 0 2048 4096 2 0.1.0 zone=a -"
        );
        let starting = answered(false, false);
        assert_eq!(
            row(false, &starting),
            "s1 127.0.0.1:7400 starting 4 memory 7 0 0 0 2048 4096 2 0.1.0 zone=a -"
        );
        let reason = "connection refused".into();
        let down = health(Health::Unreachable { reason });
        assert_eq!(
            row(true, &down),
            "s1 127.0.0.1:7400 connection refused 3 - - - - - - - 2 0.1.0 zone=a -"
        );
    }

    #[test]
    fn json_has_stable_keys() {
        let answered = answered(true, false);
        assert_eq!(
            serde_json::to_value(&answered).unwrap(),
            serde_json::json!({
                "server": "s1", "id": "00000000000000000000000000000001", "address": "127.0.0.1:7400",
                "admin": "127.0.0.1:7490", "state": "serving", "incarnation": 4, "durable": false,
                "version": "0.1.0", "level": 0,
                "objects": 7, "damaged": 0, "lacking": 0, "proven_seconds": null, "element_bytes": 2048, "stored_bytes": 4096,
                "tombstones": 0, "full": false, "leaving": false,
                "domains": 2, "labels": { "zone": "a" }, "maintenance": null,
            })
        );
        let reason = "timed out".into();
        let down = health(Health::Unreachable { reason });
        let object = serde_json::to_value(&down).unwrap();
        assert_eq!(object["state"], "timed out");
        assert_eq!(object["objects"], serde_json::Value::Null);
    }
}
