//! The user layer: domains by name, objects by key, servers of the cluster.
//!
//! The **root domain** and the directory in it tell a client that knows one address everything else: which servers there
//! are ([`directory`]), and which domains ([`mod@domains`]).

use crate::config::Configuration;
use crate::dap::Found;
use crate::dsm::Client;
use crate::dsm::coverable::Covered;
use crate::dsm::listing::Page;
use crate::element::Value;
use crate::env::Env;
use crate::error::{Unavailable, WriteError};
use crate::message::ListRequest;
use crate::object::Name;
use crate::span::{self, ErrorType};
use crate::tag::Tag;
use bytes::Bytes;
use std::sync::Arc;

pub mod directory;
pub mod domains;
pub mod names;
pub mod reconfiguration;

pub use directory::{Registration, StartError, merge_record, register, servers, start};
pub use domains::{
    Creation, DomainError, InvalidDomainName, Removal, RemovalError, check_domain_name,
    create_domain, domains, find_domain, remove_domain,
};
pub use names::{InvalidServerName, Naming, check_server_name, name_server};

/// Writes an object, and removes the blocks of what it replaces ([`crate::dsm::removal`]).
///
/// # Errors
/// [`WriteError`].
pub async fn put<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: &Value,
) -> Result<Tag, WriteError> {
    let (replaced, tag) = client.domain(c).write_over(name, value).await?;
    client.domain(c).remove_replaced(replaced).await;
    Ok(tag)
}

/// Writes an object if `version` is its newest, with `None` if there is no such object; finds the newest version otherwise.
/// Blocks of what it replaces are removed, as in [`put`]. Weak: of concurrent writes on one version several may succeed
/// ([`crate::dsm::coverable`], `[V-1 weak-coverability]`).
///
/// # Errors
/// [`WriteError`].
pub async fn put_if<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: &Value,
    version: Option<Tag>,
) -> Result<Covered, WriteError> {
    let mut covers = version.unwrap_or(Tag::INITIAL);
    loop {
        match client.domain(c).write_covering(name, value, covers).await? {
            // A deleted object is none, too: the write covers its tombstone.
            Covered::Unchanged(found) if version.is_none() && is_tombstone(&found) => {
                covers = found.tag;
            }
            covered @ Covered::Changed(_) => {
                client.domain(c).remove_replaced(covers).await;
                return Ok(covered);
            }
            covered @ Covered::Unchanged(_) => return Ok(covered),
        }
    }
}

fn is_tombstone(found: &Found) -> bool {
    found.value.as_ref().is_some_and(|value| value.deleted)
}

/// Reads an object. A deleted one is found as a tombstone, one that nobody wrote without a value.
///
/// # Errors
/// [`Unavailable`].
pub async fn get<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, Unavailable> {
    client.domain(c).read(name, None).await
}

/// [`get`] as a part of the current span, [`span::read`], which goes on: what is found may be the manifest of a value in
/// blocks, and reading those is a part of the same operation.
///
/// # Errors
/// [`Unavailable`].
pub async fn get_within<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, Unavailable> {
    client.domain(c).read_within(name, None).await
}

/// Reads everything of an object but its content.
///
/// # Errors
/// [`Unavailable`].
pub async fn stat<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, Unavailable> {
    client.domain(c).stat(name).await
}

/// How a deletion ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone; this is the version of its tombstone.
    Deleted(Tag),
    /// There was none.
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

/// Deletes an object: writes a tombstone over it, if it is there, and removes its blocks.
///
/// # Errors
/// [`DeleteError`].
pub async fn delete<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    metadata: Bytes,
) -> Result<Deletion, DeleteError> {
    let delete = async {
        let found = client
            .domain(c)
            .stat(name)
            .await
            .map_err(DeleteError::Read)?;
        if found.value.is_none_or(|value| value.deleted) {
            return Ok(Deletion::NotFound);
        }
        let written = client
            .domain(c)
            .write_over(name, &Value::tombstone(metadata))
            .await;
        let (replaced, tag) = written.map_err(DeleteError::Write)?;
        span::record_tag(tag);
        client.domain(c).remove_replaced(replaced).await;
        Ok(Deletion::Deleted(tag))
    };
    span::watch!(span::of_object!(span::DELETE, name), delete)
}

/// One page of the objects that `request` asks for.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn list<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    request: &ListRequest,
) -> Result<Page, Unavailable> {
    let domain = client.domain(c);
    let listed = domain.list(request);
    span::watch!(span::of_phase!(span::LIST), listed)
}
