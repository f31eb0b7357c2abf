//! The search for secrets in the files of a cluster, each of which may be in one kind of file alone.
//!
//! | secret | the file that may have it |
//! |---|---|
//! | access key | a cluster file (`*.toml`), as its key; a file with the key alone |
//! | join token | a file with the token alone |
//! | private key of an operator's certificate | `*.key` |
//! | key of the cluster | `TRUST`, at its end |
//! | keys of servers and CAs | none, but for sealed; `JOIN` until the cluster has answered |

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::command::secrets::{Needles, known, learn, learn_by, secrets_in};
use areo_trust::secret::{self, Secret};
use rustix::fs::{SeekFrom, seek};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of the checksum before the fields of `TRUST`.
const CHECKSUM_BYTES: usize = 4;
/// Types of the fields of `TRUST`: the key of the cluster, and those that are sealed under it and hold private keys.
const CLUSTER_KEY: u16 = 0x8001;
const SEALED: [u16; 2] = [0x8002, 0x8005];
/// The beginning of the private number of a key for ECDSA P-256 in PKCS #8, which has 32 bytes.
const SCALAR: [u8; 5] = [2, 1, 1, 4, 32];
const SECRET_BYTES: usize = 32;

/// Learns the secrets of a cluster: those in its cluster files, of its servers, and in the key files below its folder. Returns the number of private
/// keys of servers and CAs.
pub(crate) fn learn_below(folder: &Path) -> usize {
    let files = files_below(folder);
    let of = |extension: &'static str| {
        let is_one = move |file: &&PathBuf| file.extension().is_some_and(|it| it == extension);
        files.iter().filter(is_one)
    };
    let text = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default();
    let mut clusters = Vec::new();
    for text in of("toml").map(text) {
        learn(text.as_bytes());
        clusters.extend(cluster_of(&text));
    }
    for text in of("key").map(text) {
        learn_pem(&text);
    }
    let trusts = files.iter().filter(|file| is_called(file, "TRUST"));
    let trusts = trusts.map(|file| fs::read(file).unwrap_or_default());
    trusts.map(|trust| learn_trust(&trust, &clusters)).sum()
}

/// Fails if a file below this folder has a secret that is not its own.
#[track_caller]
pub(crate) fn check_below(folder: &Path) {
    let known = known();
    let found = files_below(folder).into_iter().find_map(|file| {
        let kind = found_in_file(&known, &file)?;
        Some(format!("{} has {kind}", file.display()))
    });
    drop(known);
    if let Some(sentence) = found {
        panic!("{sentence}");
    }
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|it| it == extension)
}

fn is_called(file: &Path, name: &str) -> bool {
    file.file_name().is_some_and(|it| it == name)
}

/// The id of the cluster in a cluster file.
fn cluster_of(text: &str) -> Option<u128> {
    let (_, id) = text.split_once("cluster = \"")?;
    u128::from_str_radix(id.get(..32)?, 16).ok()
}

/// The fields of a file `TRUST`, by their types.
fn fields(trust: &[u8]) -> Vec<(u16, &[u8])> {
    let mut rest = trust.get(CHECKSUM_BYTES..).unwrap_or_default();
    let mut fields = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<6>() {
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        let Some((value, next)) = after.split_at_checked(length) else {
            break;
        };
        fields.push((kind, value));
        rest = next;
    }
    fields
}

/// Learns the key of the cluster in a file `TRUST`, and the private keys that are sealed under it, of which it returns the number.
fn learn_trust(trust: &[u8], clusters: &[u128]) -> usize {
    let fields = fields(trust);
    let Some((_, key)) = fields.iter().find(|(kind, _)| *kind == CLUSTER_KEY) else {
        return 0;
    };
    learn_by(|known| known.add_secret(key, "the key of a cluster"));
    let key = Secret::new(key.to_vec());
    let open = |kind: u16, sealed| {
        let purpose = |cluster: &u128| format!("trust file {cluster:032x} {}", kind & 0x7fff);
        let mut opened = clusters.iter().map(purpose);
        opened.find_map(|purpose| secret::open(&key, &purpose, sealed).ok())
    };
    let sealed = fields.iter().filter(|(kind, _)| SEALED.contains(kind));
    let opened = sealed.filter_map(|(kind, sealed)| open(*kind, sealed));
    let learnt = opened.filter_map(|content| {
        let content = content.expose();
        let at = content.windows(SCALAR.len()).position(|it| it == SCALAR)?;
        let scalar = content[at + SCALAR.len()..].get(..SECRET_BYTES)?;
        learn_by(|known| known.add_secret(scalar, "the key of a server or a CA"));
        Some(())
    });
    learnt.count()
}

