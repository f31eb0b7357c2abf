//! Changes of the CAs of a cluster, and what they issue.

use std::rc::Rc;

use rustls::pki_types::CertificateDer;

use areo_core::config::ServerId;
use areo_core::env::Env;
use areo_core::manager::Root;

use crate::authority::{Authority, PublicKey};
use crate::host::Hosts;
use crate::roots::RootDigest;

use super::entry::{AuthorityRecord, Content, Entry, Foundation, Origin, What};
use super::error::{
    DropRootError, FoundError, IssueError, IssueFromError, LogError, TrustRootError,
};
use super::{AuthorityRow, LOG, Registry, State, Verdict};

/// The time for which a certificate by another CA is shown, in seconds: a day of the 90 for which it counts.
const ISSUED_SECONDS: u64 = 24 * 60 * 60;

/// The certificates of a server by the CAs that did not issue the one that it shows.
pub(super) struct IssuedByOthers {
    server: ServerId,
    key: PublicKey,
    /// The CAs that issued them.
    by: Vec<RootDigest>,
    /// The time of their issue.
    since_seconds: u64,
    /// The server's certificate by each CA.
    certificates: Rc<[CertificateDer<'static>]>,
}

impl Registry {
    /// Founds the cluster: the first change, made by the server that has this foundation in its data directory. A repetition changes nothing.
    ///
    /// # Errors
    /// [`FoundError`].
    pub async fn found<E: Env>(
        &self,
        root: &Root<E>,
        foundation: &Foundation,
        origin: &Origin,
    ) -> Result<(), FoundError> {
        let chain = root.chain(LOG);
        loop {
            self.catch_up(&chain).await?;
            let founding = self.state.borrow().as_ref().map(|state| state.founding);
            if let Some(digest) = founding {
                return match digest == foundation.authority.root().digest() {
                    true => Ok(()),
                    false => Err(FoundError::Other { digest }),
                };
            }
            let entry = Entry {
                origin: origin.clone(),
                what: What::Founded,
                content: Content::Founded(foundation.clone()),
            };
            self.append(&chain, None, &entry).await?;
        }
    }

    /// The CAs that the cluster trusts, the one that issues first.
    ///
    /// # Errors
    /// [`LogError`].
    pub async fn authorities<E: Env>(&self, root: &Root<E>) -> Result<Vec<AuthorityRow>, LogError> {
        self.refresh(root).await?;
        let state = self.state.borrow();
        Ok(state
            .as_ref()
            .map_or_else(Vec::new, super::State::authority_rows))
    }

    /// A certificate for the key of a server, by the CA that issued when the log was read last.
    ///
    /// # Errors
    /// [`IssueError`].
    pub fn issue_certificate(
        &self,
        server: ServerId,
        key: &PublicKey,
        now_seconds: u64,
    ) -> Result<CertificateDer<'static>, IssueError> {
        Ok(self.issuing_authority()?.issue(server, key, now_seconds)?)
    }

