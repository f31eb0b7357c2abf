//! Everything of `areo-lab check FILE` but the command line.

use crate::{History, Verdict, judge};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// The format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON object, for programs.
    Json,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// 0 if everything holds, 1 if something is violated, was not judged or could not be read, 2 if there is no such
    /// file.
    pub exit_code: u8,
    /// The report, for standard output; empty if there is none.
    pub output: String,
    /// The error, for standard error; empty if nothing did.
    pub error: String,
}

/// Reads and judges the history at `path`, `-` being standard input.
pub fn check_file(path: &Path, format: Format) -> Ran {
    let failed = |exit_code, error: String| Ran {
        exit_code,
        output: String::new(),
        error,
    };
    let history = if path == Path::new("-") {
        History::read(io::stdin().lock())
    } else {
        match File::open(path) {
            Ok(file) => History::read(BufReader::with_capacity(1 << 20, file)),
            Err(error) => return failed(2, format!("{}: {error}", path.display())),
        }
    };
    let history = match history {
        Ok(history) => history,
        Err(error) => return failed(1, format!("{}: {error}", path.display())),
    };
    let report = judge(&history);
    let exit_code = match report.verdict {
        Verdict::Nothing | Verdict::Holds => 0,
        Verdict::Unjudged | Verdict::Violated => 1,
    };
    let output = match format {
        Format::Text => report.to_string(),
        Format::Json => {
            serde_json::to_string(&report).expect("a report has only texts and numbers") + "\n"
        }
    };
    let error = String::new();
    Ran {
        exit_code,
        output,
        error,
    }
}
