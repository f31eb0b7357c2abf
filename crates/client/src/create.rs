//! Choosing the first configuration of a domain: from what people say to a descriptor, or why not.

use crate::cluster::Names;
use crate::{ConfigurationInfo, Dap, Error, InvalidConfiguration, NoQuorum, ServerId, Shape};
use areo_core::config::{Configuration, Descriptor, Options};
use areo_core::limits;
use areo_core::message::ServerRecord;
use areo_core::object::DomainId;
use std::fmt;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// How a new domain is to keep its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainOptions {
    /// Replication or erasure coding.
    pub dap: Dap,
    /// Its servers, by name or by id (32 hexadecimal digits); empty: all that the cluster knows.
    pub servers: Vec<String>,
    /// Slack of erasure-coded lists; `None`: 5.
    pub delta: Option<u16>,
    /// Values up to so many bytes are kept as full copies by erasure coding, too; `None`: 16 KiB.
    pub copy_bytes: Option<u32>,
    /// Allows a shape that no crash leaves working.
    pub allow_f0: bool,
}

impl Default for DomainOptions {
    /// Replication on all servers.
    fn default() -> DomainOptions {
        DomainOptions {
            dap: Dap::Abd,
            servers: Vec::new(),
            delta: None,
            copy_bytes: None,
            allow_f0: false,
        }
    }
}

/// A domain that was not created. Nothing is left behind, except with [`CreateDomainError::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateDomainError {
    /// No server of the cluster has this name or id.
    UnknownServer {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Several servers have this name: say the id of the one that is meant.
    AmbiguousServer {
        /// The name.
        name: String,
        /// Their ids.
        ids: Vec<ServerId>,
    },
    /// A server was named twice.
    ServerTwice {
        /// Its name.
        name: String,
    },
    /// Two servers have the same address, so that one of them no longer exists.
    SameAddress {
        /// Name of the one.
        a: String,
        /// Name of the other.
        b: String,
        /// The address.
        address: String,
    },
    /// One crash would stop the domain (f = 0), and that was not allowed.
    NoCrashTolerated {
        /// The shape.
        shape: Shape,
    },
    /// No such configuration can be.
    InvalidShape {
        /// Why.
        error: InvalidConfiguration,
    },
    /// The name is taken.
    Exists {
        /// The name.
        name: String,
        /// The configuration that the domain of that name has.
        configuration: Box<ConfigurationInfo>,
    },
    /// No quorum of the root domain in time; nothing was created.
    Unavailable {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// No quorum of the root domain in time; the domain may exist now, or come to exist.
    Unknown {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// The name is none, servers refused this client, or what was decided cannot be read.
    Other {
        /// Why.
        error: Error,
    },
}

impl fmt::Display for CreateDomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateDomainError::UnknownServer { name, known } if known.is_empty() => {
                write!(f, "there is no server '{name}': the cluster knows none")
            }
            CreateDomainError::UnknownServer { name, known } => {
                write!(
                    f,
                    "there is no server '{name}': there are {}",
                    known.join(", ")
                )
            }
            CreateDomainError::AmbiguousServer { name, ids } => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "several servers are called '{name}': say which by its id, {}",
                    ids.join(" or ")
                )
            }
            CreateDomainError::ServerTwice { name } => {
                write!(
                    f,
                    "server '{name}' is named twice: every member holds its own element"
                )
            }
            CreateDomainError::SameAddress { a, b, address } => write!(
                f,
                "servers '{a}' and '{b}' have the same address {address}, so one of them no longer exists: name the servers to use"
            ),
            CreateDomainError::NoCrashTolerated { shape } => write!(
                f,
                "{shape} tolerates no crash: every quorum needs {} of {} servers; take more servers{}, or allow f = 0 (--allow-f0)",
                shape.quorum(),
                shape.n(),
                if shape.k() > 1 { " or a smaller k" } else { "" }
            ),
            CreateDomainError::InvalidShape { error } => error.fmt(f),
            CreateDomainError::Exists {
                name,
                configuration,
            } => write!(
                f,
                "domain '{name}' exists already, as {}",
                configuration.shape
            ),
            CreateDomainError::Unavailable { call } => write!(f, "{call}; nothing was created"),
            CreateDomainError::Unknown { call } => {
                write!(f, "{call}; the domain may have been created")
            }
            CreateDomainError::Other { error } => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateDomainError {}

impl From<Error> for CreateDomainError {
    fn from(error: Error) -> CreateDomainError {
        match error {
            Error::Unavailable { call } => CreateDomainError::Unavailable { call },
            Error::Unknown { call } => CreateDomainError::Unknown { call },
            error => CreateDomainError::Other { error },
        }
    }
}

/// The first configuration of a new domain.
///
/// # Errors
/// Everything that can be known without asking a server.
pub(crate) fn first_configuration(
    options: &DomainOptions,
    names: &Names,
    domain: DomainId,
) -> Result<Arc<Configuration>, CreateDomainError> {
    let members = members(&options.servers, names)?;
    distinct(&members)?;
    let invalid = |error| CreateDomainError::InvalidShape { error };
    let shape = Shape::new(options.dap, members.len()).map_err(invalid)?;
    if shape.f() == 0 && !options.allow_f0 {
        return Err(CreateDomainError::NoCrashTolerated { shape });
    }
    let descriptor = Descriptor {
        domain,
        partition: 0,
        index: 0,
        members: members.iter().map(|record| record.id).collect(),
        dap: options.dap,
        delta: options.delta.unwrap_or(limits::DEFAULT_DELTA),
        copy_bytes: options.copy_bytes.unwrap_or(limits::DEFAULT_COPY_BYTES),
        options: Options::default(),
    };
    Configuration::new(descriptor).map_err(invalid)
}

/// The servers that are meant; all of them if none is named.
fn members<'a>(
    wanted: &[String],
    names: &'a Names,
) -> Result<Vec<&'a ServerRecord>, CreateDomainError> {
    let records = names.records();
    if wanted.is_empty() {
        let sorted = names.sorted();
        return Ok(sorted.iter().map(|server| &records[&server.id]).collect());
    }
    wanted.iter().map(|name| member(name, names)).collect()
}

fn member<'a>(name: &str, names: &'a Names) -> Result<&'a ServerRecord, CreateDomainError> {
    let named: Vec<&ServerRecord> = names
        .records()
        .values()
        .filter(|record| record.name == name || record.id.to_string() == name)
        .collect();
    match named.as_slice() {
        [record] => Ok(record),
        [] => Err(CreateDomainError::UnknownServer {
            name: name.into(),
            known: names.sorted().into_iter().map(|s| s.name).collect(),
        }),
        several => Err(CreateDomainError::AmbiguousServer {
            name: name.into(),
            ids: several.iter().map(|record| record.id).collect(),
        }),
    }
}

fn distinct(members: &[&ServerRecord]) -> Result<(), CreateDomainError> {
    for (position, a) in members.iter().enumerate() {
        for b in &members[position + 1..] {
            if a.id == b.id {
                let name = a.name.clone();
                return Err(CreateDomainError::ServerTwice { name });
            }
            if a.address == b.address {
                return Err(CreateDomainError::SameAddress {
                    a: a.name.clone(),
                    b: b.name.clone(),
                    address: a.address.clone(),
                });
            }
        }
    }
    Ok(())
}
