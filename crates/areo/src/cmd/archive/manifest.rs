//! The manifest of a run: lines of JSON, of which the last has the hash of the others.

use super::{FORMAT, damaged};
use crate::exit::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A line of a manifest.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(tag = "line", rename_all = "lowercase")]
pub(in crate::cmd) enum Line {
    /// The first line of a manifest.
    Begin(Begin),
    /// An item that is there, and is new since the run before or has another version.
    Put(Item),
    /// An item that is no longer there.
    Delete {
        #[serde(flatten)]
        name: ItemName,
    },
    /// An item that is there, and could not be read. Its version in an earlier run stays.
    Unreadable {
        #[serde(flatten)]
        name: ItemName,
        why: String,
    },
    /// All of a domain was looked at.
    Domain(DomainLine),
    /// The domain is there no more.
    Removed { domain: String },
    /// The last line of a manifest.
    End(End),
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct Begin {
    pub(in crate::cmd) format: u32,
    pub(in crate::cmd) run: u64,
    /// The id of the cluster.
    pub(in crate::cmd) cluster: String,
    /// The revision of the program that wrote it.
    pub(in crate::cmd) program: String,
    pub(in crate::cmd) begun_at_ms: u64,
}

/// The name of an object or a file in a backup.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::cmd) struct ItemName {
    pub(in crate::cmd) domain: String,
    pub(in crate::cmd) kind: Kind,
    pub(in crate::cmd) key: String,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "lowercase")]
pub(in crate::cmd) enum Kind {
    Object,
    File,
}

/// One version of an object or of a file.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct Item {
    #[serde(flatten)]
    pub(in crate::cmd) name: ItemName,
    /// The version of an object; the hash of the versions of its blocks for a file.
    pub(in crate::cmd) version: String,
    pub(in crate::cmd) bytes: u64,
    /// The hash of the value.
    pub(in crate::cmd) content: String,
    /// The checksum that the store keeps, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::cmd) checksum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::cmd) content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::cmd) etag: Option<String>,
    /// The user's pairs, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(in crate::cmd) metadata: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::cmd) written_at_ms: Option<u64>,
}

/// A domain, as it was when all of it had been looked at.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct DomainLine {
    pub(in crate::cmd) domain: String,
    pub(in crate::cmd) id: String,
    pub(in crate::cmd) dap: String,
    pub(in crate::cmd) n: usize,
    pub(in crate::cmd) k: usize,
    pub(in crate::cmd) delta: u16,
    pub(in crate::cmd) copy_limit_bytes: u32,
    pub(in crate::cmd) reconfig: String,
    pub(in crate::cmd) consensus: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(in crate::cmd) experimental: Vec<String>,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(in crate::cmd) struct End {
    /// Lines before this one.
    lines: u64,
    /// The BLAKE3 hash of their bytes.
    blake3: String,
}

/// The manifest of a run, read and verified.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) begin: Begin,
    /// The lines between the first and the last one.
    pub(super) lines: Vec<Line>,
}

impl Manifest {
    /// # Errors
    /// It is damaged, or of a newer format.
    pub(super) fn read(path: &Path) -> Outcome<Manifest> {
        let text = fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let begin = lines.next().map(parse).unwrap_or_default();
        let Some(Line::Begin(begin)) = begin else {
            return Err(damaged(path, "its first line is none of a manifest"));
        };
        if begin.format > FORMAT {
            return Err(newer(path, begin.format));
        }
        let not_whole = || damaged(path, "its bytes do not have the hash of its last line");
        let last = lines.next_back().ok_or_else(not_whole)?;
        let (before, count) = (
            &text[..text.len() - last.len()],
            lines.clone().count() as u64,
        );
        match parse(last) {
            Some(Line::End(end))
                if end.blake3 == blake3::hash(before).to_hex().as_str()
                    && end.lines == count + 1 => {}
            _ => return Err(not_whole()),
        }
        let lines: Option<Vec<Line>> = lines.map(parse).collect();
        let lines = lines.ok_or_else(|| damaged(path, "a line of it is none of a manifest"))?;
        Ok(Manifest { begin, lines })
    }

    /// The lines of a run that has not ended; none if the manifest is of another run.
    pub(super) fn read_unfinished(path: &Path, run: u64, cluster: &str) -> Vec<Line> {
        let Ok(text) = fs::read(path) else {
            return Vec::new();
        };
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').map(parse);
        match lines.next() {
            Some(Some(Line::Begin(begin)))
                if begin.format == FORMAT && begin.run == run && begin.cluster == cluster =>
            {
                lines.map_while(|line| line).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn newer(path: &Path, format: u32) -> Failure {
    Failure::usage(format!(
        "{} is of format {format}, and this program reads formats up to {FORMAT}: use the program that wrote it, or a newer one",
        path.display()
    ))
}

/// A line that is whole.
fn parse(line: &[u8]) -> Option<Line> {
    serde_json::from_slice(line.strip_suffix(b"\n")?).ok()
}

/// A manifest that is being written. A line that was written survives the end of the process.
#[derive(Debug)]
pub(in crate::cmd) struct Writer {
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    lines: u64,
}

impl Writer {
    /// Begins a manifest in place of the existing one, at once.
    pub(super) fn create(path: &Path, begin: Begin) -> io::Result<Writer> {
        let file = File::create(path)?;
        let mut writer = Writer {
            file,
            path: path.into(),
            hasher: blake3::Hasher::new(),
            lines: 0,
        };
        writer.write(&Line::Begin(begin))?;
        Ok(writer)
    }

    pub(in crate::cmd) fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line).expect("our own lines have text for keys");
        text.push(b'\n');
        self.hasher.update(&text);
        self.lines += 1;
        self.file.write_all(&text)
    }

    /// Writes the last line, and returns the path. All of it is on disk then.
    pub(super) fn finish(mut self) -> io::Result<PathBuf> {
        let end = End {
            lines: self.lines,
            blake3: self.hasher.finalize().to_hex().to_string(),
        };
        self.write(&Line::End(end))?;
        self.file.sync_all()?;
        Ok(self.path)
    }

    pub(in crate::cmd) fn path(&self) -> &Path {
        &self.path
    }
}
