//! One file per command.

mod bench;
mod changes;
mod check;
mod explore;
mod measure;
mod nemesis;
mod paper;
mod predict;
mod probe;
mod sim;

use crate::args::{Cli, Command};
use areo::exit::Outcome;
use areo::output::Output;
use areo::program::{self, WatchMode};
use areo::session::Session;
use areo_bench::cluster::Program;
use areo_lab::shared;
use clap::CommandFactory;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Name of the program.
pub(crate) const NAME: &str = "areo-lab";

/// The context of every command.
struct Lab<'a> {
    out: Output,
    session: &'a Session,
    /// The product, if it was named.
    areo: Option<PathBuf>,
}

impl Lab<'_> {
    /// The longest time that an operation may take, where the user does not say.
    fn timeout_or(&self, usual: Duration) -> Outcome<Duration> {
        self.session.timeout_or(usual)
    }

    /// The program that runs servers.
    fn servers(&self) -> Outcome<Program> {
        shared::servers(self.areo.as_deref())
    }
}

/// Runs the command of the command line.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let Cli {
        common,
        areo,
        command,
    } = cli;
    if let Command::Completion { shell } = command {
        return program::ended(
            program::completion(Cli::command(), shell),
            NAME,
            common.json,
        );
    }
    program::run(NAME, common, WatchMode::None, |session, _| {
        let lab = Lab {
            out: session.out,
            session,
            areo,
        };
        match command {
            Command::Sim(command) => sim::run(&lab, command),
            Command::Explore(args) => explore::run(&lab, &args),
            Command::Measure(args) => measure::run(&lab, &args),
            Command::Check { history } => check::run(&lab, &history),
            Command::Bench(command) => bench::run(&lab, command),
            Command::Nemesis(args) => nemesis::run(&lab, args),
            Command::Paper(args) => paper::run(&lab, args),
            Command::Predict { weights } => predict::run(&lab, weights),
            Command::Probe(command) => probe::run(&lab, command),
            Command::Completion { .. } => unreachable!("needs no settings, done above"),
        }
    })
}
