//! Files as lists of blocks, through the command line and real processes.

use crate::cluster::{Cluster, CommandOutput, signal, wait_until};
use crate::values::bytes;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Blocks of about 8 KiB, so that small files have many.
const CUT: [&str; 6] = ["--min", "4KiB", "--avg", "8KiB", "--max", "16KiB"];

struct Desk<'a> {
    cluster: &'a Cluster,
}

impl Desk<'_> {
    fn path(&self, name: &str) -> String {
        self.cluster
            .folder()
            .join(name)
            .to_str()
            .expect("a plain path")
            .to_owned()
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("the folder is there");
        path
    }

    fn file(&self, arguments: &[&str]) -> CommandOutput {
        let arguments: Vec<&str> = ["file"].iter().chain(arguments).copied().collect();
        self.cluster.run(&arguments)
    }

    fn push(&self, name: &str, path: &str) -> Value {
        let arguments = [&["push", name, path, "--json", "--stats"], &CUT[..]].concat();
        self.file(&arguments).done().objects().remove(0)
    }

    fn pull(&self, name: &str, path: &str) -> Value {
        let pulled = self.file(&["pull", name, path, "--json"]);
        pulled.done().objects().remove(0)
    }
}

#[test]
fn a_file_is_pushed_edited_and_pulled_and_only_what_changed_travels() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let desk = Desk { cluster: &cluster };
    let mut content = bytes(300_000, 1);
    let here = desk.write("here", &content);
    let pushed = desk.push("notes", &here);
    assert_eq!(
        (&pushed["created"], &pushed["bytes"]),
        (&true.into(), &300_000.into())
    );
    let blocks = pushed["blocks"].as_u64().unwrap();
    assert!((20..60).contains(&blocks) && pushed["written"] == blocks);
    assert!(desk.file(&["cat", "notes"]).done().stdout == content);

    let again = desk.push("notes", &here);
    assert_eq!(
        (&again["written"], &again["rounds"]),
        (&0.into(), &0.into())
    );
    content[150_000] ^= 1;
    desk.write("here", &content);
    let edited = desk.push("notes", &here);
    assert!(
        (1..=2).contains(&edited["written"].as_u64().unwrap()),
        "{edited}"
    );
    assert!(edited["rounds"].as_u64().unwrap() <= 5, "{edited}");

    let there = desk.path("there");
    let pulled = desk.pull("notes", &there);
    assert_eq!(pulled["fetched"], blocks);
    assert!(fs::read(&there).unwrap() == content);
    assert_eq!(desk.pull("notes", &there)["unchanged"], true);
    content[10] ^= 1;
    desk.write("here", &content);
    desk.push("notes", &here);
    let pulled = desk.pull("notes", &there);
    assert!(
        (1..=2).contains(&pulled["fetched"].as_u64().unwrap()),
        "{pulled}"
    );
    assert!(fs::read(&there).unwrap() == content);

    let shown = desk.file(&["blocks", "notes", "--json"]).done().objects();
    assert_eq!(shown.len() as u64, blocks + 1);
    assert_eq!(shown[0]["id"], "genesis");
    for pair in shown.windows(2) {
        assert_eq!(pair[0]["next"], pair[1]["id"]);
    }
    let bytes: u64 = shown
        .iter()
        .map(|block| block["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(bytes, 300_000);
    assert_eq!(desk.file(&["ls"]).done().text(), "notes");
    assert_eq!(cluster.run(&["ls"]).done().text(), "", "no object is shown");
}

/// A tree of files as one archive: one is changed, one is new, one is gone.
#[test]
fn of_two_versions_of_a_source_tree_the_second_sends_what_changed() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let desk = Desk { cluster: &cluster };
    let archive = |archive: &str, tree: &Path| {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-cf"]);
        let (archive, at) = (desk.path(archive), tree.parent().unwrap());
        tar.arg(&archive)
            .arg("-C")
            .arg(at)
            .arg(tree.file_name().unwrap());
        assert!(tar.status().unwrap().success());
        archive
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let tree = cluster.folder().join("src");
    let copied = Command::new("cp").arg("-r").args([&source, &tree]).status();
    assert!(copied.unwrap().success());
    let first = archive("first.tar", &tree);
    let pushed = desk.push("tree", &first);
    let all = pushed["written"].as_u64().unwrap();
    assert!(all > 20, "{pushed}");

    let changed = tree.join("main.rs");
    let text = fs::read_to_string(&changed).unwrap();
    fs::write(&changed, format!("// One more line.\n{text}")).unwrap();
    fs::write(tree.join("added.rs"), bytes(20_000, 1)).unwrap();
    fs::remove_file(tree.join("output.rs")).unwrap();
    let second = archive("second.tar", &tree);
    let push = ["push", "tree", &second, "--fresh", "--json"];
    let push = desk.file(&[&push, &CUT[..]].concat()).done();
    let pushed = push.objects().remove(0);
    let written = pushed["written"].as_u64().unwrap();
    assert!((1..all / 2).contains(&written), "{written} of {all} blocks");
    let there = desk.path("there.tar");
    desk.pull("tree", &there);
    assert!(fs::read(&there).unwrap() == fs::read(&second).unwrap());
}

#[test]
fn two_people_edit_one_file() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let desk = Desk { cluster: &cluster };
    let content = bytes(200_000, 1);
    let (a, b) = (desk.write("a", &content), desk.path("b"));
    desk.push("shared", &a);
    desk.pull("shared", &b);
    let edit = |name: &str, place: usize, by: u8| {
        let mut content = fs::read(desk.path(name)).unwrap();
        content[place] ^= by;
        desk.write(name, &content)
    };
    // Different parts: both are there.
    edit("a", 1000, 1);
    edit("b", 190_000, 2);
    desk.push("shared", &a);
    desk.push("shared", &b);
    let mut both = content.clone();
    (both[1000], both[190_000]) = (both[1000] ^ 1, both[190_000] ^ 2);
    assert!(desk.file(&["cat", "shared"]).done().stdout == both);
    for (name, path) in [("a", &a), ("b", &b)] {
        desk.pull("shared", path);
        assert!(fs::read(desk.path(name)).unwrap() == both);
    }
    // Both edit one block: one push succeeds, the other reports the conflict and keeps its text.
    edit("a", 100_000, 4);
    edit("b", 100_000, 8);
    desk.push("shared", &a);
    let told = desk.file(&["push", "shared", &b, "--json"]);
    assert_eq!(told.code, 4, "{}", told.stderr);
    let report = told.objects().remove(0);
    assert_eq!(
        (
            report["written"].as_u64(),
            report["conflicts"].as_array().unwrap().len()
        ),
        (Some(0), 1)
    );
    assert_eq!(report["success_ratio"], 0.0);
    desk.file(&["pull", "shared", &b])
        .refused(4, &["changes that a pull would lose", "--force"]);
    let theirs = fs::read(&a).unwrap();
    assert!(desk.file(&["cat", "shared"]).done().stdout == theirs);
    let diff = desk
        .file(&["diff", "shared", &b, "--json"])
        .done()
        .objects();
    assert!(diff.iter().any(|part| part["kind"] == "replaced"));
    assert!(diff.iter().any(|part| part["kind"] == "equal"));
    desk.file(&["pull", "shared", &b, "--force"]).done();
    assert!(fs::read(&b).unwrap() == theirs);
    // Without what it is based on, a local file replaces what is there only if that is said.
    edit("b", 5, 1);
    for entry in fs::read_dir(cluster.folder().join("areo/files")).unwrap() {
        fs::write(entry.unwrap().path(), b"damaged").unwrap();
    }
    desk.file(&["push", "shared", &b])
        .refused(4, &["differs from", "--fresh"]);
    desk.file(&["push", "shared", &b, "--fresh"]).done();
    assert!(desk.file(&["cat", "shared"]).done().stdout == fs::read(&b).unwrap());
}

