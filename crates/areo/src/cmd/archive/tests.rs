use super::*;

fn name(key: &str) -> ItemName {
    ItemName {
        domain: "photos".into(),
        kind: Kind::Object,
        key: key.into(),
    }
}

fn begin(run: u64) -> Begin {
    Begin {
        format: FORMAT,
        run,
        cluster: "1f".into(),
        program: "0.1.0".into(),
        begun_at_ms: 7,
    }
}

fn put(archive: &Archive, key: &str, value: &[u8]) -> Line {
    let mut writer = archive.write_content().unwrap();
    writer.write(value).unwrap();
    let content = archive.keep_content(writer).unwrap();
    Line::Put(Item {
        name: name(key),
        version: format!("1-{key}"),
        bytes: content.bytes,
        content: content.hash,
        checksum: Some("0000001f".into()),
        content_type: None,
        etag: None,
        metadata: vec![("b".into(), "1".into()), ("a".into(), "2".into())],
        written_at_ms: Some(5),
    })
}

fn domain() -> Line {
    Line::Domain(DomainLine {
        domain: "photos".into(),
        id: "1f".into(),
        dap: "ec".into(),
        n: 5,
        k: 3,
        delta: 5,
        copy_limit_bytes: 16384,
        reconfig: "ares".into(),
        consensus: "members".into(),
        experimental: Vec::new(),
    })
}

/// Writes a run with these lines.
fn run(archive: &Archive, number: u64, lines: &[Line]) {
    let mut state = State::default();
    let domains = ["photos".to_owned()];
    let mut writer = archive.begin(begin(number), &domains, &mut state).unwrap();
    for line in lines {
        writer.write(line).unwrap();
    }
    archive.finish(number, writer).unwrap();
}

fn keys(state: &State) -> Vec<&str> {
    state.items.keys().map(|name| &*name.key).collect()
}

#[test]
fn runs_together_are_what_was_there_at_the_end_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::create(&folder.path().join("a/b")).unwrap();
    assert_eq!(archive.last_run(), Ok(0));
    let (a, b) = (put(&archive, "a", b"one"), put(&archive, "b", b"two"));
    run(&archive, 1, &[a.clone(), b, domain()]);
    let deleted = Line::Delete { name: name("b") };
    let c = put(&archive, "c", b"one");
    run(&archive, 2, &[deleted, c, domain()]);
    let removed = Line::Removed {
        domain: "photos".into(),
    };
    run(&archive, 3, &[removed]);
    assert_eq!(archive.last_run(), Ok(3));
    assert_eq!(keys(&archive.state(1).unwrap()), ["a", "b"]);
    let state = archive.state(2).unwrap();
    assert_eq!(keys(&state), ["a", "c"]);
    let contents: Vec<_> = state.items.values().map(|item| &item.content).collect();
    assert_eq!(contents[0], contents[1], "one value is kept once");
    assert_eq!(verify(&archive.content(contents[0])), Ok(3));
    assert_eq!(
        state.items[&name("a")],
        match a {
            Line::Put(item) => item,
            _ => unreachable!(),
        }
    );
    let state = archive.state(3).unwrap();
    assert!(state.items.is_empty() && state.domains.is_empty());
}

#[test]
fn a_run_that_was_interrupted_goes_on_with_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::create(folder.path()).unwrap();
    let domains = ["photos".to_owned()];
    let mut state = State::default();
    let mut writer = archive.begin(begin(1), &domains, &mut state).unwrap();
    let lines = ["a", "b", "c"].map(|key| put(&archive, key, key.as_bytes()));
    for line in &lines {
        writer.write(line).unwrap();
    }
    drop(writer);
    // Of the second the disk has other bytes, of the third line only a part.
    let Line::Put(b) = &lines[1] else {
        unreachable!();
    };
    fs::write(archive.content(&b.content), "?").unwrap();
    let path = folder.path().join("unfinished.jsonl");
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 2]).unwrap();
    let mut state = State::default();
    let writer = archive.begin(begin(1), &domains, &mut state).unwrap();
    assert_eq!(keys(&state), ["a"]);
    drop(writer);
    for (other, domains) in [
        (begin(2), &domains[..]),
        (begin(1), &[]),
        (
            Begin {
                cluster: "2f".into(),
                ..begin(1)
            },
            &domains[..],
        ),
    ] {
        let before = fs::read(&path).unwrap();
        let mut state = State::default();
        drop(archive.begin(other, domains, &mut state).unwrap());
        assert!(state.items.is_empty(), "it is another run");
        fs::write(&path, before).unwrap();
    }
    let mut state = State::default();
    let writer = archive.begin(begin(1), &domains, &mut state).unwrap();
    archive.finish(1, writer).unwrap();
    assert_eq!(keys(&archive.state(1).unwrap()), ["a"]);
    assert!(!path.exists());
}

