//! The surroundings of a process: streams that are closed, full or read no further, signals, variables of others, odd places for
//! files, one bad directory of five.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo, free_ports, lives, signal, wait_until};
use crate::command::{command, ended};
use crate::terminal::Terminal;
use crate::values::bytes;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Runs a line in a shell, in which `$A` is the program on this cluster.
fn shell(cluster: &Cluster, line: &str) -> crate::cluster::CommandOutput {
    let mut shell = command_of("bash");
    let program = format!("{} --cluster {}", crate::program(), cluster.file());
    let shell = shell.args(["-c", line]).env("A", program);
    ended(shell.current_dir(cluster.folder()), b"")
}

fn command_of(program: &str) -> Command {
    let mut command = crate::command::of(program);
    command.env_remove("NO_COLOR");
    command
}

#[test]
fn output_that_is_lost_is_no_success() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    for value in [&b"x"[..], b"line\nand a rest", b"line\n", &bytes(900, 1)] {
        cluster.run_with(&["put", "k"], value).done();
        let full = shell(&cluster, "$A get k > /dev/full");
        full.refused(1, &["cannot write the output: no space left"]);
    }
    cluster
        .run_with(&["put", "large"], &bytes(3 << 20, 1))
        .done();
    for line in [
        "get k --version-only",
        "get large",
        "ls",
        "stat k",
        "status",
        "--help",
        "completion bash",
        "get k --version-only --json",
    ] {
        let full = shell(&cluster, &format!("$A {line} > /dev/full"));
        assert_eq!(full.code, 1, "{line}: {}", full.stderr);
    }
    for line in [
        "get k",
        "get k -o -",
        "get large",
        "get k -o /dev/stdout",
        "get k /proc/self/fd/1",
        "ls",
        "status",
        "version",
        "--help",
        "ls --json",
    ] {
        let closed = shell(&cluster, &format!("$A {line} >&-"));
        assert_eq!(closed.code, 1, "{line}: {}", closed.stderr);
        assert!(closed.stderr.contains("cannot write"), "{}", closed.stderr);
    }
    let closed = shell(&cluster, "$A get k -o /dev/stderr 2>&-");
    assert_eq!(closed.code, 1, "{closed:?}");
    // A parent may hand that over on purpose.
    shell(&cluster, "$A get k 1<>/dev/null").done();
    // Its number may be that of a connection to a server when the value comes.
    for number in 3..20 {
        let line = format!("$A get k -o /dev/fd/{number} {number}>&-");
        shell(&cluster, &line).refused(1, &["cannot write /dev/fd/"]);
    }
    // A descriptor that cannot be written is none that takes everything.
    shell(&cluster, "$A get k 1</dev/null").refused(1, &["cannot write the output"]);
    let refused = shell(&cluster, "$A put k large.file > /dev/full");
    refused.refused(1, &["no such file"]);
    let told = shell(&cluster, "echo new | $A put k > /dev/full");
    told.refused(
        1,
        &["no space left", "the write of 'k' was applied, as version"],
    );
    let told = shell(&cluster, "$A rm k > /dev/full");
    told.refused(1, &["the delete of 'k' was applied, as version"]);
    // A reader that went away: as programs end by SIGPIPE, without a word.
    let cut = shell(
        &cluster,
        "$A get large | head -c 10 | wc -c; exit ${PIPESTATUS[0]}",
    );
    assert_eq!((cut.code, cut.text()), (141, "10"));
    assert_eq!(cut.stderr, "");
    // Nothing is said where nothing is heard; the exit code is the same.
    for closed in ["2>&-", "2>/dev/full", "2> >(true)", "2</dev/null"] {
        let line = format!("sleep 0.1; $A get none {closed}");
        assert_eq!(shell(&cluster, &line).code, 3, "{closed}");
    }
}

#[test]
fn servers_outlive_the_readers_of_their_supervisor() {
    let folder = tempfile::tempdir().unwrap();
    let (data, port) = (folder.path().join("data"), free_ports());
    let mut up = command()
        .args([
            "up",
            "--durability",
            "memory",
            "--servers",
            "3",
            "--dap",
            "abd",
            "--json",
        ])
        .args(["--port", &port.to_string(), "--data"])
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events = BufReader::new(up.stdout.take().unwrap()).lines();
    let mut pids = Vec::new();
    loop {
        let event: Value = serde_json::from_str(&events.next().unwrap().unwrap()).unwrap();
        match event["event"].as_str() {
            Some("started") => pids.push(i32::try_from(event["pid"].as_i64().unwrap()).unwrap()),
            Some("ready") => break,
            _ => {}
        }
    }
    drop((events, up.stderr.take()));
    signal(pids[0], Signal::KILL);
    wait_until(|| !lives(pids[0]));
    let file = data.join("cluster.toml");
    let on = ["--cluster", file.to_str().unwrap()];
    areo(&[&on[..], &["put", "k"]].concat(), b"value").done();
    assert!(up.try_wait().unwrap().is_none(), "it goes on");
    assert!(lives(pids[1]) && lives(pids[2]));
    signal(i32::try_from(up.id()).unwrap(), Signal::INT);
    assert_eq!(up.wait().unwrap().code(), Some(0));
}

