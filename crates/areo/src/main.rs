//! The binary `areo`: command line, configuration, output. What a command means is the business of `areo_client` and
//! `areo_server`.

mod args;
mod cluster_file;
mod cmd;
mod config;
mod exit;
mod log;
mod output;
mod program;
mod progress;
mod session;
mod units;

use clap::Parser;
use std::process::ExitCode;

/// The system's allocator took a third of the CPU time of small operations (decision record 0005).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match args::Cli::try_parse() {
        Ok(cli) => cmd::run(cli),
        Err(error) => args::report(&error),
    }
}
