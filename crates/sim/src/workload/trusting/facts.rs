//! Acknowledged changes of the trust of a cluster, and what every later read must show.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::random::Random;
use areo_core::config::ServerId;
use areo_core::instant::Instant;
use areo_trust::SKEW_SECONDS;
use areo_trust::id::KeyId;
use areo_trust::key::AccessKey;
use areo_trust::registry::{IssuedTicket, View};
use areo_trust::ticket::{TICKET_SECONDS, Ticket, TicketError, Verifier};
use areo_trust::token::{JoinToken, TokenRecord};

/// Tickets that one look judges.
const JUDGED: usize = 3;

/// The facts that were acknowledged so far.
#[derive(Default)]
pub(super) struct Facts {
    /// The latest generation that an operation has read before it was acknowledged.
    pub(super) acknowledged: Option<u32>,
    /// The one view of each generation.
    views: BTreeMap<u32, Rc<View>>,
    pub(super) tokens: Vec<TokenFact>,
    pub(super) keys: Vec<KeyFact>,
    /// A client has begun to drop a CA, and with it a signer of tickets.
    pub(super) drop_begun: bool,
    /// Tickets, in the order in which they were issued.
    pub(super) issued: Vec<IssuedFact>,
}

/// The machine that a token has let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenUser {
    pub(super) server: ServerId,
}

/// A token that was made.
#[derive(Clone, Debug)]
pub(super) struct TokenFact {
    pub(super) token: JoinToken,
    /// The machine whose use was acknowledged.
    user: Option<TokenUser>,
    /// A client has begun to revoke it.
    pub(super) revocation_begun: bool,
    /// The revocation was acknowledged.
    pub(super) revoked: bool,
}

/// A key that was made.
#[derive(Clone, Debug)]
pub(super) struct KeyFact {
    pub(super) id: KeyId,
    name: &'static str,
    pub(super) secrets: Vec<SecretFact>,
    pub(super) retirement_begun: bool,
    pub(super) revocation_begun: bool,
    /// The revocation was acknowledged.
    pub(super) revoked: bool,
}

/// A secret of a key.
#[derive(Clone, Debug)]
pub(super) struct SecretFact {
    pub(super) key: AccessKey,
    /// It was made between these.
    begun: Instant,
    acknowledged: Instant,
    /// The retirement was acknowledged.
    pub(super) retired: bool,
}

/// A ticket that was issued.
#[derive(Clone)]
pub(super) struct IssuedFact {
    issued: IssuedTicket,
    /// The place of its key among the facts.
    key: usize,
    /// The secret that was proven.
    secret: AccessKey,
    /// It must be refused.
    is_void: bool,
}

impl Facts {
    /// A registry has read the log to its end, after `acknowledged` was.
    pub(super) fn see(&mut self, view: &Rc<View>, acknowledged: Option<u32>) -> Result<(), String> {
        let generation = view.generation;
        if Some(generation) < acknowledged {
            return Err(format!(
                "generation {generation} was read, and {acknowledged:?} was acknowledged before"
            ));
        }
        let known = self.views.entry(generation).or_insert_with(|| view.clone());
        if *known != *view {
            return Err(format!(
                "generation {generation} has two views: {known:?} and {view:?}"
            ));
        }
        self.acknowledged = self.acknowledged.max(Some(generation));
        Ok(())
    }

    pub(super) fn add_token(&mut self, token: JoinToken) {
        self.tokens.push(TokenFact {
            token,
            user: None,
            revocation_begun: false,
            revoked: false,
        });
    }

    pub(super) fn add_key(
        &mut self,
        name: &'static str,
        key: AccessKey,
        begun: Instant,
        now: Instant,
    ) -> Result<(), String> {
        let counts = |known: &&KeyFact| known.name == name && !known.revocation_begun;
        if let Some(other) = self.keys.iter().find(counts) {
            return Err(format!(
                "keys {} and {} are called {name}",
                other.id, key.id
            ));
        }
        let mut fact = KeyFact {
            id: key.id,
            name,
            secrets: Vec::new(),
            retirement_begun: false,
            revocation_begun: false,
            revoked: false,
        };
        fact.add_secret(key, begun, now);
        self.keys.push(fact);
        Ok(())
    }

