//! The user layer: domains by name, objects by key, servers of the cluster.
//!
//! The **root domain** and the directory in it tell a client that knows one address everything else: which servers there
//! are, and for each name of a domain its first configuration. A name is decided by consensus among the members of the
//! root configuration, so that of two creators one wins and the other is told (`[X-20]`).

use crate::config::{Configuration, InvalidConfiguration};
use crate::dap::Found;
use crate::dsm::listing::{self, Page};
use crate::dsm::{Client, atomic, decided_once};
use crate::element::Value;
use crate::env::Env;
use crate::error::{ReadError, Unavailable, WriteError};
use crate::limits;
use crate::message::ListRequest;
use crate::object::{Kind, Name};
use crate::tag::Tag;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

pub mod directory;
pub mod reconfiguration;

pub use directory::{Registration, merge_record, register, servers};

/// A name for a domain that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidDomainName {
    /// The name.
    pub name: String,
}

impl fmt::Display for InvalidDomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' cannot name a domain: names have 1 to {} characters out of a-z, 0-9, '-', '_' and '.', and begin with a letter or a digit",
            self.name,
            limits::NAME_BYTES
        )
    }
}

impl std::error::Error for InvalidDomainName {}

/// A domain that could not be looked up or created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainError {
    /// The name is none.
    Name(InvalidDomainName),
    /// No quorum of the root domain in time. A creation may have taken effect.
    Unavailable(Unavailable),
    /// What was decided cannot be read by this version.
    Descriptor(InvalidConfiguration),
}

impl From<Unavailable> for DomainError {
    fn from(unavailable: Unavailable) -> Self {
        DomainError::Unavailable(unavailable)
    }
}

/// How a creation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Creation {
    /// The domain is new.
    Created,
    /// The name was taken; this is its domain's latest configuration that the directory knows.
    Exists(Arc<Configuration>),
}

/// Checks a domain's name.
///
/// # Errors
/// [`InvalidDomainName`].
pub fn check_domain_name(name: &str) -> Result<(), InvalidDomainName> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let valid = name.len() <= limits::NAME_BYTES
        && name.bytes().next().is_some_and(letter)
        && name
            .bytes()
            .all(|byte| letter(byte) || b"-_.".contains(&byte));
    match valid {
        true => Ok(()),
        false => Err(InvalidDomainName { name: name.into() }),
    }
}

const DOMAIN_CELLS: &[u8] = b"domain/";

/// The cell in which a domain's name is decided. The generation leaves room for a name that is used again after its
/// domain was removed.
fn domain_cell(name: &str) -> Result<Bytes, DomainError> {
    check_domain_name(name).map_err(DomainError::Name)?;
    Ok([DOMAIN_CELLS, name.as_bytes(), b"/00000000"]
        .concat()
        .into())
}

fn domain_of_cell(cell: &[u8]) -> Option<String> {
    let name = cell
        .strip_prefix(DOMAIN_CELLS)?
        .split(|byte| *byte == b'/')
        .next()?;
    String::from_utf8(name.to_vec()).ok()
}

/// The domain of this name: a final configuration of it, the latest that the directory knows. `None` if there is none.
///
/// # Errors
/// [`DomainError`].
pub async fn find_domain<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    name: &str,
) -> Result<Option<Arc<Configuration>>, DomainError> {
    let decided = decided_once::learn(client, root, &domain_cell(name)?).await?;
    let Some(decided) = decided else {
        return Ok(None);
    };
    let first = Configuration::decode(decided).map_err(DomainError::Descriptor)?;
    Ok(Some(directory::latest(client, root, &first).await?))
}

/// Creates a domain with this first configuration, or finds that the name is taken.
///
/// # Errors
/// [`DomainError`].
pub async fn create_domain<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    name: &str,
    first: &Arc<Configuration>,
) -> Result<Creation, DomainError> {
    assert_eq!(first.id().index, 0, "a domain begins with configuration 0");
    let cell = domain_cell(name)?;
    let decided = decided_once::decide(client, root, &cell, first.encoded()).await?;
    let decided = Configuration::decode(decided).map_err(DomainError::Descriptor)?;
    // The domain id is random, so that the same descriptor is the same creation.
    if decided == *first {
        return Ok(Creation::Created);
    }
    let latest = directory::latest(client, root, &decided).await?;
    Ok(Creation::Exists(latest))
}

/// All domains with the latest of their configurations that the directory knows, by name.
///
/// # Errors
/// [`DomainError`].
pub async fn domains<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
) -> Result<Vec<(String, Arc<Configuration>)>, DomainError> {
    let mut domains = Vec::new();
    let mut after = Bytes::new();
    let prefix = Bytes::from_static(DOMAIN_CELLS);
    loop {
        let page = decided_once::list(client, root, &prefix, &after).await?;
        for (cell, decided) in &page.cells {
            let value = match decided {
                Some(value) => Some(value.clone()),
                // Somebody's attempt that may have been decided: finish it, then it has been.
                None => decided_once::learn(client, root, cell).await?,
            };
            let (Some(value), Some(name)) = (value, domain_of_cell(cell)) else {
                continue;
            };
            let first = Configuration::decode(value).map_err(DomainError::Descriptor)?;
            domains.push((name, directory::latest(client, root, &first).await?));
        }
        match (page.truncated, page.cells.into_keys().next_back()) {
            (true, Some(last)) => after = last,
            _ => return Ok(domains),
        }
    }
}

/// Writes an object.
///
/// # Errors
/// [`WriteError`].
pub async fn put<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    value: &Value,
) -> Result<Tag, WriteError> {
    atomic::write(client, c, name, value).await
}

/// Reads an object. A deleted one is found as a tombstone, one that nobody wrote without a value.
///
/// # Errors
/// [`ReadError`].
pub async fn get<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, ReadError> {
    atomic::read(client, c, name, None).await
}

/// Reads everything of an object but its content.
///
/// # Errors
/// [`ReadError`].
pub async fn stat<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
) -> Result<Found, ReadError> {
    atomic::stat(client, c, name).await
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
    Read(ReadError),
    /// The tombstone was not acknowledged.
    Write(WriteError),
}

/// Deletes an object: writes a tombstone over it, if it is there.
///
/// # Errors
/// [`DeleteError`].
pub async fn delete<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    name: &Name,
    metadata: Bytes,
) -> Result<Deletion, DeleteError> {
    let found = atomic::stat(client, c, name)
        .await
        .map_err(DeleteError::Read)?;
    if found.value.is_none_or(|value| value.deleted) {
        return Ok(Deletion::NotFound);
    }
    let tag = atomic::write(client, c, name, &Value::tombstone(metadata))
        .await
        .map_err(DeleteError::Write)?;
    Ok(Deletion::Deleted(tag))
}

/// One page of the users' objects whose keys begin with `prefix` and are larger than `after`.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn list<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    prefix: &str,
    after: &str,
    limit: u16,
) -> Result<Page, Unavailable> {
    let request = ListRequest {
        kind: Kind::User,
        prefix: prefix.into(),
        after: after.into(),
        limit,
    };
    listing::list(client, c, &request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_names_are_plain() {
        for good in ["a", "photos", "my-photos_2.old", "0"] {
            assert!(check_domain_name(good).is_ok(), "{good}");
            let cell = domain_cell(good).unwrap();
            assert_eq!(domain_of_cell(&cell).as_deref(), Some(good));
        }
        for wrong in ["", "-a", "A", "a/b", "ä", "a b", &"x".repeat(64)] {
            assert!(check_domain_name(wrong).is_err(), "{wrong}");
        }
    }
}