    /// A certificate for the key of a gateway that callers reach by these names, likewise.
    ///
    /// # Errors
    /// [`IssueError`].
    pub fn issue_to_gateway(
        &self,
        hosts: &Hosts,
        key: &PublicKey,
        now_seconds: u64,
    ) -> Result<CertificateDer<'static>, IssueError> {
        Ok(self
            .issuing_authority()?
            .issue_to_gateway(hosts, key, now_seconds)?)
    }

    /// The CA that issued when the log was read last.
    fn issuing_authority(&self) -> Result<Authority, IssueError> {
        let state = self.state.borrow();
        let record = state.as_ref().ok_or(IssueError::NotRead)?.issuing();
        let digest = record.root().digest();
        let authority = record.authority(self.cluster);
        Ok(authority.ok_or(IssueError::OfOperator { digest })??)
    }

    /// Certificates for the key of a server by each CA of the cluster's own but this one, those that were dropped last included, as the log was read last.
    /// They are made once a day for each key. A CA that cannot issue is left out: a client that knows another one is not to wait for it.
    pub(super) fn issue_by_others(
        &self,
        server: ServerId,
        (key, issuer): (&PublicKey, Option<RootDigest>),
        now_seconds: u64,
    ) -> Rc<[CertificateDer<'static>]> {
        let state = self.state.borrow();
        let records = state.iter().flat_map(State::own);
        let others = records.filter(|record| Some(record.root().digest()) != issuer);
        let others: Vec<&AuthorityRecord> = others.collect();
        let by: Vec<RootDigest> = others.iter().map(|it| it.root().digest()).collect();
        let mut issued = self.issued_by_others.borrow_mut();
        if let Some(before) = issued.as_ref()
            && (before.server, before.key) == (server, *key)
            && before.by == by
            && (before.since_seconds..before.since_seconds.saturating_add(ISSUED_SECONDS))
                .contains(&now_seconds)
        {
            return Rc::clone(&before.certificates);
        }
        let issue = |record: &AuthorityRecord| {
            let authority = record.authority(self.cluster)?.ok()?;
            authority.issue(server, key, now_seconds).ok()
        };
        let certificates: Rc<[_]> = others.into_iter().filter_map(issue).collect();
        if certificates.len() == by.len() {
            *issued = Some(IssuedByOthers {
                server,
                key: *key,
                by,
                since_seconds: now_seconds,
                certificates: Rc::clone(&certificates),
            });
        }
        certificates
    }

    /// The record of the CA that issued when the log was read last; `None` before that.
    pub fn issuing(&self) -> Option<AuthorityRecord> {
        let state = self.state.borrow();
        state.as_ref().map(|state| state.issuing().clone())
    }

    /// Trusts one more CA: the first step of a rotation. A repetition changes nothing.
    ///
    /// # Errors
    /// [`TrustRootError`].
    pub async fn trust_root<E: Env>(
        &self,
        root: &Root<E>,
        record: &AuthorityRecord,
        origin: &Origin,
    ) -> Result<(), TrustRootError> {
        let judge = |state: &super::State| {
            let mut roots = state.roots.clone();
            roots.trust(record.root().clone())?;
            Ok(match roots == state.roots {
                true => Verdict::AsItIs(()),
                false => Verdict::Change(What::RootTrusted, Content::Authority(record.clone()), ()),
            })
        };
        self.change(root, origin, judge).await
    }

    /// Has a trusted CA issue certificates, and its key sign tickets, from now on: the second step of a rotation. Every server is to trust it by
    /// then.
    ///
    /// # Errors
    /// [`IssueFromError`].
    pub async fn issue_from<E: Env>(
        &self,
        root: &Root<E>,
        digest: RootDigest,
        origin: &Origin,
    ) -> Result<(), IssueFromError> {
        let judge = |state: &super::State| {
            let mut roots = state.roots.clone();
            roots.issue_from(digest)?;
            if !state.has_key_of(digest) {
                return Err(IssueFromError::OfOperator { digest });
            }
            Ok(match roots == state.roots {
                true => Verdict::AsItIs(()),
                false => Verdict::Change(What::RootIssues, Content::Root(digest), ()),
            })
        };
        self.change(root, origin, judge).await
    }

    /// Trusts a CA no longer: the last step of a rotation. Certificates of it count no more, nor do tickets that the key under it signed: every
    /// server is to have another certificate by then.
    ///
    /// # Errors
    /// [`DropRootError`].
    pub async fn drop_root<E: Env>(
        &self,
        root: &Root<E>,
        digest: RootDigest,
        origin: &Origin,
    ) -> Result<(), DropRootError> {
        let judge = |state: &super::State| {
            state.roots.clone().drop_root(digest)?;
            match state.signs(digest) {
                true => Err(DropRootError::Signs { digest }),
                false => Ok(Verdict::Change(
                    What::RootDropped,
                    Content::Root(digest),
                    (),
                )),
            }
        };
        self.change(root, origin, judge).await
    }
}
