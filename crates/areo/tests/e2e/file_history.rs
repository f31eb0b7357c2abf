//! Several people edit one file at once while servers die and come back; what they saw of every block is judged.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::Cluster;
use crate::values::bytes;
use areo_check::{Event, EventKind, Kind, Report, Verdict, Version, judge};
use areo_client::blocking::wait;
use areo_client::file::{
    Base, BlockInfo, Chunking, File, FileError, Method, Progress, PullOptions, PushOptions,
    PushReport,
};
use areo_client::{Client, ConnectOptions};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The file; the first block has its name as a key.
const FILE: &str = "notes";
const KIB: usize = 1 << 10;
const WRITERS: u64 = 3;
/// Edits of each writer, at least.
const EDITS: usize = 8;

/// The operations of all clients, for the judge.
struct History {
    begun: Instant,
    /// Line by line, each with its time.
    lines: Mutex<Vec<(u64, Vec<u8>)>>,
    operations: AtomicUsize,
}

/// An operation on a block: from when to when, and what it came to.
struct Operation<'a> {
    kind: Kind,
    time: (Instant, Instant),
    block: &'a BlockInfo,
    /// For a write the version that it replaces.
    based_on: Option<Version>,
    ended: EventKind,
}

fn version(of: areo_client::Version) -> Version {
    let text = of.to_string();
    text.parse().expect("versions are written in one way")
}

fn key(id: &str) -> &str {
    match id {
        "genesis" => FILE,
        id => id,
    }
}

impl History {
    fn record(&self, client: &str, operation: &Operation<'_>) {
        let Operation {
            kind,
            block,
            based_on,
            ended,
            ..
        } = *operation;
        let op = self.operations.fetch_add(1, Ordering::Relaxed) as u64;
        let wrote = kind == Kind::CvrWrite;
        // What a version is: no two are the same, and a torn one is none of them.
        let digest = block.digest.as_deref().unwrap_or_default();
        let value = format!("{digest} {}", block.version);
        let is_ok = ended == EventKind::Ok;
        let event = |what, time: Instant, known: bool| {
            let t = time.duration_since(self.begun).as_nanos();
            let t = u64::try_from(t).expect("a short test");
            let event = Event {
                value: (known && (is_ok || what == EventKind::Invoke))
                    .then(|| value.as_str().into()),
                version: (what != EventKind::Invoke).then(|| version(block.version)),
                based_on,
                file: Some(FILE.into()),
                next: block
                    .next
                    .as_deref()
                    .filter(|_| known)
                    .map(|next| key(next).into()),
                ..Event::new(t, client, op, what, kind, "default", key(&block.id))
            };
            let mut line = Vec::new();
            event.write(&mut line).expect("memory takes it");
            (t, line)
        };
        let lines = [
            event(EventKind::Invoke, operation.time.0, wrote),
            event(ended, operation.time.1, is_ok),
        ];
        self.lines.lock().unwrap().extend(lines);
    }

    /// All these blocks were read.
    fn read(&self, client: &str, time: (Instant, Instant), blocks: &[BlockInfo]) {
        for block in blocks {
            let operation = Operation {
                kind: Kind::Read,
                time,
                block,
                based_on: None,
                ended: EventKind::Ok,
            };
            self.record(client, &operation);
        }
    }

