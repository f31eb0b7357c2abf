//! Domains by name. A name is decided by consensus among the members of the root domain, so that of two creators one wins
//! and the other is told (`[X-20 decided-once]`). A removed domain has a last configuration that keeps nothing.

use super::Root;
use crate::config::{Configuration, InvalidConfiguration};
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather;
use crate::limits::{self, DIRECTORY_WINDOW};
use crate::object::DomainId;
use crate::reconfig::ReconfigError;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// A name for a domain that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidDomainName {
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
    /// The name is invalid.
    Name(InvalidDomainName),
    /// No quorum of the root domain in time. A creation may have taken effect.
    Unavailable(Unavailable),
    /// The decided descriptor cannot be read by this version.
    Descriptor(InvalidConfiguration),
}

impl From<Unavailable> for DomainError {
    fn from(unavailable: Unavailable) -> Self {
        DomainError::Unavailable(unavailable)
    }
}

/// The end of a creation without an error.
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

/// The beginning of the names of cells in which names of domains are decided.
pub const DOMAIN_CELLS: &[u8] = b"domain/";
const _: () = assert!(
    DOMAIN_CELLS.len() + limits::NAME_BYTES + "/00000000".len() <= limits::CELL_NAME_BYTES,
    "the cell has a name that is taken"
);

/// The cell in which a domain's name is decided for the `generation`th time: a name is used again when its domain was
/// removed.
fn domain_cell(name: &str, generation: u32) -> Bytes {
    assert!(
        check_domain_name(name).is_ok(),
        "names are checked before they are decided"
    );
    let cell = format!("/{generation:08x}");
    [DOMAIN_CELLS, name.as_bytes(), cell.as_bytes()]
        .concat()
        .into()
}

/// The name of the domain that is decided in this cell of the root domain, if it is such a cell.
pub fn domain_of_cell(cell: &[u8]) -> Option<&str> {
    let name = cell
        .strip_prefix(DOMAIN_CELLS)?
        .split(|byte| *byte == b'/')
        .next()?;
    std::str::from_utf8(name).ok()
}

/// The end of a removal without an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// The domain is gone, with everything in it. Its name may be used again.
    Removed,
    /// There was no domain of this name.
    NotFound,
}

/// A removal that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalError {
    /// The domain could not be looked up, or the directory not be told; try again.
    Domain(DomainError),
    /// It could not be reconfigured for the last time.
    Reconfig(ReconfigError),
}

/// The first configuration of the domain that was decided with this value.
fn first_of(decided: Bytes) -> Result<Arc<Configuration>, DomainError> {
    Configuration::decode(decided).map_err(DomainError::Descriptor)
}

impl<E: Env> Root<E> {
    /// The latest configuration of the domain that begins with this one.
    async fn latest_of(
        &self,
        first: &Arc<Configuration>,
    ) -> Result<Arc<Configuration>, DomainError> {
        let domain = self.domain.client.domain(first);
        // Members that the handle was made with may be gone for good.
        Ok(domain.latest(&self.domain.start()).await?)
    }

    /// The domain of this name: a final configuration of it, the latest that the directory knows. `None` if there is none.
    ///
    /// # Errors
    /// [`DomainError`].
    pub async fn find_domain(&self, name: &str) -> Result<Option<Arc<Configuration>>, DomainError> {
        check_domain_name(name).map_err(DomainError::Name)?;
        for generation in 0.. {
            let cell = domain_cell(name, generation);
            let Some(decided) = self.domain.learn(&cell).await? else {
                return Ok(None);
            };
            let latest = self.latest_of(&first_of(decided)?).await?;
            if !latest.dap().is_removal() {
                return Ok(Some(latest));
            }
        }
        unreachable!("names are not used 2^32 times")
    }

    /// Creates a domain with this first configuration, or finds that the name is taken.
    ///
    /// # Errors
    /// [`DomainError`].
    pub async fn create_domain(
        &self,
        name: &str,
        first: &Arc<Configuration>,
    ) -> Result<Creation, DomainError> {
        assert_eq!(first.id().index, 0, "a domain begins with configuration 0");
        check_domain_name(name).map_err(DomainError::Name)?;
        for generation in 0.. {
            let cell = domain_cell(name, generation);
            let decided = self.domain.decide(&cell, first.encoded()).await?;
            // The domain id is random, so that the same descriptor is the same creation.
            if decided == *first.encoded() {
                return Ok(Creation::Created);
            }
            let latest = self.latest_of(&first_of(decided)?).await?;
            if !latest.dap().is_removal() {
                return Ok(Creation::Exists(latest));
            }
        }
        unreachable!("names are not used 2^32 times")
    }