    /// Some tickets, with the facts known about them now.
    pub(super) fn some_issued(&self, random: &Random) -> Vec<IssuedFact> {
        let mut some = Vec::new();
        for _ in 0..JUDGED.min(self.issued.len()) {
            let mut issued = self.issued[random.index(self.issued.len())].clone();
            let key = &self.keys[issued.key];
            let is_its = |secret: &&SecretFact| secret.key == issued.secret;
            let is_retired = key.secrets.iter().find(is_its).is_some_and(|it| it.retired);
            issued.is_void = key.revoked || is_retired;
            some.push(issued);
        }
        some
    }

    /// A server that has read the log judges a ticket, of which this was known before: now, and at the bounds of the time for which it counts. It takes no ticket that is
    /// void, and refuses none for a reason that is not there.
    pub(super) fn judge(
        &self,
        fact: &IssuedFact,
        verifier: &Verifier,
        now_seconds: u64,
    ) -> Result<(), String> {
        let ticket = &fact.issued.ticket;
        let issued = Ticket::issued_at(ticket).ok_or("a ticket cannot be read")?;
        let (first, end) = (
            issued - SKEW_SECONDS,
            issued + TICKET_SECONDS + SKEW_SECONDS,
        );
        let key = &self.keys[fact.key];
        for at in [now_seconds, first - 1, first, end - 1, end] {
            let judged = verifier.verify(ticket, at);
            let is_right = match &judged {
                Ok(_) => (first..end).contains(&at) && !fact.is_void,
                Err(TicketError::NotYet { .. }) => at < first,
                Err(TicketError::Expired { .. }) => at >= end,
                Err(TicketError::Revoked { .. }) => key.revocation_begun,
                Err(TicketError::Retired { .. }) => key.retirement_begun,
                Err(TicketError::Signature) => self.drop_begun,
                Err(_) => false,
            };
            if !is_right {
                return Err(format!(
                    "a ticket of key {} that counts from {first} to {end} and is void: {}, was judged {judged:?} at {at}",
                    key.id, fact.is_void
                ));
            }
        }
        Ok(())
    }
}

impl TokenFact {
    /// True if a refusal may name this machine.
    pub(super) fn may_be_used_by(&self, by: ServerId) -> bool {
        self.user.is_none_or(|user| user.server == by)
    }

    /// The machine was let in; `before`: the facts known when it showed the token.
    pub(super) fn used(&mut self, user: TokenUser, before: &TokenFact) -> Result<(), String> {
        if before.revoked {
            return Err(format!("{user:?} was let in by the revoked {self:?}"));
        }
        if self.user.is_some_and(|other| other != user) {
            return Err(format!("{user:?} was let in, too, by {self:?}"));
        }
        self.user = Some(user);
        Ok(())
    }

    /// A registry has read this record of it, after all of this was known.
    pub(super) fn check(&self, record: Option<&TokenRecord>) -> Result<(), String> {
        let Some(record) = record else {
            return Err(format!("{self:?} is gone"));
        };
        let read = record.used.map(|used| TokenUser { server: used.by });
        let is_found = self.user.is_none() || read == self.user;
        match is_found && (!self.revoked || record.revoked_seconds.is_some()) {
            true => Ok(()),
            false => Err(format!("{self:?} is read as {record:?}")),
        }
    }
}

impl KeyFact {
    pub(super) fn add_secret(&mut self, key: AccessKey, begun: Instant, acknowledged: Instant) {
        self.secrets.push(SecretFact {
            key,
            begun,
            acknowledged,
            retired: false,
        });
    }

    /// A retirement that began at this time was acknowledged: it retired each secret that another one had followed by then.
    pub(super) fn retired(&mut self, begun: Instant) {
        let newest = self
            .secrets
            .iter()
            .filter(|secret| secret.acknowledged < begun);
        let newest = newest.map(|secret| secret.begun).max();
        for secret in &mut self.secrets {
            secret.retired |= newest.is_some_and(|newest| secret.acknowledged < newest);
        }
    }
}

impl IssuedFact {
    pub(super) fn new(issued: IssuedTicket, key: usize, secret: &SecretFact) -> IssuedFact {
        IssuedFact {
            issued,
            key,
            secret: secret.key.clone(),
            is_void: false,
        }
    }
}