#[test]
fn a_file_moves_with_its_domain_and_is_removed() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let desk = Desk { cluster: &cluster };
    let mut content = bytes(150_000, 3);
    let here = desk.write("here", &content);
    let blocks = desk.push("moved", &here)["blocks"].as_u64().unwrap();
    // A large object counts as one, with any number of blocks.
    let large = bytes(30_000, 4);
    let put = ["put", "large", "-", "--block-size", "4KiB"];
    cluster.run_with(&put, &large).done();
    let plan = ["reconfig", "plan", "default", "--dap", "abd", "--json"];
    let plan = cluster.run(&plan).done().objects().remove(0);
    assert_eq!(
        plan["objects"],
        blocks + 2,
        "the genesis block and the large one: {plan}"
    );
    let values = (content.len() + large.len()) as u64;
    let beside = plan["bytes"].as_u64().unwrap() - values;
    assert!(beside < 1000, "no more than a genesis block's hint: {plan}");
    cluster
        .run(&[
            "reconfig",
            "start",
            "default",
            "--dap",
            "abd",
            "--servers",
            "s1,s2,s3",
            "--yes",
        ])
        .done();
    assert!(desk.file(&["cat", "moved"]).done().stdout == content);
    content.truncate(70_000);
    desk.write("here", &content);
    desk.push("moved", &here);
    assert!(desk.file(&["cat", "moved"]).done().stdout == content);
    let blocks = || {
        let lines = cluster.run(&["status", "--json"]).done().objects();
        let line = lines.iter().find(|line| line["blocks_of"] == "default");
        let line = line.expect("the large object has some");
        [&line["files"], &line["removed_files"]].map(|count| count["blocks"].as_u64().unwrap())
    };
    let [there, left] = blocks();
    assert_eq!((there > 1, left), (true, 0));
    desk.file(&["rm", "moved"]).done();
    assert_eq!(blocks(), [0, 0], "they went with it");
    desk.file(&["cat", "moved"])
        .refused(3, &["no file 'moved'"]);
    desk.file(&["rm", "moved"]).refused(3, &["no file 'moved'"]);
    content[0] ^= 1;
    desk.write("here", &content);
    let told = desk.file(&["push", "moved", &here]);
    assert_eq!(told.code, 4);
    assert!(told.stderr.contains("was removed") && told.stderr.contains("--fresh"));
    desk.file(&["push", "moved", &here, "--fresh"]).done();
    assert!(desk.file(&["cat", "moved"]).done().stdout == content);
    assert_eq!(desk.file(&["ls", "mo"]).done().text(), "moved");
    assert_eq!(desk.file(&["ls", "x"]).done().text(), "");
}

