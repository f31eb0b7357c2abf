//! `areo status`: servers and domains.

mod problems;
mod ready;
mod versions;

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
    for outage in problems::outages(&status) {
        out.note(&outage);
    }
    out.note(&format!("waiting for {}", silent.join(", ")));
    client.status().await
}

fn print(out: Output, status: &ClusterStatus) -> Outcome {
    problems::print(out, &problems::all(status))?;
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
            redundancy_of(&health),
            verified(&health),
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

/// Describes the redundancy of a domain: whether every server holds its element of every object, and the age of that
/// finding; or the servers that a restart of objects waits for.
fn redundancy_of(health: &DomainHealth) -> String {
    if !health.waits_for.is_empty() {
        let servers = health.waits_for.join(", ");
        return format!("waits for {servers} to restart counters of objects");
    }
    let missing: u64 = health.missing.values().sum();
    if missing > 0 {
        let servers = health.missing.iter();
        let servers: Vec<_> = servers.map(|(name, it)| format!("{name} {it}")).collect();
        return format!("{missing} missing: {}", servers.join(", "));
    }
    match health.proven_seconds {
        Some(seconds) if health.objects.is_some() => {
            format!("whole as of {} ago", show_age(seconds))
        }
        _ => format!("not known of {}", health.not_proven.join(", ")),
    }
}

/// The longest time since a verification of a record.
fn verified(health: &DomainHealth) -> String {
    let seconds = health.unscrubbed_seconds;
    seconds.map_or("-".into(), |seconds| {
        format!("within {}", show_age(seconds))
    })
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
        redundancy(&status.servers, cluster.lacking, cluster.proven_seconds),
    ];
    lines.extend(versions::sentence(status));
    if let Some(seconds) = cluster.pending_seconds {
        let age = show_age(seconds);
        lines.extend([
            format!("a change has been pending for {age}: if no client is at work on it,"),
            "`areo reconfig start DOMAIN --resume` finishes it".into(),
        ]);
    }
    lines
}

/// The number of missing elements, and the age of that news.
fn redundancy(servers: &[ServerHealth], lacking: u64, proven_seconds: Option<u64>) -> String {
    let is_unproven = |it: &&ServerHealth| {
        it.domains != Some(0) && it.status.answered().is_none_or(|it| it.proven_ms.is_none())
    };
    let unproven = servers.iter().filter(is_unproven);
    let unproven: Vec<&str> = unproven.map(|it| it.server.name.as_str()).collect();
    match (lacking, proven_seconds) {
        (0, Some(seconds)) => format!(
            "every server held its part of every object as of {} ago",
            show_age(seconds)
        ),
        (0, None) => format!(
            "not known yet to hold their part of every object: {}",
            unproven.join(", ")
        ),
        (lacking, _) => format!(
            "{} missing: `areo repair ls` names the objects",
            show_count(lacking, "element")
        ),
    }
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
            "s1 127.0.0.1:7400 serving 4 fsync 7 0 0 0 2.0 KiB 4.0 KiB 2 0.1.0"
        );
        assert_eq!(
            row(false, &serving),
            "s1 127.0.0.1:7400 serving 4 fsync 7 0 0 0 2048 4096 2 0.1.0"
        );
        let starting = answered(false, false);
        assert_eq!(
            row(false, &starting),
            "s1 127.0.0.1:7400 starting 4 memory 7 0 0 0 2048 4096 2 0.1.0"
        );
        let reason = "connection refused".into();
        let down = health(Health::Unreachable { reason });
        assert_eq!(
            row(true, &down),
            "s1 127.0.0.1:7400 connection refused 3 - - - - - - - 2 0.1.0"
        );
    }

    #[test]
    fn redundancy_is_proven_or_said_to_be_unknown() {
        let server = |proven_ms, lacking| {
            health(Health::Answered(ServerStatus {
                proven_ms,
                lacking,
                ..ServerStatus::default()
            }))
        };
        let said = |servers: &[ServerHealth]| {
            let proven = servers
                .iter()
                .map(|it| it.status.answered().unwrap().proven_ms);
            let oldest = proven.collect::<Option<Vec<u64>>>();
            let lacking = servers
                .iter()
                .map(|it| it.status.answered().unwrap().lacking);
            redundancy(
                servers,
                lacking.sum(),
                oldest
                    .and_then(|all| all.into_iter().max())
                    .map(|ms| ms / 1000),
            )
        };
        assert_eq!(
            said(&[server(Some(5000), 0), server(Some(300_000), 0)]),
            "every server held its part of every object as of 5 min ago"
        );
        assert_eq!(
            said(&[server(Some(5000), 0), server(None, 0)]),
            "not known yet to hold their part of every object: s1"
        );
        assert_eq!(
            said(&[server(Some(5000), 3), server(None, 0)]),
            "3 elements missing: `areo repair ls` names the objects"
        );
    }

    #[test]
    fn a_domain_is_said_to_be_whole_only_if_that_is_known() {
        let mut health = DomainHealth {
            serving: 4,
            serves: true,
            writes: false,
            full: vec!["s2".into()],
            objects: Some(12_034),
            missing: BTreeMap::new(),
            not_proven: Vec::new(),
            proven_seconds: Some(3 * 3600),
            unscrubbed_seconds: None,
            waits_for: Vec::new(),
        };
        assert_eq!(redundancy_of(&health), "whole as of 3 h ago");
        assert_eq!(verified(&health), "-");
        health.unscrubbed_seconds = Some(300);
        assert_eq!(verified(&health), "within 5 min");
        health.proven_seconds = None;
        health.not_proven = vec!["s1".into(), "s4".into()];
        assert_eq!(redundancy_of(&health), "not known of s1, s4");
        health.missing = [("s2", 4), ("s4", 3)].map(|(s, it)| (s.into(), it)).into();
        assert_eq!(redundancy_of(&health), "7 missing: s2 4, s4 3");
        assert_eq!(
            serde_json::to_value(&health).unwrap(),
            serde_json::json!({
                "serving": 4, "serves": true, "writes": false, "full": ["s2"],
                "objects": 12034, "missing": {"s2": 4, "s4": 3}, "not_proven": ["s1", "s4"],
                "proven_seconds": null, "unscrubbed_seconds": 300, "waits_for": [],
            })
        );
        health.waits_for = vec!["s4".into()];
        assert_eq!(
            redundancy_of(&health),
            "waits for s4 to restart counters of objects"
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
                "domains": 2,
            })
        );
        let reason = "timed out".into();
        let down = health(Health::Unreachable { reason });
        let object = serde_json::to_value(&down).unwrap();
        assert_eq!(object["state"], "timed out");
        assert_eq!(object["objects"], serde_json::Value::Null);
    }
}
