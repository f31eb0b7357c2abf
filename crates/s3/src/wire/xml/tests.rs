//! Documents against literal text, in the form of Amazon's reference, and back.

mod configurations;
mod lists;
mod readers;
mod uploads;

use super::Owner;
use crate::body::checksum::{Algorithm, Checksum};

fn owner() -> Owner {
    Owner {
        id: "75aa57f0".into(),
        display_name: "areo".into(),
    }
}

fn crc32() -> Checksum {
    Checksum {
        algorithm: Algorithm::Crc32,
        bytes: vec![0, 0, 0, 1],
    }
}

/// A time in milliseconds since 1970: 2026-11-27 21:48 UTC.
const MS: i64 = 1_795_816_080_000;

/// The text that stands for a document here: an element a line, indented, and the namespace left out.
fn is(document: &str, expected: &str) {
    let start = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let content = document.strip_prefix(start).expect(start);
    let namespace = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
    let content = content.replacen(namespace, "", 1);
    let lines: String = expected.lines().map(str::trim).collect();
    assert_eq!(content, lines);
}
