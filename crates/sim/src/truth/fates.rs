//! Every acceptance and decision about the fates of versions. Servers forget it; the harness does not.

use super::{ObjectId, Truth};
use crate::world::server_of;
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::consensus::fate;
use areo_core::consensus::paxos::Acceptor;
use areo_core::message::Ballot;
use areo_core::object::Name;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The value of a fate that drops its version.
const DROPPED: &[u8] = b"dropped";

/// Proposals to drop versions that one server has accepted, and decisions that it knows, by the cell that decides.
#[derive(Default)]
pub(super) struct Fates(BTreeMap<(ConfigurationId, Bytes), Fate>);

#[derive(Default)]
struct Fate {
    /// The ballots in which it accepted to drop the version.
    accepted: BTreeSet<Ballot>,
    is_decided: bool,
}

impl Fates {
    pub(super) fn learn(&mut self, key: ConfigurationId, cell: &Bytes, acceptor: &Acceptor) {
        let accepted = acceptor.accepted.as_ref().filter(|_| fate::is_fate(cell));
        let Some((ballot, _)) = accepted.filter(|(_, value)| value == DROPPED) else {
            return;
        };
        let known = self.0.entry((key, cell.clone())).or_default();
        known.accepted.insert(*ballot);
        known.is_decided |= acceptor.decided;
    }
}

/// True if a server may lack a version that it had because the version was dropped: the server's fence is above the
/// version, and a quorum has accepted the drop in one ballot.
pub(crate) fn is_dropped(
    truths: &[Truth],
    server: usize,
    (object, tag): (ObjectId, Tag),
    home: Option<(&Configuration, &[u8])>,
) -> bool {
    if !truths[server].is_fenced_off(object, tag) {
        return false;
    }
    let Some((c, name)) = home else { return false };
    let name = Bytes::copy_from_slice(name);
    let name = Name::from_bytes(name).expect("it was a name before");
    let cell = (c.id(), fate::cell(c, &name, tag));
    let fates = c.members().iter().map(|member| {
        let truth = truths[server_of(*member)].own();
        truth.fates.0.get(&cell)
    });
    let mut votes: BTreeMap<Ballot, usize> = BTreeMap::new();
    for fate in fates.flatten() {
        if fate.is_decided {
            return true;
        }
        for ballot in &fate.accepted {
            *votes.entry(*ballot).or_default() += 1;
        }
    }
    votes
        .into_values()
        .any(|votes| votes >= c.quorums().quorum())
}
