//! The gossip between members of a configuration about their objects (`docs/spec` 2.10).

use crate::config::{ConfigurationId, ServerId};
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;

/// The tags of objects that one member sends to the others. It changes nothing if it is lost, comes twice, or comes
/// late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gossip {
    pub configuration: ConfigurationId,
    /// The sender.
    pub from: ServerId,
    /// Marks of the sender, by object.
    pub objects: Arc<[(Name, GossipMarks)]>,
}

impl Gossip {
    /// Bytes of a note beside those of its objects, at most.
    pub const HEAD_BYTES: usize = 64;
}

/// A member's marks of one object, all of them durable at the member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GossipMarks {
    /// The largest tag that it knows.
    pub largest: Tag,
    /// The largest that was finalized there (FIN).
    pub finalized: Tag,
    /// The largest of which a quorum has finalized it or a larger one (FIN2).
    pub complete: Tag,
}

impl GossipMarks {
    /// Bytes of the three tags, and of the length of a name.
    const FIXED_BYTES: usize = 3 * 24 + 2;

    /// Bytes of this and of the object's name in a note.
    pub fn bytes(name_bytes: usize) -> usize {
        GossipMarks::FIXED_BYTES + name_bytes
    }

    /// True if some execution produces these (`[N-1 bounded-numbers]`).
    pub fn is_possible(&self) -> bool {
        let ascend = self.complete <= self.finalized && self.finalized <= self.largest;
        ascend && self.largest.is_possible()
    }
}
