//! A trace as a picture: SVG, or a page of its own with the picture in it that can be zoomed. Nothing is fetched from anywhere.

use crate::record::SpanRecord;
use crate::trace::Trace;
use crate::waterfall::{attributes, duration};
use std::fmt::Write;

/// Sizes in the picture's own units, which are pixels as long as nobody zooms.
const WIDTH: f64 = 1200.0;
const NAMES: f64 = 330.0;
const ROW: f64 = 22.0;
const HEAD: f64 = 56.0;
/// Marks on the axis of time.
const TICKS: u32 = 8;

/// Draws a trace as SVG.
pub fn svg(trace: &Trace) -> String {
    let spans = trace.walk();
    let height = HEAD + ROW * spans.len() as f64 + 12.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let title = format!(
        "{} · {} · trace {}",
        trace.name(),
        duration(trace.duration_ns()),
        trace.id
    );
    text(
        &mut out,
        12.0,
        22.0,
        "font-size=\"15\" font-weight=\"600\"",
        &title,
    );
    axis(&mut out, trace, height);
    for (row, (depth, span)) in spans.into_iter().enumerate() {
        line(&mut out, trace, HEAD + ROW * row as f64, depth, span);
    }
    out.push_str("</svg>\n");
    out
}

/// Where a time is, from left to right.
fn x(trace: &Trace, ns: u64) -> f64 {
    let whole = trace.duration_ns().max(1) as f64;
    let since = ns.saturating_sub(trace.start_ns()) as f64;
    NAMES + (since / whole).min(1.0) * (WIDTH - NAMES - 20.0)
}

fn axis(out: &mut String, trace: &Trace, height: f64) {
    for tick in 0..=TICKS {
        let ns = trace.duration_ns() * u64::from(tick) / u64::from(TICKS);
        let at = x(trace, trace.start_ns() + ns);
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{HEAD}\" y2=\"{height}\" stroke=\"#ddd\"/>"
        );
        text(
            out,
            at,
            HEAD - 8.0,
            "fill=\"#666\" text-anchor=\"middle\" font-size=\"10\"",
            &duration(ns),
        );
    }
}

fn line(out: &mut String, trace: &Trace, top: f64, depth: usize, span: &SpanRecord) {
    let (from, to) = (x(trace, span.start_ns), x(trace, span.end_ns()));
    let width = (to - from).max(1.5);
    let about = format!(
        "{} · {} · {} · {}",
        span.name,
        span.process,
        duration(span.duration_ns),
        attributes(span)
    );
    let _ = writeln!(out, "<g><title>{}</title>", escape(&about));
    let indent = 12.0 + 12.0 * depth as f64;
    let name = format!("{}  {}", span.name, span.process);
    text(out, indent, top + 15.0, "", &name);
    let _ = writeln!(
        out,
        "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\" fill=\"{}\"/>",
        top + 4.0,
        ROW - 7.0,
        colour(&span.name)
    );
    // What is said of a bar stands where there is room: behind it, else before it.
    let label = duration(span.duration_ns);
    match to < WIDTH - 90.0 {
        true => text(
            out,
            to + 5.0,
            top + 15.0,
            "fill=\"#444\" font-size=\"10\"",
            &label,
        ),
        false => text(
            out,
            from + 5.0,
            top + 15.0,
            "fill=\"#fff\" font-size=\"10\"",
            &label,
        ),
    }
    out.push_str("</g>\n");
}

/// By what the time is spent on.
fn colour(name: &str) -> &'static str {
    match name {
        "net.quorum" => "#5b8bd0",
        "ec.encode" | "ec.decode" => "#c0504d",
        name if name.starts_with("config.") => "#9b72b0",
        name if name.starts_with("server.") => "#6aa56a",
        name if name.starts_with("store.") => "#3d7a3d",
        name if name.starts_with("dap.") => "#e0a030",
        name if name.starts_with("areo.") => "#444c5c",
        _ => "#8a93a5",
    }
}

fn text(out: &mut String, x: f64, y: f64, style: &str, content: &str) {
    let content = escape(content);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" xml:space=\"preserve\" {style}>{content}</text>"
    );
}

/// Text as it may stand in XML.
fn escape(text: &str) -> String {
    let escaped = |character: char| match character {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        character if character.is_control() => " ".into(),
        character => character.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Draws traces on a page: the wheel zooms into time, dragging moves, a double click shows all again.
pub fn html(traces: &[Trace]) -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Areo traces</title>\n<style>\n\
         body { margin: 1.5rem; font-family: system-ui, sans-serif; color: #222; }\n\
         figure { margin: 0 0 2rem; border: 1px solid #ccc; border-radius: 6px; overflow: hidden; }\n\
         svg { display: block; width: 100%; cursor: grab; }\n\
         </style>\n</head>\n<body>\n<h1>Areo traces</h1>\n\
         <p>Wheel: zoom. Drag: move. Double click: all again. Rest on a bar: what it says of itself.</p>\n",
    );
    for trace in traces {
        let _ = writeln!(out, "<figure>\n{}</figure>", svg(trace));
    }
    out.push_str(SCRIPT);
    out.push_str("</body>\n</html>\n");
    out
}

const SCRIPT: &str = "<script>
for (const svg of document.querySelectorAll('svg')) {
  const all = svg.viewBox.baseVal, [w, h] = [all.width, all.height];
  let view = [0, 0, w, h], from = null;
  const show = () => svg.setAttribute('viewBox', view.join(' '));
  const at = (e) => {
    const box = svg.getBoundingClientRect();
    return [view[0] + (e.clientX - box.left) / box.width * view[2], view[1] + (e.clientY - box.top) / box.height * view[3]];
  };
  svg.addEventListener('wheel', (e) => {
    e.preventDefault();
    const [x, y] = at(e), by = Math.min(Math.exp(e.deltaY * 0.002), w / view[2]);
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, view[2] * by, view[3] * by];
    show();
  }, { passive: false });
  svg.addEventListener('pointerdown', (e) => { from = at(e); svg.setPointerCapture(e.pointerId); });
  svg.addEventListener('pointerup', () => { from = null; });
  svg.addEventListener('pointermove', (e) => {
    if (!from) return;
    const [x, y] = at(e);
    view[0] += from[0] - x; view[1] += from[1] - y;
    show();
  });
  svg.addEventListener('dblclick', () => { view = [0, 0, w, h]; show(); });
}
</script>
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Value;
    use crate::trace::tests::example;

    #[test]
    fn a_picture_has_a_bar_for_every_span_and_no_markup_from_outside() {
        let mut records = example();
        let key = Value::Text("<script>alert(1)</script>".into());
        records[2].attributes.insert("key".into(), key);
        let traces = Trace::assemble(records);
        let picture = svg(&traces[0]);
        assert_eq!(picture.matches("rx=\"2\"").count(), 6);
        assert!(picture.contains("server.access  s2") && picture.contains("1.00 ms"));
        let page = html(&traces);
        assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
        assert!(
            !page.contains("src=") && !page.contains("href="),
            "nothing is fetched"
        );
    }
}
