//! Names of servers, for people. A server that joins takes a name that no other server of the cluster has.
//!
//! The registry is a join by id ([`super::directory`]), in which two servers may register with equal names. A joining server
//! therefore has its name decided first, as that of a domain is (`[X-20 decided-once]`): of two servers that want one name
//! one wins. The servers with which a cluster begins have their names before there is anything that could decide; the
//! registry knows them, and of a first member that was never started it is assumed that its name is one of `s1` to `sn`.
//!
//! A server in memory has the name of the server that it replaces (`[X-28 memory-replaced]`): the registry keeps one of the two,
//! so that the name is at one address, and restarts decide no further names.

use super::Root;
use crate::config::ServerId;
use crate::env::Env;
use crate::error::Unavailable;
use crate::limits;
use crate::message::ServerRecord;
use bytes::Bytes;
use std::fmt;

/// The beginning of the names of cells in which names of servers are decided.
pub const SERVER_CELLS: &str = "server/";
const _: () = assert!(
    SERVER_CELLS.len() + limits::NAME_BYTES <= limits::CELL_NAME_BYTES,
    "the cell has a name that is taken"
);

/// A name for a server that cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidServerName {
    pub name: String,
}

impl fmt::Display for InvalidServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' cannot name a server: names have 1 to {} characters, no space and no comma",
            self.name.escape_debug(),
            limits::NAME_BYTES
        )
    }
}

impl std::error::Error for InvalidServerName {}

/// The result of giving a server its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// The name is the server's, now and after every restart.
    Named(String),
    /// The wanted name is another server's.
    Taken {
        /// The server that has it.
        by: ServerId,
    },
}

/// Checks a server's name. A comma would end it where servers are listed.
///
/// # Errors
/// [`InvalidServerName`].
pub fn check_server_name(name: &str) -> Result<(), InvalidServerName> {
    let plain =
        |character: char| !character.is_whitespace() && !character.is_control() && character != ',';
    let length = 1..=limits::NAME_BYTES;
    match length.contains(&name.len()) && name.chars().all(plain) {
        true => Ok(()),
        false => Err(InvalidServerName { name: name.into() }),
    }
}

impl<E: Env> Root<E> {
    /// Gives the server of this record a name: `wanted`; or that of the server which it will replace; or the next free one of
    /// `s1`, `s2`, ... To be called before the server registers for the first time; a call after a crash gives the same name, or
    /// a later one.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time. The name may be the server's all the same; calling again finds out.
    pub async fn name_server(
        &self,
        record: &ServerRecord,
        wanted: Option<&str>,
    ) -> Result<Naming, Unavailable> {
        let (server, servers) = (record.id, self.servers().await?);
        let others = || servers.values().filter(|other| other.id != server);
        if let Some(replaced) = others().find(|other| record.displaces(other))
            && wanted.is_none_or(|name| name == replaced.name)
        {
            return Ok(Naming::Named(replaced.name.clone()));
        }
        if let Some(name) = wanted {
            if let Some(other) = others().find(|record| record.name == name) {
                return Ok(Naming::Taken { by: other.id });
            }
            return Ok(match self.owner(name, server).await? {
                by if by == server => Naming::Named(name.into()),
                by => Naming::Taken { by },
            });
        }
        let members = self.domain.start().n();
        let numbers = others().filter_map(|record| number(&record.name));
        let last = numbers.chain([members as u64]).max();
        let mut next = last.expect("the root domain has members") + 1;
        loop {
            let name = format!("s{next}");
            if self.owner(&name, server).await? == server {
                return Ok(Naming::Named(name));
            }
            next += 1;
        }
    }

    /// The server whose name this is from now on: `server`, unless the name was another's before.
    async fn owner(&self, name: &str, server: ServerId) -> Result<ServerId, Unavailable> {
        assert!(
            check_server_name(name).is_ok(),
            "names are checked before they are decided"
        );
        let cell = Bytes::from(format!("{SERVER_CELLS}{name}"));
        let value = Bytes::copy_from_slice(&server.0.to_le_bytes());
        let decided = self.domain.decide(&cell, &value).await?;
        let id = decided.as_ref().try_into();
        // What is no id was written by a later version: the name is taken.
        Ok(ServerId(id.map_or(0, u128::from_le_bytes)))
    }
}

/// N of the name `sN`.
fn number(name: &str) -> Option<u64> {
    let number: u32 = name.strip_prefix('s')?.parse().ok()?;
    (name == format!("s{number}")).then_some(u64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_are_short_words() {
        for good in ["s1", "Rack-3_a.b", "ä", &"x".repeat(63)] {
            assert_eq!(check_server_name(good), Ok(()), "{good}");
        }
        for wrong in ["", "a b", "a,b", "a\n", "\u{7f}", &"x".repeat(64)] {
            assert!(check_server_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_plain_numbers_count() {
        assert_eq!(number("s17"), Some(17));
        for other in ["s", "s01", "s+1", "17", "S1", "s-1", "s4294967296", "s1x"] {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
