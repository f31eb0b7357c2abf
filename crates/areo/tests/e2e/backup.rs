//! Domains backed up into a directory, and restored into another cluster: `areo backup`, `areo restore`.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, areo, signal, wait_until};
use crate::values::bytes;
use areo_client::blocking::wait;
use areo_client::{Client, Domain, Etag, ListOptions, Metadata, PutOptions};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The expected content of a domain.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Model {
    objects: BTreeMap<String, Kept>,
    files: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    value: Vec<u8>,
    content_type: Option<String>,
    user: Vec<(String, String)>,
    etag: Option<Etag>,
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The last line with `--json`.
fn report(cluster: &Cluster, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    cluster.run(&arguments).done().objects().pop().unwrap()
}

fn open(cluster: &Cluster, domain: &str) -> Domain {
    let client = wait(Client::connect(cluster.options())).unwrap();
    wait(client.domain(domain)).unwrap()
}

fn keys(domain: &Domain) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), String::new());
    loop {
        let options = ListOptions {
            after,
            ..ListOptions::default()
        };
        let page = wait(domain.list_with(options)).unwrap();
        keys.extend(page.entries.into_iter().map(|entry| entry.key));
        match page.next {
            Some(next) => after = next,
            None => return keys,
        }
    }
}

/// Everything that a domain has.
fn contents(cluster: &Cluster, name: &str) -> Model {
    let domain = open(cluster, name);
    let object = |key: String| {
        let object = wait(domain.get(&key)).unwrap();
        let Metadata {
            content_type,
            user,
            etag,
            ..
        } = object.metadata.clone();
        let kept = Kept {
            value: object.into_bytes().to_vec(),
            content_type,
            user,
            etag,
        };
        (key, kept)
    };
    let (files, next) = wait(domain.files("", "")).unwrap();
    assert_eq!(next, None, "few");
    let file = |name: String| {
        let cat = ["--domain", domain.name(), "file", "cat", &name];
        let content = cluster.run(&cat).done().stdout;
        (name, content)
    };
    Model {
        objects: keys(&domain).into_iter().map(object).collect(),
        files: files.into_iter().map(|entry| file(entry.name)).collect(),
    }
}

/// A domain to which anything happens.
struct Generator<'a> {
    cluster: &'a Cluster,
    domain: Domain,
    random: Random,
    model: Model,
    local: PathBuf,
    is_coded: bool,
}

impl Generator<'_> {
    fn step(&mut self) {
        let key = format!("k/{}", self.random.below(12));
        match self.random.below(20) {
            0..10 => self.put(key),
            10..14 => {
                if self.model.objects.remove(&key).is_some() {
                    wait(self.domain.delete(&key)).unwrap();
                }
            }
            14..17 => self.push(),
            17 => {
                let name = format!("f{}", self.random.below(3));
                if self.model.files.remove(&name).is_some() {
                    self.file(&["rm", &name]);
                }
            }
            _ => self.reconfigure(),
        }
    }

    fn put(&mut self, key: String) {
        // Without bytes, small, a fragment of each, in blocks.
        let length = [0, 100, 30_000, 90_000][self.random.below(4) as usize];
        let value = bytes(length, self.random.below(u64::MAX));
        let some = |it: &mut Random| it.below(2) == 0;
        let kept = Kept {
            value: value.clone(),
            content_type: some(&mut self.random).then(|| "text/x-test".into()),
            user: match some(&mut self.random) {
                true => vec![("z".into(), "1".into()), ("a".into(), "\u{e4} b".into())],
                false => Vec::new(),
            },
            etag: some(&mut self.random).then(|| Etag::new("abc-2").unwrap()),
        };
        let options = PutOptions {
            content_type: kept.content_type.clone(),
            user_metadata: kept.user.clone(),
            etag: kept.etag.clone(),
            block_bytes: 32 << 10,
            ..PutOptions::default()
        };
        wait(self.domain.put_with(&key, value, options)).unwrap();
        self.model.objects.insert(key, kept);
    }

    fn push(&mut self) {
        let name = format!("f{}", self.random.below(3));
        let mut content = self.model.files.get(&name).cloned().unwrap_or_default();
        let more = bytes(20_000, self.random.below(u64::MAX));
        match self.random.below(2) {
            0 => content.extend(more),
            _ => content = more,
        }
        fs::write(&self.local, &content).unwrap();
        let local = self.local.clone();
        let cut = ["--min", "4KiB", "--avg", "8KiB", "--max", "16KiB"];
        self.file(&[&["push", &name, text(&local), "--fresh"], &cut[..]].concat());
        self.model.files.insert(name, content);
    }

    fn file(&self, arguments: &[&str]) {
        let domain = ["--domain", self.domain.name(), "file"];
        self.cluster.run(&[&domain, arguments].concat()).done();
    }

    fn reconfigure(&mut self) {
        self.is_coded = !self.is_coded;
        let to = match self.is_coded {
            true => &["--dap", "ec", "--k", "2"][..],
            false => &["--dap", "abd"],
        };
        let start = ["reconfig", "start", self.domain.name()];
        self.cluster.run(&[&start, to].concat()).done();
    }
}

