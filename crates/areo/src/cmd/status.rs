//! `areo status`: servers and domains.

mod ready;

use super::{domain, sweep};
use crate::args;
use crate::exit::Outcome;
use crate::output::{Column, Output};
use crate::session::{self, Session, failure};
use crate::units::{show_age, show_size};
use areo_client::{ClusterStatus, ConfigurationInfo, Health, ServerHealth};
use serde::Serialize;

/// The first line with `--json`.
#[derive(Serialize)]
struct ClusterLine {
    cluster: String,
    servers: usize,
    serving: usize,
    /// Answers that an operation on domains and servers needs.
    root_quorum: usize,
    /// Fragments and copies of values, on the servers that answered.
    element_bytes: u64,
    /// What their stores take.
    stored_bytes: u64,
    /// For how long the oldest change of a domain has been pending, as far as the servers know; nothing without one.
    pending_seconds: Option<u64>,
}

/// One line per server with `--json`.
#[derive(Serialize)]
struct ServerLine<'a> {
    server: &'a str,
    id: String,
    address: &'a str,
    admin: &'a str,
    state: &'a str,
    incarnation: u64,
    durable: Option<bool>,
    objects: Option<u64>,
    damaged: Option<u64>,
    element_bytes: Option<u64>,
    stored_bytes: Option<u64>,
    /// Domains that have it in their final or in a pending configuration, the root domain included. A server of none can be
    /// stopped for good. Nothing if not all domains told.
    domains: Option<u64>,
}

pub(super) fn run(session: &Session, args: &args::Status) -> Outcome {
    session::run(status(session, args), "")
}

async fn status(session: &Session, args: &args::Status) -> Outcome {
    let (client, status) = if let Some(time) = args.wait {
        ready::wait(session, &session.domain_name()?, time).await?
    } else {
        let client = session.connect().await?;
        let status = client.status().await;
        (client, status)
    };
    print(session.out, &status)?;
    let domains = status.domains.as_deref().unwrap_or_default();
    let names: Vec<String> = domains.iter().map(|domain| domain.name.clone()).collect();
    sweep::print_blocks(session.out, &client, &names).await?;
    client.close().await;
    // What can be seen was shown; what cannot decides how this ends.
    status.domains.map(drop).map_err(failure)
}

fn print(out: Output, status: &ClusterStatus) -> Outcome {
    print_cluster(out, status)?;
    match out.json {
        true => status
            .servers
            .iter()
            .try_for_each(|health| out.object(&server(health, domains_of(status, health))))?,
        false => print_servers(out, status)?,
    }
    let domains = status.domains.as_deref().unwrap_or_default();
    if out.terminal && !domains.is_empty() {
        out.line("")?;
    }
    domain::print_all(out, domains)
}

fn print_cluster(out: Output, status: &ClusterStatus) -> Outcome {
    let cluster = ClusterLine {
        cluster: status.cluster.to_string(),
        servers: status.servers.len(),
        serving: status.serving(),
        root_quorum: status.root.shape.quorum(),
        element_bytes: status.element_bytes(),
        stored_bytes: status.stored_bytes(),
        pending_seconds: status.oldest_pending().map(|age| age.as_secs()),
    };
    let ClusterLine {
        servers,
        serving,
        root_quorum,
        element_bytes,
        stored_bytes,
        ..
    } = &cluster;
    match (out.json, out.terminal) {
        (true, _) => out.object(&cluster),
        (false, true) => {
            out.line(&format!(
                "cluster {}: {serving} of {servers} servers serve ({root_quorum} needed to find domains), {} in fragments and copies, {} stored",
                cluster.cluster,
                show_size(*element_bytes),
                show_size(*stored_bytes)
            ))?;
            if let Some(seconds) = cluster.pending_seconds {
                out.line(&format!(
                    "a change has been pending for {}: if nobody is at it, `areo reconfig start DOMAIN --resume` finishes it",
                    show_age(seconds)
                ))?;
            }
            out.line("")
        }
        (false, false) => out.line(&format!(
            "{}\t{serving}\t{servers}\t{element_bytes}\t{stored_bytes}",
            cluster.cluster
        )),
    }
}

