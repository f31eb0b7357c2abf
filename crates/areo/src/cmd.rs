//! One file per command.

mod archive;
mod autopilot;
mod backup;
mod cluster;
mod console;
mod cp;
mod domain;
mod file;
mod get;
mod ls;
mod many;
mod put;
mod reconfig;
mod repair;
mod restore;
mod rm;
mod s3;
mod server;
mod stat;
mod statistics;
mod status;
mod sweep;
mod tls;
pub(crate) mod trace;
mod trust;
mod up;

use crate::args::{Cli, Command};
use crate::exit::{Failure, Outcome};
use crate::metrics;
use crate::output::is_closed;
use crate::program;
use crate::session::Session;
use crate::watch::WatchMode;
use areo_client::place;
use areo_telemetry::Recorder;
use clap::CommandFactory;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command of the command line.
pub(crate) fn run(cli: Cli) -> ExitCode {
    let Cli { global, command } = cli;
    let without_settings = match command {
        Command::Completion { shell } => Some(program::completion(Cli::command(), shell)),
        Command::Manual { ref folder } => Some(program::manual(Cli::command(), folder)),
        Command::Version => Some(program::version("areo", global.common.json)),
        _ => None,
    };
    if let Some(outcome) = without_settings {
        return program::ended(outcome, "areo", global.common.json);
    }
    let watching = match command {
        Command::Server(ref args) if args.verb.is_none() => WatchMode::Callers,
        Command::S3(_) => WatchMode::Callers,
        _ => WatchMode::Some,
    };
    program::perform("areo", global, watching, |session, recorder| {
        check_domain(session, &command)?;
        // A gateway, and an instance of the autopilot, have metrics of their own beside those of their clients.
        let has_own = match &command {
            Command::S3(_) => true,
            Command::Autopilot(args) => args.verb.is_none(),
            _ => false,
        };
        if let Some(address) = session.global.metrics.filter(|_| !has_own) {
            metrics::serve(session.out, &command, address, &session.metrics)?;
        }
        perform(session, command, recorder)
    })
}

/// Finds out before a value is read that its file could not be written.
fn check_place(path: &Path) -> Outcome {
    check_open(path)?;
    place::check(path).map_err(|error| Failure::file("write", path, &error))
}

/// Refuses a path to a standard stream that is closed: what stands in its place takes everything, and keeps nothing.
fn check_open(path: &Path) -> Outcome {
    match place::descriptor_of(path) {
        Ok(Some(number)) if is_closed(number) => {
            let path = path.display();
            Err(Failure::other(format!("cannot write {path}: it is closed")))
        }
        _ => Ok(()),
    }
}

/// Refuses `--domain` where it would do nothing.
fn check_domain(session: &Session, command: &Command) -> Outcome {
    match (command, &session.global.domain) {
        (Command::Domain(_), Some(_)) => Err(Failure::usage(
            "`areo domain` takes no --domain, which names the domain of objects: name the domain after the command, as `areo domain show NAME`",
        )),
        (Command::Cp(_), Some(_)) => Err(Failure::usage(
            "`areo cp` takes no --domain: name the domain in areo://DOMAIN/KEY",
        )),
        (Command::Backup(_), Some(_)) => Err(Failure::usage(
            "`areo backup` takes no --domain: name the domain, as `areo backup photos DIR`",
        )),
        (Command::Restore(_), Some(_)) => Err(Failure::usage(
            "`areo restore` takes no --domain: --only DOMAIN chooses one of the backup, --as DOMAIN gives it another name",
        )),
        _ => Ok(()),
    }
}

fn perform(session: &Session, command: Command, recorder: &Recorder) -> Outcome {
    match command {
        Command::Up(args) => up::run(session, args),
        Command::Server(args) => server::run(session, *args, recorder.clone()),
        Command::S3(args) => s3::run(session, &args, recorder),
        Command::Console(args) => console::run(session, &args, recorder),
        Command::Put(args) => put::run(session, &args),
        Command::Get(args) => get::run(session, &args),
        Command::Ls(args) => ls::run(session, &args),
        Command::Stat(args) => stat::run(session, &args),
        Command::Rm(args) => rm::run(session, &args),
        Command::Backup(args) => backup::run(session, &args),
        Command::Restore(args) => restore::run(session, &args),
        Command::Cp(args) => cp::run(session, &args),
        Command::File(command) => file::run(session, command),
        Command::Sweep(args) => sweep::run(session, &args),
        Command::Repair(args) => repair::run(session, args),
        Command::Domain(command) => domain::run(session, command),
        Command::Reconfig(command) => reconfig::run(session, command),
        Command::Token(command) => trust::token(session, command),
        Command::Key(command) => trust::key(session, command),
        Command::Ca(command) => trust::ca(session, command),
        Command::Audit(command) => trust::audit(session, &command),
        Command::Status(args) => status::run(session, &args),
        Command::Cluster(command) => cluster::run(session, command),
        Command::Autopilot(args) => autopilot::run(session, &args),
        Command::Trace(args) => trace::run(session, &args),
        Command::Completion { .. } | Command::Manual { .. } | Command::Version => {
            unreachable!("needs no settings, done above")
        }
    }
}