#[test]
fn what_cannot_be_done_with_files() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let desk = Desk { cluster: &cluster };
    let here = desk.write("here", b"content");
    cluster.run_with(&["put", "object"], b"value").done();
    desk.file(&["cat", "object"])
        .refused(2, &["is an object", "areo get"]);
    desk.file(&["push", "object", &here])
        .refused(2, &["is an object"]);
    desk.file(&["cat", "nothing"])
        .refused(3, &["no file 'nothing'", "default"]);
    desk.file(&["blocks", "nothing"]).refused(3, &["no file"]);
    let folder = desk.path("folder");
    fs::create_dir(&folder).unwrap();
    desk.file(&["push", "f", &folder])
        .refused(1, &["is a directory"]);
    desk.file(&["push", "f", &desk.path("missing")])
        .refused(1, &["missing", "no such file"]);
    desk.file(&["push", "", &here])
        .refused(2, &["the key is empty"]);
    let cut = |flags: &[&str], words: &[&str]| {
        let arguments = [&["push", "f", &here], flags].concat();
        desk.file(&arguments).refused(2, words);
    };
    cut(
        &["--min", "2MiB", "--chunking", "rabin", "--avg", "1MiB"],
        &["must ascend"],
    );
    cut(
        &["--min", "2MiB", "--avg", "4MiB", "--max", "8MiB"],
        &["fastcdc", "rabin"],
    );
    cut(&["--min", "1KiB"], &["4KiB to 64MiB"]);
    assert_eq!(desk.file(&["ls"]).done().text(), "", "nothing was written");

    desk.file(&["push", "f", &here]).done();
    desk.file(&["pull", "f", &folder])
        .refused(1, &["is a directory"]);
    desk.file(&["pull", "f", &desk.path("no/such/place")])
        .refused(1, &["cannot write"]);
    let other = desk.write("other", b"other content");
    desk.file(&["pull", "f", &other])
        .refused(4, &["changes that a pull would lose"]);
    assert_eq!(fs::read(&other).unwrap(), b"other content");
    // A disk that is full: nothing is left behind.
    let before: Vec<_> = fs::read_dir("/dev")
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    desk.file(&["pull", "f", "/dev/full"])
        .refused(1, &["/dev/full"]);
    let after: Vec<_> = fs::read_dir("/dev")
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(before, after);
    // The file system lets it have a part of what it needs: the same.
    let large = desk.write("large", &bytes(3 << 20, 1));
    desk.push("large", &large);
    let out = desk.path("out");
    fs::create_dir(&out).unwrap();
    let pull = format!(
        "ulimit -f 1024; trap '' XFSZ; exec {} --cluster {} file pull large {out}/part",
        env!("CARGO_BIN_EXE_areo"),
        cluster.file(),
    );
    let ended = Command::new("bash").args(["-c", &pull]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "no part of it");
    desk.file(&["cat", "f", "--json"])
        .refused(2, &["--json", "pull"]);
}

