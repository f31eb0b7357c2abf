//! The output of a command: tables for people, tab-separated lines for pipes, JSON lines for programs.

mod streams;
mod text;

pub use streams::note_closed_streams;
pub(crate) use streams::{
    Log, complain, is_closed, lost_lines, never_wait_for_readers, width, write,
};
pub(crate) use text::{json, visible};

use crate::exit::{Code, Failure, Outcome, plain};
use clap::builder::StyledStr;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal};
use std::process::ExitCode;

/// The manner of printing, as flags, environment and terminals allow.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a fact of its own about flags or terminal.
pub struct Output {
    /// One JSON object per line.
    pub json: bool,
    /// Standard output is a terminal: tables, and no bytes that could command it.
    pub terminal: bool,
    /// Standard error is a terminal that may show progress.
    pub progress: bool,
    /// Colours and other attributes, on standard error.
    pub colour: bool,
    /// Only results and errors.
    pub quiet: bool,
    /// The number of `-v`: more of them, more detail.
    pub verbose: u8,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Words, to the left.
    Text(&'static str),
    /// Numbers, to the right.
    Number(&'static str),
}

/// A colour of a text on standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    /// For something that fails now.
    Red,
    /// For something that may fail.
    Yellow,
}

impl Column {
    fn name(&self) -> &'static str {
        match self {
            Column::Text(name) | Column::Number(name) => name,
        }
    }
}

/// The columns of a table's head, with `|` between them and `>` before those of numbers.
pub fn columns(head: &'static str) -> Vec<Column> {
    let column = |name: &'static str| match name.trim().strip_prefix('>') {
        Some(name) => Column::Number(name.trim_start()),
        None => Column::Text(name.trim()),
    };
    head.split('|').map(column).collect()
}

#[allow(clippy::unused_self)] // Nothing is printed but through the value that knows how.
impl Output {
    /// A pipe that takes results and errors alone.
    #[cfg(test)]
    pub(crate) const QUIET: Output = Output {
        json: false,
        terminal: false,
        progress: false,
        colour: false,
        quiet: true,
        verbose: 0,
    };

    /// The output that flags, environment and terminal allow.
    pub(crate) fn new(json: bool, quiet: bool, verbose: u8) -> Output {
        let errors = streams::errors_are_terminal();
        Output {
            json,
            terminal: streams::output_is_terminal() && !json,
            progress: errors && !quiet && !json && !is_dumb(),
            colour: errors && may_colour(),
            quiet,
            verbose,
        }
    }

    /// Bytes on standard output, as they are.
    ///
    /// # Errors
    /// The output cannot take them.
    pub fn bytes(self, bytes: &[u8]) -> Outcome {
        write(bytes).map_err(cannot_print)
    }

    /// One line on standard output. On a terminal only line breaks and colours in it command.
    ///
    /// # Errors
    /// The output cannot take it.
    pub fn line(self, text: &str) -> Outcome {
        let mut line = match self.terminal {
            true => text::composed(text),
            false => text.to_owned(),
        };
        line.push('\n');
        self.bytes(line.as_bytes())
    }

    /// One object on one line of standard output.
    ///
    /// # Errors
    /// The output cannot take it.
    pub fn object(self, object: &impl Serialize) -> Outcome {
        let line = serde_json::to_string(object).expect("our own records have text for keys");
        self.line(&json(line))
    }

    /// True if the user agrees. Without a terminal the user agrees by running the command.
    ///
    /// # Errors
    /// The answer cannot be read.
    pub(crate) fn confirmed(self, question: &str) -> Outcome<bool> {
        if !self.terminal || !io::stdin().is_terminal() {
            return Ok(true);
        }
        complain(format!("{} [y/N] ", text::composed(question)).as_bytes());
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        read.map_err(|error| Failure::other(format!("cannot read the answer: {error}")))?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Something worth knowing that is no result: on standard error, unless `-q`.
    pub fn note(self, text: &str) {
        if !self.quiet && !self.json {
            say(text);
        }
    }

    /// The text in this colour, if standard output is a terminal that shows colours; none of its characters commands the terminal.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Red => 31,
            Paint::Yellow => 33,
        };
        let text = self.foreign(text);
        match self.terminal && may_colour() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text,
        }
    }

    /// Rows: as a table on a terminal, else tab-separated, below the names of the columns.
    ///
    /// # Errors
    /// The output cannot take them.
    pub fn table(self, columns: &[Column], rows: &[Vec<String>]) -> Outcome {
        assert!(rows.iter().all(|row| row.len() == columns.len()));
        if !self.terminal {
            let names: Vec<_> = columns.iter().map(Column::name).collect();
            self.line(&names.join("\t"))?;
            return rows.iter().try_for_each(|row| self.line(&fields(row)));
        }
        match rows {
            [] => Ok(()),
            rows => self.line(&drawn(columns, rows)),
        }
    }

    /// Prints a table as [`Output::table`] does, but on a terminal without `-v` only the columns of these names, so that 80
    /// columns are enough.
    ///
    /// # Errors
    /// The output cannot take them.
    pub(crate) fn short_table(
        self,
        columns: &[Column],
        short: &[&str],
        rows: &[Vec<String>],
    ) -> Outcome {
        if !self.terminal || self.verbose > 0 {
            return self.table(columns, rows);
        }
        let is_shown = |column: &Column| short.contains(&column.name());
        let shown: Vec<Column> = columns.iter().copied().filter(is_shown).collect();
        assert_eq!(shown.len(), short.len(), "each of the names is one");
        let row = |row: &Vec<String>| {
            let cells = row.iter().zip(columns).filter(|(_, it)| is_shown(it));
            cells.map(|(cell, _)| cell.clone()).collect()
        };
        self.table(&shown, &rows.iter().map(row).collect::<Vec<_>>())
    }

    /// A text that others chose, such as a key, for standard output: on a terminal without characters that would command it, and
    /// for programs as one field.
    pub(crate) fn foreign(self, text: &str) -> String {
        match self.terminal {
            true => visible(text),
            false => text::field(text).into_owned(),
        }
    }
}

