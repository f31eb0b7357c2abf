//! The first configuration of a domain.

use super::invalid::{InvalidChoice, checked};
use super::servers::{coming, distinct};
use crate::cluster::{ConfigurationInfo, Names, ServerInfo};
use crate::error::{Error, NoQuorum};
use crate::experimental::Experimental;
use crate::reconfig_kind::ReconfigKind;
use areo_core::config::{
    Configuration, Dap, Decider, Descriptor, Members, Membership, Options, ServerId,
};
use areo_core::limits;
use areo_core::message::ServerRecord;
use areo_core::object::DomainId;
use areo_core::tag::Writer;
use std::collections::BTreeSet;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Options of a new domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainOptions {
    /// Replication or erasure coding.
    pub dap: Dap,
    /// Its servers, by name or by id (32 hexadecimal digits); empty: all that the cluster knows and that are neither to go nor to be emptied, without those
    /// that share their address with another one and do not answer there.
    pub servers: Vec<String>,
    /// Slack of erasure-coded lists; `None`: 5.
    pub delta: Option<u16>,
    /// Largest value in bytes that erasure coding keeps as full copies; `None`: 16 KiB.
    pub copy_bytes: Option<u32>,
    /// Options that only experiments set.
    pub experimental: Experimental,
    /// The decider of the next configuration.
    pub decided_by: Decider,
    /// The way in which it is reconfigured.
    pub reconfig: ReconfigKind,
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
            experimental: Experimental::default(),
            decided_by: Decider::Members,
            reconfig: ReconfigKind::default(),
            allow_f0: false,
        }
    }
}

/// A domain that was not created. Nothing is left behind, except with [`CreateDomainError::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateDomainError {
    /// No such configuration can be, or should.
    #[error("{error}")]
    Choice {
        /// The reason why the shape or the servers are refused.
        error: InvalidChoice,
    },
    /// The name is taken.
    #[error("domain '{name}' exists already, as {}", .configuration.shape)]
    Exists {
        /// The name that is taken.
        name: String,
        /// The configuration that the domain of that name has.
        configuration: Box<ConfigurationInfo>,
    },
    /// No quorum of the root domain in time; nothing was created.
    #[error("{call}; nothing was created")]
    Unavailable {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// No quorum of the root domain in time; the domain may exist now, or come to exist.
    #[error("{call}; the domain may have been created")]
    Unknown {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// The name is invalid, servers refused this client, or the decided configuration cannot be read.
    #[error("{error}")]
    Other {
        /// The error of the directory.
        error: Error,
    },
}

impl From<Error> for CreateDomainError {
    fn from(error: Error) -> CreateDomainError {
        match error {
            Error::Unavailable { call } => CreateDomainError::Unavailable { call },
            Error::Unknown { call } => CreateDomainError::Unknown { call },
            error => CreateDomainError::Other { error },
        }
    }
}

impl From<InvalidChoice> for CreateDomainError {
    fn from(error: InvalidChoice) -> CreateDomainError {
        CreateDomainError::Choice { error }
    }
}

/// The servers of a domain for which none is named, in order.
pub(crate) fn candidates(names: &Names, gone: &BTreeSet<ServerId>) -> Vec<ServerInfo> {
    let mut servers = names.sorted();
    servers.retain(|server| {
        let stays = !server.leaving && !server.is_to_empty();
        stays && !gone.contains(&server.id)
    });
    servers
}

/// Servers that have the address of another one, too.
pub(crate) fn sharing(names: &Names) -> Members {
    let shares = |a: &&ServerRecord| {
        let is_other = |b: &ServerRecord| b.id != a.id && b.address == a.address;
        names.servers().any(is_other)
    };
    let sharing = names.servers().filter(shares);
    sharing.map(|record| record.id).collect()
}

/// The first configuration of a new domain, of which servers that are `gone` become no members unless they are named.
///
/// # Errors
/// Everything that can be known without asking a server.
pub(crate) fn first_configuration(
    options: &DomainOptions,
    names: &Names,
    gone: &BTreeSet<ServerId>,
    domain: DomainId,
) -> Result<Arc<Configuration>, InvalidChoice> {
    if options.experimental.leave_off.is_some() {
        return Err(InvalidChoice::NothingToLeaveOff);
    }
    let members = members(&options.servers, names, gone)?;
    distinct(&members)?;
    let descriptor = Descriptor {
        delta: options.delta.unwrap_or(limits::DEFAULT_DELTA),
        copy_bytes: options.copy_bytes.unwrap_or(limits::DEFAULT_COPY_BYTES),
        options: options.experimental.of(Options::default()),
        decided_by: options.decided_by.clone(),
        ..Descriptor::new(
            domain,
            members.iter().map(|record| record.id).collect(),
            options.dap,
        )
    };
    let configuration = checked(first(options.reconfig, descriptor)?, options.allow_f0)?;
    assert_eq!(
        configuration.id().index,
        0,
        "a domain begins with its first configuration"
    );
    assert_eq!(
        configuration.n(),
        members.len(),
        "each chosen server is a member"
    );
    Ok(configuration)
}

/// The chosen descriptor, as the first configuration of a domain that is reconfigured so.
fn first(reconfig: ReconfigKind, chosen: Descriptor) -> Result<Descriptor, InvalidChoice> {
    let decided_by = match reconfig {
        ReconfigKind::Ares => return Ok(chosen),
        ReconfigKind::Rambo => Decider::Members,
        ReconfigKind::LRambo => Decider::Leader {
            owner: Writer::default(),
        },
        ReconfigKind::Sm => Decider::Agreement,
        ReconfigKind::Spsn => Decider::Speculation,
        ReconfigKind::DynaStore => Decider::Snapshot,
    };
    let keeps = reconfig.keeps(chosen.dap);
    if !keeps || chosen.decided_by != Decider::Members {
        return Err(InvalidChoice::NotInALattice { reconfig });
    }
    let least = limits::LATTICE_MEMBERS;
    if reconfig == ReconfigKind::DynaStore && chosen.members.len() < least {
        return Err(InvalidChoice::TooFewToBegin { reconfig, least });
    }
    let membership = Membership::first(chosen.members);
    let membership = match chosen.dap.is_coded() {
        true => membership.with_slots(),
        false => membership,
    };
    Ok(Descriptor {
        members: membership.members(),
        lattice: Some(membership),
        decided_by,
        ..chosen
    })
}

/// The servers that are meant; if none is named, all of them that are not gone.
fn members<'a>(
    wanted: &[String],
    names: &'a Names,
    gone: &BTreeSet<ServerId>,
) -> Result<Vec<&'a ServerRecord>, InvalidChoice> {
    let records = names.records();
    if wanted.is_empty() {
        let found = candidates(names, gone);
        return Ok(found.iter().map(|server| &records[&server.id]).collect());
    }
    wanted.iter().map(|name| coming(name, names)).collect()
}
