//! Access keys: made, listed, rotated, revoked; and the tickets of those that prove one.
//!
//! Of keys that count each has a name of its own. A revoked key keeps its id for ever, and its name is free: tickets and refusals are by
//! id, so that another key of that name has nothing of the old one.

use bytes::Bytes;

use areo_core::env::Env;
use areo_core::manager::Root;

use crate::grant::{Grants, Need, Verb};
use crate::id::KeyId;
use crate::key::{
    ANONYMOUS, ANONYMOUS_NAME, AccessKey, Exchange, KeyRecord, PROOF_BYTES, ProofError,
};
use crate::ticket::{Gateway, Ticket};

use super::entry::{Content, Origin, What};
use super::error::{BearerError, ChangeKeyError, CreateKeyError, IssueTicketError, LogError};
use super::{Registry, State, Verdict};

/// The answer to a client that has proven a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedTicket {
    /// The ticket, signed by the cluster.
    pub ticket: Bytes,
    /// The proof of the server.
    pub answer: [u8; PROOF_BYTES],
    /// The proof was judged by all changes that were acknowledged before; false: by those that were read last.
    pub is_by_latest: bool,
}

impl Registry {
    /// Makes a key. Of two that want one name at once, one gets it.
    ///
    /// # Errors
    /// [`CreateKeyError`].
    pub async fn create_key<E: Env>(
        &self,
        root: &Root<E>,
        name: &str,
        grants: &Grants,
        origin: &Origin,
    ) -> Result<AccessKey, CreateKeyError> {
        grants.demand_whole_domains()?;
        let judge = |state: &State| {
            if let Some(key) = state.key_named(name) {
                let (name, id) = (name.to_owned(), key.id);
                return Err(CreateKeyError::NameTaken { name, id });
            }
            let (owned, record) = KeyRecord::create(name, grants.clone(), &*self.random)?;
            let content = Content::Key(record);
            Ok(Verdict::Change(What::KeyCreated, content, owned))
        };
        self.change(root, origin, judge).await
    }

    /// All keys that were ever made, revoked ones as well.
    ///
    /// # Errors
    /// [`LogError`].
    pub async fn keys<E: Env>(&self, root: &Root<E>) -> Result<Vec<KeyRecord>, LogError> {
        self.refresh(root).await?;
        let state = self.state.borrow();
        let keys = state.iter().flat_map(|state| state.keys.values());
        Ok(keys.cloned().collect())
    }

    /// The key of this name that counted when the log was read last.
    pub fn key_named(&self, name: &str) -> Option<KeyId> {
        let state = self.state.borrow();
        state.as_ref()?.key_named(name).map(|key| key.id)
    }

    /// Gives a key a second secret: both count until the older one is retired.
    ///
    /// # Errors
    /// [`ChangeKeyError`].
    pub async fn rotate_key<E: Env>(
        &self,
        root: &Root<E>,
        id: KeyId,
        origin: &Origin,
    ) -> Result<AccessKey, ChangeKeyError> {
        let judge = |state: &State| {
            let mut record = counting(state, id)?;
            if record.is_anonymous() {
                return Err(ChangeKeyError::WithoutSecret { id });
            }
            if record.is_rotating() {
                return Err(ChangeKeyError::Rotating { id });
            }
            let owned = record.rotate(&*self.random).map_err(LogError::from)?;
            Ok(Verdict::Change(
                What::KeyRotated,
                Content::Key(record),
                owned,
            ))
        };
        self.change(root, origin, judge).await
    }

    /// Retires the older secret of a key, and with it the tickets that were issued for it. A key with one secret stays as it is.
    ///
    /// # Errors
    /// [`ChangeKeyError`].
    pub async fn retire_key<E: Env>(
        &self,
        root: &Root<E>,
        id: KeyId,
        origin: &Origin,
    ) -> Result<(), ChangeKeyError> {
        let retire = |_: &State, mut record: KeyRecord| {
            let is_rotating = record.is_rotating();
            record.retire();
            Ok(is_rotating.then_some(record))
        };
        self.change_key(root, (id, origin), What::KeyRetired, retire)
            .await
    }

    /// Gives a key other grants. Its tickets count no longer, so that none has more than the key: clients prove it again.
    ///
    /// # Errors
    /// [`ChangeKeyError`].
    pub async fn change_grants<E: Env>(
        &self,
        root: &Root<E>,
        id: KeyId,
        grants: &Grants,
        origin: &Origin,
    ) -> Result<(), ChangeKeyError> {
        grants.demand_whole_domains()?;
        let change = |state: &State, mut record: KeyRecord| {
            if record.is_anonymous() {
                grants.demand_public()?;
            }
            if record.grants == *grants {
                return Ok(None);
            }
            if state.is_last_of_keys(id) && !grants.allow(&Need::cluster(Verb::Keys)) {
                return Err(ChangeKeyError::LastOfKeys { id });
            }
            record.change_grants(grants.clone());
            Ok(Some(record))
        };
        self.change_key(root, (id, origin), What::GrantsChanged, change)
            .await
    }

    /// Revokes a key, for ever. A repetition changes nothing.
    ///
    /// # Errors
    /// [`ChangeKeyError`].
    pub async fn revoke_key<E: Env>(
        &self,
        root: &Root<E>,
        id: KeyId,
        origin: &Origin,
    ) -> Result<(), ChangeKeyError> {
        let revoke = |state: &State, mut record: KeyRecord| {
            if state.is_last_of_keys(id) {
                return Err(ChangeKeyError::LastOfKeys { id });
            }
            record.revoked_seconds = Some(origin.now_seconds);
            Ok(Some(record))
        };
        let revoked = self.change_key(root, (id, origin), What::KeyRevoked, revoke);
        match revoked.await {
            Err(ChangeKeyError::Revoked { .. }) => Ok(()),
            revoked => revoked,
        }
    }

