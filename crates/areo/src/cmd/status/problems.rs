//! The problems of a cluster, which stand before everything else.

use crate::exit::Outcome;
use crate::output::{Column, Output, Paint};
use areo_client::Problem;

/// The columns of a terminal on which everything fits.
const COLUMNS: usize = 80;

/// Prints the problems, outages in red.
pub(super) fn print(out: Output, problems: &[Problem]) -> Outcome {
    if problems.is_empty() || out.json {
        return Ok(());
    }
    if !out.terminal {
        let row = |problem: &Problem| vec![problem.text.clone()];
        let rows: Vec<_> = problems.iter().map(row).collect();
        return out.table(&[Column::Text("problem")], &rows);
    }
    for problem in problems {
        let paint = match problem.is_outage {
            true => Paint::Red,
            false => Paint::Yellow,
        };
        for line in folded(&problem.text) {
            out.line(&out.paint(paint, &line))?;
        }
    }
    out.line("")
}

/// A sentence for people, in lines that fit; those after the first are indented. A word that is longer stands alone.
fn folded(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() || line.chars().count() + 1 + word.chars().count() <= COLUMNS {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_for_people_fit_80_columns() {
        let text = "the root domain is on one server and tolerates no crash: start 2 more servers (`areo server --join`), and it grows to 3 by itself";
        let lines = folded(text);
        assert!(
            lines.len() > 1 && lines.iter().all(|it| it.chars().count() <= COLUMNS),
            "{lines:?}"
        );
        let words: Vec<&str> = lines.iter().map(|it| it.trim_start()).collect();
        assert_eq!(words.join(" "), text);
        assert_eq!(folded("short"), ["short"]);
        let long = "x".repeat(90);
        assert_eq!(folded(&format!("{long} y")), [long, "  y".into()]);
    }
}
