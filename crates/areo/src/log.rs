//! What the libraries tell of their work: one line per event on standard error.

use crate::args::LogWord;
use crate::output::Output;
use tracing_subscriber::filter::LevelFilter;

/// The log of a server.
pub(crate) fn of_server(out: Output, log: LogWord) {
    let level = match (out.quiet, out.verbose) {
        (true, _) => LevelFilter::WARN,
        (false, 0) => LevelFilter::INFO,
        (false, 1) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    start(out, log, level);
}

/// The log of any other command: none, unless more is asked for.
pub(crate) fn of_client(out: Output) {
    match out.verbose {
        0 => {}
        1 => start(out, LogWord::Text, LevelFilter::DEBUG),
        _ => start(out, LogWord::Text, LevelFilter::TRACE),
    }
}

fn start(out: Output, log: LogWord, level: LevelFilter) {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_ansi(out.colour);
    match log {
        LogWord::Text => builder.init(),
        LogWord::Json => builder.json().init(),
    }
}
