//! The command `areo`: command line, configuration, output. What a command means is the business of `areo_client` and
//! `areo_server`. A library only so that fuzz targets reach what a person types, and that the laboratory's program prints,
//! parses and ends as this one does; other programs use `areo_client`.

pub mod args;
mod cmd;
mod config;
pub mod exit;
pub mod fuzzing;
mod interrupt;
mod log;
mod metrics;
#[cfg(feature = "next-version")]
mod next_version;
pub mod output;
mod outside;
pub mod program;
pub mod progress;
pub mod session;
pub mod watch;

use std::process::ExitCode;

pub use output::note_closed_streams;

/// Runs the command in the arguments of this process.
pub fn run() -> ExitCode {
    match args::parse("areo") {
        Ok(cli) => cmd::run(cli),
        Err(ended) => ended,
    }
}
