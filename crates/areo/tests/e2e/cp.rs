//! Folders copied to objects and back: `areo cp`.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo, signal, wait_until};
use crate::values::bytes;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

type Tree = BTreeMap<String, Vec<u8>>;

/// All files below a folder, by their names in it.
fn tree(folder: &Path) -> Tree {
    let (mut found, mut folders) = (Tree::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
            found.insert(name.into(), fs::read(&path).unwrap());
        }
    }
    found
}

fn write(folder: &Path, tree: &Tree) {
    for (name, value) in tree {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }
}

/// The last line with `--json`.
fn report(cluster: &Cluster, arguments: &[&str]) -> Value {
    let arguments = [&["cp", "--json"], arguments].concat();
    let mut lines = cluster.run(&arguments).done().objects();
    lines.pop().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn folder(cluster: &Cluster, name: &str) -> PathBuf {
    let path = cluster.folder().join(name);
    fs::create_dir(&path).unwrap();
    path
}

fn some_tree() -> Tree {
    let mut files: Tree = (0..150)
        .map(|number| {
            let name = format!("{}/{}/{number}.txt", number % 3, number % 7);
            (name, bytes(number * 11, number as u64))
        })
        .collect();
    files.insert("large.bin".into(), bytes((9 << 20) + 1, 5));
    files.insert("empty".into(), Vec::new());
    files.insert("a b\n\u{e4}".into(), b"a strange name".to_vec());
    files
}

#[test]
fn a_folder_goes_there_and_back_and_only_what_changed_is_copied() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let (from, to) = (folder(&cluster, "from"), cluster.folder().join("to"));
    let mut files = some_tree();
    write(&from, &files);
    let up = ["-r", text(&from), "areo://default/p"];
    let down = ["-r", "areo://default/p/", text(&to)];
    let copied = report(&cluster, &up);
    let all = files.len();
    let total: usize = files.values().map(Vec::len).sum();
    assert_eq!(
        copied,
        json!({ "copied": all, "bytes": total, "unchanged": 0, "deleted": 0, "dry_run": false })
    );
    assert_eq!(report(&cluster, &down)["copied"], all);
    assert_eq!(tree(&to), files);
    for again in [&up, &down] {
        let again = report(&cluster, again);
        assert_eq!(
            (&again["copied"], &again["unchanged"]),
            (&json!(0), &json!(all))
        );
    }
    let stat = ["stat", "p/0/0/0.txt", "--json"];
    let known = cluster.run(&stat).done().objects().remove(0);
    assert_eq!(known["content_type"], "text/plain");

    // A change that keeps the length, one that does not, a new file, and one that is gone.
    files.insert("0/0/21.txt".into(), bytes(21 * 11, 1000));
    files.insert("empty".into(), b"not any more".to_vec());
    files.insert("new/one".into(), b"new".to_vec());
    files.remove("1/1/1.txt");
    fs::remove_file(from.join("1/1/1.txt")).unwrap();
    write(&from, &files);
    let dry = [&up[..], &["--delete", "--dry-run"]].concat();
    let said = cluster.run(&[&["cp"], &dry[..]].concat()).done();
    let mut lines: Vec<&str> = said.text().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[3].starts_with("delete\tp/1/1/1.txt\t"), "{lines:?}");
    assert_eq!(report(&cluster, &dry)["dry_run"], true);
    let there = cluster.run(&["get", "p/empty"]).done();
    assert!(there.stdout.is_empty(), "a dry run does nothing");
    assert_eq!(report(&cluster, &up)["copied"], 3, "nothing is deleted");
    cluster.run(&["get", "p/1/1/1.txt"]).done();
    let deleted = report(&cluster, &[&up[..], &["--delete"]].concat());
    assert_eq!(
        (&deleted["copied"], &deleted["deleted"]),
        (&json!(0), &json!(1))
    );
    cluster
        .run(&["get", "p/1/1/1.txt"])
        .refused(3, &["p/1/1/1.txt"]);

    fs::create_dir_all(to.join("only/here")).unwrap();
    fs::write(to.join("only/here/x"), "x").unwrap();
    let down = [&down[..], &["--delete"]].concat();
    let dry = report(&cluster, &[&down[..], &["--dry-run"]].concat());
    assert_eq!((&dry["copied"], &dry["deleted"]), (&json!(3), &json!(2)));
    assert!(to.join("only/here/x").exists());
    let back = report(&cluster, &down);
    assert_eq!((&back["copied"], &back["deleted"]), (&json!(3), &json!(2)));
    assert_eq!(tree(&to), files);
    assert!(!to.join("only").exists(), "its folders are empty then");
}