    /// Records the writes of a push: the blocks that differ afterwards, and the blocks that it reports as not
    /// written. New blocks are written before the others: the first chunk that is sent after theirs belongs to a
    /// link.
    fn pushed(&self, client: &str, old: &[BlockInfo], pushed: &PushReport, at: &Times) {
        let new = pushed.base.blocks();
        let known: BTreeMap<&str, &BlockInfo> = old.iter().map(|old| (&*old.id, old)).collect();
        let is_new = |block: &&BlockInfo| !known.contains_key(&*block.id);
        let lost: usize = at.sent.len();
        let created = new.iter().filter(is_new).count().min(lost);
        let between = at.sent.get(created).or(at.sent.last());
        let between = between.copied().unwrap_or(at.begun);
        for block in &new {
            let old = known.get(&*block.id);
            if old.is_some_and(|old| old.version == block.version) {
                continue;
            }
            let operation = Operation {
                kind: Kind::CvrWrite,
                time: match old {
                    None if block.id != "genesis" => (at.begun, between),
                    // After all of them.
                    _ => (between + Duration::from_nanos(1), at.ended),
                },
                block,
                based_on: Some(old.map_or(Version::INITIAL, |old| version(old.version))),
                ended: EventKind::Ok,
            };
            self.record(client, &operation);
        }
        for conflict in &pushed.conflicts {
            let block = BlockInfo {
                version: conflict.newest,
                ..(*known[&*conflict.block]).clone()
            };
            let operation = Operation {
                kind: Kind::CvrWrite,
                time: (at.begun, at.ended),
                block: &block,
                based_on: Some(version(conflict.version)),
                ended: EventKind::Fail,
            };
            self.record(client, &operation);
        }
    }

    fn text(&self) -> String {
        let mut lines = self.lines.lock().unwrap();
        lines.sort_by_key(|(t, _)| *t);
        let lines = lines.iter().map(|(_, line)| std::str::from_utf8(line));
        lines.collect::<Result<String, _>>().expect("JSON is text")
    }
}

/// The times of a push: begin, each sent chunk, end.
struct Times {
    begun: Instant,
    sent: Vec<Instant>,
    ended: Instant,
}

/// A client with a local file.
struct Editor<'a> {
    name: String,
    file: File,
    path: PathBuf,
    base: Option<Base>,
    history: &'a History,
}

impl Editor<'_> {
    fn new<'a>(
        options: ConnectOptions,
        folder: &Path,
        name: &str,
        history: &'a History,
    ) -> Editor<'a> {
        let options = ConnectOptions {
            timeout: Duration::from_mins(1),
            ..options
        };
        let client = wait(Client::connect(options)).expect("a quorum is there");
        let domain = wait(client.domain("default")).expect("`areo up` made it");
        Editor {
            name: name.into(),
            file: domain.file(FILE).expect("a short name"),
            path: folder.join(name),
            base: None,
            history,
        }
    }

    fn push(&mut self, content: &[u8]) -> PushReport {
        fs::write(&self.path, content).unwrap();
        let options = PushOptions {
            chunking: Some(
                Chunking::new(Method::FastCdc, 4 * KIB, 8 * KIB, 16 * KIB).expect("valid sizes"),
            ),
            needs_base: false,
        };
        let (sender, sent) = mpsc::channel();
        let told = move |progress| {
            if let Progress::Sending { .. } = progress {
                let _ = sender.send(Instant::now());
            }
            ControlFlow::Continue(())
        };
        let begun = Instant::now();
        let pushed = self
            .file
            .push(&self.path, self.base.as_ref(), options, told);
        let pushed = wait(pushed).expect("a quorum is there");
        // Otherwise it would not be known what was written.
        assert!(pushed.failed.is_none(), "{:?}", pushed.failed);
        let at = Times {
            begun,
            ended: Instant::now(),
            sent: sent.try_iter().collect(),
        };
        let old = self.base.as_ref().map(Base::blocks).unwrap_or_default();
        self.history.pushed(&self.name, &old, &pushed, &at);
        self.base = Some(pushed.base.clone());
        pushed
    }

    fn pull(&mut self) -> Vec<u8> {
        let begun = Instant::now();
        let options = PullOptions { force: true };
        let pulled = self
            .file
            .pull(&self.path, self.base.as_ref(), options, |_| {});
        let pulled = wait(pulled).expect("a quorum is there");
        let time = (begun, Instant::now());
        self.history.read(&self.name, time, &pulled.base.blocks());
        self.base = Some(pulled.base);
        fs::read(&self.path).unwrap()
    }

    fn look(&self) -> Result<(), FileError> {
        let begun = Instant::now();
        let blocks = wait(self.file.blocks())?;
        let time = (begun, Instant::now());
        self.history.read(&self.name, time, &blocks);
        Ok(())
    }
}