/// How many domains need the server.
fn domains_of(status: &ClusterStatus, health: &ServerHealth) -> Option<u64> {
    let has = |c: &ConfigurationInfo| {
        let mut members = c.members.iter();
        members.any(|member| member.id == health.server.id)
    };
    let mut needed = u64::from(has(&status.root));
    for domain in status.domains.as_ref().ok()? {
        let pending = domain.pending.as_ref()?;
        let needs = has(&domain.configuration) || pending.iter().any(has);
        needed += u64::from(needs);
    }
    Some(needed)
}

fn print_servers(out: Output, status: &ClusterStatus) -> Outcome {
    let columns = [
        Column::Text("server"),
        Column::Text("address"),
        Column::Text("state"),
        Column::Number("start"),
        Column::Text("durability"),
        Column::Number("objects"),
        Column::Number("damaged"),
        Column::Number("elements"),
        Column::Number("stored"),
        Column::Number("domains"),
    ];
    let row = |health| row(out.terminal, &server(health, domains_of(status, health)));
    let rows: Vec<_> = status.servers.iter().map(row).collect();
    out.table(&columns, &rows)
}

fn server(health: &ServerHealth, domains: Option<u64>) -> ServerLine<'_> {
    let known = &health.server;
    let status = health.status.answered();
    ServerLine {
        server: &known.name,
        id: known.id.to_string(),
        address: &known.address,
        admin: &known.admin,
        state: match &health.status {
            Health::Answered(status) if status.serving => "serving",
            Health::Answered(_) => "starting",
            Health::Unreachable { reason } => reason,
        },
        incarnation: status.map_or(known.incarnation, |status| status.incarnation),
        durable: status.map(|status| status.durable),
        objects: status.map(|status| status.objects),
        damaged: status.map(|status| status.damaged),
        element_bytes: status.map(|status| status.element_bytes),
        stored_bytes: status.map(|status| status.stored_bytes),
        domains,
    }
}

fn row(people: bool, server: &ServerLine) -> Vec<String> {
    let number = |number: Option<u64>| number.map_or("-".into(), |number| number.to_string());
    let size = |bytes: Option<u64>| match people {
        true => bytes.map_or("-".into(), show_size),
        false => number(bytes),
    };
    let durability = match server.durable {
        Some(true) => "fsync",
        Some(false) => "memory",
        None => "-",
    };
    vec![
        server.server.into(),
        server.address.into(),
        server.state.into(),
        server.incarnation.to_string(),
        durability.into(),
        number(server.objects),
        number(server.damaged),
        size(server.element_bytes),
        size(server.stored_bytes),
        number(server.domains),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::{ServerId, ServerInfo, ServerStatus};

    fn health(status: Health) -> ServerHealth {
        ServerHealth {
            server: ServerInfo {
                id: ServerId(1),
                name: "s1".into(),
                address: "127.0.0.1:7400".into(),
                admin: "127.0.0.1:7490".into(),
                incarnation: 3,
            },
            status,
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
        let row =
            |people, health: &ServerHealth| super::row(people, &server(health, Some(2))).join(" ");
        let serving = answered(true, true);
        assert_eq!(
            row(true, &serving),
            "s1 127.0.0.1:7400 serving 4 fsync 7 0 2.0 KiB 4.0 KiB 2"
        );
        assert_eq!(
            row(false, &serving),
            "s1 127.0.0.1:7400 serving 4 fsync 7 0 2048 4096 2"
        );
        let starting = answered(false, false);
        assert_eq!(
            row(false, &starting),
            "s1 127.0.0.1:7400 starting 4 memory 7 0 2048 4096 2"
        );
        let reason = "connection refused".into();
        let down = health(Health::Unreachable { reason });
        assert_eq!(
            row(true, &down),
            "s1 127.0.0.1:7400 connection refused 3 - - - - - 2"
        );
    }

    #[test]
    fn json_has_stable_keys() {
        let answered = answered(true, false);
        assert_eq!(
            serde_json::to_value(server(&answered, Some(0))).unwrap(),
            serde_json::json!({
                "server": "s1", "id": "00000000000000000000000000000001", "address": "127.0.0.1:7400",
                "admin": "127.0.0.1:7490", "state": "serving", "incarnation": 4, "durable": false,
                "objects": 7, "damaged": 0, "element_bytes": 2048, "stored_bytes": 4096,
                "domains": 0,
            })
        );
        let reason = "timed out".into();
        let down = health(Health::Unreachable { reason });
        let object = serde_json::to_value(server(&down, None)).unwrap();
        assert_eq!(object["state"], "timed out");
        assert_eq!(object["objects"], serde_json::Value::Null);
    }
}
