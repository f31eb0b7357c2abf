//! `[A-2 pointers-rise]`, `[L-1 one-order]`: wherever it was established, of two configurations to which pointers of a domain lead,
//! pending or final, one precedes the other. So there is one of each index; in a lattice one contains the other, and those that
//! operations may start at are a chain. In DynaStore that is so of those to which final pointers lead.
//!
//! Where consensus decides, in a sequence, by Rambo and by L-Rambo, each configuration has one successor: it is the nearest pending one
//! that its members show.

use super::{Context, Invariant, Observation};
use crate::truth::{Domain, domain_of};
use areo_core::config::{Configuration, ConfigurationId};
use areo_core::pointer::{Fork, Pointer, Successors};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Rule {
    /// Configurations that a pointer was seen to lead to, by index: a chain.
    configurations: BTreeMap<(Domain, u32), Arc<Configuration>>,
    /// The decided successor of each configuration.
    decided: BTreeMap<ConfigurationId, Arc<Configuration>>,
}

impl Rule {
    /// Returns a sentence if the pointer's configuration and an earlier one are no chain.
    fn fork(&mut self, pointer: &Pointer) -> Option<String> {
        let c = &pointer.configuration;
        if c.branches() && !pointer.is_final() {
            return None;
        }
        let (domain, index) = (domain_of(&c.id()), c.id().index);
        let known = &self.configurations;
        let upto = known.range((domain, 0)..=(domain, index)).next_back();
        let above = known.range((domain, index)..=(domain, u32::MAX)).next();
        let fork = [upto, above].into_iter().flatten();
        let fork = fork
            .map(|(_, known)| Fork::check_order(known, c))
            .find_map(Result::err);
        if fork.is_none() {
            self.configurations.insert((domain, index), c.clone());
        }
        fork.map(|fork| fork.to_string())
    }

    /// Returns a sentence if the configuration has another successor already.
    fn second(&mut self, at: &ConfigurationId, successors: &Successors) -> Option<String> {
        let nearest = successors.nearest().filter(|it| !it.is_final())?;
        let c = &nearest.configuration;
        let decider = &c.descriptor().decided_by;
        if decider.merges() || decider.branches() {
            return None;
        }
        let decided = self.decided.entry(*at).or_insert_with(|| c.clone());
        (*decided != *c).then(|| {
            let (decided, c) = (decided.members(), c.members());
            format!("configuration {at:?} has two successors, on {decided:?} and on {c:?}")
        })
    }
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "successors_are_ordered"
    }

    fn observe(&mut self, observation: &Observation<'_>, _: &Context<'_>) -> Option<String> {
        let Observation::SuccessorsShown { at, successors, .. } = observation else {
            return None;
        };
        let fork = successors.iter().find_map(|pointer| self.fork(pointer));
        fork.or_else(|| self.second(at, successors))
    }
}