/// It was renamed, or what it is based on could not be kept.
#[test]
fn a_file_of_unknown_base_replaces_nothing() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    let desk = Desk { cluster: &cluster };
    let here = desk.write("here", b"content");
    desk.file(&["push", "f", &here]).done();
    let renamed = desk.write("renamed", b"edited");
    desk.file(&["push", "f", &renamed])
        .refused(4, &["differs from", "--fresh"]);
    assert_eq!(desk.file(&["cat", "f"]).done().text(), "content");
    desk.file(&["push", "f", &renamed, "--fresh"]).done();
    let same = desk.write("same", b"edited");
    desk.file(&["push", "f", &same]).done();
}

/// `file pull` keeps the mode, the other names and the links of its target, and leaves a read-only one alone, like `get -o`.
#[test]
fn a_pull_leaves_a_local_file_what_belongs_to_it() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    let desk = Desk { cluster: &cluster };
    let here = desk.write("here", b"one\n");
    desk.file(&["push", "f", &here]).done();
    let place = desk.path("place");
    fs::create_dir(&place).unwrap();
    let at = |name: &str| desk.path(&format!("place/{name}"));
    desk.pull("f", &at("file"));
    fs::hard_link(at("file"), at("other")).unwrap();
    symlink("file", at("link")).unwrap();
    symlink("new", at("dangling")).unwrap();
    desk.write("here", b"two\n");
    desk.file(&["push", "f", &here]).done();
    desk.file(&["pull", "f", &at("link"), "--force"]).done();
    desk.pull("f", &at("dangling"));
    for name in ["file", "other", "new"] {
        assert_eq!(fs::read(at(name)).unwrap(), b"two\n", "{name}");
    }
    fs::set_permissions(at("new"), Permissions::from_mode(0o444)).unwrap();
    assert_eq!(desk.pull("f", &at("new"))["unchanged"], true);
    desk.write("here", b"three\n");
    desk.file(&["push", "f", &here]).done();
    desk.file(&["pull", "f", &at("new"), "--force"])
        .refused(1, &["cannot write", "it is read-only"]);
    assert_eq!(fs::read_dir(&place).unwrap().count(), 5);
    let program = format!("{} --cluster {}", crate::program(), cluster.file());
    let line = "{ echo header; $A -q file pull f /dev/stdout; echo footer; } > out; cat out; \
                mkfifo pipe; $A -q file pull f pipe & cat pipe; wait $!";
    let mut shell = crate::command::of("bash");
    let shell = shell.args(["-c", line]).env("A", program);
    let out = crate::command::ended(shell.current_dir(&place), b"").done();
    assert_eq!(out.text(), "header\nthree\nfooter\nthree");
}

