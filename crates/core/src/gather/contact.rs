//! Single contact mode (`docs/spec` 6.7, `[R-20 answers-for-later]`; Jehl and Meling, "The Case for Reconfiguration without Consensus"): a
//! server that is a member of several configurations answers a query in one of them for the later ones, too, so that an operation need
//! not ask it again there.
//!
//! Such an answer is what the server would have said if it had been asked in the later configuration at the same moment. It is kept for as
//! long as the operation walks, and handed to the first call that asks the same of the later configuration.

use crate::config::{ConfigurationId, ServerId};
use crate::message::{Answer, Reply};
use crate::object::Name;
use std::cell::RefCell;
use std::rc::Rc;

/// The answers that members gave for configurations to which the operation has not come. Clones are the same.
#[derive(Clone, Default)]
pub struct EarlyAnswers(Rc<RefCell<Vec<EarlyAnswer>>>);

struct EarlyAnswer {
    configuration: ConfigurationId,
    server: ServerId,
    name: Name,
    reply: Reply,
}

impl EarlyAnswers {
    /// Drops all early answers: the requested object went to another configuration meanwhile, and may have arrived
    /// there after the answers.
    pub(crate) fn forget(&self) {
        self.0.borrow_mut().clear();
    }

    /// True if the server gave an answer for the configuration.
    pub(super) fn has(&self, configuration: ConfigurationId, server: ServerId) -> bool {
        let answers = self.0.borrow();
        let is_it = |it: &EarlyAnswer| (it.configuration, it.server) == (configuration, server);
        answers.iter().any(is_it)
    }

    /// Keeps the server's answer about the object for a later configuration.
    pub(super) fn keep(&self, server: ServerId, name: &Name, later: LaterAnswer) {
        let LaterAnswer {
            configuration,
            reply,
        } = later;
        let mut answers = self.0.borrow_mut();
        answers.retain(|it| (it.configuration, it.server) != (configuration, server));
        answers.push(EarlyAnswer {
            configuration,
            server,
            name: name.clone(),
            reply,
        });
    }

    /// Takes out the server's answer about the object for the configuration.
    pub(super) fn take(
        &self,
        configuration: ConfigurationId,
        server: ServerId,
        name: &Name,
    ) -> Option<Reply> {
        let mut answers = self.0.borrow_mut();
        let is_it = |it: &EarlyAnswer| {
            (it.configuration, it.server) == (configuration, server) && it.name == *name
        };
        let place = answers.iter().position(is_it)?;
        Some(answers.swap_remove(place).reply)
    }
}

/// The answer of a server for a later configuration.
pub(super) struct LaterAnswer {
    configuration: ConfigurationId,
    /// The reply, as if it had been asked there.
    reply: Reply,
}

/// Takes the answers for later configurations out of a reply.
pub(super) fn split(reply: &mut Reply) -> Vec<LaterAnswer> {
    let Reply::Access(answers) = reply else {
        return Vec::new();
    };
    let is_later = |answer: &Answer| matches!(answer, Answer::Later { .. });
    let Some(place) = answers.iter().position(is_later) else {
        return Vec::new();
    };
    let mut later = Vec::new();
    for answer in answers.split_off(place) {
        match answer {
            Answer::Later {
                configuration,
                successors,
            } => later.push((configuration, successors, Vec::new())),
            answer => later.last_mut().expect("one came first").2.push(answer),
        }
    }
    let said = later
        .into_iter()
        .map(|(configuration, successors, answers)| {
            let reply = Reply::Access(answers);
            let reply = match successors.is_empty() {
                true => reply,
                false => Reply::Next {
                    successors,
                    reply: Some(Box::new(reply)),
                },
            };
            LaterAnswer {
                configuration,
                reply,
            }
        });
    said.collect()
}
