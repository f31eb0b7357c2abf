//! Judges a caller by what its message needs ([`super::need`]).
//!
//! It is pure: names of domains, and what the server has heard, are asked of the caller. Where the grant is there, nothing is allocated.

use std::ops::ControlFlow;

use areo_core::config::ServerId;
use areo_core::dsm::completion::{Completion, accesses_of, cell_of};
use areo_core::message::{Access, Note, Request};
use areo_core::object::{DomainId, Name};
use areo_trust::grant::{self, Grants, MissingGrant, Verb};
use areo_trust::id::KeyId;

use super::need::{Hearsay, Keys, Need, Table, hearsay};

/// A caller as its connection shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Standing<'a> {
    /// The cluster has no certificates and no keys: a caller is the one that it says, and may do everything.
    Plain,
    /// It has shown nothing.
    Stranger,
    /// A server, by its certificate.
    Server(ServerId),
    /// A server, by its certificate, that is not registered as far as this server knows: it may send the messages of
    /// a registration.
    Unregistered(ServerId),
    /// A server that was forgotten: it may ask for its own start, and hears that it was.
    Forgotten(ServerId),
    /// A client, by its key.
    Key(&'a Grants),
}

/// The answer to the question whether a caller may send a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The caller may send it.
    Allowed,
    /// The caller lacks a right.
    Lacking(Lacking),
    /// The caller may read, but not complete a version that it read: the server does that itself. If nothing was
    /// accepted in a cell there is nothing to complete, and the caller lacks the right for its step.
    Completed,
    /// It depends on the name of a domain that is not known here.
    Unnamed,
    /// Its certificate is of a server that is not known here to be registered: the root domain is to be asked.
    Unregistered,
    /// It passes on a configuration that this server has not heard of, and may not decide it: servers are to be
    /// asked.
    Unheard,
}

/// The right that a caller lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// A grant, by its text.
    Grant(String),
    /// A valid access key of any kind.
    Key,
    /// A domain: no name has the id that it asks of.
    Domain,
    /// The certificate of a server.
    Certificate,
    /// The registration of the server of its certificate.
    Registration,
}

impl Lacking {
    /// The sentence of the refusal.
    pub(crate) fn sentence(self, key: Option<KeyId>) -> String {
        match (self, key) {
            (Lacking::Grant(grant), Some(key)) => MissingGrant { key, grant }.to_string(),
            (Lacking::Grant(_) | Lacking::Key, _) => {
                "this client has shown no access key, and nothing was done: set AREO_KEY to one, or use the cluster.toml of a cluster that has one in it".into()
            }
            (Lacking::Domain, _) => {
                "no domain of this cluster has the id that the request names, and nothing was done".into()
            }
            (Lacking::Certificate, _) => {
                "only a server of the cluster may do that, by its certificate, and nothing was done".into()
            }
            (Lacking::Registration, _) => {
                "the certificate of the caller is of a server that is not registered in the cluster, and nothing was done: a server registers when it starts".into()
            }
        }
    }
}

/// The facts that judging needs beside the message.
pub(crate) trait Knowledge {
    /// The name of a domain, if it is known.
    fn name_of(&self, domain: DomainId) -> Option<&str>;

    /// True if the server knows all of this.
    fn has_heard(&self, passed_on: &Hearsay<'_>) -> bool;
}

/// Judges messages of callers by a table of needed rights.
pub(crate) struct Judge<K> {
    /// The table of needed rights.
    pub(crate) table: Table,
    /// The facts that the judge decides by.
    pub(crate) knowledge: K,
}

impl<K: Knowledge> Judge<K> {
    /// Judges the sender of a request.
    pub(crate) fn request(&self, request: &Request, standing: Standing<'_>) -> Verdict {
        let visit = |need| match self.need(&need, standing) {
            Verdict::Allowed => ControlFlow::Continue(()),
            verdict => ControlFlow::Break(verdict),
        };
        let verdict = match self.table.each_need(request, visit) {
            ControlFlow::Continue(()) => Verdict::Allowed,
            ControlFlow::Break(Verdict::Lacking(_)) if self.may_read(request, standing) => {
                Verdict::Completed
            }
            ControlFlow::Break(verdict) => return verdict,
        };
        let Some(passed_on) = hearsay(request) else {
            return verdict;
        };
        let decides = self.table.of_configuration(passed_on.configuration.domain);
        match self.need(&decides, standing) {
            Verdict::Lacking(_) | Verdict::Unregistered
                if !self.knowledge.has_heard(&passed_on) =>
            {
                Verdict::Unheard
            }
            Verdict::Lacking(_) | Verdict::Unregistered | Verdict::Allowed => verdict,
            other => other,
        }
    }

