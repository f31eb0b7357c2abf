//! Files as lists of blocks (`docs/spec` 4.2 to 4.5; `CoBFS`, `CoAresF`).
//!
//! A file is a linked list of blocks, each a coverable object of its own, so that people who edit different parts of it do
//! not disturb each other. Content is cut where the content says so ([`divide`]), so that an insertion moves the cuts with
//! it; what changed is found by comparing what the chunks are with what the blocks were ([`identify`]).
//!
//! ```text
//!   genesis ----> block ----> block ----> block ----> none
//!   (no data)     data        (empty)     data
//! ```

pub mod block;
pub mod content;
pub mod divide;
pub mod file;
pub mod identify;
pub mod remove;
pub mod sweep;
pub mod update;

use crate::dsm::Domain;
use crate::env::Env;
use crate::object::Name;
use std::fmt;

/// A file of a domain, a fragmented object. Its operations are methods, each in the file of its algorithm.
#[derive(Clone)]
pub struct FragmentedObject<E> {
    /// The domain that it is in.
    pub domain: Domain<E>,
    /// The name of its genesis block.
    pub name: Name,
}

impl<E: Env> Domain<E> {
    /// A handle on the file of this name.
    pub fn file(&self, name: &Name) -> FragmentedObject<E> {
        FragmentedObject {
            domain: self.clone(),
            name: name.clone(),
        }
    }
}

/// A cryptographic hash of the bytes of a chunk. Two chunks with equal digests are taken for one chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
