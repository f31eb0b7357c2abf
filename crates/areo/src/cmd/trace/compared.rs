//! Two traces side by side, as a table.

use crate::exit::Outcome;
use crate::output::{Column, Output};
use areo_telemetry::Trace;
use areo_telemetry::compare::{WorkTotal, rows, went};
use areo_telemetry::waterfall::duration;

/// Spans of both, then where the time of both went.
pub(super) fn show(out: Output, first: &Trace, second: &Trace) -> Outcome {
    let (rows, (went, rounds)) = (rows(first, second), went(first, second));
    if out.json {
        rows.iter().try_for_each(|row| out.object(row))?;
        return went.iter().try_for_each(|went| out.object(went));
    }
    let columns = [
        Column::Text("SPAN"),
        Column::Number("A"),
        Column::Number("TIME A"),
        Column::Number("B"),
        Column::Number("TIME B"),
        Column::Number("B - A"),
    ];
    let line = |name: String, counts: [String; 2], ns: [Option<u64>; 2]| {
        let [a, b] = counts;
        let time = |ns: Option<u64>| ns.map_or_else(String::new, duration);
        vec![name, a, time(ns[0]), b, time(ns[1]), difference(ns)]
    };
    let mut lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let name = format!("{}{}", "  ".repeat(row.depth), row.span);
            let both = [row.first, row.second];
            let count =
                |spent: Option<WorkTotal>| spent.map_or_else(String::new, |s| s.count.to_string());
            line(
                name,
                both.map(count),
                both.map(|spent| spent.map(|spent| spent.ns)),
            )
        })
        .collect();
    let nothing = || [String::new(), String::new()];
    lines.push(line(
        "rounds".into(),
        rounds.map(|rounds| rounds.to_string()),
        [None, None],
    ));
    for went in went {
        let name = went.share.map_or("of it on disk".into(), |share| {
            let word = serde_json::to_value(share).expect("it has a word");
            word.as_str().unwrap_or_default().to_owned()
        });
        let ns = [went.first_ns, went.second_ns].map(Some);
        lines.push(line(name, nothing(), ns));
    }
    out.table(&columns, &lines)
}

/// The additional time of the second one.
fn difference(ns: [Option<u64>; 2]) -> String {
    let [Some(a), Some(b)] = ns else {
        return String::new();
    };
    match b.checked_sub(a) {
        Some(0) => "0".into(),
        Some(more) => format!("+{}", duration(more)),
        None => format!("-{}", duration(a - b)),
    }
}
