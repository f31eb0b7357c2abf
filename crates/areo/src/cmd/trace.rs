//! `areo trace`: what was going on in an operation, put together from what this user's commands and the servers remember.

mod compared;

use crate::args::{self, Which};
use crate::exit::{Code, Failure, Outcome};
use crate::output::{self, Column, Output, say, visible};
use crate::progress;
use crate::session::{self, Session, failure};
use crate::watch;
use areo_client::ServerInfo;
use areo_telemetry::admin;
use areo_telemetry::listed::{self, ListedTrace};
use areo_telemetry::summary::{Row, Share, summarize};
use areo_telemetry::view::{self, DomainNames};
use areo_telemetry::waterfall::{draw, duration};
use areo_telemetry::{Recorder, SpanRecord, Trace, TraceId};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest wait for the spans of a server.
const PATIENCE: Duration = Duration::from_secs(2);
/// Operations that a summary adds up, unless `--since` says otherwise: those that ended within this time.
const SUMMARY: Duration = Duration::from_mins(10);
/// Columns of a waterfall where no terminal says how many there are.
const COLUMNS: usize = 120;

pub(super) fn run(session: &Session, args: &args::Trace) -> Outcome {
    if args.which != Which::Compare && !args.both.is_empty() {
        return Err(Failure::usage(
            "one trace is shown; two of them by `areo trace compare A B`",
        ));
    }
    check_options(session.out, args)?;
    let records = session::run(collect(session, args), "")?;
    let traces = Trace::assemble(records);
    if let Which::Summary = args.which {
        let rows = summarize(&traces);
        return summary(session.out, &rows);
    }
    let traces = chosen(traces, args);
    if let Some(missing) = args
        .both
        .iter()
        .find(|id| !traces.iter().any(|t| t.id == **id))
    {
        return Err(forgotten(*missing));
    }
    if traces.is_empty() {
        let what = match args.which {
            Which::Id(id) => return Err(forgotten(id)),
            _ => "no operation is remembered yet",
        };
        return Err(Failure::new(Code::NotFound, what.to_owned()));
    }
    if let Some(file) = &args.html {
        let domains = session::run(domain_names(session), "")?;
        let page = match args.which {
            Which::Compare => view::compared(&traces[0], &traces[1], &domains),
            _ => view::traces(&traces, &domains),
        };
        return fs::write(file, page).map_err(|error| Failure::file("write", file, &error));
    }
    match (session.out.json, args.list) {
        _ if args.which == Which::Compare => compared::show(session.out, &traces[0], &traces[1]),
        (_, true) => list(session.out, &traces),
        (true, false) => json(session.out, &traces),
        (false, false) => show(session.out, &traces),
    }
}

/// Refuses options that would do nothing.
fn check_options(out: Output, args: &args::Trace) -> Outcome {
    let shows_traces = !matches!(args.which, Which::Summary | Which::Compare);
    let refused = match args.which {
        Which::Summary if args.html.is_some() => {
            "a summary makes no page: `--json` prints all its figures"
        }
        _ if args.list && !shows_traces => "--list lists the traces of `last`, `slow` or an id",
        _ if args.since.is_some() && args.which != Which::Summary => "--since is for `summary`",
        _ if out.json && args.html.is_some() => "either --json or --html",
        _ => return Ok(()),
    };
    Err(Failure::usage(refused))
}

/// After a command with `--trace`: shows its operations, on standard error.
pub(crate) fn of_this_process(session: &Session, recorder: &Recorder) {
    let own = recorder.ring().since(0);
    let ids: Vec<_> = own
        .iter()
        .filter(|span| span.local_root)
        .map(|span| span.trace)
        .collect();
    let ask = async {
        let mut records = own;
        let mut servers = Servers::find(session).await?;
        for id in ids {
            records.extend(servers.ask(&format!("/traces/id/{id}")).await);
        }
        Ok(records)
    };
    match session::run(ask, "") {
        Ok(records) => {
            for trace in Trace::assemble(records) {
                for line in draw(&trace, columns()).lines() {
                    say(&visible(line));
                }
            }
        }
        // The command was interrupted.
        Err(failure) if failure.message.is_empty() => {}
        Err(failure) => session.out.note(&format!("no trace: {failure}")),
    }
}

/// The names of domains by their ids, as far as this caller may know them and the cluster says them: a page shows the ids of the others.
async fn domain_names(session: &Session) -> Outcome<DomainNames> {
    let Ok(client) = session.connect().await else {
        return Ok(DomainNames::new());
    };
    let domains = progress::late(session.out, &client, client.domains()).await;
    client.close().await;
    let named = domains.unwrap_or_default().into_iter();
    Ok(named.map(|domain| (domain.id, domain.name)).collect())
}

/// The spans that this machine and the servers keep.
async fn collect(session: &Session, args: &args::Trace) -> Outcome<Vec<SpanRecord>> {
    let mut records = watch::kept();
    let path = match args.which {
        Which::Last => format!("/traces/last/{}", args.count),
        Which::Slow => "/traces/slow".into(),
        Which::Id(id) => format!("/traces/id/{id}"),
        Which::Compare => format!("/traces/id/{}", args.both[0]),
        Which::Summary => {
            let since_1970 = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let since = since_1970
                .saturating_sub(args.since.unwrap_or(SUMMARY))
                .as_nanos();
            records.retain(|span| u128::from(span.end_ns()) >= since);
            format!("/traces/since/{since}")
        }
    };
    let mut servers = Servers::find(session).await?;
    records.extend(servers.ask(&path).await);
    if let Some(second) = args.both.get(1) {
        records.extend(servers.ask(&format!("/traces/id/{second}")).await);
    }
    if args.which == Which::Last || args.which == Which::Slow {
        // The one that was asked for may be known best to a server that does not count it among its own.
        for trace in chosen(Trace::assemble(records.clone()), args) {
            records.extend(servers.ask(&format!("/traces/id/{}", trace.id)).await);
        }
    }
    Ok(records)
}

