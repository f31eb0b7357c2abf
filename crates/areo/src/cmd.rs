//! One file per command.

mod bench;
mod check;
mod completion;
mod domain;
mod file;
mod get;
mod ls;
mod put;
mod reconfig;
mod rm;
mod server;
mod sim;
mod stat;
mod statistics;
mod status;
mod sweep;
mod trace;
mod up;

use crate::args::{Cli, Command, Global};
use crate::config::{Places, Settings};
use crate::exit::Outcome;
use crate::log;
use crate::metrics;
use crate::output::Output;
use crate::session::Session;
use crate::watch;
use std::process::ExitCode;

/// Does what the command line says.
pub(crate) fn run(cli: Cli) -> ExitCode {
    if let Command::Completion { shell } = cli.command {
        return ended(completion::run(shell), cli.global.json);
    }
    let (out, settings) = match prepare(&cli.global) {
        Ok(prepared) => prepared,
        Err(failure) => return failure.report(cli.global.json),
    };
    let recorder = watch::recorder(out, &cli.command, &cli.global);
    if !matches!(cli.command, Command::Server(_)) {
        log::of_client(out, &recorder);
    }
    let (trace, shown_at) = (cli.global.trace, cli.global.metrics);
    let session = Session::new(out, settings, cli.global);
    if let Some(address) = shown_at
        && let Err(failure) = metrics::serve(out, &cli.command, address, &session.metrics)
    {
        return failure.report(out.json);
    }
    let outcome = match cli.command {
        Command::Up(args) => up::run(&session, args),
        Command::Server(args) => server::run(&session, args, recorder.clone()),
        Command::Put(args) => put::run(&session, &args),
        Command::Get(args) => get::run(&session, &args),
        Command::Ls(args) => ls::run(&session, &args),
        Command::Stat(args) => stat::run(&session, &args),
        Command::Rm(args) => rm::run(&session, &args),
        Command::File(command) => file::run(&session, command),
        Command::Sweep(args) => sweep::run(&session, &args),
        Command::Domain(command) => domain::run(&session, command),
        Command::Reconfig(command) => reconfig::run(&session, command),
        Command::Status(args) => status::run(&session, &args),
        Command::Trace(args) => trace::run(&session, &args),
        Command::Check { history } => check::run(&session, &history),
        Command::Sim(command) => sim::run(&session, command),
        Command::Bench(command) => bench::run(&session, command, &recorder),
        Command::Completion { .. } => unreachable!("needs no settings, done above"),
    };
    watch::keep(&recorder);
    watch::deliver(out, &recorder);
    if trace {
        trace::of_this_process(&session, &recorder);
    }
    ended(outcome, out.json)
}

fn prepare(global: &Global) -> Outcome<(Output, Settings)> {
    let settings = Settings::load(global.config.as_deref(), &Places::of_process())?;
    let json = settings.switch(global.json, "json")?;
    Ok((Output::new(json, global.quiet, global.verbose), settings))
}

fn ended(outcome: Outcome, json: bool) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}