#[test]
fn one_file_is_copied_by_its_name_or_another() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let here = folder(&cluster, "here");
    let file = here.join("notes.txt");
    fs::write(&file, "words").unwrap();
    for (target, key) in [
        ("areo://default/a/b", "a/b"),
        ("areo://default/folder/", "folder/notes.txt"),
        ("areo://default", "notes.txt"),
    ] {
        let copied = report(&cluster, &[text(&file), target]);
        assert_eq!(copied["copied"], 1);
        assert_eq!(cluster.run(&["get", key]).done().stdout, b"words");
        assert_eq!(report(&cluster, &[text(&file), target])["unchanged"], 1);
    }
    let back = folder(&cluster, "back");
    report(&cluster, &["areo://default/a/b", text(&back)]);
    report(&cluster, &["areo://default/a/b", text(&back.join("c"))]);
    let words = || b"words".to_vec();
    assert_eq!(
        tree(&back),
        Tree::from([("b".into(), words()), ("c".into(), words())])
    );
    // A file keeps its mode, as `areo get -o` leaves it.
    fs::write(back.join("c"), "other").unwrap();
    fs::set_permissions(back.join("c"), fs::Permissions::from_mode(0o640)).unwrap();
    report(&cluster, &["areo://default/a/b", text(&back.join("c"))]);
    assert_eq!(fs::read(back.join("c")).unwrap(), b"words");
    let mode = fs::metadata(back.join("c")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let gone = ["cp", "areo://default/none", text(&back)];
    cluster.run(&gone).refused(3, &["'none'"]);
}

#[test]
fn what_cannot_be_copied_is_named_and_the_rest_is_copied() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    for key in ["good", "a", "a/b", "../out", "end/", "x//y"] {
        cluster.run_with(&["put", &format!("p/{key}")], b"v").done();
    }
    let to = folder(&cluster, "to");
    fs::write(to.join("old"), "kept").unwrap();
    let down = ["cp", "-r", "areo://default/p", text(&to), "--delete"];
    let words = [
        "cannot copy 'p/../out': '..' in it is not the name of a file",
        "keys below 'p/a/'",
        "'p/end/': it ends with '/'",
        "and 1 more; 2 objects copied (2 B); nothing was deleted",
    ];
    cluster.run(&down).refused(1, &words);
    let names: Vec<String> = tree(&to).into_keys().collect();
    assert_eq!(names, ["a/b", "good", "old"]);
    assert!(!cluster.folder().join("out").exists());

    let from = folder(&cluster, "from");
    fs::write(from.join("good"), "v").unwrap();
    fs::create_dir(from.join("sub")).unwrap();
    symlink("good", from.join("link")).unwrap();
    symlink("sub", from.join("folder")).unwrap();
    symlink("none", from.join("dangling")).unwrap();
    fs::create_dir_all(from.join("d".repeat(250)).join("e".repeat(250))).unwrap();
    let deep = ["d", "e", "f", "g", "h"].map(|c| c.repeat(250)).join("/");
    fs::create_dir_all(from.join(&deep)).unwrap();
    fs::write(from.join(&deep).join("file"), "v").unwrap();
    let up = ["cp", "-r", text(&from), "areo://default/q", "--delete"];
    let words = ["link to a folder", "leads to no file", "1024 are the most"];
    cluster.run(&up).refused(1, &words);
    let listed = cluster.run(&["ls", "q/"]).done();
    assert_eq!(listed.text(), "q/good\nq/link");

    for (source, target, code, word) in [
        (text(&from), "areo://default/q", 2, "pass -r"),
        ("areo://default/p/", text(&to), 2, "pass -r"),
        ("areo://none/p", text(&to), 3, "'none'"),
        (
            text(&from.join("none")),
            "areo://default",
            1,
            "no such file",
        ),
        (text(&from), text(&to), 2, "areo://DOMAIN/KEY"),
        ("areo://default/a", "areo://default/b", 2, "areo backup"),
        ("s3://bucket/a", text(&to), 2, "rclone"),
    ] {
        let copy = ["cp", source, target];
        cluster.run(&copy).refused(code, &[word]);
    }
    let empty = folder(&cluster, "empty");
    let all = ["cp", "-r", text(&empty), "areo://default/q", "--delete"];
    cluster
        .run(&all)
        .refused(2, &["would delete all 2 objects"]);
    let none = ["cp", "-r", "areo://default/zzz", text(&to), "--delete"];
    cluster
        .run(&none)
        .refused(3, &["no object below areo://default/zzz/"]);
    let away = ["--domain", "default", "cp", "a", "areo://default/a"];
    cluster.run(&away).refused(2, &["takes no --domain"]);
    areo(&["cp", "areo:///a", "b"], b"").refused(2, &["names no domain"]);
}

