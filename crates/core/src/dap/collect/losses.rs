//! Elements that members have lost, as a get-data hears of them (`[X-40 named-loss]`).

use super::member::Member;
use super::{Collect, Outcome};
use crate::dap::found::Loss;
use crate::dap::kind::of_kind;
use crate::dap::lost;
use crate::message::HeldVersions;

impl Collect {
    /// The end of an attempt that found nothing.
    pub(super) fn ended(&self, otherwise: Outcome) -> Outcome {
        match self.damaged {
            true => Outcome::Damaged(self.loss()),
            false => otherwise,
        }
    }

    /// A version that cannot be read, if these answers prove it.
    pub(super) fn loss(&self) -> Option<Box<Loss>> {
        let members: Vec<_> = self.members.iter().map(Member::known).collect();
        lost::loss(&self.configuration, &members).map(Box::new)
    }

    /// True if the member has lost an element, and says which.
    pub(super) fn names_lost(&self, held: &HeldVersions) -> bool {
        let c = &self.configuration;
        of_kind!(c, K => K::NAMES_LOST) && lost::named(held).is_some()
    }
}
