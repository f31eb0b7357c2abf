//! What a server tells about the objects of a configuration whose members gossip, and what it makes of what others tell
//! (`docs/spec` 2.10).

use super::keeping::{enqueue, forget_fates, handles, is_removed_block, mark, object, trim};
use super::{ADMITTED, ConfigurationState};
use crate::config::ConfigurationId;
use crate::dap;
use crate::dap::versions::Completion;
use crate::message::GossipMarks;
use crate::object::Name;
use crate::server::record::Ledger;
use crate::tag::Tag;
use bytes::Bytes;
use std::ops::Bound;

impl ConfigurationState {
    /// True if its members gossip. Those of a configuration with a final successor have nothing more to say.
    pub(in crate::server) fn gossips(&self) -> bool {
        self.restarts_objects() && self.next.last_final().is_none()
    }

    /// True if its members agree on the end of abstentions.
    pub(super) fn restarts_objects(&self) -> bool {
        self.configuration().is_some_and(|c| dap::gossips(c))
    }

    /// The marks of this object for gossip, if it has any. A member that abstains for the object goes on sending the marks of its sound
    /// records: otherwise it would send a wrong mark once it no longer abstains (`[CASSS-9 agreed-end-of-abstention]`).
    pub(in crate::server) fn gossip_marks(&self, name: &Name) -> Option<GossipMarks> {
        let versions = self.objects.get(name.as_bytes())?;
        Some(versions.gossip_marks()).filter(|said| !said.largest.is_initial())
    }

    pub(in crate::server) fn completion(&self, name: &Name) -> Option<&Completion> {
        self.objects.get(name.as_bytes())?.completion()
    }

    /// The objects after this one, or all.
    pub(in crate::server) fn names_after(
        &self,
        name: Option<&Bytes>,
    ) -> impl Iterator<Item = Name> {
        let start = name.map_or(Bound::Unbounded, Bound::Excluded);
        let after = self.objects.range::<Bytes, _>((start, Bound::Unbounded));
        let name = |bytes: &Bytes| Name::from_bytes(bytes.clone()).expect("it was a name before");
        after.map(move |(bytes, _)| name(bytes))
    }

    /// Joins what another member says about the object. Returns whether a mark rose here, and the object's newest version if it is
    /// to wait for its quiet time. An object that cannot speak does not listen either.
    pub(in crate::server) fn hear_of(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        (from, said): (u8, &GossipMarks),
        ledger: &mut Ledger,
    ) -> (bool, Option<Tag>) {
        assert!(said.is_possible(), "nothing else is believed");
        if self.is_frozen(name) {
            return (false, None);
        }
        let is_here = match self.sound(name) {
            Ok(versions) => versions.is_some(),
            Err(_) => return (false, None),
        };
        if !is_here && said.finalized.is_initial() {
            // No round has finalized a version of it: nothing is begun for that.
            return (false, None);
        }
        let quorum = self.configuration().expect(ADMITTED).quorums().quorum();
        let rises = object(&mut self.objects, name).hear(from, said, quorum);
        if rises {
            self.marks_rose(key, name, ledger);
        }
        let newest = enqueue(object(&mut self.objects, name));
        (rises, newest)
    }

    /// A mark of the object rose: what need not stay goes, and the marks are recorded with the answer or before they are said.
    pub(super) fn marks_rose(&mut self, key: ConfigurationId, name: &Name, ledger: &mut Ledger) {
        let (c, _) = self.configuration.as_ref().expect(ADMITTED);
        let versions = object(&mut self.objects, name);
        if self.has_fates {
            forget_fates(&mut self.cells, (c, name), versions.stable(), ledger);
        }
        let quiet = is_removed_block(name, versions);
        let evicted = trim((c, key, name), versions, quiet, ledger);
        ledger.trimmed += evicted.len() as u64;
        ledger.supersede_of(name, handles(&evicted));
        mark(key, name, versions, ledger);
        assert!(versions.is_marked(), "they are durable with the batch");
    }
}
