//! `areo repair`: how many objects every server of a domain holds, and bringing the others to all of them at once.

use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, failure};
use crate::units::show_count;
use areo_client::{BelowRedundancy, Redundancy};
use serde::Serialize;

/// What is printed with `--json`.
#[derive(Serialize)]
struct RedundancyReport<'a> {
    domain: &'a str,
    servers: usize,
    /// Objects that are not known to be at all servers.
    not_full: u64,
    #[serde(flatten)]
    redundancy: &'a Redundancy,
}

pub(super) fn run(session: &Session, args: args::Repair) -> Outcome {
    session::run(repair(session, args), "")
}

async fn repair(session: &Session, args: args::Repair) -> Outcome {
    let (client, domain) = session.domain().await?;
    let (repairs, what) = match args {
        args::Repair::Run => (true, "repairing"),
        args::Repair::Check => (false, "checking"),
    };
    let bar = progress::spinner(session.out, what);
    let shown = bar.clone();
    let progress = move |objects| shown.set_message(format!("{what}: {objects} objects"));
    let done = match repairs {
        true => domain.repair(progress).await,
        false => domain.redundancy(progress).await,
    };
    bar.finish_and_clear();
    let redundancy = done.map_err(failure)?;
    let servers = domain.configuration().members.len();
    let (out, name) = (session.out, domain.name());
    match out.json {
        true => out.object(&RedundancyReport {
            domain: name,
            servers,
            not_full: redundancy.below(),
            redundancy: &redundancy,
        })?,
        false => print(out, name, servers, &redundancy)?,
    }
    client.close().await;
    match refusal(name, servers, &redundancy) {
        None => Ok(()),
        Some(sentence) => Err(Failure::other(sentence)),
    }
}

/// Why redundancy is not full, if it is not, and what to do.
fn refusal(domain: &str, servers: usize, redundancy: &Redundancy) -> Option<String> {
    if redundancy.being_reconfigured {
        return Some(format!(
            "'{domain}' is being reconfigured: run this again when that has ended (`areo reconfig status {domain}`)"
        ));
    }
    let below = redundancy.below();
    if below == 0 {
        return None;
    }
    let is = if below == 1 { "is" } else { "are" };
    let waiting: Vec<&str> = redundancy.waiting_for().into_iter().collect();
    Some(format!(
        "{} of '{domain}' {is} not at all {servers} servers: {} repairs itself once it runs; one that is lost is replaced with `areo server replace`",
        show_count(below, "object"),
        waiting.join(", "),
    ))
}

fn print(out: Output, domain: &str, servers: usize, redundancy: &Redundancy) -> Outcome {
    let Redundancy {
        objects,
        full,
        repaired,
        below,
        ..
    } = redundancy;
    if out.terminal {
        let all = show_count(*objects, "object");
        out.line(&match objects == full {
            true => format!("{domain}: all {all} at {servers} of {servers} servers"),
            false => format!("{domain}: {full} of {all} at {servers} of {servers} servers"),
        })?;
        if *repaired > 0 {
            out.line(&format!("{} repaired", show_count(*repaired, "element")))?;
        }
    } else {
        out.line(&format!("{domain}\t{objects}\t{full}\t{repaired}"))?;
    }
    if below.is_empty() {
        return Ok(());
    }
    let columns = ["kind", "key", "lacking", "silent", "error"].map(Column::Text);
    let row = |object: &BelowRedundancy| {
        vec![
            object.kind.to_owned(),
            object.key.clone(),
            object.lacking.join(" "),
            object.silent.join(" "),
            object.error.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = below.iter().map(row).collect();
    out.table(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let mut redundancy = Redundancy {
            objects: 3,
            full: 3,
            ..Redundancy::default()
        };
        assert_eq!(refusal("d", 5, &redundancy), None);
        redundancy.full = 2;
        redundancy.below.push(BelowRedundancy {
            key: "k".into(),
            kind: "object",
            lacking: vec!["s2".into()],
            silent: vec!["s4".into()],
            error: None,
        });
        let sentence = refusal("d", 5, &redundancy).expect("one is below");
        assert!(sentence.starts_with("1 object of 'd' is not at all 5 servers: s2, s4 repairs"));
        redundancy.being_reconfigured = true;
        let sentence = refusal("d", 5, &redundancy).expect("not all were looked at");
        assert!(sentence.starts_with("'d' is being reconfigured"));
    }
}
