//! Values, and the elements that servers keep of them (`docs/spec` 2.1, `[X-1 support-threshold]`).

use bytes::Bytes;

/// One version of an object as users see it: the content that belongs to a tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// A tombstone: an ordinary version that says that the object is gone (`[X-18 tombstone-versions]`). It has no content.
    pub deleted: bool,
    /// Metadata, encoded by [`crate::object::Metadata`].
    pub metadata: Bytes,
    /// The bytes, in order; several pieces where they came from several servers, so that nobody copies them.
    pub content: Vec<Bytes>,
    /// A manifest: it has no content, and stands for that of blocks, which its metadata names; their length together in
    /// bytes (10.6).
    pub apart: Option<u64>,
}

impl Value {
    /// A value of one piece.
    pub fn new(metadata: Bytes, content: Bytes) -> Value {
        Value {
            deleted: false,
            metadata,
            content: vec![content],
            apart: None,
        }
    }

    /// The value that stands for blocks of `length` bytes together.
    pub fn manifest(metadata: Bytes, length: u64) -> Value {
        Value {
            deleted: false,
            metadata,
            content: Vec::new(),
            apart: Some(length),
        }
    }

    pub fn tombstone(metadata: Bytes) -> Value {
        Value {
            deleted: true,
            metadata,
            content: Vec::new(),
            apart: None,
        }
    }

    /// Its length in bytes, as users see it.
    pub fn length(&self) -> u64 {
        self.apart.unwrap_or_else(|| self.content_bytes())
    }

    /// Bytes of it that are here: none of a manifest.
    pub fn content_bytes(&self) -> u64 {
        self.content.iter().map(|piece| piece.len() as u64).sum()
    }

    /// The content in one piece; copies only if it has several.
    pub fn contiguous(&self) -> Bytes {
        match self.content.as_slice() {
            [] => Bytes::new(),
            [piece] => piece.clone(),
            pieces => pieces.concat().into(),
        }
    }
}

/// The form in which an element carries its value. One full copy, one manifest, or `k` distinct fragments of one form, make the value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// The whole value.
    Copy,
    /// All there is of a value whose bytes are in blocks: it has none of its own (10.6).
    Manifest,
    /// Fragment `index` of an `[n, k]` code.
    Fragment {
        /// Number of all fragments.
        n: u8,
        /// Fragments that make the value.
        k: u8,
        /// The index of this one, from 0; below `k` it is a piece of the value itself.
        index: u8,
    },
    /// Nothing: the element was trimmed, and only its tag stays in the list (EC-DAP as published, 2.3).
    Trimmed,
}

impl Form {
    /// True if an element of this form has the bytes of one of the other form: one fragment of two codes of one k is the same.
    pub fn is_same(self, other: Form) -> bool {
        let of_code = |form| match form {
            Form::Fragment { k, index, .. } => Some((k, index)),
            Form::Copy | Form::Manifest | Form::Trimmed => None,
        };
        let is_fragment = of_code(self).is_some();
        self == other || is_fragment && of_code(self) == of_code(other)
    }

    /// True if one element of this form makes the value.
    pub fn is_whole(self) -> bool {
        matches!(self, Form::Copy | Form::Manifest)
    }
}

/// The part of one version that one server keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The form in which it carries the value.
    pub form: Form,
    /// The version is a tombstone.
    pub deleted: bool,
    /// Length of the whole value in bytes.
    pub length: u64,
    /// Encoded metadata, the same with every element of the version.
    pub metadata: Bytes,
    /// The bytes of the copy or the fragment; a data fragment leaves out the zeros after the end of the value.
    pub payload: Bytes,
    /// CRC-32C of the payload; `None` while it was not computed (the codec does that when it sends).
    pub checksum: Option<u32>,
}

impl Element {
    /// True if the two state the same of their value, as all elements of a version do: its length, its metadata, whether it is a tombstone.
    pub fn is_alike(&self, other: &Element) -> bool {
        (self.length, self.deleted) == (other.length, other.deleted)
            && self.metadata == other.metadata
    }
}

/// Names a record in a server's store. Drawn by the server; the store maps it to a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Handle(pub u32);

/// An element in a reply: itself, or where the server's store has it. The shard puts the first in place of the second
/// when it releases the reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplyElement {
    Whole(Element),
    /// Bytes that are to be read from the store.
    Stored {
        handle: Handle,
        /// False: metadata only, the payload is left empty.
        payload: bool,
    },
}
