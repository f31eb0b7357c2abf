//! `[X-12 memory-identity]`, decision records 0002 and 0017: a start is not confirmed while a member of the root domain that
//! knows better is in reach; and of two processes with copies of one directory at most one is confirmed under an
//! incarnation.

use super::{Context, Invariant, Observation};
use areo_core::config::ServerId;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Rule {
    confirmed: BTreeSet<(ServerId, u64)>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "copies_never_serve"
    }

    fn observe(&mut self, observation: &Observation<'_>, _: &Context<'_>) -> Option<String> {
        let Observation::Confirmed {
            id,
            incarnation,
            is_copy,
            knows_better,
        } = *observation
        else {
            return None;
        };
        let whose = match is_copy {
            true => "a copy of the disk",
            false => "the disk",
        };
        if let Some(member) = knows_better {
            return Some(format!(
                "incarnation {incarnation} of {id} is confirmed with {whose}, and server {member}, in reach, knows better"
            ));
        }
        (!self.confirmed.insert((id, incarnation))).then(|| {
            format!("incarnation {incarnation} of {id} is confirmed a second time, with {whose}")
        })
    }
}