/// A pipe in which nothing has room, with its two ends.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[0; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn a_server_outlives_the_reader_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    for closed in [true, false] {
        let (reader, writer) = full_pipe();
        let reader = Some(reader).filter(|_| !closed);
        let port = free_ports();
        let (address, admin) = (
            format!("127.0.0.1:{port}"),
            format!("127.0.0.1:{}", port + 90),
        );
        let mut server = command()
            .args(["server", "--init", "--listen", &address, "--admin", &admin])
            .arg("--data")
            .arg(folder.path().join(closed.to_string()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(writer)
            .spawn()
            .unwrap();
        wait_until(|| {
            let status = areo(&["--cluster", &address, "status", "--json"], b"");
            status.code == 0 && status.text().contains("\"serving\"")
        });
        assert!(server.try_wait().unwrap().is_none(), "closed: {closed}");
        signal(i32::try_from(server.id()).unwrap(), Signal::TERM);
        assert_eq!(server.wait().unwrap().code(), Some(0), "closed: {closed}");
        drop(reader);
    }
}

#[test]
fn one_bad_directory_keeps_no_other_server_from_starting() {
    let mut cluster = Cluster::start(&["--dap", "abd"]);
    cluster.run_with(&["put", "k"], b"value").done();
    assert_eq!(cluster.stop().code, 0);
    let place = |name: &str| cluster.data().join(name);
    let mut identity = fs::read(place("s1/IDENTITY")).unwrap();
    identity[40] ^= 1;
    fs::write(place("s1/IDENTITY"), identity).unwrap();
    fs::rename(place("s2"), place("aside")).unwrap();
    fs::write(place("s2"), "a file in its place").unwrap();
    let mut cluster = cluster.start_again(&[]);
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "value");
    let ended = cluster.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for sentence in ["s1 stays down: ", "IDENTITY: damaged", "s2 stays down: "] {
        assert!(ended.stderr.contains(sentence), "{}", ended.stderr);
    }
    let data = cluster.data();
    fs::write(data.join("s3/FORMAT"), "areo data directory\nformat 99\n").unwrap();
    fs::write(data.join("s4/FORMAT"), "").unwrap();
    fs::remove_dir_all(data.join("s5")).unwrap();
    symlink("nowhere", data.join("s5")).unwrap();
    let data = data.to_str().unwrap();
    let none = areo(&["up", "--data", data], b"");
    none.refused(1, &["no server in", "s1: ", "s4: ", "s5: ", "format 99"]);
}

#[test]
fn what_interrupts_a_command() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "k"], b"value\n").done();
    // It waits for its input: nothing is applied, and blocks that were sent are taken back.
    for (sent, with) in [(0, Signal::INT), (10 << 20, Signal::HUP), (0, Signal::TERM)] {
        let mut put = hearing_hangups(&cluster, &["put", "k", "--block-size", "1MiB"]);
        let put = put.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut put = put.stdout(Stdio::piped()).spawn().unwrap();
        let mut input = put.stdin.take().unwrap();
        input.write_all(&bytes(sent, 1)).unwrap();
        // It notices signals from then on.
        wait_until(|| watches_signals(put.id()) && blocks(&cluster) >= (sent as u64 >> 21));
        signal(i32::try_from(put.id()).unwrap(), with);
        let ended = put.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{said}");
        let sentence = "interrupted: the write of 'k' was not applied";
        assert!(said.contains(sentence), "{said}");
        assert_eq!(blocks(&cluster), 0, "taken back");
        drop(input);
    }
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "value");
    // A terminal that goes away ends what waits for another process, unless that was to outlive it.
    let pipe = cluster.folder().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let path = pipe.to_str().unwrap();
    let mut get = hearing_hangups(&cluster, &["get", "k", "-o", path]);
    let mut get = get.stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| watches_signals(get.id()));
    signal(i32::try_from(get.id()).unwrap(), Signal::HUP);
    assert_eq!(get.wait().unwrap().code(), Some(130));
    let line = format!("trap '' HUP; exec $A get k -o {path} 2> /dev/null");
    let program = format!("{} --cluster {}", crate::program(), cluster.file());
    let mut get = command_of("bash");
    let mut get = get.args(["-c", &line]).env("A", program).spawn().unwrap();
    wait_until(|| watches_signals(get.id()));
    signal(i32::try_from(get.id()).unwrap(), Signal::HUP);
    // A reader of a pipe waits for a writer, and there is none if the signal has ended it.
    let reader = thread::spawn(move || fs::read_to_string(&pipe));
    assert_eq!(get.wait().unwrap().code(), Some(0));
    assert_eq!(reader.join().unwrap().unwrap(), "value\n");
}

