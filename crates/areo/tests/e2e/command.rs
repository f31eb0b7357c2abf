//! Running a program as a person does. Tests of the laboratory share this file.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

#[path = "secrets.rs"]
pub(crate) mod secrets;

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Standard output as text, without the last line's end.
    pub(crate) fn text(&self) -> &str {
        let text = std::str::from_utf8(&self.stdout).expect("the output is text");
        text.strip_suffix('\n').unwrap_or(text)
    }

    /// Standard output as JSON lines.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("every line is an object");
        self.text().lines().map(parse).collect()
    }

    /// Fails unless the command is done.
    #[track_caller]
    pub(crate) fn done(self) -> CommandOutput {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// Fails unless the command ended with this code and one sentence that holds these words.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for word in words {
            assert!(
                self.stderr.contains(word),
                "'{word}' is not in: {}",
                self.stderr
            );
        }
        assert!(self.stdout.is_empty(), "an error prints no result");
    }
}

/// Runs the program without a cluster of ours.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: &[A], input: &[u8]) -> CommandOutput {
    ended(command().args(arguments), input)
}

/// Runs a command to its end.
pub(crate) fn ended(command: &mut Command, input: &[u8]) -> CommandOutput {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let input = input.to_owned();
    // A command that reads no input closes the pipe early.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer does not panic");
    secrets::check_command(&output.stdout, &output.stderr);
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).expect("errors are text"),
    }
}

/// Starts the program without a cluster of ours, and does not wait for it.
pub(crate) fn spawn(arguments: &[&str]) -> Child {
    let mut command = command();
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// The binary, untouched by the configuration of the user who runs the tests.
pub(crate) fn command() -> Command {
    of(crate::program())
}

/// Another binary, untouched likewise.
pub(crate) fn of(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let known = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("AREO_") || name.starts_with("OTEL_")
    };
    for name in std::env::vars_os().map(|(name, _)| name).filter(known) {
        command.env_remove(name);
    }
    command.env("AREO_CONFIG", "");
    // Commands remember their operations there.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(pid).expect("not 0"), signal);
}

/// Waits for something that surely happens; a minute and more means that it does not.
#[track_caller]
pub(crate) fn wait_until(mut happened: impl FnMut() -> bool) {
    for _ in 0..4500 {
        if happened() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("waited for something that does not happen");
}

/// True if a program of this name would be found.
pub(crate) fn on_the_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Fails unless the help needs no scrolling.
#[track_caller]
pub(crate) fn help_fits_a_screen() {
    let shown = ended(command().arg("--help").env("COLUMNS", "80"), b"").done();
    let lines: Vec<&str> = shown.text().lines().collect();
    assert!(
        lines.len() <= 24,
        "{} lines:\n{}",
        lines.len(),
        shown.text()
    );
    for line in lines {
        assert!(line.chars().count() <= 80, "too long: {line}");
    }
}

/// Fails unless the program knows each command that the documents show, with its options. `--help` behind them keeps it from
/// being run. Decision records and the changelog name commands of their time.
#[track_caller]
pub(crate) fn documented_commands_are_known(name: &str, least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = |folder: &str| fs::read_dir(root.join(folder)).expect("a folder of documents");
    let documents = files("").chain(files("docs"));
    let documents = documents.map(|file| file.expect("an entry of the folder").path());
    let mut known = 0;
    for document in documents.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        if document.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&document).expect("a document");
        let shown = text.split(['`', '\n', ';']);
        let shown = shown.map(|code| code.strip_prefix("$ ").unwrap_or(code));
        for code in shown.map(|code| code.strip_prefix("target/release/").unwrap_or(code)) {
            let code = code.split(" #").next().expect("the first part");
            let code = code.split("  ").next().expect("the first part");
            let code = code.split(" | ").next().expect("the first part");
            let Some((program, words)) = code.split_once(' ') else {
                continue;
            };
            // Choices and gaps are for people.
            if program != name || words.contains(['|', '$']) || words.contains("...") {
                continue;
            }
            let words: Vec<&str> = words.split_whitespace().chain(["--help"]).collect();
            let error = run(&words, b"").stderr;
            // `ID` stands for something that is no id.
            let stands_for_another = |word: &&str| {
                let is_name = word.bytes().all(|byte| byte.is_ascii_uppercase());
                is_name && error.contains(&format!("invalid value '{word}'"))
            };
            let is_known = error.is_empty() || words.iter().any(stands_for_another);
            assert!(is_known, "{}: {code}: {error}", document.display());
            known += 1;
        }
    }
    assert!(known >= least, "only {known} commands of {name} were found");
}
