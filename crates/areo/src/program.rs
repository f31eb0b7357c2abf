//! What a program does before and after a command, and running this program once more.

use crate::args::{Common, Global, REVISION, VERSION};
use crate::cmd::trace;
use crate::config::{Places, Settings};
use crate::exit::Outcome;
use crate::log;
use crate::output::{Output, cannot_print};
use crate::session::Session;
use crate::watch;
use areo_telemetry::Recorder;
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Which operations of a process are watched, unless the environment or `--trace` asks for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchMode {
    /// A server: those that its clients watch.
    Callers,
    /// Some of them, as every client does.
    Some,
    /// None: there are too many.
    None,
    /// Those that the command chooses itself.
    Chosen,
}

/// Does a command of the laboratory, which is no client of a cluster that is there.
pub fn run(
    name: &str,
    common: Common,
    watching: WatchMode,
    command: impl FnOnce(&Session, &Recorder) -> Outcome,
) -> ExitCode {
    let global = Global {
        common,
        ..Global::default()
    };
    perform(name, global, watching, command)
}

/// Reads the settings, does the command of the program of this name, and keeps and delivers what was watched.
pub(crate) fn perform(
    name: &str,
    global: Global,
    watching: WatchMode,
    command: impl FnOnce(&Session, &Recorder) -> Outcome,
) -> ExitCode {
    let (out, settings) = match prepare(&global.common) {
        Ok(prepared) => prepared,
        Err(failure) => return failure.report(name, global.common.json),
    };
    let recorder = watch::recorder(out, watching, &global);
    if watching != WatchMode::Callers {
        log::of_client(out, &recorder);
    }
    let session = Session::new(out, settings, global);
    let outcome = command(&session, &recorder);
    watch::keep(&recorder);
    watch::deliver(out, &recorder);
    if session.global.trace {
        trace::of_this_process(&session, &recorder);
    }
    ended(outcome, name, out.json)
}

fn prepare(common: &Common) -> Outcome<(Output, Settings)> {
    let settings = Settings::load(common.config.as_deref(), &Places::of_process())?;
    let json = settings.switch(common.json, "json")?;
    let out = Output::new(json, common.quiet, common.verbose);
    Ok((out, settings))
}

/// Prints a script that completes this command line in a shell.
///
/// # Errors
/// The output cannot take it.
pub fn completion(mut command: clap::Command, shell: Shell) -> Outcome {
    let (mut script, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(shell, &mut command, name, &mut script);
    std::io::stdout().write_all(&script).map_err(cannot_print)
}

/// Prints the name and the version of the program of this name.
///
/// # Errors
/// The output cannot take it.
pub fn version(name: &str, json: bool) -> Outcome {
    let out = Output::new(json, false, 0);
    match json {
        true => out.object(&serde_json::json!({
            "program": name,
            "version": env!("CARGO_PKG_VERSION"),
            "revision": REVISION,
        })),
        false => out.line(&format!("{name} {VERSION}")),
    }
}

/// How the program of this name ends with its command.
pub fn ended(outcome: Outcome, name: &str, json: bool) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(name, json),
    }
}

/// A command that runs the product as a server of ours: everything is said by arguments, only this process speaks to the
/// service manager, and a Ctrl-C in the terminal is for this process, which stops the others in order.
pub fn server(path: &Path) -> Command {
    let mut command = Command::new(path);
    let ours = |name: &OsString| name.to_string_lossy().starts_with("AREO_");
    for name in std::env::vars_os().map(|(name, _)| name).filter(ours) {
        command.env_remove(name);
    }
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.env_remove("NOTIFY_SOCKET");
    command
}
