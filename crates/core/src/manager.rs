//! The user layer: domains by name, objects by key, servers of the cluster.
//!
//! The **root domain** and the directory in it tell a client that knows one address everything else: which servers there
//! are ([`directory`]), and which domains ([`mod@domains`]). What else needs one winner after the other is a chain ([`chains`]).

use crate::config::Configuration;
use crate::dap::FoundVersion;
use crate::dsm::conditional::{Condition, Wish, WriteDecision};
use crate::dsm::coverable::CoverableOutcome;
use crate::dsm::listing::Page;
use crate::dsm::losses::mark_of_loss;
use crate::dsm::{Client, Domain};
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::message::ListRequest;
use crate::object::Name;
use crate::span::{self, ErrorType};
use crate::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;

pub mod chains;
pub mod directory;
pub mod domains;
pub mod growth;
pub mod incarnations;
pub mod leading;
pub mod levels;
pub mod names;
pub mod reconfiguration;
pub mod repair;
pub mod without;

pub use chains::{AppendError, Appended, Chain, Link, LinkPage};
pub use directory::{Registration, StartError, StartOutcome, merge_record};
pub use domains::{
    Creation, DomainError, InvalidDomainName, Removal, RemovalError, check_domain_name,
};
pub use levels::Finalization;
pub use names::{InvalidServerName, Naming, check_server_name};

/// The root domain, as a client knows it. The operations on servers and domains are its methods.
#[derive(Clone)]
pub struct Root<E> {
    /// The domain with the directory.
    pub domain: Domain<E>,
}

impl<E: Env> Client<E> {
    /// A handle on the root domain. `known`: any final configuration of it.
    pub fn root(&self, known: &Arc<Configuration>) -> Root<E> {
        let domain = self.domain(known);
        Root { domain }
    }
}

/// The end of a deletion without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone; this is the version of its tombstone.
    Deleted(Tag),
    /// There was no object.
    NotFound,
}

/// A deletion that was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteError {
    /// It could not be seen whether the object is there; nothing was written.
    Read(Unavailable),
    /// The tombstone was not acknowledged.
    Write(WriteError),
}

impl ErrorType for DeleteError {
    fn error_type(&self) -> &'static str {
        match self {
            DeleteError::Read(error) => error.error_type(),
            DeleteError::Write(error) => error.error_type(),
        }
    }
}

impl<E: Env> Domain<E> {
    /// Writes an object, and removes the blocks of the replaced version ([`crate::dsm::removal`]).
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn put(&self, name: &Name, value: &Value) -> Result<Tag, WriteError> {
        let (replaced, tag) = self.write_over(name, value).await?;
        assert!(
            replaced < tag,
            "blocks of the version that was written stay"
        );
        self.remove_replaced(replaced).await;
        Ok(tag)
    }

    /// Writes an object if `version` is its newest, with `None` if there is no such object; otherwise returns the
    /// newest version. Blocks of the replaced version are removed, as in [`Domain::put`]. In a conditional domain one
    /// of concurrent writes on one version succeeds ([`crate::dsm::conditional`]); elsewhere the condition is weak,
    /// and several may succeed ([`crate::dsm::coverable`], `[V-1 weak-coverability]`).
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn put_if(
        &self,
        name: &Name,
        value: &Value,
        version: Option<Tag>,
    ) -> Result<CoverableOutcome, WriteError> {
        if self.is_ranked(name) {
            let condition = version.map_or(Condition::Absent, Condition::Version);
            let wish = self.client.wish(value, condition);
            return Ok(self.put_decided(name, wish).await?.into());
        }
        let mut covers = version.unwrap_or(Tag::INITIAL);
        loop {
            match self.write_covering(name, value, covers).await? {
                // A deleted object is none, too: the write covers its tombstone.
                CoverableOutcome::Unchanged(found) if version.is_none() && is_tombstone(&found) => {
                    covers = found.tag;
                }
                covered @ CoverableOutcome::Changed(_) => {
                    self.remove_replaced(covers).await;
                    return Ok(covered);
                }
                covered @ CoverableOutcome::Unchanged(_) => return Ok(covered),
            }
        }
    }