/// The length that a process has read of a file, if it has it open.
fn position(pid: u32, file: &Path) -> Option<u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut open = descriptors.filter_map(Result::ok);
    let it = open.find(|it| fs::read_link(it.path()).is_ok_and(|path| path == file))?;
    let number = it.file_name().into_string().unwrap();
    let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
    about.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_source_that_is_cut_becomes_no_object() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let from = folder(&cluster, "from");
    let large = from.join("large");
    File::create(&large).unwrap().set_len(2 << 30).unwrap();
    fs::write(from.join("small"), "small").unwrap();
    let mut copy = cluster.command(&["cp", "-r", text(&from), "areo://default/p"]);
    let copy = copy.stdin(Stdio::null()).stderr(Stdio::piped());
    let copy = copy.spawn().unwrap();
    let begun = || position(copy.id(), &large).is_some_and(|it| it > 4 << 20);
    wait_until(begun);
    File::options()
        .write(true)
        .open(&large)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let ended = copy.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(
        error.contains("was cut to 1048576 while it was read"),
        "{error}"
    );
    let listed = cluster.run(&["ls", "p/"]).done();
    assert_eq!(listed.text(), "p/small", "the others are copied");
}

#[test]
fn an_interrupted_copy_leaves_nothing_half_done_and_goes_on() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let from = folder(&cluster, "from");
    let files: Tree = (0..600)
        .map(|number| (format!("{number}"), bytes(100_000, number)))
        .collect();
    write(&from, &files);
    report(&cluster, &["-r", text(&from), "areo://default"]);
    let to = cluster.folder().join("to");
    let mut copy = cluster.spawn(&["cp", "-r", "areo://default", text(&to)]);
    let pid = i32::try_from(copy.id()).unwrap();
    let count = || fs::read_dir(&to).map_or(0, Iterator::count);
    while count() < 3 && copy.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    signal(pid, Signal::INT);
    let ended = copy.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{error}");
    assert!(error.contains("run it again to go on"), "{error}");
    let there = tree(&to);
    assert!(!there.is_empty() && there.len() < files.len());
    for (name, value) in &there {
        assert!(files.get(name) == Some(value), "{name} is whole");
    }
    let again = report(&cluster, &["-r", "areo://default", text(&to)]);
    assert_eq!(again["unchanged"], there.len());
    assert!(tree(&to) == files);
}
