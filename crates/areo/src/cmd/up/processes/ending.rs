//! The end of a process of `areo up`, for people.

use crate::exit::plain;
use crate::output::visible;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Lines of a dead server's log that are shown, looked for in so many bytes at its end.
const SHOWN_LINES: usize = 5;
const SHOWN_BYTES: i64 = 8 << 10;

pub(super) fn told(status: io::Result<ExitStatus>) -> String {
    let status = match status {
        Ok(status) => status,
        Err(error) => return format!("cannot be watched: {}", plain(&error)),
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

pub(super) fn last_lines(log: &Path) -> Vec<String> {
    let read = || {
        let mut file = File::open(log)?;
        let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
        file.seek(SeekFrom::End(-length.min(SHOWN_BYTES)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&end).into_owned())
    };
    let end = read().unwrap_or_default();
    let lines: Vec<&str> = end.lines().collect();
    let first = lines.len().saturating_sub(SHOWN_LINES);
    lines[first..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

pub(super) fn indented(lines: &[String]) -> String {
    match lines {
        [] => "    (empty)".to_owned(),
        lines => lines
            .iter()
            .map(|line| format!("    {}", visible(line)))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}