/// The process says this on standard error.
fn says(process: &mut Child, sentence: &str) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(process.stderr.take().expect("it is a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    lines.find(|line| line.contains(sentence)).expect(sentence);
    lines
}

#[test]
fn an_interrupted_push_takes_its_blocks_back() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let desk = Desk { cluster: &cluster };
    let content = bytes(100_000, 1);
    let here = desk.write("here", &content);
    desk.push("f", &here);
    let blocks = || {
        let lines = cluster.run(&["status", "--json"]).done().objects();
        let line = lines.iter().find(|line| line["blocks_of"] == "default");
        line.unwrap()["files"]["blocks"].as_u64().unwrap()
    };
    let before = blocks();
    let interrupt = |content: &[u8], at: &str, sentence: &str| {
        desk.write("here", content);
        for server in ["s4", "s5"] {
            signal(cluster.pid(server), Signal::STOP);
        }
        let push = ["file", "push", "f", &here, "-v", "--timeout", "50s"];
        let mut push = cluster.command(&[&push, &CUT[..]].concat());
        let push = push.stdin(Stdio::null()).stdout(Stdio::null());
        let mut push = push.stderr(Stdio::piped()).spawn().unwrap();
        let lines = says(&mut push, at);
        signal(push.id().try_into().unwrap(), Signal::INT);
        let may_end = sentence.contains("not");
        let go_on = || {
            for server in ["s4", "s5"] {
                signal(cluster.pid(server), Signal::CONT);
            }
        };
        if may_end {
            go_on();
        }
        let said: Vec<String> = lines.collect();
        assert_eq!(push.wait().unwrap().code(), Some(130), "{said:?}");
        assert!(said.iter().any(|line| line.contains(sentence)), "{said:?}");
        if !may_end {
            go_on();
        }
        wait_until(|| ["s4", "s5"].iter().all(|s| cluster.state(s) == "serving"));
    };
    let more = [&content[..], &bytes(300_000, 2)].concat();
    let sentence = "the push of 'f' was not applied";
    interrupt(&more, "the first block is read", sentence);
    assert_eq!(blocks(), before, "taken back");
    assert!(desk.file(&["cat", "f"]).done().stdout == content);
    // No new block is needed.
    let mut changed = content.clone();
    changed[50_000] ^= 1;
    let sentence = "the push of 'f' may have been applied";
    interrupt(&changed, "links to them are sent", sentence);
    let there = desk.file(&["cat", "f"]).done().stdout;
    assert!(there == content || there == changed);
}

#[test]
fn an_interrupted_pull_leaves_nothing_beside_its_target() {
    let cluster = Cluster::start(&["--durability", "memory", "--servers", "3", "--dap", "abd"]);
    let desk = Desk { cluster: &cluster };
    let here = desk.write("here", &bytes(24 << 20, 1));
    desk.file(&["push", "f", &here]).done();
    let place = desk.path("place");
    fs::create_dir(&place).unwrap();
    let names = || fs::read_dir(&place).unwrap().count();
    let mut pull = cluster.spawn(&["file", "pull", "f", &format!("{place}/file")]);
    let id = pull.id().try_into().unwrap();
    while names() == 0 {
        std::thread::yield_now();
    }
    signal(id, Signal::STOP);
    // It cannot end by itself any more.
    for server in ["s1", "s2", "s3"] {
        signal(cluster.pid(server), Signal::STOP);
    }
    signal(id, Signal::INT);
    signal(id, Signal::CONT);
    assert_eq!(pull.wait().unwrap().code(), Some(130));
    assert_eq!(names(), 0);
    for server in ["s1", "s2", "s3"] {
        signal(cluster.pid(server), Signal::CONT);
    }
}