/// Somewhere some bytes are changed, some are new, or some are gone.
fn edited(mut content: Vec<u8>, seed: u64) -> Vec<u8> {
    let drawn = bytes(16, seed);
    let place = usize::from(drawn[0]) * content.len() / 256;
    match drawn[1] % 4 {
        0 if content.len() < 300 * KIB => {
            content.splice(place..place, bytes(20 * KIB, seed));
        }
        1 if content.len() > 100 * KIB => {
            let end = content.len().min(place + 10 * KIB);
            content.drain(place..end);
        }
        _ => {
            let end = content.len().min(place + 100);
            content.splice(place..end, bytes(100, seed));
        }
    }
    content
}

fn edit(editor: &mut Editor<'_>, seed: u64, goes_on: &AtomicBool) {
    let mut content = editor.pull();
    let mut edits = 0;
    while edits < EDITS || goes_on.load(Ordering::Relaxed) {
        content = edited(content, seed * 1000 + edits as u64);
        let pushed = editor.push(&content);
        // Who has lost reads, and goes on from there (`[B-6 reread-after-loss]`).
        if !pushed.conflicts.is_empty() || edits % 4 == 3 {
            content = editor.pull();
        }
        edits += 1;
    }
}

/// Without one block that was linked, as if it had never been created.
fn without_a_creation(history: &str) -> String {
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let mut lines = history.lines().map(parse);
    let created = lines.rfind(|line| line["based_on"] == 0 && line["key"] != FILE);
    let key = &created.expect("blocks were created")["key"];
    let kept = history.lines().filter(|line| parse(line)["key"] != *key);
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_people_see_of_a_file_that_all_of_them_edit_is_judged() {
    let mut cluster = Cluster::start(&[]);
    let (options, folder) = (cluster.options(), cluster.folder().to_owned());
    let history = History {
        begun: Instant::now(),
        lines: Mutex::default(),
        operations: AtomicUsize::new(0),
    };
    let editor = |name: &str| Editor::new(options.clone(), &folder, name, &history);
    editor("first").push(&bytes(150 * KIB, 1));
    let goes_on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for seed in 1..=WRITERS {
            let (editor, goes_on) = (&editor, &goes_on);
            scope.spawn(move || edit(&mut editor(&format!("w{seed}")), seed, goes_on));
        }
        let (editor, on) = (&editor, &goes_on);
        scope.spawn(move || {
            let reader = editor("reader");
            while on.load(Ordering::Relaxed) {
                reader.look().expect("a quorum is there");
            }
        });
        for server in ["s1", "s4"] {
            cluster.kill(server);
            cluster.restart(server);
        }
        goes_on.store(false, Ordering::Relaxed);
    });
    // If chance did not let them meet, these two do: one splits a block that the other changes.
    let (mut one, mut other) = (editor("one"), editor("other"));
    let content = one.pull();
    assert!(other.pull() == content, "nobody writes any more");
    let place = content.len() / 2;
    let split = [&content[..place], &bytes(20 * KIB, 2), &content[place..]].concat();
    assert!(one.push(&split).conflicts.is_empty());
    let mut changed = content;
    // The block that was written for the split is one of these.
    for byte in &mut changed[place - 20 * KIB..place + 20 * KIB] {
        *byte ^= 1;
    }
    assert!(!other.push(&changed).conflicts.is_empty());
    assert!(other.pull() == one.pull());

    let text = history.text();
    let passed = judged(text.as_bytes());
    assert_eq!(passed.verdict, Verdict::Holds, "{passed}");
    let passed = passed.to_string();
    for property in ["linearizable", "coverable", "fragmented"] {
        let line = passed.lines().find(|line| line.contains(property));
        assert!(line.expect("it is judged").contains("holds"), "{passed}");
    }
    let violated = judged(without_a_creation(&text).as_bytes());
    assert_eq!(violated.verdict, Verdict::Violated, "{violated}");
    assert!(violated.to_string().contains("created first"), "{violated}");
}

/// The judge's report on a history.
pub(crate) fn judged(history: &[u8]) -> Report {
    judge(&areo_check::History::read(history).unwrap())
}