#[test]
fn every_changed_byte_of_a_manifest_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::create(folder.path()).unwrap();
    let line = put(&archive, "a", b"one");
    run(&archive, 1, &[line, domain()]);
    let path = folder.path().join("runs/000001.jsonl");
    let text = fs::read(&path).unwrap();
    for place in 0..text.len() {
        let mut changed = text.clone();
        changed[place] ^= 1;
        fs::write(&path, &changed).unwrap();
        let failure = archive.state(1).expect_err("it is found");
        assert!(
            failure.message.contains("runs/000001.jsonl"),
            "{place}: {failure}"
        );
        fs::write(&path, &text[..place]).unwrap();
        assert!(archive.state(1).is_err(), "cut to {place}");
    }
    fs::write(&path, &text).unwrap();
    assert!(archive.state(1).is_ok());
    run(&archive, 3, &[domain()]);
    let failure = archive.last_run().unwrap_err();
    assert_eq!(failure.code, Code::Corrupted);
    assert!(failure.message.contains("000002.jsonl: it is missing"));
    fs::copy(&path, folder.path().join("runs/000002.jsonl")).unwrap();
    let failure = archive.state(3).unwrap_err();
    assert!(failure.message.contains("of another run"), "{failure}");
}

#[test]
fn a_newer_format_and_other_directories_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let code = |outcome: Outcome<Archive>| outcome.unwrap_err().code;
    assert_eq!(code(Archive::open(&at("missing"))), Code::NotFound);
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/file"), "mine").unwrap();
    assert_eq!(code(Archive::open(&at("other"))), Code::NotFound);
    assert_eq!(code(Archive::create(&at("other"))), Code::Usage);
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 1);
    let archive = Archive::create(&at("backup")).unwrap();
    fs::write(at("backup/unfinished/left"), "a part").unwrap();
    let busy = Archive::open(&at("backup")).unwrap_err();
    assert!(busy.message.contains("another process uses"), "{busy}");
    let newer = Begin {
        format: FORMAT + 1,
        ..begin(1)
    };
    let writer = archive.begin(newer, &[], &mut State::default()).unwrap();
    archive.finish(1, writer).unwrap();
    drop(archive);
    let archive = Archive::create(&at("backup")).unwrap();
    let left = fs::read_dir(at("backup/unfinished")).unwrap().count();
    assert_eq!(left, 0, "what a killed process left");
    let refused = archive.state(1).unwrap_err();
    assert_eq!(refused.code, Code::Usage);
    assert!(refused.message.contains("format 2"), "{refused}");
}

#[test]
fn a_damaged_value_is_never_read_to_its_end() {
    use tokio::io::AsyncReadExt;
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::create(folder.path()).unwrap();
    let Line::Put(item) = put(&archive, "a", &vec![7; 100_000]) else {
        unreachable!();
    };
    let path = archive.content(&item.content);
    let read = || {
        let read = async {
            let mut value = Verified::open(path.clone()).await.unwrap();
            let mut all = Vec::new();
            let read = value.read_to_end(&mut all).await;
            read.map_err(|error| error.to_string())
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(read)
    };
    assert_eq!(read(), Ok(100_000));
    assert_eq!(verify(&path), Ok(100_000));
    for place in [0, 50_000, 99_999] {
        let mut value = vec![7; 100_000];
        value[place] = 6;
        fs::write(&path, value).unwrap();
        assert!(read().unwrap_err().contains("do not have the hash"));
        let failure = verify(&path).unwrap_err();
        assert_eq!(failure.code, Code::Corrupted);
        assert!(failure.message.contains(&item.content), "{failure}");
    }
    fs::remove_file(&path).unwrap();
    assert!(verify(&path).unwrap_err().message.contains("no such file"));
}
