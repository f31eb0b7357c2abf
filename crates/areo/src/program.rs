//! The work of a program before and after a command, and running this program once more.

use crate::args::{Common, Global, NUMBER, PROFILE, REVISION, REVISION_DATE, VERSION};
use crate::cmd::trace;
use crate::config::{Places, Settings};
use crate::exit::{Failure, Outcome};
use crate::log;
use crate::output::{Output, cannot_print, write};
use crate::session::Session;
use crate::watch;
pub use crate::watch::WatchMode;
use areo_telemetry::Recorder;
use clap_complete::Shell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

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

/// Reads the settings, runs the command of the program of this name, and keeps and delivers the recorded spans.
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
    write(&script).map_err(cannot_print)
}

/// Writes a manual page for each command, `areo-put.1` for `areo put`, into a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn manual(command: clap::Command, folder: &Path) -> Outcome {
    let mut command = command.mut_subcommands(|command| command.hide(false));
    command.build();
    let pages = clap_mangen::generate_to(command, folder);
    pages.map_err(|error| Failure::file("write the manual pages to", folder, &error))
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
            "version": NUMBER,
            "revision": REVISION,
            "date": REVISION_DATE,
            "profile": PROFILE,
        })),
        false => out.line(&format!("{name} {VERSION}")),
    }
}

/// The largest level of a cluster that this program knows (`[X-46 cluster-level]`). It rises with a change that an older program could not read, or would
/// not take part in. The program uses that change where the cluster is finalized up to the level.
pub(crate) const LEVEL: u32 = match cfg!(feature = "next-version") {
    true => 1,
    false => 0,
};

/// The end of the program of this name with its command.
pub fn ended(outcome: Outcome, name: &str, json: bool) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(name, json),
    }
}

/// The places of this program's file. Another file may be put at `called` while this process runs; new servers are
/// started from that one.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The path as it was called: a link stays a link, which an upgrade points to another file.
    called: Option<PathBuf>,
    /// The file that the system ran.
    file: PathBuf,
}

/// The program of this process even if its file is gone (Linux).
const RUNNING: &str = "/proc/self/exe";

impl Program {
    /// That of this process. To be asked early: the system names no file any more once it is replaced.
    ///
    /// # Errors
    /// The system does not say which file it runs.
    pub(crate) fn of_this_process() -> io::Result<Program> {
        let file = std::env::current_exe()?;
        let called = std::env::args_os().next().map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let called = called.and_then(|called| find(&called, &path));
        Ok(Program {
            called: called.filter(|called| is_same_file(called, &file)),
            file,
        })
    }

    /// The file to run now.
    pub(crate) fn path(&self) -> &Path {
        let named = [self.called.as_deref(), Some(&self.file)];
        let mut named = named.into_iter().flatten();
        named
            .find(|path| path.is_file())
            .unwrap_or(Path::new(RUNNING))
    }
}

/// The absolute path of a program that was called so, as a shell finds it in the directories of `path`.
fn find(called: &Path, path: &OsStr) -> Option<PathBuf> {
    if called.components().nth(1).is_some() || called.is_absolute() {
        return std::path::absolute(called).ok();
    }
    let mut places = std::env::split_paths(path).map(|folder| folder.join(called));
    std::path::absolute(places.find(|place| place.is_file())?).ok()
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let about = path.metadata().ok()?;
        Some((about.dev(), about.ino()))
    };
    identity(one).is_some_and(|one| Some(one) == identity(other))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_is_run_from_where_it_was_called() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in ["areo-1", "areo-2"] {
            fs::write(place(name), name).unwrap();
        }
        symlink(place("areo-1"), place("areo")).unwrap();
        let called = find(Path::new("areo"), folder.path().as_os_str()).unwrap();
        assert_eq!(called, place("areo"), "found in the path");
        assert!(is_same_file(&called, &place("areo-1")));
        let program = Program {
            called: Some(called),
            file: place("areo-1"),
        };
        assert_eq!(program.path(), place("areo"));
        fs::remove_file(place("areo")).unwrap();
        assert_eq!(program.path(), place("areo-1"), "the file that runs");
        symlink(place("areo-2"), place("areo")).unwrap();
        fs::remove_file(place("areo-1")).unwrap();
        assert_eq!(program.path(), place("areo"), "an upgrade");
        fs::remove_file(place("areo")).unwrap();
        assert_eq!(program.path(), Path::new(RUNNING), "all are gone");
        assert_eq!(find(Path::new("missing"), folder.path().as_os_str()), None);
        let relative = find(Path::new("./areo"), OsStr::new("")).unwrap();
        assert!(relative.is_absolute());
    }
}