/// The state of a process that was not waited for, as `/proc` has it.
fn process_state(id: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    after_name.chars().next().unwrap()
}

/// Ends `get large -o TARGET` by these signals when `is_due`, all of which it finds at once: it is stopped when they are sent. Returns its exit code
/// and its sentences; none if it ended before it was stopped.
fn signalled(
    cluster: &Cluster,
    target: &Path,
    (signals, is_due): (&[Signal], &dyn Fn() -> bool),
) -> Option<(Option<i32>, String)> {
    let mut get = hearing_hangups(cluster, &["get", "large", "-o", target.to_str().unwrap()]);
    let get = get.stderr(Stdio::piped()).spawn().unwrap();
    let has_ended = || process_state(get.id()) == 'Z';
    while !is_due() && !has_ended() {
        std::hint::spin_loop();
    }
    let id = i32::try_from(get.id()).unwrap();
    signal(id, Signal::STOP);
    wait_until(|| ['T', 'Z'].contains(&process_state(get.id())));
    let is_stopped = !has_ended();
    for it in [signals, &[Signal::CONT]].concat() {
        signal(id, it);
    }
    let ended = get.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    is_stopped.then_some((ended.status.code(), said))
}

/// The first attempt in which the signals came in time.
#[track_caller]
fn in_time<T>(attempt: impl FnMut() -> Option<T>) -> T {
    let mut attempts = std::iter::repeat_with(attempt).take(50);
    let first = attempts.find_map(|it| it);
    first.expect("one of fifty attempts is in time")
}

#[test]
fn an_interrupted_read_leaves_a_complete_file_or_the_one_before() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    let value = bytes(24 << 20, 1);
    cluster.run_with(&["put", "large"], &value).done();
    let folder = tempfile::tempdir_in(cluster.folder()).unwrap();
    let beside = || {
        let entries = fs::read_dir(folder.path()).unwrap();
        let entry = |entry: Result<fs::DirEntry, _>| Some(entry.unwrap().path());
        let hidden = |path: &PathBuf| path.to_str().unwrap().contains("/.areo-");
        entries.filter_map(entry).find(hidden)
    };
    let length = |path: &Path| fs::metadata(path).map_or(0, |about| about.len());
    let (new, linked) = (folder.path().join("new"), folder.path().join("linked"));
    for signals in [&[Signal::TERM][..], &[Signal::HUP, Signal::INT]] {
        let is_due = || beside().is_some_and(|path| length(&path) > 0);
        let attempt = || {
            fs::remove_file(&new).ok();
            signalled(&cluster, &new, (signals, &is_due))
        };
        let (code, said) = in_time(attempt);
        assert_eq!((code, &*said), (Some(130), ""));
        assert_eq!((beside(), new.exists()), (None, false));
    }
    // Into this one the value is copied, since it has another name.
    fs::write(&linked, "before").unwrap();
    fs::hard_link(&linked, folder.path().join("other name")).unwrap();
    for signals in [&[Signal::TERM][..], &[Signal::HUP, Signal::INT]] {
        let is_due = || length(&linked) != 6;
        let (code, said) = in_time(|| {
            fs::write(&linked, "before").unwrap();
            signalled(&cluster, &linked, (signals, &is_due))
        });
        let is_whole = fs::read(&linked).unwrap() == value;
        match signals.len() {
            // Too late: it ends as without the signal.
            1 => assert!(is_whole && code == Some(0), "{code:?}: {said}"),
            _ => assert!(is_whole || said.contains("linked is incomplete"), "{said}"),
        }
        assert_eq!(said.contains("linked: 24"), code == Some(0), "{said}");
        assert_eq!(beside(), None);
    }
}

/// A command that does not inherit from what runs the tests that SIGHUP is ignored, as `nohup` has it.
fn hearing_hangups(cluster: &Cluster, arguments: &[&str]) -> Command {
    let command = cluster.command(arguments);
    let mut hearing = command_of("env");
    hearing
        .arg("--default-signal=HUP")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => hearing.env(name, value),
            None => hearing.env_remove(name),
        };
    }
    hearing
}

/// Blocks of uploads that have not ended.
fn blocks(cluster: &Cluster) -> u64 {
    let lines = cluster.run(&["status", "--json"]).done().objects();
    let line = lines.iter().find(|line| line["blocks_of"] == "default");
    let counts = |kind: &&str| line.map_or(0, |line| line[*kind]["blocks"].as_u64().unwrap());
    ["unfinished", "aborted"].iter().map(counts).sum()
}

