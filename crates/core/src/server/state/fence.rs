//! Fences, and versions that were decided to be dropped (`docs/spec` `[X-3 unconfirmed-cap]`), of kinds that have a cap.

use super::keeping::{has_fence, mark, object};
use super::{ADMITTED, ConfigurationState};
use crate::config::ConfigurationId;
use crate::dap::versions::Versions;
use crate::message::{HeldVersions, Refusal, Want};
use crate::object::Name;
use crate::server::record::Ledger;
use crate::tag::Tag;

impl ConfigurationState {
    /// Raises the object's fence: the server takes in no version up to this tag, unless it is held already,
    /// confirmed, spared, or decided to be kept. Returns the held versions.
    pub(in crate::server) fn fence(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        (upto, spared): (Tag, Tag),
        ledger: &mut Ledger,
    ) -> Result<HeldVersions, Refusal> {
        let versions = self.fenced(name)?;
        if versions.raise_fence(upto, spared) {
            mark(key, name, versions, ledger);
        }
        let reaches = versions.fence().max(versions.stable());
        assert!(reaches >= upto, "a fence reaches as far as was asked");
        Ok(versions.held(Want::Tags, Tag::INITIAL))
    }

    /// Evicts a version that was decided never to be at a quorum. What is confirmed stays: then a larger one is.
    pub(in crate::server) fn drop_version(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        tag: Tag,
        ledger: &mut Ledger,
    ) -> Result<(), Refusal> {
        let versions = self.fenced(name)?;
        if tag <= versions.stable() {
            return Ok(());
        }
        let record = versions.drop_version(tag);
        ledger.trimmed += u64::from(record.is_some());
        ledger.supersede_of(name, record);
        mark(key, name, versions, ledger);
        Ok(())
    }

    /// An object that can have a fence.
    fn fenced(&mut self, name: &Name) -> Result<&mut Versions, Refusal> {
        self.sound(name)?;
        self.unfrozen(name)?;
        if !has_fence(self.configuration().expect(ADMITTED)) || self.is_ranked(name) {
            return Err(Refusal::Malformed);
        }
        Ok(object(&mut self.objects, name))
    }
}
