//! Single contact mode: a query in one configuration is answered for later ones as well (`docs/spec` 6.7,
//! `[R-20 answers-for-later]`).

use super::{Read, Server};
use crate::config::{Configuration, ConfigurationId};
use crate::instant::Instant;
use crate::limits;
use crate::message::{Answer, Body, Reply};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Server {
    /// True if a request to a configuration is answered for its successors, too.
    pub(super) fn answers_once(&self, id: &ConfigurationId, body: &Body) -> bool {
        let state = &self.states[id];
        let is_wanted = state
            .configuration()
            .is_some_and(|c| c.options().single_contact);
        is_wanted && !state.next().is_empty() && body.queried().is_some()
    }

    /// The nearest configurations that come after this one as far as it is known here, of which the server is a member, and whose state
    /// is to be had there.
    fn later(&self, id: &ConfigurationId) -> Vec<ConfigurationId> {
        let next = |id: &ConfigurationId| {
            let state = self.states.get(id);
            let next = state.into_iter().flat_map(|state| state.next().iter());
            next.map(|pointer| pointer.configuration.id())
        };
        let is_conditional = |c: &Arc<Configuration>| c.dap().is_conditional();
        let kind = self.known(id).map(is_conditional);
        // Registers are asked in another way.
        let is_asked_alike = |later: &ConfigurationId| {
            let later = self.known(later).filter(|c| !c.dap().is_removal());
            later.is_some() && later.map(is_conditional) == kind
        };
        let mut later = Vec::new();
        let mut ahead: BTreeSet<ConfigurationId> = next(id).collect();
        while let Some(nearest) = ahead.pop_first()
            && later.len() < limits::LATER_ANSWERS
        {
            assert!(*id < nearest, "pointers lead upwards");
            if is_asked_alike(&nearest) {
                ahead.extend(next(&nearest));
                later.extend(self.withheld(&nearest).is_none().then_some(nearest));
            }
        }
        later
    }

    /// Adds the server's answers in later configurations to the reply. An answer that would be a refusal is left out.
    pub(super) fn answer_for_later(
        &mut self,
        now: Instant,
        id: ConfigurationId,
        (body, reply): (&Body, &mut Reply),
        reads: &mut Vec<Read>,
    ) {
        let (Body::Access(accesses), Reply::Access(answers)) = (body, reply) else {
            return;
        };
        assert!(body.queried().is_some(), "nothing is written so");
        for configuration in self.later(&id) {
            let successors = self.states[&configuration].next().clone();
            let mut said = vec![Answer::Later {
                configuration,
                successors,
            }];
            let mut wanted = Vec::new();
            for (name, access) in accesses {
                let place = answers.len() + said.len();
                let access = access.clone();
                said.push(self.access(now, configuration, name, access, (place, &mut wanted)));
            }
            if !said.iter().any(|it| matches!(it, Answer::Refused(_))) {
                answers.extend(said);
                reads.append(&mut wanted);
            }
        }
    }
}
