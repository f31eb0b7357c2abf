//! The command `areo`: command line, configuration, output. What a command means is the business of `areo_client` and
//! `areo_server`. A library only so that fuzz targets reach what a person types; programs use `areo_client`.

mod admin;
mod args;
mod cluster_file;
mod cmd;
mod config;
mod exit;
pub mod fuzzing;
mod log;
mod metrics;
mod output;
mod outside;
mod program;
mod progress;
mod session;
mod units;
mod watch;

use clap::Parser;
use std::process::ExitCode;

/// Does what the arguments of this process say.
pub fn run() -> ExitCode {
    match args::Cli::try_parse() {
        Ok(cli) => cmd::run(cli),
        Err(error) => args::report(&error),
    }
}