    /// Changes the record of a key that was not revoked; none: it is as it is to be.
    async fn change_key<E: Env>(
        &self,
        root: &Root<E>,
        (id, origin): (KeyId, &Origin),
        what: What,
        change: impl Fn(&State, KeyRecord) -> Result<Option<KeyRecord>, ChangeKeyError>,
    ) -> Result<(), ChangeKeyError> {
        let judge = |state: &State| {
            let changed = change(state, counting(state, id)?)?;
            Ok(changed.map_or(Verdict::AsItIs(()), |record| {
                Verdict::Change(what, Content::Key(record), ())
            }))
        };
        self.change(root, origin, judge).await
    }

    /// Judges a key that is shown whole, as programs do that know nothing but bearer tokens, by the changes that were read last.
    ///
    /// # Errors
    /// [`BearerError`].
    pub fn judge_bearer(&self, shown: &AccessKey, need: &Need<'_>) -> Result<(), BearerError> {
        let key = shown.id;
        let state = self.judging();
        let state = state.as_ref().ok_or(BearerError::NotRead)?;
        let record = state.keys.get(&key);
        let record = record.filter(|record| record.has_secret(&shown.secret));
        let record = record.ok_or(ProofError::Unknown { key })?;
        if record.revoked_seconds.is_some() {
            return Err(ProofError::Revoked { key }.into());
        }
        Ok(record.grants.demand(key, need)?)
    }

    /// Judges the proof of a client by all changes that were acknowledged before, and issues a ticket with the grants
    /// that the key has now. A key with the grant `gateway` gets one on behalf of another key, with the grants that
    /// the other key leaves to a gateway ([`Grants::on_behalf`]).
    ///
    /// Without an answer of the root domain a proof that fits counts by the state that was read last, as a ticket does that the client has: each server
    /// judges alone by what it knows, and without a quorum the commands that say so need a ticket, too. A proof that does not fit may be that of a newer key.
    ///
    /// # Errors
    /// [`IssueTicketError`].
    pub async fn issue_ticket<E: Env>(
        &self,
        root: &Root<E>,
        exchange: &Exchange,
        proof: &[u8],
        now_seconds: u64,
    ) -> Result<IssuedTicket, IssueTicketError> {
        let (expected, found) = (self.cluster, exchange.cluster);
        if found != expected {
            return Err(IssueTicketError::OtherCluster { expected, found });
        }
        let unavailable = match self.refresh(root).await {
            Ok(_) => None,
            Err(LogError::Unavailable(unavailable)) => Some(unavailable),
            Err(error) => return Err(error.into()),
        };
        let is_by_latest = unavailable.is_none();
        let issued = self.ticket_as_read(exchange, proof, (now_seconds, is_by_latest));
        match unavailable {
            None => issued,
            Some(unavailable) => issued.map_err(|_| LogError::Unavailable(unavailable).into()),
        }
    }

    fn ticket_as_read(
        &self,
        exchange: &Exchange,
        proof: &[u8],
        (now_seconds, is_by_latest): (u64, bool),
    ) -> Result<IssuedTicket, IssueTicketError> {
        let state = self.judging();
        let state = state.as_ref().ok_or(LogError::NotFounded)?;
        let key = exchange.key;
        let record = state.keys.get(&key).ok_or(ProofError::Unknown { key })?;
        let proven = record.judge(exchange, proof)?;
        let signer = state.signer().ok_or(IssueTicketError::NoSigner)?;
        let new =
            |key, grants| Ticket::new(self.cluster, key, grants, exchange.holder, now_seconds);
        let ticket = match exchange.behalf {
            None => Ticket {
                standing: proven.standing,
                ..new(key, record.grants.clone())
            },
            Some(other) => {
                let need = Need::cluster(Verb::Gateway);
                record.grants.demand(key, &need)?;
                let other = behalf(state, other)?;
                Ticket {
                    standing: other.least(),
                    gateway: Some(Gateway {
                        key,
                        standing: proven.standing,
                    }),
                    ..new(other.id, other.grants.on_behalf())
                }
            }
        };
        Ok(IssuedTicket {
            ticket: signer.sign(&ticket),
            answer: proven.answer,
            is_by_latest,
        })
    }
}

/// The key on whose behalf a gateway may act: a ticket for it counts until its older secret is retired. Callers without a key have the one that was made for them.
fn behalf(state: &State, key: KeyId) -> Result<&KeyRecord, IssueTicketError> {
    if key == ANONYMOUS {
        let record = state.key_named(ANONYMOUS_NAME);
        let record = record.filter(|record| record.is_anonymous());
        return record.ok_or(IssueTicketError::NoAnonymous);
    }
    let record = state.keys.get(&key);
    let record = record.ok_or(IssueTicketError::BehalfUnknown { key })?;
    match record.revoked_seconds {
        None => Ok(record),
        Some(_) => Err(IssueTicketError::BehalfRevoked { key }),
    }
}

/// The record of a key that was not revoked.
fn counting(state: &State, id: KeyId) -> Result<KeyRecord, ChangeKeyError> {
    let record = state.keys.get(&id).ok_or(ChangeKeyError::Unknown { id })?;
    match record.revoked_seconds {
        None => Ok(record.clone()),
        Some(_) => Err(ChangeKeyError::Revoked { id }),
    }
}