    /// Writes a mark in place of a version that cannot be read any more, so that a change of the domain can end. False: another version
    /// has come since, or this one can be read again, and nothing was written. Source: `[X-40 named-loss]`; in a conditional domain the mark
    /// is a write on that version (`[W-18 lost-version]`).
    ///
    /// # Errors
    /// [`WriteError`] says whether the mark may have been written.
    pub async fn leave_unreadable(&self, name: &Name, lost: Tag) -> Result<bool, WriteError> {
        if !self.is_ranked(name) {
            return self.leave_lost(name, lost).await;
        }
        let left = self.put_if(name, &mark_of_loss(lost), Some(lost)).await?;
        Ok(matches!(left, CoverableOutcome::Changed(_)))
    }

    /// Writes an object of a conditional domain if the wish's condition holds. Blocks of the replaced version are
    /// removed.
    ///
    /// # Errors
    /// [`WriteError`].
    pub async fn put_decided(
        &self,
        name: &Name,
        wish: Wish<'_>,
    ) -> Result<WriteDecision, WriteError> {
        let decided = Box::pin(self.decide_write(name, wish)).await?;
        if let WriteDecision::Written { replaced, .. } = decided {
            self.remove_replaced(replaced).await;
        }
        Ok(decided)
    }

    /// Deletes an object: writes a tombstone over it, if it is there, and removes its blocks.
    ///
    /// # Errors
    /// [`DeleteError`].
    pub async fn delete(&self, name: &Name, metadata: Bytes) -> Result<Deletion, DeleteError> {
        let delete = async {
            if self.is_ranked(name) {
                match self.delete_register(name, metadata.clone()).await {
                    Err(DeleteError::Write(WriteError::NotApplied(failed)))
                        if failed.is_not_conditional() => {}
                    deleted => return deleted,
                }
            }
            match self.stat(name).await {
                Ok(found) if found.value.as_ref().is_none_or(|value| value.deleted) => {
                    return Ok(Deletion::NotFound);
                }
                Ok(_) => {}
                // There is something, and it need not be read: a tombstone has nothing that could be lost ([X-40 named-loss]).
                Err(failed) if !failed.lost_versions().is_empty() => {}
                Err(failed) => return Err(DeleteError::Read(failed)),
            }
            let written = self.write_over(name, &Value::tombstone(metadata)).await;
            let (replaced, tag) = written.map_err(DeleteError::Write)?;
            assert!(replaced < tag, "a tombstone is above what it removes");
            span::record_tag(tag);
            self.remove_replaced(replaced).await;
            Ok(Deletion::Deleted(tag))
        };
        span::watch!(span::of_object!(span::DELETE, name), delete)
    }

    async fn delete_register(&self, name: &Name, metadata: Bytes) -> Result<Deletion, DeleteError> {
        let tombstone = Value::tombstone(metadata);
        let wish = self.client.wish(&tombstone, Condition::Present);
        let decided = self.put_decided(name, wish).await;
        match decided.map_err(DeleteError::Write)? {
            WriteDecision::Conflict(_) => Ok(Deletion::NotFound),
            WriteDecision::Written { tag, .. } => {
                span::record_tag(tag);
                Ok(Deletion::Deleted(tag))
            }
        }
    }

    /// One page of the objects that `request` asks for.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn list_objects(&self, request: &ListRequest) -> Result<Page, Unavailable> {
        let listed = self.list(request);
        span::watch!(span::of_phase!(span::LIST), listed)
    }
}

fn is_tombstone(found: &FoundVersion) -> bool {
    found.value.as_ref().is_some_and(|value| value.deleted)
}