/// Any sequence of puts, deletions, pushes and reconfigurations with runs between them: what is restored of each run, into a cluster
/// with another [n,k], is what was there at its end.
#[test]
fn what_is_restored_is_what_was_there() {
    let from = Cluster::start(&["--durability", "memory"]);
    let to = Cluster::start(&["--durability", "memory", "--servers", "3"]);
    for seed in [1, 0x5eed_0047] {
        let name = format!("d{seed}");
        from.run(&["domain", "create", &name]).done();
        let folder = from.folder().join(format!("backup{seed}"));
        let mut at = Generator {
            cluster: &from,
            domain: open(&from, &name),
            random: Random(seed),
            model: Model::default(),
            local: from.folder().join("local"),
            is_coded: true,
        };
        let mut models = Vec::new();
        for run in 1..=4 {
            (0..20).for_each(|_| at.step());
            let written = report(&from, &["backup", &name, text(&folder)]);
            assert_eq!(written["run"], run, "seed {seed}");
            models.push(at.model.clone());
        }
        let again = report(&from, &["backup", &name, text(&folder)]);
        assert_eq!((&again["read"], &again["deleted"]), (&0.into(), &0.into()));
        areo(&["restore", "--check", text(&folder)], b"").done();
        for (index, model) in models.iter().enumerate() {
            let (run, target) = ((index + 1).to_string(), format!("r{seed}-{index}"));
            let restore = ["restore", text(&folder), "--run", &run, "--as", &target];
            report(&to, &restore);
            assert!(contents(&to, &target) == *model, "seed {seed}, run {run}");
        }
        let last = format!("r{seed}-3");
        for key in at.model.objects.keys() {
            let time = |domain: &Domain| wait(domain.stat(key)).unwrap().metadata.written_at_ms;
            assert_eq!(time(&at.domain), time(&open(&to, &last)), "{key}");
        }
    }
}

#[test]
fn all_kinds_of_domains_are_restored_as_they_are() {
    let from = Cluster::start(&["--durability", "memory"]);
    let to = Cluster::start(&["--durability", "memory", "--servers", "3"]);
    let kinds = [
        ("abd", &["--dap", "abd"][..]),
        ("cas", &["--dap", "cas"]),
        ("casgc", &["--dap", "casgc"]),
        ("casss", &["--dap", "casss"]),
        ("conditional", &["--dap", "conditional", "--k", "3"]),
        ("rambo", &["--reconfig", "rambo"]),
        ("sm", &["--reconfig", "sm"]),
    ];
    for (name, options) in kinds {
        let create = [&["domain", "create", name], options].concat();
        from.run(&create).done();
        let put = ["--domain", name, "put", "a/b", "--meta", "of=kind"];
        from.run_with(&put, name.as_bytes()).done();
    }
    from.run_with(
        &["put", "large", "--block-size", "1MiB"],
        &bytes(5 << 20, 9),
    )
    .done();
    let folder = from.folder().join("backup");
    let all = report(&from, &["backup", "--all", text(&folder)]);
    assert_eq!((&all["domains"], &all["read"]), (&8.into(), &8.into()));
    let restored = report(&to, &["restore", text(&folder)]);
    assert_eq!(restored["restored"], 8);
    let shown = |cluster: &Cluster| -> Vec<(Value, Value)> {
        let domains = cluster.run(&["domain", "ls", "--json"]).done().objects();
        let pair = |it: &Value| (it["domain"].clone(), it["dap"].clone());
        let mut pairs: Vec<_> = domains.iter().map(pair).collect();
        pairs.sort_by_key(|(name, _)| name.to_string());
        pairs
    };
    assert_eq!(shown(&from), shown(&to));
    for name in kinds.iter().map(|(name, _)| *name).chain(["default"]) {
        assert!(contents(&to, name) == contents(&from, name), "{name}");
    }
    // A domain that is removed is in the runs before, and in no later one.
    from.run(&["domain", "rm", "cas", "--yes"]).done();
    report(&from, &["backup", "--all", text(&folder)]);
    let gone = ["restore", text(&folder), "--only", "cas"];
    to.run(&gone).refused(3, &["no domain 'cas'", "abd, casgc"]);
    let before = [&gone[..], &["--run", "1", "--as", "old"]].concat();
    assert_eq!(report(&to, &before)["restored"], 1);
}

