//! Writes a document.

use super::Owner;
use crate::body::checksum::Checksum;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::{Display, Write};
use time::OffsetDateTime;
use time::macros::format_description;

/// The namespace of documents of S3.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
/// The end of the year 9999, in milliseconds since 1970.
const LAST_MS: i64 = 253_402_300_799_999;

/// Bytes that stand for themselves where a key is percent-encoded. A space is `%20`, which every client decodes, and never a plus.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A document of S3 with this root.
pub(super) fn document(root: &str, content: impl FnOnce(&mut Writer)) -> String {
    with_root(&format!("{root} xmlns=\"{NAMESPACE}\""), root, content)
}

/// A document without a namespace.
pub(super) fn bare_document(root: &str, content: impl FnOnce(&mut Writer)) -> String {
    with_root(root, root, content)
}

fn with_root(start: &str, root: &str, content: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer {
        text: DECLARATION.to_owned(),
        encodes_keys: false,
    };
    writer.nest(start, root, content);
    writer.text
}

/// The content of a document.
pub(super) struct Writer {
    text: String,
    /// True if [`Self::key`] percent-encodes.
    encodes_keys: bool,
}

impl Writer {
    /// Sets whether the keys that follow are percent-encoded; the document says so.
    pub(super) fn encoding(&mut self, is_url: bool) {
        self.encodes_keys = is_url;
        if is_url {
            self.element("EncodingType", "url");
        }
    }

    /// An element with text.
    pub(super) fn element(&mut self, name: &str, text: impl Display) {
        self.nest(name, name, |writer| writer.text(&text.to_string()));
    }

    /// An element with text, if there is some.
    pub(super) fn optional(&mut self, name: &str, text: Option<impl Display>) {
        if let Some(text) = text {
            self.element(name, text);
        }
    }

    /// An element with a key, or a part of one.
    pub(super) fn key(&mut self, name: &str, key: &str) {
        match self.encodes_keys {
            true => self.element(name, utf8_percent_encode(key, ENCODED)),
            false => self.element(name, key),
        }
    }

    /// An element with an `ETag`, which gets its quotation marks here.
    pub(super) fn etag(&mut self, etag: &str) {
        self.element("ETag", format_args!("\"{etag}\""));
    }

    /// An element with a time, in milliseconds since 1970.
    pub(super) fn time(&mut self, name: &str, ms: i64) {
        self.element(name, timestamp(ms));
    }

    /// Text that stands in the element that is open.
    pub(super) fn text(&mut self, text: &str) {
        escape(text, &mut self.text);
    }

    /// An element with a checksum, if there is one.
    pub(super) fn checksum(&mut self, checksum: Option<&Checksum>) {
        if let Some(checksum) = checksum {
            self.composite(checksum, None);
        }
    }

    /// An element with a checksum, behind which stands the count of parts whose checksums it is of.
    pub(super) fn composite(&mut self, checksum: &Checksum, parts: Option<u32>) {
        let name = format!("Checksum{}", checksum.algorithm.word());
        let text = checksum.text();
        match parts {
            Some(parts) => self.element(&name, format_args!("{text}-{parts}")),
            None => self.element(&name, text),
        }
    }

    /// An element with an owner.
    pub(super) fn owner(&mut self, name: &str, owner: &Owner) {
        self.within(name, |writer| {
            writer.element("ID", &owner.id);
            writer.element("DisplayName", &owner.display_name);
        });
    }

    /// Elements with the prefixes that keys have in common.
    pub(super) fn common_prefixes(&mut self, prefixes: &[String]) {
        for prefix in prefixes {
            self.within("CommonPrefixes", |writer| writer.key("Prefix", prefix));
        }
    }

    /// An element with elements.
    pub(super) fn within(&mut self, name: &str, content: impl FnOnce(&mut Writer)) {
        self.nest(name, name, content);
    }

    /// An element whose start tag has attributes.
    pub(super) fn nest(&mut self, start: &str, name: &str, content: impl FnOnce(&mut Writer)) {
        write!(self.text, "<{start}>").expect("a string takes everything");
        content(self);
        write!(self.text, "</{name}>").expect("a string takes everything");
    }
}

/// The word for the kind of a checksum in documents: of all bytes, or of the parts' checksums.
pub(super) fn checksum_type(is_full_object: bool) -> &'static str {
    match is_full_object {
        true => "FULL_OBJECT",
        false => "COMPOSITE",
    }
}

/// A time of documents, such as `2026-11-27T21:48:00.000Z`, from milliseconds since 1970. A time before that or behind the year 9999 is the nearest one.
pub fn timestamp(ms: i64) -> String {
    let form =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    let ns = i128::from(ms.clamp(0, LAST_MS)) * 1_000_000;
    let time = OffsetDateTime::from_unix_timestamp_nanos(ns).expect("it is before the year 10000");
    time.format(form).expect("a time has these parts")
}

/// Text as it stands in an element. Characters that XML has no place for become references, as in S3: a reader of XML 1.0 may refuse them, and a client that
/// has such keys asks for them percent-encoded.
fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{fffe}' | '\u{ffff}' => {
                write!(out, "&#x{:X};", u32::from(character)).expect("a string takes everything");
            }
            _ => out.push(character),
        }
    }
}
