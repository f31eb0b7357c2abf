//! The trust of a cluster after a number of changes: a fold of the log, without the world.

use std::collections::BTreeMap;

use crate::grant::{Need, Verb};
use crate::id::{KeyId, TokenId};
use crate::key::KeyRecord;
use crate::roots::{Root, RootDigest, Roots};
use crate::ticket::{Signer, Standing, Verifier};
use crate::token::TokenRecord;

use super::entry::{AuthorityRecord, Content, Entry, RecordError, What};

/// The part of a state by which each server judges, between two looks at the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The changes that it has seen: all up to this one.
    pub generation: u32,
    /// The CAs that the cluster trusts.
    pub roots: Roots,
    /// Everything by which tickets are judged.
    pub verifier: Verifier,
}

/// A CA that the cluster trusts, for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorityRow {
    /// The digest of its certificate.
    pub digest: RootDigest,
    /// Since when it is trusted, in seconds since 1970.
    pub since_seconds: u64,
    /// True if certificates are issued under it.
    pub is_issuing: bool,
    /// True if it is the cluster's own, false if it is the operator's.
    pub is_own: bool,
}

/// The number of dropped CAs that are remembered.
const PAST: usize = 4;

/// A root that is trusted.
pub(super) struct TrustedAuthority {
    /// The clock of the server that began to trust it.
    pub(super) since_seconds: u64,
    pub(super) record: AuthorityRecord,
}

/// The trust of a cluster, which was founded.
pub(super) struct State {
    pub(super) generation: u32,
    /// The root with which the cluster began.
    pub(super) founding: RootDigest,
    pub(super) roots: Roots,
    /// An authority for each root, in no order.
    pub(super) authorities: BTreeMap<RootDigest, TrustedAuthority>,
    /// CAs of the cluster's own that it trusts no longer, the last one last: servers show by them who they are to clients that have heard of no later one.
    pub(super) past: Vec<AuthorityRecord>,
    pub(super) tokens: BTreeMap<TokenId, TokenRecord>,
    pub(super) keys: BTreeMap<KeyId, KeyRecord>,
}

impl State {
    /// The state after the first change.
    ///
    /// # Errors
    /// [`RecordError::Order`].
    pub(super) fn founded(generation: u32, entry: Entry) -> Result<State, RecordError> {
        let Content::Founded(foundation) = entry.content else {
            return Err(RecordError::Order);
        };
        let digest = foundation.authority.root().digest();
        Ok(State {
            generation,
            founding: digest,
            roots: Roots::new(foundation.authority.root().clone()),
            authorities: BTreeMap::from([(
                digest,
                TrustedAuthority {
                    since_seconds: entry.origin.now_seconds,
                    record: foundation.authority,
                },
            )]),
            past: Vec::new(),
            tokens: BTreeMap::new(),
            keys: BTreeMap::from([(foundation.key.id, foundation.key)]),
        })
    }

    /// Takes one more change in; one that cannot be changes nothing.
    ///
    /// # Errors
    /// [`RecordError`].
    pub(super) fn apply(&mut self, generation: u32, entry: Entry) -> Result<(), RecordError> {
        assert_eq!(generation, self.generation + 1, "changes come in order");
        match (entry.what, entry.content) {
            (What::RootTrusted, Content::Authority(record)) => {
                self.roots.trust(record.root().clone())?;
                let trusted = TrustedAuthority {
                    since_seconds: entry.origin.now_seconds,
                    record,
                };
                let digest = trusted.record.root().digest();
                self.authorities.insert(digest, trusted);
            }
            (What::RootIssues, Content::Root(digest)) => self.roots.issue_from(digest)?,
            (What::RootDropped, Content::Root(digest)) => {
                self.roots.drop_root(digest)?;
                let dropped = self.authorities.remove(&digest);
                let own = dropped.filter(|it| it.record.signer().is_some());
                self.past.extend(own.map(|it| it.record));
                let superfluous = self.past.len().saturating_sub(PAST);
                self.past.drain(..superfluous);
            }
            (_, Content::Token(record)) => drop(self.tokens.insert(record.id, record)),
            (_, Content::Key(record)) => drop(self.keys.insert(record.id, record)),
            _ => return Err(RecordError::Order),
        }
        self.generation = generation;
        Ok(())
    }

