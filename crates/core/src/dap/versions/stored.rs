//! One version of an object, as a server knows it without its disk.

use crate::element::{Form, Handle, ReplyElement};
use crate::limits;
use crate::message::Want;
use crate::object::Etag;
use crate::tag::Tag;

/// A version of an object in the list of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredVersion {
    pub tag: Tag,
    /// The form of the element.
    pub form: Form,
    /// It is a tombstone.
    pub deleted: bool,
    /// Length of the whole value in bytes.
    pub length: u64,
    /// Length of the element in bytes.
    pub bytes: u64,
    /// The record of its element.
    pub handle: Handle,
    /// The ETag that its writer gave it, for listings.
    pub etag: Option<Etag>,
    /// Time of the write, in milliseconds since 1970 by the writer's clock, for listings; 0 if the writer did not say.
    pub written_at_ms: u64,
}

impl StoredVersion {
    /// The part of the element that the answer to a query carries. A large element is fetched by itself.
    pub fn carried(&self, want: Want) -> Option<ReplyElement> {
        let payload = match (want, self.form) {
            (_, Form::Trimmed) | (Want::Tags, _) => return None,
            (Want::Fragment, form) if form.is_whole() => return None,
            (Want::Metadata, _) => false,
            (Want::Fragment | Want::Element, _) if self.bytes > limits::INLINE_BYTES => {
                return None;
            }
            (Want::Fragment | Want::Element, _) => true,
        };
        let handle = self.handle;
        Some(ReplyElement::Stored { handle, payload })
    }

    /// Time of the write, if it is known.
    pub fn written_at_ms(&self) -> Option<u64> {
        (self.written_at_ms > 0).then_some(self.written_at_ms)
    }
}