    /// All domains with the latest of their configurations that the directory knows, by name.
    ///
    /// # Errors
    /// [`DomainError`].
    pub async fn domains(&self) -> Result<Vec<(String, Arc<Configuration>)>, DomainError> {
        self.domains_where(|_| true).await
    }

    /// [`Self::domains`] restricted to the wanted ones: one look at the directory, and one at each of them.
    ///
    /// # Errors
    /// [`DomainError`].
    pub async fn domains_where(
        &self,
        is_wanted: impl Fn(DomainId) -> bool,
    ) -> Result<Vec<(String, Arc<Configuration>)>, DomainError> {
        let mut wanted = self.first_configurations().await?;
        wanted.retain(|(_, first)| is_wanted(first.id().domain));
        let latest = wanted.iter().map(|(_, first)| self.latest_of(first));
        let latest = gather::join(DIRECTORY_WINDOW, latest).await;
        let mut domains = Vec::new();
        for ((name, _), latest) in wanted.into_iter().zip(latest) {
            let latest = latest?;
            if !latest.dap().is_removal() {
                domains.push((name, latest));
            }
        }
        Ok(domains)
    }

    /// All domains that were ever created with their first configurations, by name: removed ones, too.
    ///
    /// # Errors
    /// [`DomainError`].
    pub async fn first_configurations(
        &self,
    ) -> Result<Vec<(String, Arc<Configuration>)>, DomainError> {
        let mut domains = Vec::new();
        let mut after = Bytes::new();
        let prefix = Bytes::from_static(DOMAIN_CELLS);
        loop {
            let page = self.domain.cells(&prefix, &after).await?;
            for (cell, decided) in &page.cells {
                let value = match decided {
                    Some(value) => Some(value.clone()),
                    // An attempt of another client, which may have been decided: this client finishes it.
                    None => self.domain.learn(cell).await?,
                };
                if let (Some(value), Some(name)) = (value, domain_of_cell(cell)) {
                    domains.push((name.to_owned(), first_of(value)?));
                }
            }
            match (page.truncated, page.cells.into_keys().next_back()) {
                (true, Some(last)) => after = last,
                _ => return Ok(domains),
            }
        }
    }

    /// Removes a domain: appends a last configuration that keeps nothing, which makes its members let everything go; then the
    /// directory says so, and the name is free.
    ///
    /// # Errors
    /// [`RemovalError`]. Trying again goes on where it ended.
    pub async fn remove_domain(&self, name: &str) -> Result<Removal, RemovalError> {
        let client = &self.domain.client;
        let found = self.find_domain(name).await;
        let Some(found) = found.map_err(RemovalError::Domain)? else {
            return Ok(Removal::NotFound);
        };
        let last = if found.dap().is_removal() {
            found.clone()
        } else {
            let done = client.domain(&found).append_removal().await;
            done.map_err(RemovalError::Reconfig)?
        };
        assert!(last.dap().is_removal(), "nothing comes after it");
        let removed = client.domain(&last);
        assert_eq!(
            last.id().domain,
            found.id().domain,
            "only this domain is removed"
        );
        // Best effort: servers that a remover did not tell before it died keep what they hold.
        for members in [&found, &last] {
            let _ = removed.announce(members).await;
        }
        self.tell_removal(&last).await;
        // Last, for with this the name is free at every member of the root domain.
        let told = removed.announce(&self.domain.start()).await;
        told.map_err(|unavailable| RemovalError::Domain(unavailable.into()))?;
        Ok(Removal::Removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_names_are_plain() {
        for good in ["a", "photos", "my-photos_2.old", "0"] {
            assert!(check_domain_name(good).is_ok(), "{good}");
            let cell = domain_cell(good, 7);
            assert_eq!(domain_of_cell(&cell), Some(good));
        }
        for wrong in ["", "-a", "A", "a/b", "ä", "a b", &"x".repeat(64)] {
            assert!(check_domain_name(wrong).is_err(), "{wrong}");
        }
    }
}
