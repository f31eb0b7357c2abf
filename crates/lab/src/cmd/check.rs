//! `areo-lab check`: judges a history.

use super::Lab;
use areo::exit::{Code, Failure, Outcome};
use areo_check::{Format, Ran, check_file};
use std::path::Path;

pub(super) fn run(lab: &Lab<'_>, history: &Path) -> Outcome {
    let out = lab.out;
    let format = match out.json {
        true => Format::Json,
        false => Format::Text,
    };
    let Ran {
        exit_code,
        output,
        error,
    } = check_file(history, format);
    out.bytes(output.as_bytes())?;
    match (exit_code, error.is_empty()) {
        (0, _) => Ok(()),
        (2, _) => Err(Failure::usage(error)),
        (_, false) => Err(Failure::other(error)),
        (_, true) => {
            let history = history.display();
            let message = format!("the history {history} does not pass: see the report");
            Err(Failure::new(Code::Other, message))
        }
    }
}
