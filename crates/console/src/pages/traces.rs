//! The page *Traces*: the operations that processes remember, and one of them as a waterfall from the client to the disks.

mod collect;
mod waterfall;

use crate::command::Command;
use crate::door::Visit;
use crate::html::{query, table};
use crate::page::Page;
use crate::trouble::Trouble;
use areo_telemetry::listed::{ListedTrace, last, slowest};
use areo_telemetry::waterfall::duration;
use areo_telemetry::{SpanRecord, Trace, TraceId, explanation};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Traces in the list of the last ones.
const LAST: usize = 30;
/// Traces of each kind in the list of the slowest ones.
const SLOWEST: usize = 5;

#[derive(Deserialize)]
pub(super) struct Traces {
    #[serde(default)]
    which: Which,
    /// The name of the operation; empty: all.
    #[serde(default)]
    operation: String,
    /// The id of the trace that is shown; empty: none.
    #[serde(default)]
    id: String,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Which {
    #[default]
    Last,
    Slow,
}

impl Which {
    fn word(self) -> &'static str {
        match self {
            Which::Last => "last",
            Which::Slow => "slow",
        }
    }
}

/// The traces that `areo trace --list --json` lists, and the spans of one.
#[derive(Serialize)]
pub(super) struct View {
    traces: Vec<ListedTrace>,
    /// Operations that are remembered, for the filter.
    operations: BTreeSet<String>,
    /// The trace that is shown.
    shown: Option<TraceDetails>,
    /// Servers that did not answer, with the reasons.
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct TraceDetails {
    #[serde(flatten)]
    trace: ListedTrace,
    /// The sentences that say where its time went.
    explanation: Vec<String>,
    /// Each span before its parts.
    records: Vec<SpanRecord>,
    /// The spans with their structure, to be drawn.
    #[serde(skip)]
    assembled: Trace,
}

impl From<Trace> for TraceDetails {
    fn from(trace: Trace) -> TraceDetails {
        let records = trace.walk().into_iter().map(|(_, span)| span.clone());
        TraceDetails {
            trace: ListedTrace::from(&trace),
            explanation: explanation::explain(&trace),
            records: records.collect(),
            assembled: trace,
        }
    }
}

impl Traces {
    fn link(&self, trace: TraceId) -> String {
        let id = trace.to_string();
        let which = self.which.word();
        let fields = [
            ("which", which),
            ("operation", &self.operation),
            ("id", &id),
        ];
        format!("/traces{}#trace", query(&fields))
    }
}

impl Page for Traces {
    const PATH: &'static str = "/traces";
    const TITLE: &'static str = "Traces";
    type View = View;

    async fn look(&self, visit: &Visit) -> Result<View, Trouble> {
        let id = match self.id.trim() {
            "" => None,
            text => Some(text.parse::<TraceId>().map_err(Trouble::usage)?),
        };
        let path = match self.which {
            Which::Last => format!("/traces/last/{LAST}"),
            Which::Slow => "/traces/slow".into(),
        };
        let paths = [path]
            .into_iter()
            .chain(id.map(|id| format!("/traces/id/{id}")));
        let collected = collect::collect(visit, &paths.collect::<Vec<_>>()).await?;
        let all = Trace::assemble(collected.records);
        let shown = id.and_then(|id| all.iter().find(|it| it.id == id).cloned());
        if let (Some(id), None) = (id, &shown) {
            return Err(Trouble::not_found(format!(
                "no process has trace {id} any more: servers keep some thousand spans"
            )));
        }
        let operations = all.iter().map(|it| it.name().to_owned()).collect();
        let mut chosen = all;
        if !self.operation.is_empty() {
            chosen.retain(|it| it.name() == self.operation);
        }
        let traces = match self.which {
            Which::Last => last(chosen, LAST),
            Which::Slow => slowest(chosen, SLOWEST),
        };
        Ok(View {
            traces: traces.iter().map(ListedTrace::from).collect(),
            operations,
            shown: shown.map(TraceDetails::from),
            left_out: collected.left_out,
        })
    }

    fn commands(&self, view: &View) -> Vec<Command> {
        let which = self.which.word();
        let count = match self.which {
            Which::Last => LAST,
            Which::Slow => SLOWEST,
        };
        let list = Command::new("trace --list").option("--count", &count.to_string());
        let one = view.shown.iter();
        let one = one.map(|it| Command::new("trace").argument(&it.trace.trace.to_string()));
        [list.argument(which)].into_iter().chain(one).collect()
    }

    fn draw(&self, view: &View) -> Markup {
        html! {
            @for sentence in &view.left_out { p.notice { (sentence) } }
            @if let Some(shown) = &view.shown { (draw_shown(shown)) }
            @if view.traces.is_empty() {
                p { "No operation is remembered here yet. Put or read an object on the page Objects, or run a command with " code { "--trace" } ", and reload this page." }
            } @else { (self.draw_list(view)) }
        }
    }

    fn forms(&self, _visit: &Visit, view: &View) -> Markup {
        html! {
            h2 { "Choose operations" }
            form method="get" action="/traces" {
                label for="which" { "Which" }
                select id="which" name="which" {
                    option value="last" selected[self.which == Which::Last] { "the last ones" }
                    option value="slow" selected[self.which == Which::Slow] { "the slowest of each kind" }
                }
                label for="operation" { "Operation" }
                select id="operation" name="operation" {
                    option value="" { "all" }
                    @for name in &view.operations { option value=(name) selected[*name == self.operation] { (name) } }
                }
                label for="id" { "Trace, by its id" }
                input id="id" name="id" autocomplete="off" placeholder="32 hexadecimal digits";
                button { "Show" }
            }
            p { "An operation of this console, of a command on its machine, or of a program whose requests carry a trace is here from its client on; of all others the servers know their own part." }
        }
    }
}

impl Traces {
    fn draw_list(&self, view: &View) -> Markup {
        let row = |it: &ListedTrace| {
            let is_shown = view
                .shown
                .as_ref()
                .is_some_and(|shown| shown.trace.trace == it.trace);
            let id = it.trace.to_string();
            vec![
                html! { a href=(self.link(it.trace)) aria-current=[is_shown.then_some("true")] { (it.operation) " " code { (id[..8]) } } },
                html! { (duration(it.duration_ns)) },
                html! { (it.spans) },
            ]
        };
        let rows: Vec<_> = view.traces.iter().map(row).collect();
        let caption = match self.which {
            Which::Last => "The last operations",
            Which::Slow => "The slowest operations",
        };
        table(caption, &["operation", "duration", "spans"], &rows)
    }
}

fn draw_shown(shown: &TraceDetails) -> Markup {
    html! {
        h2 #trace { (shown.trace.operation) ", " (duration(shown.trace.duration_ns)) }
        p { "Trace " code { (shown.trace.trace) } }
        @for sentence in &shown.explanation { p { (sentence) } }
        @if shown.explanation.is_empty() {
            p.notice { "No process knows the operation that these requests are part of: it is of a program on another machine." }
        }
        (waterfall::picture(&shown.assembled))
        (waterfall::spans(&shown.assembled))
    }
}

#[cfg(test)]
mod tests;