/// A line on standard error, or none if that does not take it. Only line breaks and colours in it command a terminal.
pub(crate) fn say(text: &str) {
    complain((text::composed(text) + "\n").as_bytes());
}

/// A text of the command line's parser on the stream where it belongs, in colours where that shows them.
///
/// # Errors
/// Standard output cannot take it.
pub(crate) fn styled(text: &StyledStr, is_error: bool) -> Outcome {
    let terminal = match is_error {
        true => streams::errors_are_terminal(),
        false => streams::output_is_terminal(),
    };
    let text = match terminal && may_colour() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let text = text::composed(&text);
    if is_error {
        complain(text.as_bytes());
        return Ok(());
    }
    write(text.as_bytes()).map_err(cannot_print)
}

fn may_colour() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && !is_dumb()
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn fields(row: &[String]) -> String {
    let fields: Vec<_> = row.iter().map(|cell| text::field(cell)).collect();
    fields.join("\t")
}

fn drawn(columns: &[Column], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // As wide as the terminal at most: long cells are broken into lines.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let head = |column: &Column| match column {
        Column::Text(name) => Cell::new(name),
        Column::Number(name) => Cell::new(name).set_alignment(CellAlignment::Right),
    };
    table.set_header(columns.iter().map(head));
    for row in rows {
        let cells = row.iter().zip(columns).map(|(text, column)| match column {
            Column::Text(_) => Cell::new(visible(text)),
            Column::Number(_) => Cell::new(text).set_alignment(CellAlignment::Right),
        });
        table.add_row(cells);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// The end of a command whose output was cut. A reader that went away wants no sentence, and learns from the exit code, if at
/// all, that it has not got everything.
#[allow(clippy::needless_pass_by_value)] // For `map_err`.
pub fn cannot_print(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure {
            code: Code::Closed,
            message: String::new(),
        },
        _ => Failure::other(format!("cannot write the output: {}", plain(&error))),
    }
}

impl Failure {
    /// Prints the sentence on stderr, after the program's name; with `json` as one JSON object on one line.
    pub(crate) fn report(&self, program: &str, json: bool) -> ExitCode {
        if !self.message.is_empty() {
            say(&self.line(program, json));
        }
        ExitCode::from(self.code as u8)
    }

    fn line(&self, program: &str, as_json: bool) -> String {
        let (word, code) = (self.code.word(), self.code as u8);
        match as_json {
            true => {
                let line = serde_json::json!({ "error": self.message, "kind": word, "code": code });
                json(line.to_string())
            }
            false => format!("{program}: {}", visible(&self.message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_a_sentence_or_a_json_line() {
        let failure = Failure::new(Code::Unavailable, "no quorum for 'a\nb'");
        assert_eq!(failure.line("areo", false), "areo: no quorum for 'a\\nb'");
        let line = failure.line("areo", true);
        assert!(!line.contains('\n'), "one line: {line}");
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            object,
            serde_json::json!({ "error": "no quorum for 'a\nb'", "kind": "unavailable", "code": 5 })
        );
    }

    #[test]
    fn tables_are_aligned() {
        let columns = columns("name | > bytes");
        let row = |name: &str, bytes: &str| vec![name.to_owned(), bytes.to_owned()];
        let table = drawn(&columns, &[row("s1", "7"), row("s\n2", "1000")]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        let end = |text: &str| {
            lines
                .iter()
                .find_map(|l| l.find(text).map(|i| i + text.len()))
        };
        assert_eq!(end("bytes"), end("1000"), "{table}");
        assert!(lines[2].contains("s\\n2"), "{table}");
        let cells = [row("a\tb", "1"), row("c", "2")];
        assert_eq!(fields(&cells[0]), "\"a\\tb\"\t1");
        assert_eq!(fields(&cells[1]), "c\t2");
    }

    #[test]
    fn a_reader_that_went_away_is_told_nothing() {
        let gone = cannot_print(io::Error::from(ErrorKind::BrokenPipe));
        assert_eq!((gone.code, gone.message.as_str()), (Code::Closed, ""));
        let full = cannot_print(io::Error::from(ErrorKind::StorageFull));
        assert!(full.message.starts_with("cannot write the output: "));
    }
}