#[test]
fn what_is_there_and_differs_is_kept_unless_it_is_to_be_replaced() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let folder = cluster.folder().join("backup");
    let (dir, put) = (text(&folder), |key: &str, value: &[u8]| {
        cluster.run_with(&["put", key], value).done();
    });
    for key in ["a", "b", "c"] {
        put(key, key.as_bytes());
    }
    let local = cluster.folder().join("local");
    fs::write(&local, "a file").unwrap();
    cluster.run(&["file", "push", "notes", text(&local)]).done();
    report(&cluster, &["backup", "default", dir]);
    let again = report(&cluster, &["restore", dir]);
    assert_eq!(
        (&again["restored"], &again["unchanged"]),
        (&0.into(), &4.into())
    );
    put("a", b"newer");
    put("extra", b"x");
    cluster.run(&["rm", "b"]).done();
    fs::write(&local, "newer").unwrap();
    cluster
        .run(&["file", "push", "notes", text(&local), "--fresh"])
        .done();
    let words = ["2 objects differ", "--overwrite", "1 object restored"];
    cluster.run(&["restore", dir]).refused(4, &words);
    assert_eq!(cluster.run(&["get", "a"]).done().stdout, b"newer");
    assert_eq!(cluster.run(&["get", "b"]).done().stdout, b"b");
    assert_eq!(
        cluster.run(&["file", "cat", "notes"]).done().stdout,
        b"newer"
    );
    let replaced = report(&cluster, &["restore", dir, "--overwrite"]);
    assert_eq!(
        (&replaced["restored"], &replaced["unchanged"]),
        (&2.into(), &2.into())
    );
    assert_eq!(cluster.run(&["get", "a"]).done().stdout, b"a");
    assert_eq!(
        cluster.run(&["file", "cat", "notes"]).done().stdout,
        b"a file"
    );
    assert_eq!(cluster.run(&["get", "extra"]).done().stdout, b"x");

    let missing = cluster.folder().join("missing");
    for (arguments, code, word) in [
        (&["restore", text(&missing)][..], 3, "no backup in"),
        (&["restore", dir, "--run", "2"], 3, "it has 1 run"),
        (&["restore", dir, "--only", "x"], 3, "it has: default"),
        (&["backup", dir], 2, "--all"),
        (&["backup", "default", dir, "--all"], 2, "a directory alone"),
        (&["backup", "x", dir], 3, "'x'"),
        (
            &["backup", "default", text(cluster.folder())],
            2,
            "something else",
        ),
        (&["--domain", "a", "backup", "--all", dir], 2, "no --domain"),
        (&["--domain", "a", "restore", dir], 2, "--only DOMAIN"),
    ] {
        cluster.run(arguments).refused(code, &[word]);
    }
    let other = Cluster::start(&["--durability", "memory"]);
    let backup = ["backup", "default", dir];
    other
        .run(&backup)
        .refused(2, &["of the cluster", "another directory"]);
}

/// All values of a backup, the largest first.
fn values(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder.join("content")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort_by_key(|file| std::cmp::Reverse(fs::metadata(file).unwrap().len()));
    files
}

fn flip(path: &Path) {
    let mut value = fs::read(path).unwrap();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    fs::write(path, value).unwrap();
}

