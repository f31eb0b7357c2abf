//! A trace as a picture with a bar for each span, and as a table.

use crate::html;
use areo_telemetry::waterfall::{attributes, duration};
use areo_telemetry::{SpanRecord, Trace};
use maud::{Markup, html};

/// Spans that are drawn; the table has the others, too.
const DRAWN: usize = 200;
/// The width of the picture, and the place at which bars begin and end.
const WIDTH: u32 = 960;
const FROM: f64 = 330.0;
const TO: f64 = 880.0;
/// The height of a span, and of the scale above the first one.
const ROW: u32 = 22;
const SCALE: u32 = 24;

/// The class of the bar of a span, with the word for it in the legend.
fn kind(span: &SpanRecord) -> (&'static str, &'static str) {
    match &*span.name {
        name if name.starts_with("store.") => ("bar-disk", "disk"),
        name if name.starts_with("server.") => ("bar-server", "server"),
        name if name.starts_with("net.") => ("bar-net", "waiting for a quorum"),
        _ => ("bar-client", "client"),
    }
}

/// The place of a time in the picture.
fn place(trace: &Trace, ns: u64) -> f64 {
    let since = ns.saturating_sub(trace.start_ns()).min(trace.duration_ns());
    FROM + (TO - FROM) * since as f64 / trace.duration_ns().max(1) as f64
}

/// The waterfall: client, quorum, disk. Text stands beside each bar, so that colours say nothing alone.
pub(super) fn picture(trace: &Trace) -> Markup {
    let walked = trace.walk();
    let drawn = &walked[..walked.len().min(DRAWN)];
    let height = SCALE + ROW * u32::try_from(drawn.len()).expect("few are drawn") + 8;
    let title = format!(
        "{} spans of {} in {}: the table below has the same figures",
        drawn.len(),
        trace.name(),
        duration(trace.duration_ns())
    );
    let content = html! {
        text x=(FROM) y="15" { "0" }
        text x=(TO) y="15" text-anchor="end" { (duration(trace.duration_ns())) }
        line.grid x1=(FROM) y1=(SCALE - 4) x2=(TO) y2=(SCALE - 4) {}
        @for (row, (depth, span)) in drawn.iter().enumerate() { (bar(trace, row, *depth, span)) }
    };
    html! {
        p.legend {
            "Bars: "
            @for (class, word) in [("bar-client", "client"), ("bar-net", "waiting for a quorum"), ("bar-server", "server"), ("bar-disk", "disk")] {
                svg width="14" height="14" aria-hidden="true" { rect.(class) width="14" height="14" rx="2" {} }
                " " (word) " "
            }
        }
        div.wide tabindex="0" role="region" aria-label="Waterfall" { (html::picture((WIDTH, height), &title, &content)) }
        @if walked.len() > DRAWN { p { "The first " (DRAWN) " of " (walked.len()) " spans are drawn." } }
    }
}

fn bar(trace: &Trace, row: usize, depth: usize, span: &SpanRecord) -> Markup {
    let y = SCALE + ROW * u32::try_from(row).expect("few are drawn");
    let (from, to) = (place(trace, span.start_ns), place(trace, span.end_ns()));
    let (class, _) = kind(span);
    let indent = 12.0 * depth.min(10) as f64;
    // A short bar is seen, too.
    let width = (to - from).max(2.0);
    html! {
        text x=(indent) y=(y + 15) { (span.name) " " tspan.soft { (span.process) } }
        rect.(class) x=(format!("{from:.1}")) y=(y + 3) width=(format!("{width:.1}")) height=(ROW - 6) rx="2" {}
        text x=(TO + 8.0) y=(y + 15) { (duration(span.duration_ns)) }
    }
}

/// The spans with all figures, for people who do not see the picture.
pub(super) fn spans(trace: &Trace) -> Markup {
    let row = |(depth, span): &(usize, &SpanRecord)| {
        let after = span.start_ns.saturating_sub(trace.start_ns());
        let (_, word) = kind(span);
        vec![
            html! { (format!("{}{}", "› ".repeat(*depth), span.name)) },
            html! { (span.process) },
            html! { (word) },
            html! { (duration(after)) },
            html! { (duration(span.duration_ns)) },
            html! { (attributes(span)) },
        ]
    };
    let rows: Vec<_> = trace.walk().iter().map(row).collect();
    let columns = ["span", "process", "kind", "begins after", "takes", "about"];
    html! { details { summary { "All spans as a table" } (html::table("Spans", &columns, &rows)) } }
}
