//! The answers of a server about one object: a version of which the element was lost is named without it
//! (`docs/spec` `[X-40 named-loss]`); where it is not known what was lost, nothing is said (`[X-11 damage-abstains]`).

use super::keeping::{admission, bounds};
use super::{ADMITTED, ConfigurationState};
use crate::config::Configuration;
use crate::dap::kind::of_kind;
use crate::dap::versions::{Admission, Arrival, StoredVersion, Versions};
use crate::element::{Form, ReplyElement};
use crate::message::{HeldVersions, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;

impl ConfigurationState {
    /// The versions of the object, unless it abstains: the lost version is not known, or its kind does not name it
    /// (`[X-11 damage-abstains]`, `[X-40 named-loss]`).
    pub(super) fn speaking(&self, name: &Name) -> Result<Option<&Versions>, Refusal> {
        self.unless(name, |versions| !self.names_lost(versions))
    }

    /// The object, unless a version of it was lost.
    pub(super) fn sound(&self, name: &Name) -> Result<Option<&Versions>, Refusal> {
        self.unless(name, |_| true)
    }

    /// The object, unless a version of it was lost and `abstains` says that it keeps silent for that.
    fn unless(
        &self,
        name: &Name,
        abstains: impl Fn(&Versions) -> bool,
    ) -> Result<Option<&Versions>, Refusal> {
        match self.objects.get(name.as_bytes()) {
            Some(versions) if versions.damaged().is_some() && abstains(versions) => {
                self.unfrozen(name)?;
                Err(Refusal::Damaged)
            }
            versions => Ok(versions),
        }
    }

    /// The version of the object that was lost, if it is named.
    pub(in crate::server) fn named_loss(&self, name: &Name) -> Option<Tag> {
        let versions = self.objects.get(name.as_bytes())?;
        versions.lost().filter(|_| self.names_lost(versions))
    }

    /// True if a version of the object was lost that is named.
    fn names_lost(&self, versions: &Versions) -> bool {
        let names = |c: &Arc<Configuration>| of_kind!(c, K => K::NAMES_LOST);
        versions.lost().is_some() && self.configuration().is_some_and(names)
    }

    /// The versions of the object that are here. Where one is announced, `announced` is the number of unconfirmed ones from which on it
    /// would be refused, and so is the query (`[X-3 unconfirmed-cap]`).
    pub(in crate::server) fn query(
        &self,
        name: &Name,
        (want, have): (Want, Tag),
        announced: Option<usize>,
    ) -> Result<HeldVersions, Refusal> {
        let c = self.configuration().expect(ADMITTED);
        let Some(versions) = self.speaking(name)? else {
            // An object never touched is not an error: it holds the initial value ([C-7 describe-unknown]).
            return Ok(HeldVersions::default());
        };
        // With a successor known the version goes there.
        let announced = announced.filter(|_| self.next.is_empty());
        if announced.is_some() {
            self.unfrozen(name)?;
        }
        // A version above the one that was lost is taken in however many there are: it takes its place.
        let is_busy = |cap| of_kind!(c, K => K::is_busy(versions, bounds(c, cap)));
        let announced = announced.filter(|_| versions.lost().is_none());
        if announced.is_some_and(is_busy) {
            return Err(Refusal::Busy);
        }
        let bounds = bounds(c, usize::MAX);
        let mut held = of_kind!(c, K => K::held(versions, want, have, bounds));
        if let Some(lost) = versions.lost() {
            assert!(
                held.stored
                    .last()
                    .is_none_or(|(largest, _)| *largest < lost),
                "below a larger version it would count as evicted"
            );
            held.stored.push((lost, Form::Trimmed));
        }
        let newest = held.element.as_ref().map(|(tag, _)| *tag);
        assert!(newest.is_none_or(|it| it > have), "none goes to who has it");
        Ok(held)
    }

    pub(in crate::server) fn fetch(
        &self,
        name: &Name,
        tag: Tag,
        payload: bool,
    ) -> Result<Option<ReplyElement>, Refusal> {
        let versions = self.speaking(name)?;
        if versions.and_then(Versions::lost) == Some(tag) {
            return Err(Refusal::Damaged);
        }
        let stored = versions.and_then(|versions| versions.with_element(tag));
        Ok(stored.map(|stored| ReplyElement::Stored {
            handle: stored.handle,
            payload,
        }))
    }

    /// The version, if it is held and the object can speak.
    pub(in crate::server) fn find(&self, name: &Name, tag: Tag) -> Option<&StoredVersion> {
        self.speaking(name).ok()??.with_element(tag)
    }

    /// True if a write-back of this version would be acknowledged without being stored.
    pub(in crate::server) fn supersedes(&self, name: &Name, tag: Tag) -> Result<bool, Refusal> {
        if self.is_ranked(name) {
            return Err(Refusal::Malformed);
        }
        let c = self.configuration().expect(ADMITTED);
        let arrival = (Arrival::WriteBack, usize::MAX);
        let admission = |versions| admission(c, versions, tag, arrival);
        Ok(self.sound(name)?.map(admission) == Some(Admission::Acknowledge))
    }

    /// The part of this version's element that goes with the answer to its FIN.
    pub(in crate::server) fn given(
        &self,
        name: &Name,
        tag: Tag,
        want: Want,
    ) -> Option<ReplyElement> {
        let stored = self.find(name, tag)?;
        let payload = match want {
            Want::Tags => return None,
            Want::Fragment if stored.form.is_whole() => return None,
            Want::Metadata => false,
            Want::Fragment | Want::Element => true,
        };
        assert_eq!(stored.tag, tag, "an element of no other version");
        let handle = stored.handle;
        Some(ReplyElement::Stored { handle, payload })
    }
}
