//! `areo server replace` and `areo server drain`: takes a server out of every domain that names it, one after the other.

use crate::args;
use crate::cmd::reconfig::moved::{TransferReport, follow};
use crate::cmd::reconfig::reconfig_failure;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::units::show_count;
use areo_client::{Client, ConfigurationInfo, Departure, Redundancy, Successor};
use serde::Serialize;
use std::sync::Arc;

/// The progress of a domain. With `--json` it is printed whenever that changes.
#[derive(Serialize)]
struct DepartureReport<'a> {
    domain: &'a str,
    state: State,
    /// The server that goes.
    server: &'a str,
    /// The server that comes; nothing if the domain goes on with one less.
    replaced_by: Option<String>,
    /// The shape before and after, such as `ec [5,3]`; nothing if the domain could not be read.
    old: Option<String>,
    new: Option<String>,
    /// Objects that this process moved.
    objects: u64,
    bytes: u64,
    /// Objects that are to be moved, as far as is known.
    total: u64,
    /// Objects that are not at all servers yet, and the servers that they wait for.
    not_full: Option<u64>,
    waiting_for: Vec<String>,
    error: Option<String>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum State {
    NotBegun,
    Running,
    Done,
    Failed,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::NotBegun => "not begun",
            State::Running => "running",
            State::Done => "done",
            State::Failed => "failed",
        }
    }
}

pub(super) fn run(session: &Session, args: &args::Departure, successor: &Successor) -> Outcome {
    let interrupted = format!(
        "interrupted: run this again to go on with what domains still name of '{}'",
        args.server
    );
    session::run(leave(session, args, successor), &interrupted)
}

async fn leave(session: &Session, args: &args::Departure, successor: &Successor) -> Outcome {
    let (out, server) = (session.out, args.server.as_str());
    let client = session.connect().await?;
    let failed = |error| reconfig_failure("@root", error);
    if out.terminal && !args.yes {
        let planned = progress::late(out, &client, client.departures(server, successor)).await;
        confirm(out, server, &planned.map_err(failed)?)?;
    }
    let begin_all = client.begin_departure(server, successor, |_| true);
    let departures = progress::late(out, &client, begin_all).await;
    let departures = departures.map_err(failed)?.expect("it is confirmed");
    let mut reports: Vec<_> = departures.iter().map(|it| begin(server, it)).collect();
    if departures.is_empty() {
        if !out.json && !out.quiet {
            out.line(&format!(
                "no domain names '{server}': there is nothing to do"
            ))?;
        }
        client.close().await;
        return Ok(());
    }
    if out.json {
        reports.iter().try_for_each(|report| out.object(report))?;
    }
    let mut first = None;
    for (departure, report) in departures.iter().zip(&mut reports) {
        if let Err(error) = change(out, (&client, departure), report).await {
            report.state = State::Failed;
            report.error = Some(error.message.clone());
            first.get_or_insert(error);
        }
        if out.json {
            out.object(report)?;
        }
    }
    if !out.json {
        print(out, &reports)?;
    }
    client.close().await;
    conclude(out, server, &reports, first)
}

/// Asks on a terminal whether this is to be done.
fn confirm(out: Output, server: &str, planned: &[Departure]) -> Outcome {
    if planned.is_empty() {
        return Ok(());
    }
    let reports: Vec<_> = planned.iter().map(|it| begin(server, it)).collect();
    print(out, &reports)?;
    if out.confirmed(&format!("\ntake '{server}' out of these domains?"))? {
        return Ok(());
    }
    Err(Failure::new(Code::Interrupted, "nothing was done"))
}

