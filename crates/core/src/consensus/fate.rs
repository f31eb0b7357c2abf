//! The fate of a version that is at too few members: kept or dropped, decided once in its configuration (`docs/spec`
//! `[X-3 unconfirmed-cap]`, with the cell of `[X-20 decided-once]`).
//!
//! Writers that end half way leave versions that no client can read and no member may evict, because their writers may still
//! be at work. A client that finds members full of them raises a *fence* at a quorum: behind it members take in no such
//! version any more. What of them less than the intersection of two quorums holds then is not at a quorum, and cannot come
//! there by puts alone. The client proposes to drop these versions, and members evict those of which that is decided. A
//! writer or reader that meets the fence proposes to keep its version if members hold enough of it to read it; if that is
//! decided, members take it in although it is behind the fence. So a later client can complete what was kept.
//!
//! Both cannot be decided, so that a version that was returned or acknowledged is never dropped. A writer whose version
//! is dropped ends with an unknown outcome: the version may be on its way to the next configuration, and come to a quorum
//! there.
//!
//! The cell belongs to one configuration and is not transferred: in the next one there is no fence before a client raises
//! one. A member frees the cells of versions below its confirmed one. What a late proposer decides of such a version changes
//! nothing, because readers return a larger one.

use super::SUCCESSOR_CELL;
use super::paxos::{self, Outcome};
use crate::config::Configuration;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::limits;
use crate::object::{Name, UPLOAD_PREFIX};
use crate::tag::{Tag, Writer};
use bytes::Bytes;

/// Prefix of the names of these cells.
const PREFIX: &[u8] = b"fate-";
/// Bytes of an object's name that stand in the name of a cell, beside a hash of all.
const NAME_BYTES: usize = 128;
/// Bytes of a name with a hash and a version, all in hexadecimal.
const MOST_BYTES: usize = PREFIX.len() + (16 + 1) + NAME_BYTES + (1 + 3 * 16);
const _: () = assert!(
    MOST_BYTES <= limits::CELL_NAME_BYTES,
    "the cell has a name that is taken"
);
const _: () = assert!(
    PREFIX[0] != UPLOAD_PREFIX.as_bytes()[0],
    "fates are of no upload"
);
const _: () = assert!(
    PREFIX[0] != SUCCESSOR_CELL[0],
    "a successor is moved by no transfer"
);

/// The decision about a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Members take it in.
    Kept,
    /// Members evict it.
    Dropped,
}

impl Fate {
    fn encode(self) -> Bytes {
        Bytes::from_static(match self {
            Fate::Kept => b"kept",
            Fate::Dropped => b"dropped",
        })
    }
}

/// The cell for this version of the object. Names of cells of one object are ordered as their versions are.
pub fn cell(c: &Configuration, name: &Name, tag: Tag) -> Bytes {
    let Tag { number, writer } = tag;
    let hash = name.placement_hash(c.descriptor().domain);
    let key = name.as_bytes();
    let key = &key[..key.len().min(NAME_BYTES)];
    let (client, counter) = (writer.client.0, writer.counter);
    let version = format!("-{number:016x}{client:016x}{counter:016x}");
    let hash = format!("{hash:016x}-");
    [PREFIX, hash.as_bytes(), key, version.as_bytes()]
        .concat()
        .into()
}

/// True if this is the name of such a cell.
pub fn is_fate(cell: &[u8]) -> bool {
    cell.starts_with(PREFIX)
}

/// Decides the fate of the version: `proposed`, or an earlier decision.
///
/// # Errors
/// [`CallError`]; [`CallError::Moved`] also where members know a successor: they decide nothing any more, and the operation goes on
/// there.
pub async fn decide<E: Env>(
    env: &E,
    at: &Visit,
    (name, tag): (&Name, Tag),
    proposed: Fate,
    proposer: impl FnMut() -> Writer,
) -> Result<Fate, CallError> {
    let (cell, value) = (cell(at.c(), name, tag), proposed.encode());
    match paxos::propose(env, at, &cell, &value, None, proposer).await? {
        Outcome::Decided(decided) if decided == Fate::Kept.encode() => Ok(Fate::Kept),
        Outcome::Decided(_) => Ok(Fate::Dropped),
        Outcome::Closed => Err(CallError::Moved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::coded;
    use crate::tag::ClientId;

    fn tag(number: u64, client: u64, counter: u64) -> Tag {
        let client = ClientId(client);
        let writer = Writer { client, counter };
        Tag { number, writer }
    }

    #[test]
    fn cells_are_ordered_as_versions_are_and_tell_objects_apart() {
        let c = coded(3, 1);
        let long = "k".repeat(limits::KEY_BYTES);
        let longer = format!("{}l", &long[1..]);
        let names = ["a", "ab", &long, &longer].map(|key| Name::user(key).unwrap());
        let tags = [
            Tag::INITIAL,
            tag(1, u64::MAX, u64::MAX),
            tag(2, 0, 1),
            tag(2, 1, 0),
            tag(16, 0, 0),
        ];
        let mut all = Vec::new();
        for name in &names {
            let cells = tags.map(|tag| cell(&c, name, tag));
            assert!(cells.is_sorted_by(|a, b| a < b));
            assert!(cells.iter().all(|cell| is_fate(cell)));
            assert!(cells.iter().all(|it| it.len() <= limits::CELL_NAME_BYTES));
            all.extend(cells);
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), names.len() * tags.len());
    }
}
