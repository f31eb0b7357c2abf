//! `areo repair`: how many objects every server of a domain holds, which others there are, and bringing them to all servers at once.

use crate::args;
use crate::exit::{Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::show_count;
use areo_client::{BelowRedundancy, Client, Domain, ListedVersion, ROOT_DOMAIN, Redundancy};
use serde::Serialize;
use std::collections::BTreeSet;

/// The output of a domain with `--json`.
#[derive(Serialize)]
struct RedundancyReport<'a> {
    domain: &'a str,
    servers: usize,
    /// Objects that are not known to be at all servers.
    not_full: u64,
    waiting_for: BTreeSet<&'a str>,
    #[serde(flatten)]
    redundancy: &'a Redundancy,
}

/// The output of an object with `--json`.
#[derive(Serialize)]
struct ObjectReport<'a> {
    domain: &'a str,
    #[serde(flatten)]
    object: &'a BelowRedundancy,
}

/// A domain that was looked at.
struct DomainRedundancy {
    domain: String,
    servers: usize,
    redundancy: Redundancy,
}

pub(super) fn run(session: &Session, args: args::Repair) -> Outcome {
    match args {
        args::Repair::Status => session::run(status(session), ""),
        args::Repair::Ls => session::run(ls(session), ""),
        args::Repair::Retry { key } => session::run(retry(session, key.as_deref()), ""),
    }
}

/// Runs `areo repair status`.
async fn status(session: &Session) -> Outcome {
    let client = session.connect().await?;
    let names = if let Some(name) = session.named_domain()? {
        vec![name]
    } else {
        let domains = progress::late(session.out, &client, client.domains()).await;
        let domains = domains.map_err(failure)?;
        let names = domains.into_iter().map(|domain| domain.name);
        [ROOT_DOMAIN.to_owned()].into_iter().chain(names).collect()
    };
    let mut all = Vec::new();
    for name in &names {
        let domain = session.find(&client, name).await?;
        all.push(look(session.out, (&client, &domain), Look::At).await?);
    }
    print_domains(session.out, &all)?;
    client.close().await;
    conclude(&all)
}

/// Runs `areo repair ls`.
async fn ls(session: &Session) -> Outcome {
    let (client, domain) = session.domain().await?;
    let looked = look(session.out, (&client, &domain), Look::At).await?;
    print_objects(session.out, &looked)?;
    client.close().await;
    Ok(())
}

/// Runs `areo repair retry`.
async fn retry(session: &Session, key: Option<&str>) -> Outcome {
    let (client, domain) = session.domain().await?;
    let what = key.map_or(Look::AndRepair, Look::AndRepairOne);
    let looked = [look(session.out, (&client, &domain), what).await?];
    print_domains(session.out, &looked)?;
    client.close().await;
    conclude(&looked)
}

/// The work on the objects of a domain.
#[derive(Clone, Copy)]
enum Look<'a> {
    At,
    AndRepair,
    /// Only with those of this key.
    AndRepairOne(&'a str),
}

async fn look(
    out: Output,
    (client, domain): (&Client, &Domain),
    what: Look<'_>,
) -> Outcome<DomainRedundancy> {
    let title = format!("looking at '{}'", domain.name());
    let bar = progress::spinner(out, &title);
    let shown = bar.clone();
    let progress = move |objects| shown.set_message(format!("{title}: {objects} objects"));
    let work = async {
        match what {
            Look::At => domain.redundancy(progress).await,
            Look::AndRepair => domain.repair(progress).await,
            Look::AndRepairOne(key) => domain.repair_object(key).await,
        }
    };
    let done = progress::naming(&bar, client, work).await;
    bar.finish_and_clear();
    Ok(DomainRedundancy {
        redundancy: done.map_err(failure)?,
        servers: domain.configuration().members.len(),
        domain: domain.name().to_owned(),
    })
}

/// Why redundancy is not full, if it is not, and what to do.
fn conclude(all: &[DomainRedundancy]) -> Outcome {
    let mut sentences = all
        .iter()
        .filter_map(|it| it.redundancy.show_lack(&it.domain, it.servers));
    match sentences.next() {
        None => Ok(()),
        Some(first) => Err(Failure::other(match sentences.count() {
            0 => first,
            more => format!(
                "{first}; and so in {}",
                show_count(more as u64, "other domain")
            ),
        })),
    }
}

fn print_domains(out: Output, all: &[DomainRedundancy]) -> Outcome {
    if out.json {
        return all.iter().try_for_each(|looked| {
            out.object(&RedundancyReport {
                domain: &looked.domain,
                servers: looked.servers,
                not_full: looked.redundancy.below(),
                waiting_for: looked.redundancy.waiting_for(),
                redundancy: &looked.redundancy,
            })
        });
    }
    let columns = [
        Column::Text("domain"),
        Column::Number("objects"),
        Column::Number("at all"),
        Column::Number("servers"),
        Column::Number("repaired"),
        Column::Number("superseded"),
        Column::Number("unrecoverable"),
        Column::Text("waiting for"),
    ];
    let row = |looked: &DomainRedundancy| {
        let redundancy = &looked.redundancy;
        let waiting: Vec<&str> = redundancy.waiting_for().into_iter().collect();
        vec![
            looked.domain.clone(),
            redundancy.objects.to_string(),
            redundancy.full.to_string(),
            looked.servers.to_string(),
            redundancy.repaired.to_string(),
            redundancy.superseded.to_string(),
            redundancy.unrecoverable.to_string(),
            waiting.join(" "),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    out.table(&columns, &rows)
}

fn print_objects(out: Output, looked: &DomainRedundancy) -> Outcome {
    let (domain, below) = (looked.domain.as_str(), &looked.redundancy.below);
    if out.json {
        let mut objects = below.iter();
        return objects.try_for_each(|object| out.object(&ObjectReport { domain, object }));
    }
    let columns = [
        "state", "kind", "key", "lacking", "damaged", "silent", "versions",
    ];
    let columns = columns.map(Column::Text);
    let row = |object: &BelowRedundancy| {
        vec![
            object.state.word().to_owned(),
            object.kind.to_owned(),
            out.foreign(&object.key),
            object.lacking.join(" "),
            object.damaged.join(" "),
            object.silent.join(" "),
            versions(object),
        ]
    };
    let rows: Vec<_> = below.iter().map(row).collect();
    out.table(&columns, &rows)?;
    let more = looked.redundancy.below() - below.len() as u64;
    if more > 0 {
        out.note(&format!("and {} more", show_count(more, "object")));
    }
    if looked.redundancy.being_reconfigured {
        out.note(&format!(
            "'{domain}' is being reconfigured: not all objects were looked at"
        ));
    }
    Ok(())
}

/// The versions of an unrecoverable object, and the servers that list them.
fn versions(object: &BelowRedundancy) -> String {
    let of_version = |it: &ListedVersion| {
        let damaged = it
            .damaged
            .iter()
            .map(|server| format!("{server} (damaged)"));
        let servers: Vec<String> = it.sound.iter().cloned().chain(damaged).collect();
        format!("{} at {}", it.version, servers.join(" "))
    };
    let all: Vec<String> = object.versions.iter().map(of_version).collect();
    all.join(", ")
}
