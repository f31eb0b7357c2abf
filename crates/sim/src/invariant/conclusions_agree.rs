//! What clients conclude from the answers of the members of one configuration fits together:
//!
//! - of two memberships that lattice agreement decides, or that a speculating snapshot may commit, one contains the other; in one round
//!   of the latter there is one, and those of later rounds contain it (`[R-17 agreement-everywhere]`, `[R-23 propose-first]`);
//! - of two sets of successors that a weak snapshot collects one contains the other, so that all operations go on to a common successor
//!   (`[R-22 collect-again]`).

use super::{Context, Invariant, Observation};
use areo_core::config::{ConfigurationId, Decider, Membership};
use areo_core::env::Conclusion;
use areo_core::pointer::Successors;
use std::cmp::Ordering;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// For each configuration the merged membership of each round.
    merged: BTreeMap<ConfigurationId, Vec<(u32, Membership)>>,
    collected: BTreeMap<ConfigurationId, Vec<Successors>>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "conclusions_agree"
    }

    fn observe(&mut self, observation: &Observation<'_>, _: &Context<'_>) -> Option<String> {
        let Observation::Concluded { at, conclusion } = observation else {
            return None;
        };
        let id = at.id();
        match conclusion {
            Conclusion::Merged { membership, round } => {
                let has_rounds = at.descriptor().decided_by == Decider::Speculation;
                let known = self.merged.entry(id).or_default();
                let fits = |(before, other): &(u32, Membership)| match before.cmp(round) {
                    _ if !has_rounds => membership.is_within(other) || other.is_within(membership),
                    Ordering::Less => other.is_within(membership),
                    Ordering::Equal => other == *membership,
                    Ordering::Greater => membership.is_within(other),
                };
                if let Some((_, other)) = known.iter().find(|known| !fits(known)) {
                    return Some(format!(
                        "in {id:?} {membership:?} was agreed on beside {other:?}"
                    ));
                }
                let new = (*round, (*membership).clone());
                if !known.contains(&new) {
                    known.push(new);
                }
            }
            Conclusion::Collected { successors } => {
                let known = self.collected.entry(id).or_default();
                let is_within = |one: &Successors, other: &Successors| {
                    one.iter().all(|it| other.iter().any(|other| other == it))
                };
                let fits = |other: &Successors| {
                    is_within(successors, other) || is_within(other, successors)
                };
                if let Some(other) = known.iter().find(|known| !fits(known)) {
                    return Some(format!(
                        "in {id:?} {successors:?} were collected beside {other:?}"
                    ));
                }
                if !known.contains(successors) {
                    known.push((*successors).clone());
                }
            }
        }
        None
    }
}