/// The servers whose remembered spans are asked for.
struct Servers {
    out: Output,
    /// Those that have answered so far.
    answering: Vec<ServerInfo>,
}

impl Servers {
    async fn find(session: &Session) -> Outcome<Servers> {
        let client = session.connect().await?;
        let answering = progress::late(session.out, &client, client.servers()).await;
        let answering = answering.map_err(failure)?;
        client.close().await;
        Ok(Servers {
            out: session.out,
            answering,
        })
    }

    /// The spans that the servers have at this path. A server that does not answer is missing from the picture, and named
    /// once.
    async fn ask(&mut self, path: &str) -> Vec<SpanRecord> {
        let mut records = Vec::new();
        let mut answering = Vec::with_capacity(self.answering.len());
        for server in self.answering.drain(..) {
            match admin::get(&server.admin, path, PATIENCE).await {
                Ok(lines) => {
                    records.extend(watch::parse(&lines));
                    answering.push(server);
                }
                Err(why) => self.out.note(&format!(
                    "{} ({}) is left out: {why}",
                    server.name, server.admin
                )),
            }
        }
        self.answering = answering;
        records
    }
}

/// The requested traces, the most important one first.
fn chosen(mut traces: Vec<Trace>, args: &args::Trace) -> Vec<Trace> {
    let count = usize::from(args.count);
    match args.which {
        Which::Id(id) => traces.retain(|trace| trace.id == id),
        Which::Last => return listed::last(traces, count),
        Which::Slow => return listed::slowest(traces, count),
        Which::Compare => {
            traces.retain(|trace| args.both.contains(&trace.id));
            traces.sort_by_key(|trace| args.both.iter().position(|id| *id == trace.id));
            // A trace may be compared with itself.
            if let ([one], true) = (&traces[..], args.both[0] == args.both[1]) {
                traces.push(one.clone());
            }
        }
        Which::Summary => {}
    }
    traces
}

fn forgotten(id: TraceId) -> Failure {
    let what = format!("no process has trace {id} any more: servers keep some thousand spans");
    Failure::new(Code::NotFound, what)
}

fn json(out: Output, traces: &[Trace]) -> Outcome {
    let mut spans = traces.iter().flat_map(Trace::walk);
    spans.try_for_each(|(_, span)| out.object(span))
}

fn show(out: Output, traces: &[Trace]) -> Outcome {
    traces.iter().try_for_each(|trace| {
        let drawn = draw(trace, columns());
        drawn.lines().try_for_each(|line| out.line(&visible(line)))
    })
}

fn columns() -> usize {
    let width = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    width
        .or_else(output::width)
        .filter(|columns| *columns > 0)
        .unwrap_or(COLUMNS)
}

fn list(out: Output, traces: &[Trace]) -> Outcome {
    if out.json {
        let mut listed = traces.iter().map(ListedTrace::from);
        return listed.try_for_each(|trace| out.object(&trace));
    }
    let columns = [
        Column::Text("TRACE"),
        Column::Text("OPERATION"),
        Column::Number("DURATION"),
        Column::Number("SPANS"),
    ];
    let row = |trace: &Trace| {
        vec![
            trace.id.to_string(),
            trace.name().to_owned(),
            duration(trace.duration_ns()),
            trace.walk().len().to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = traces.iter().map(row).collect();
    out.table(&columns, &rows)
}

fn summary(out: Output, rows: &[Row]) -> Outcome {
    if out.json {
        return rows.iter().try_for_each(|row| out.object(row));
    }
    if rows.is_empty() {
        return Err(Failure::new(
            Code::NotFound,
            "no operation of that time is remembered",
        ));
    }
    let mut columns = vec![
        Column::Text("OPERATION"),
        Column::Number("COUNT"),
        Column::Number("ROUNDS"),
        Column::Number("P50"),
        Column::Number("P99"),
    ];
    let names = [
        "COMMUNICATION",
        "ENCODE",
        "DECODE",
        "CONFIGURATION",
        "OTHER",
    ];
    columns.extend(names.map(Column::Number));
    columns.push(Column::Number("DISK"));
    let row = |row: &Row| {
        let name = match row.span == row.operation {
            true => row.operation.clone(),
            false => format!("  {}", row.span),
        };
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut cells = vec![
            name,
            row.count.to_string(),
            format!("{:.2}", row.rounds),
            duration(row.p50_ns),
            duration(row.p99_ns),
        ];
        let share = |share: Share| {
            row.shares
                .get(&share)
                .map_or_else(String::new, |s| percent(*s))
        };
        cells.extend(Share::ALL.map(share));
        cells.push(match row.shares.is_empty() {
            true => String::new(),
            false => percent(row.disk),
        });
        cells
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    out.table(&columns, &rows)
}