/// True if a process catches SIGTERM.
fn watches_signals(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let term = 1 << (Signal::TERM.as_raw() - 1);
    caught.is_some_and(|mask| mask & term != 0)
}

/// Inputs that are closed, shared, or typed.
fn check_inputs(cluster: &Cluster) {
    for source in ["", "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        for closed in ["<&-", "<>/dev/null", "0>/dev/null"] {
            let refused = shell(cluster, &format!("$A put k {source} {closed}"));
            refused.refused(2, &["standard input is closed"]);
        }
    }
    let shared =
        "{ read -r first; $A put rest /dev/stdin > /dev/null; } <<< $'first\nrest'; $A get rest";
    assert_eq!(shell(cluster, shared).done().text(), "rest");
    let typed = "$A put typed; read -r rest; echo \"rest:$rest\"; echo \"got:$($A get typed)\"";
    let typed = Terminal::typing(cluster, typed, b"value\n\x04later\n").end();
    assert!(
        typed.contains("rest:later\r\n") && typed.contains("got:value\r\n"),
        "one Ctrl-D ends it: {typed:?}"
    );
}

#[test]
fn inputs_places_and_variables_of_others() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    cluster.run_with(&["put", "k"], b"value\n").done();
    check_inputs(&cluster);
    assert_eq!(cluster.run(&["get", "k"]).done().text(), "value");
    shell(&cluster, "$A put empty < /dev/null").done();
    for alias in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/fd/7"] {
        let line = "{ echo header; $A -q get k -o ALIAS; echo footer; } > out 7>&1; cat out";
        let out = shell(&cluster, &line.replace("ALIAS", alias)).done();
        assert_eq!(out.text(), "header\nvalue\nfooter", "{alias}");
    }
    let links =
        "AREO_PORT=tcp://10.0.0.7:7400 AREO_SERVICE_HOST=10.0.0.7 AREO_UP_PORT=tcp://10.0.0.7:7400";
    let empty = "AREO_CLUSTER= AREO_TIMEOUT= AREO_DOMAIN= AREO_JSON=";
    let got = shell(&cluster, &format!("env {links} {empty} $A get k")).done();
    assert_eq!(got.text(), "value");
    // Keys of every kind: one line each, and none commands the terminal that shows a sentence.
    let key = "k\x1b]0;pwned\x07\x1b[2J\u{202e}b\nack";
    for arguments in [
        &["get", key][..],
        &["stat", key],
        &["get", key, "--version-only"],
    ] {
        let refused = cluster.run(arguments);
        assert_eq!(refused.code, 3);
        let said = refused.stderr.trim_end();
        assert!(
            !said.contains(['\x1b', '\x07', '\u{202e}', '\n']),
            "{said:?}"
        );
    }
    let json = cluster.run(&["get", key, "--json", "--version-only"]);
    let said: Value = serde_json::from_str(&json.stderr).unwrap();
    assert!(said["error"].as_str().unwrap().contains(key), "{said}");
    assert!(
        !json.stderr.contains('\u{202e}'),
        "escaped: {}",
        json.stderr
    );
    let note = format!("$A get '{key}' .; $A get k --timeout $'5\\e[8m\\nareo: ok'");
    for odd in [key, "tab\there", "\"quoted\""] {
        cluster.run_with(&["put", "--", odd], b"x").done();
    }
    let said = shell(&cluster, &note).stderr;
    assert!(said.contains("k\\u{1b}]0;pwned"), "{said}");
    assert!(
        !said.contains('\x1b') && !said.contains("\nack"),
        "{said:?}"
    );
    assert!(!said.contains("\nareo: ok"), "{said:?}");
    let listed = cluster.run(&["ls"]).done();
    let listed: Vec<&str> = listed.text().lines().collect();
    let parsed = |line: &&&str| serde_json::from_str::<String>(line).ok();
    let quoted: Vec<String> = listed.iter().filter_map(|line| parsed(&line)).collect();
    assert_eq!(quoted, ["\"quoted\"", key, "tab\there"]);
    assert_eq!(listed.len(), 7, "{listed:?}");
    let on_terminal = format!("$A ls; $A ls -l; $A get '{key}x'; $A stat '{key}'");
    let shown = Terminal::start(&cluster, &on_terminal).end();
    assert!(shown.contains("pwned"), "{shown:?}");
    assert!(!shown.contains(['\u{202e}', '\x07']), "{shown:?}");
    assert!(
        !shown.contains("\x1b]0;") && !shown.contains("\x1b[2J"),
        "{shown:?}"
    );
}
