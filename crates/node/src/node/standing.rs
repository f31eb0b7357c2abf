//! The state of a node: whether it serves, whether it is going down, and the objects that it lacks.

use super::Node;
use crate::keep::Keep;
use areo_core::config::ConfigurationId;
use areo_core::instant::Instant;
use areo_core::message::{DomainStanding, Transferred};
use areo_core::object::{DomainId, Name};
use areo_core::tag::Tag;

impl<K: Keep, C> Node<K, C> {
    /// Lets it answer for objects.
    pub fn serve(&mut self) {
        self.shard.serve();
    }

    /// It has gone over the objects of these domains, of all its domains or some: its status includes the findings.
    pub fn gone_over(&mut self, now: Instant, domains: &[DomainStanding], is_all: bool) {
        self.shard.gone_over(now, domains, is_all);
    }

    /// Notes the objects and bytes that it has moved as the leader of a domain, for its status. `None`: it has made the changes, or
    /// begins again.
    pub fn leads(&mut self, domain: DomainId, moved: Option<Transferred>) {
        self.shard.leads(domain, moved);
    }

    /// The element of this version is not one of the version's value, although its checksum is right: it counts as damaged.
    pub fn distrust(&mut self, key: ConfigurationId, name: &Name, tag: Tag) {
        self.shard.distrust(key, name, tag);
    }

    /// No member lists these blocks of uploads any more: their tombstones go, of those whose records the store will not find again.
    /// Returns those that went.
    pub fn drop_tombstones(&mut self, key: ConfigurationId, names: &[Name]) -> Vec<Name> {
        let keep = &self.keep;
        let may_return = |grave| keep.may_return(grave);
        let gone = self.shard.drop_tombstones(key, names, may_return);
        assert!(gone.len() <= names.len(), "each goes once");
        gone
    }

    /// Lets it refuse new requests.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// True if it refuses new requests.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }
}
