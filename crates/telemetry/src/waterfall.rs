//! A trace on a terminal: a line for each span, indented, with a bar for when it was.

use crate::record::{SpanRecord, Value};
use crate::trace::Trace;
use std::fmt::Write;

/// Columns of the name, with its indent.
const NAME_COLUMNS: usize = 30;
/// Columns of the process.
const PROCESS_COLUMNS: usize = 8;
/// Attributes that are shown, in this order, with their labels.
const SHOWN: [(&str, &str); 12] = [
    ("key", "key "),
    ("configuration", "c"),
    ("dap", ""),
    ("n", "n "),
    ("k", "k "),
    ("needed", "of "),
    ("replies", "replies "),
    ("tag", "version "),
    ("bytes", "bytes "),
    ("sent_bytes", "sent "),
    ("received_bytes", "received "),
    ("error.type", "ERROR "),
];

/// Draws it, as wide as `columns`.
pub fn draw(trace: &Trace, columns: usize) -> String {
    let bar_columns = columns
        .saturating_sub(NAME_COLUMNS + PROCESS_COLUMNS + 42)
        .clamp(16, 60);
    let mut out = format!(
        "trace {} · {} · {}\n",
        trace.id,
        trace.name(),
        duration(trace.duration_ns())
    );
    for (depth, span) in trace.walk() {
        let name: String = format!("{}{}", "  ".repeat(depth), span.name);
        let _ = writeln!(
            out,
            "{name:<NAME_COLUMNS$} {:<PROCESS_COLUMNS$} {:>9} │{}│ {}",
            span.process,
            duration(span.duration_ns),
            bar(trace, span, bar_columns),
            attributes(span),
        );
    }
    out.lines().fold(String::new(), |mut out, line| {
        out.push_str(line.trim_end());
        out.push('\n');
        out
    })
}

/// The bar of a span, in `columns` columns for the whole trace. It is at least one column wide.
fn bar(trace: &Trace, span: &SpanRecord, columns: usize) -> String {
    let whole = u128::from(trace.duration_ns().max(1));
    let column = |ns: u64| {
        let since = u128::from(ns.saturating_sub(trace.start_ns()));
        usize::try_from(since * columns as u128 / whole).unwrap_or(columns)
    };
    let from = column(span.start_ns).min(columns - 1);
    let to = column(span.end_ns()).clamp(from + 1, columns);
    let fill = match &*span.name {
        name if name.starts_with("server.") || name.starts_with("store.") => "▒",
        name if name.starts_with("net.") => "░",
        _ => "█",
    };
    [
        " ".repeat(from),
        fill.repeat(to - from),
        " ".repeat(columns - to),
    ]
    .concat()
}

/// The attributes of the span, in a few words.
pub fn attributes(span: &SpanRecord) -> String {
    let word = |(name, word): &(&str, &str)| {
        let value = span.attributes.get(*name)?;
        match value {
            Value::Text(text) if text.is_empty() => None,
            value => Some(format!("{word}{value}")),
        }
    };
    let words: Vec<String> = SHOWN.iter().filter_map(word).collect();
    words.join(" · ")
}

/// A duration in three digits.
pub fn duration(ns: u64) -> String {
    let in_unit = |unit_ns: u64, unit: &str| {
        let number = ns as f64 / unit_ns as f64;
        let digits = if number < 10.0 {
            2
        } else {
            usize::from(number < 100.0)
        };
        format!("{number:.digits$} {unit}")
    };
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => in_unit(1_000, "µs"),
        1_000_000..1_000_000_000 => in_unit(1_000_000, "ms"),
        _ => in_unit(1_000_000_000, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::example;

    #[test]
    fn a_waterfall_shows_what_happened_when_and_where() {
        let trace = Trace::assemble(example()).remove(0);
        let drawn = draw(&trace, 100);
        assert_eq!(
            drawn,
            "trace 000000000000000000000000000000a1 · areo.read · 1.00 ms
areo.read                      client     1.00 ms │████████████████████│
  dap.get_data                 client      900 µs │ ██████████████████ │
    net.quorum                 client      600 µs │  ░░░░░░░░░░░░      │
      server.access            s1          100 µs │    ▒▒              │
      server.access            s2          300 µs │     ▒▒▒▒▒▒         │
    ec.decode                  client      200 µs │              ████  │ bytes 4096
"
        );
    }

    #[test]
    fn durations_have_three_digits() {
        let shown: Vec<String> = [999, 1_234, 12_345, 123_456, 1_234_567, 12_345_678_900]
            .map(duration)
            .into();
        assert_eq!(
            shown,
            [
                "999 ns", "1.23 µs", "12.3 µs", "123 µs", "1.23 ms", "12.3 s"
            ]
        );
    }
}