    /// The records of the roots, the one that issues first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &AuthorityRecord> {
        let of = |root: &Root| &self.authorities[&root.digest()].record;
        self.roots.all().iter().map(of)
    }

    /// The CAs of the cluster's own, also those of before that are remembered.
    pub(super) fn own(&self) -> impl Iterator<Item = &AuthorityRecord> {
        let own = |record: &&AuthorityRecord| record.signer().is_some();
        self.in_order().filter(own).chain(&self.past)
    }

    /// A row for each root, the one that issues first.
    pub(super) fn authority_rows(&self) -> Vec<AuthorityRow> {
        let issuing = self.roots.issuing().digest();
        let row = |root: &Root| {
            let digest = root.digest();
            let trusted = &self.authorities[&digest];
            AuthorityRow {
                digest,
                since_seconds: trusted.since_seconds,
                is_issuing: digest == issuing,
                is_own: trusted.record.signer().is_some(),
            }
        };
        self.roots.all().iter().map(row).collect()
    }

    /// True if the cluster has the key of this root, which it trusts.
    pub(super) fn has_key_of(&self, digest: RootDigest) -> bool {
        self.in_order()
            .any(|record| record.root().digest() == digest && record.signer().is_some())
    }

    /// The record of the root that issues.
    pub(super) fn issuing(&self) -> &AuthorityRecord {
        self.in_order().next().expect("there is always a root")
    }

    /// The signer of tickets: that of the root that issues, or of the next one that is the cluster's own.
    pub(super) fn signer(&self) -> Option<Signer> {
        let mut signers = self.in_order().filter_map(AuthorityRecord::signer);
        signers.next().map(|signer| signer.expect("it was read"))
    }

    /// True if tickets are signed by the signer of this root.
    pub(super) fn signs(&self, digest: RootDigest) -> bool {
        let mut signing = self.in_order().filter(|record| record.signer().is_some());
        let signing = signing.next();
        signing.is_some_and(|record| record.root().digest() == digest)
    }

    /// The key of this name that counts.
    pub(super) fn key_named(&self, name: &str) -> Option<&KeyRecord> {
        let counts = |key: &&KeyRecord| key.name == name && key.revoked_seconds.is_none();
        self.keys.values().find(counts)
    }

    /// True if no other key may make keys: without one nothing could be mended.
    pub(super) fn is_last_of_keys(&self, id: KeyId) -> bool {
        let need = Need::cluster(Verb::Keys);
        let may = |key: &&KeyRecord| key.revoked_seconds.is_none() && key.grants.allow(&need);
        let mut able = self.keys.values().filter(may);
        able.next().is_some_and(|key| key.id == id) && able.next().is_none()
    }

    pub(super) fn view(&self, cluster: u128) -> View {
        let signers = self.in_order().filter_map(AuthorityRecord::signer);
        let is_revoked = |key: &&KeyRecord| key.revoked_seconds.is_some();
        let is_moved = |key: &&KeyRecord| key.least() != Standing::default();
        View {
            generation: self.generation,
            roots: self.roots.clone(),
            verifier: Verifier {
                cluster,
                signers: signers
                    .map(|signer| signer.expect("it was read").public())
                    .collect(),
                revoked: self
                    .keys
                    .values()
                    .filter(is_revoked)
                    .map(|key| key.id)
                    .collect(),
                least: self
                    .keys
                    .values()
                    .filter(is_moved)
                    .map(|key| (key.id, key.least()))
                    .collect(),
            },
        }
    }
}