    /// True if a reader sends the request to complete a version that it read, and may read all of that.
    fn may_read(&self, request: &Request, standing: Standing<'_>) -> bool {
        let Request::Configured { configuration, .. } = request else {
            return false;
        };
        let domain = configuration.domain;
        let may_read = |(name, _): &(Name, Access)| {
            let need = self.table.of_completed(domain, name);
            self.need(&need, standing) == Verdict::Allowed
        };
        if Completion::of(request).is_none() {
            return false;
        }
        match cell_of(request) {
            Some((cell, _)) => {
                let need = self.table.of_finished_cell(domain, cell);
                need.is_some_and(|need| self.need(&need, standing) == Verdict::Allowed)
            }
            None => accesses_of(request).iter().all(may_read),
        }
    }

    /// The right that the sender of a request lacks for it, if there is one: also where the server completes a
    /// version for its reader.
    pub(crate) fn lacking(&self, request: &Request, standing: Standing<'_>) -> Option<Lacking> {
        let visit = |need| match self.need(&need, standing) {
            Verdict::Lacking(lacking) => ControlFlow::Break(lacking),
            _ => ControlFlow::Continue(()),
        };
        self.table.each_need(request, visit).break_value()
    }

    /// Judges the sender of a note. A server that was forgotten says nothing more, and one that is not registered nothing yet.
    pub(crate) fn note(&self, note: &Note, standing: Standing<'_>) -> Verdict {
        match standing {
            Standing::Forgotten(_) => Verdict::Lacking(Lacking::Certificate),
            Standing::Unregistered(_) => Verdict::Unregistered,
            _ => self.need(&self.table.of_note(note), standing),
        }
    }

    fn need(&self, need: &Need<'_>, standing: Standing<'_>) -> Verdict {
        match (need, standing) {
            (Need::NoCaller, _) => Verdict::Lacking(Lacking::Certificate),
            (_, Standing::Plain)
            | (Need::Nothing, _)
            | (Need::AnyKey | Need::Newcomer, Standing::Unregistered(_)) => Verdict::Allowed,
            (Need::Server { id, .. }, Standing::Forgotten(own) | Standing::Unregistered(own))
                if *id == Some(own) =>
            {
                Verdict::Allowed
            }
            (_, Standing::Unregistered(_)) => Verdict::Unregistered,
            (Need::Server { .. } | Need::Newcomer, Standing::Stranger | Standing::Forgotten(_)) => {
                Verdict::Lacking(Lacking::Certificate)
            }
            (_, Standing::Stranger | Standing::Forgotten(_)) => Verdict::Lacking(Lacking::Key),
            (Need::Server { id, or_reconfig }, Standing::Server(own)) => {
                match *or_reconfig || id.is_none_or(|id| id == own) {
                    true => Verdict::Allowed,
                    false => Verdict::Lacking(Lacking::Certificate),
                }
            }
            // All of this is in `Grants::of_server`.
            (_, Standing::Server(_)) => Verdict::Allowed,
            (need, Standing::Key(grants)) => self.of_key(need, grants),
        }
    }

    fn of_key(&self, need: &Need<'_>, grants: &Grants) -> Verdict {
        let reconfig = grant::Need::cluster(Verb::Reconfig);
        match *need {
            Need::Nothing | Need::AnyKey => Verdict::Allowed,
            Need::NoCaller
            | Need::Server {
                or_reconfig: false, ..
            } => Verdict::Lacking(Lacking::Certificate),
            Need::Cluster(verb) => demand(grants, [grant::Need::cluster(verb)]),
            Need::Named(name) => demand(grants, [grant::Need::domain(Verb::Admin, name), reconfig]),
            Need::Newcomer
            | Need::Server {
                or_reconfig: true, ..
            } => demand(grants, [reconfig]),
            Need::Domain {
                verbs,
                domain,
                keys,
            } => match self.knowledge.name_of(domain) {
                None => Verdict::Unnamed,
                Some(name) => {
                    let in_domain = |verb: &Verb| match keys {
                        Keys::From(start) => grant::Need::keys(*verb, name, start),
                        Keys::Any => grant::Need::anywhere(*verb, name),
                    };
                    demand(grants, verbs.iter().map(in_domain))
                }
            },
        }
    }
}

/// Demands that one of these grants is there; names the first where none is.
fn demand<'a>(
    grants: &Grants,
    needs: impl IntoIterator<Item = grant::Need<'a>, IntoIter: Clone>,
) -> Verdict {
    let mut needs = needs.into_iter();
    let first = needs.clone().next();
    if needs.any(|need| grants.allow(&need)) {
        return Verdict::Allowed;
    }
    let first = first.expect("a need has a verb");
    Verdict::Lacking(Lacking::Grant(first.to_string()))
}

#[cfg(test)]
mod tests;