/// The report on a domain before it is changed.
fn begin<'a>(server: &'a str, departure: &'a Departure) -> DepartureReport<'a> {
    let shape = |c: &ConfigurationInfo| c.shape.to_string();
    let (old, new) = (departure.old().ok(), departure.planned().ok());
    let is_new = |old: &ConfigurationInfo, id| old.members.iter().all(|it| it.id != id);
    let coming = old.zip(new).and_then(|(old, new)| {
        let mut coming = new.members.iter().filter(|it| is_new(old, it.id));
        coming.next().map(|it| it.name.clone())
    });
    DepartureReport {
        domain: departure.domain().name(),
        state: State::NotBegun,
        server,
        replaced_by: coming,
        old: old.map(shape),
        new: new.map(shape),
        objects: 0,
        bytes: 0,
        total: 0,
        not_full: None,
        waiting_for: Vec::new(),
        error: None,
    }
}

/// Changes the domain, and repairs the server that comes.
async fn change(
    out: Output,
    (client, departure): (&Client, &Departure),
    report: &mut DepartureReport<'_>,
) -> Outcome {
    let domain = departure.domain();
    let failed = |error| reconfig_failure(domain.name(), error);
    if let Some(change) = departure.change() {
        // What there is to move is only shown.
        let plan = progress::late(out, client, domain.plan(change)).await;
        report.total = plan.map_or(0, |plan| plan.objects);
    }
    report.state = State::Running;
    if out.json {
        out.object(report)?;
    }
    let moved = Arc::new(TransferReport::default());
    let bar = progress::count(out, domain.name(), report.total.max(1));
    let ended = progress::naming(&bar, client, departure.run(follow(&bar, &moved))).await;
    bar.finish_and_clear();
    (report.objects, report.bytes) = moved.sums();
    ended.map_err(failed)?;
    let bar = progress::spinner(out, "repairing");
    let (shown, name) = (bar.clone(), domain.name().to_owned());
    let looked = move |objects| shown.set_message(format!("{name}: {objects} objects looked at"));
    let redundancy = progress::naming(&bar, client, domain.repair(looked)).await;
    bar.finish_and_clear();
    note(report, &redundancy.map_err(failure)?);
    Ok(())
}

fn note(report: &mut DepartureReport<'_>, redundancy: &Redundancy) {
    report.state = State::Done;
    report.not_full = (!redundancy.being_reconfigured).then(|| redundancy.below());
    let waiting = redundancy.waiting_for().into_iter();
    report.waiting_for = waiting.map(ToOwned::to_owned).collect();
}

fn print(out: Output, reports: &[DepartureReport<'_>]) -> Outcome {
    let columns = [
        Column::Text("domain"),
        Column::Text("state"),
        Column::Text("change"),
        Column::Number("moved"),
        Column::Text("redundancy"),
        Column::Text("error"),
    ];
    let rows: Vec<_> = reports.iter().map(row).collect();
    out.table(&columns, &rows)
}

fn row(report: &DepartureReport<'_>) -> Vec<String> {
    let of = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
    let change = match &report.replaced_by {
        Some(new) => format!("{} -> {new}", report.server),
        None => format!("{} -> {}", of(&report.old), of(&report.new)),
    };
    let redundancy = match report.not_full {
        None => "-".into(),
        Some(0) => "full".into(),
        Some(below) => {
            let waiting = report.waiting_for.join(" ");
            format!("{} for {waiting}", show_count(below, "object"))
        }
    };
    vec![
        report.domain.to_owned(),
        report.state.word().into(),
        change,
        report.objects.to_string(),
        redundancy,
        report.error.clone().unwrap_or_default(),
    ]
}

fn conclude(
    out: Output,
    server: &str,
    reports: &[DepartureReport<'_>],
    first: Option<Failure>,
) -> Outcome {
    if let Some(failure) = first {
        let failed = reports.iter().filter(|it| it.state == State::Failed);
        return Err(Failure::new(
            failure.code,
            format!(
                "{} of {} not done: run this again ({})",
                failed.count(),
                show_count(reports.len() as u64, "domain"),
                failure.message
            ),
        ));
    }
    if !out.json && !out.quiet {
        out.note(&format!(
            "no domain names '{server}' any more: once it is stopped, `areo server forget {server}` takes it off the list"
        ));
    }
    Ok(())
}