#[test]
fn a_changed_byte_is_found_and_named_and_restores_nothing_wrong() {
    let cluster = Cluster::start(&["--durability", "memory"]);
    let folder = cluster.folder().join("backup");
    let dir = text(&folder);
    cluster
        .run_with(&["put", "large"], &bytes(9 << 20, 1))
        .done();
    cluster.run_with(&["put", "small"], b"small").done();
    report(&cluster, &["backup", "default", dir]);
    let checked = areo(&["restore", "--check", dir, "--json"], b"").done();
    assert_eq!(checked.objects()[0]["values"], 2);
    let value = values(&folder).remove(0);
    flip(&value);
    let name = value.file_name().unwrap().to_str().unwrap();
    let words = ["the backup is damaged", name, "'large' of 'default'"];
    areo(&["restore", "--check", dir], b"").refused(7, &words);
    let restore = ["restore", dir, "--as", "copy"];
    cluster
        .run(&restore)
        .refused(7, &["'large' of 'default' is not restored", name]);
    let there = cluster.run(&["--domain", "copy", "ls"]).done();
    assert_eq!(there.text(), "small", "the others are, and no wrong one is");
    // A run that writes the value again mends it.
    cluster
        .run_with(&["put", "again"], &bytes(9 << 20, 1))
        .done();
    report(&cluster, &["backup", "default", dir]);
    areo(&["restore", "--check", dir], b"").done();
    report(&cluster, &restore);
    fs::remove_file(&value).unwrap();
    areo(&["restore", "--check", dir], b"").refused(7, &[name, "no such file"]);

    let manifest = folder.join("runs/000001.jsonl");
    flip(&manifest);
    for arguments in [
        &["restore", "--check", dir][..],
        &restore,
        &["backup", "default", dir],
    ] {
        cluster.run(arguments).refused(7, &["runs/000001.jsonl"]);
    }
}

/// Lines of the run that has not ended.
fn lines(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("unfinished.jsonl"));
    text.unwrap_or_default().lines().count()
}

#[test]
fn a_backup_that_was_interrupted_or_killed_goes_on() {
    let mut cluster = Cluster::start(&["--durability", "memory"]);
    let domain = open(&cluster, "default");
    for number in 0..600 {
        let value = bytes(60_000, number);
        wait(domain.put(&number.to_string(), value)).unwrap();
    }
    let folder = cluster.folder().join("backup");
    let dir = text(&folder);
    let mut seen = 1;
    for (with, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut backup = cluster.spawn(&["backup", "default", dir]);
        let pid = i32::try_from(backup.id()).unwrap();
        while lines(&folder) < seen + 5 && backup.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        signal(pid, with);
        let ended = backup.wait_with_output().unwrap();
        let error = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), code, "{error}");
        seen = lines(&folder);
        assert!(seen < 600, "it was not through");
    }
    cluster
        .run(&["restore", dir])
        .refused(3, &["no run", "has ended"]);
    // Without a quorum nothing ends, and nothing that is there is lost.
    for server in ["s1", "s2"] {
        cluster.signal(server, Signal::STOP);
    }
    let away = ["--timeout", "2s", "backup", "default", dir];
    let code = cluster.run(&away).code;
    for server in ["s1", "s2"] {
        cluster.signal(server, Signal::CONT);
    }
    assert_eq!(code, 5);
    wait_until(|| cluster.run(&["status", "--wait", "10s"]).code == 0);
    let ended = report(&cluster, &["backup", "default", dir]);
    let read = ended["read"].as_u64().unwrap();
    assert!(
        read < 600 && read + ended["unchanged"].as_u64().unwrap() == 600,
        "{ended}"
    );
    assert_eq!(fs::read_dir(folder.join("unfinished")).unwrap().count(), 0);
    areo(&["restore", "--check", dir], b"").done();
    let mut begun = cluster.spawn(&["restore", dir, "--as", "copy"]);
    let pid = i32::try_from(begun.id()).unwrap();
    let is_there = || cluster.run(&["--domain", "copy", "get", "0"]).code == 0;
    while !is_there() && begun.try_wait().unwrap().is_none() {}
    signal(pid, Signal::KILL);
    begun.wait_with_output().unwrap();
    let restored = report(&cluster, &["restore", dir, "--as", "copy"]);
    let unchanged = restored["unchanged"].as_u64().unwrap();
    assert!(unchanged > 0, "{restored}");
    assert!(contents(&cluster, "copy") == contents(&cluster, "default"));
}