fn learn_pem(text: &str) {
    let key = text.split_once("PRIVATE KEY-----\n").map(|(_, key)| key);
    for line in key.into_iter().flat_map(str::lines) {
        match line.starts_with("-----") {
            true => break,
            // The beginning is alike in all keys, and the last line may be short.
            false if line.len() == 64 => {
                learn_by(|known| known.add(line.as_bytes(), "the private key of a certificate"));
            }
            false => {}
        }
    }
}

/// The kind of a secret that is in a file and not its own.
fn found_in_file(known: &Needles, file: &Path) -> Option<&'static str> {
    if has_extension(file, "toml") {
        let text = fs::read_to_string(file).ok()?;
        let is_key = |line: &&str| line.trim_start().starts_with("key = ");
        let others: Vec<&str> = text.lines().filter(|line| !is_key(line)).collect();
        return known.found_in(others.join("\n").as_bytes());
    }
    if has_extension(file, "key") || is_called(file, "JOIN") {
        return None;
    }
    let content = content(file)?;
    if is_called(file, "TRUST") {
        let own = content.len().checked_sub(SECRET_BYTES)?;
        return known.found_in(&content[..own]);
    }
    let is_token = |text: &str| text.trim().lines().count() == 1 && secrets_in(text).len() == 1;
    match std::str::from_utf8(&content) {
        Ok(text) if text.starts_with("areo") && is_token(text) => None,
        _ => known.found_in(&content),
    }
}

/// The bytes of a file without its holes, of which logs mostly consist. None: others removed it, or it is not for this user.
fn content(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let mut content = Vec::new();
    let mut end = 0;
    while let Ok(begin) = seek(&file, SeekFrom::Data(end)) {
        end = seek(&file, SeekFrom::Hole(begin)).ok()?;
        let before = content.len();
        content.resize(before + usize::try_from(end - begin).ok()?, 0);
        file.read_exact_at(&mut content[before..], begin).ok()?;
    }
    if end == 0 {
        // A file system that knows no holes.
        file.read_to_end(&mut content).ok()?;
    }
    Some(content)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

#[test]
fn a_secret_in_a_file_that_is_not_its_own_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let key = format!("areokey1.0000000000000007.{}", "71".repeat(32));
    let raw = [0x71; SECRET_BYTES];
    let file = format!("version = 1\nkey = \"{key}\"\n");
    fs::write(path("app.toml"), &file).unwrap();
    fs::write(path("token"), format!("{key}\n")).unwrap();
    learn_below(folder.path());
    let mut needles = Needles::default();
    needles.add_secret(&raw, "planted");
    let is_found = |name: &str| found_in_file(&needles, &path(name)).is_some();
    assert!(!is_found("app.toml") && !is_found("token"));
    check_below(folder.path());
    let log = File::create(path("log")).unwrap();
    log.set_len(3 << 20).unwrap();
    log.write_all_at(&raw, (1 << 20) + 5).unwrap();
    fs::write(path("TRUST"), [&raw[..], &[0; SECRET_BYTES]].concat()).unwrap();
    fs::write(path("other.toml"), format!("name = \"{key}\"\n")).unwrap();
    fs::write(path("printed"), format!("a line\n{key}\n")).unwrap();
    for name in ["log", "TRUST", "other.toml", "printed"] {
        assert!(is_found(name), "{name}");
    }
    let checked = || check_below(folder.path());
    assert!(std::panic::catch_unwind(checked).is_err());
}
