//! A wanted change, and the configuration that it makes of another one.

use crate::choice::{self, InvalidChoice};
use crate::cluster::Names;
use crate::experimental::Experimental;
use crate::reconfig_kind::ReconfigKind;
use crate::shape::Shape;
use areo_core::config::{Configuration, Dap, Decider, Descriptor, Membership, ServerId};
use areo_core::message::ServerRecord;
use std::sync::Arc;

/// An algorithm, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DapKind {
    /// Replication: every server holds a copy.
    Abd,
    /// Erasure coding: every server holds a fragment of a large value, and a copy of a small one.
    Ec,
    /// Ranked registers: conditional writes have one winner.
    Conditional,
    /// MW-ABD, to compare with.
    AbdPublished,
    /// EC-DAP as Ares has it, to compare with.
    EcPublished,
    /// EC-DAPopt of `CoAres`, to compare with.
    EcOptimized,
    /// Coded atomic storage, without garbage collection.
    Cas,
    /// CAS whose superseded versions are dropped.
    CasGc,
    /// CASGC with gossip of servers, so that it recovers by itself from what no execution produces.
    CasSs,
}

impl DapKind {
    /// The algorithm with `k` data fragments, which replication has no use for.
    pub fn with(self, k: u8) -> Dap {
        match self {
            DapKind::Abd => Dap::Abd,
            DapKind::AbdPublished => Dap::AbdPublished,
            DapKind::Ec => Dap::Ec { k },
            DapKind::Conditional => Dap::Conditional { k },
            DapKind::EcPublished => Dap::EcPublished { k },
            DapKind::EcOptimized => Dap::EcOptimized { k },
            DapKind::Cas => Dap::Cas { k },
            DapKind::CasGc => Dap::CasGc { k },
            DapKind::CasSs => Dap::CasSs { k },
        }
    }

    /// True if it keeps fragments, or may.
    pub fn is_coded(self) -> bool {
        self == DapKind::Conditional || self.with(1).is_coded()
    }

    /// Data fragments by default: as many as `n` servers allow with one crash; of a conditional domain one, which is
    /// replication, because objects with one winner are mostly small and must survive.
    pub fn default_k(self, n: usize) -> u8 {
        match self {
            DapKind::Conditional => 1,
            _ => Shape::default_k(n),
        }
    }
}

impl From<Dap> for DapKind {
    fn from(dap: Dap) -> DapKind {
        match dap {
            // What comes after a removal is a domain of its own.
            Dap::Abd | Dap::Removed => DapKind::Abd,
            Dap::AbdPublished => DapKind::AbdPublished,
            Dap::Ec { .. } => DapKind::Ec,
            Dap::Conditional { .. } => DapKind::Conditional,
            Dap::EcPublished { .. } => DapKind::EcPublished,
            Dap::EcOptimized { .. } => DapKind::EcOptimized,
            Dap::Cas { .. } => DapKind::Cas,
            Dap::CasGc { .. } => DapKind::CasGc,
            Dap::CasSs { .. } => DapKind::CasSs,
        }
    }
}

/// The wanted changes of a configuration. An option that is `None` or empty leaves its part unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The servers, in order, by name or id; empty: the current members.
    pub servers: Vec<String>,
    /// Servers to add. The first of them takes the place of the first removed one, and so on, so that the elements of the
    /// other members still fit.
    pub add: Vec<String>,
    /// Servers to remove.
    pub remove: Vec<String>,
    /// The algorithm; `None`: unchanged.
    pub dap: Option<DapKind>,
    /// Data fragments; of a domain that becomes erasure-coded [`Shape::default_k`].
    pub k: Option<u8>,
    /// Slack of erasure-coded lists.
    pub delta: Option<u16>,
    /// Options that only experiments set.
    pub experimental: Experimental,
    /// The decider of the successor of the new configuration. The current configuration's decider decides this
    /// change.
    pub decided_by: Option<Decider>,
    /// Allows a shape that no crash leaves working.
    pub allow_f0: bool,
    /// Allows servers that do not serve at present.
    pub force: bool,
}

/// The configuration that the change makes of `last`.
///
/// # Errors
/// Everything that can be known without asking a server.
pub(super) fn wanted(
    change: &Change,
    last: &Configuration,
    names: &Names,
) -> Result<Arc<Configuration>, InvalidChoice> {
    let members = members(change, last, names)?;
    let current = last.descriptor();
    if let Some(membership) = &current.lattice {
        return merged(change, last, membership.of_members(&members));
    }
    let dap = dap(change, last.dap(), members.len())?;
    let descriptor = Descriptor {
        index: current.index + 1,
        members,
        dap,
        era: last.era_of_next(dap),
        delta: change.delta.unwrap_or(current.delta),
        options: change.experimental.of(current.options),
        decided_by: change
            .decided_by
            .clone()
            .unwrap_or_else(|| current.decided_by.clone()),
        ..current.clone()
    };
    // What was allowed once need not be allowed again to be kept.
    let kept = (dap, descriptor.members.len()) == (last.dap(), last.n());
    let wanted = choice::checked(descriptor, change.allow_f0 || kept)?;
    let allowed = last.check_next(&wanted);
    allowed.map_err(|error| InvalidChoice::InvalidShape { error })?;
    Ok(wanted)
}

/// The configuration that a change leads to where configurations are a lattice.
fn merged(
    change: &Change,
    last: &Configuration,
    membership: Membership,
) -> Result<Arc<Configuration>, InvalidChoice> {
    let reconfig = ReconfigKind::of(last);
    // Where a change stops is nothing of the domain.
    let of_domain = Experimental {
        leave_off: None,
        ..change.experimental
    };
    let changes_more = change.dap.is_some()
        || change.k.is_some()
        || change.delta.is_some()
        || change.decided_by.is_some()
        || of_domain != Experimental::default();
    if changes_more {
        return Err(InvalidChoice::ServersOnly { reconfig });
    }
    let members = membership.members().len();
    let least = last.least_members();
    if members < least {
        return Err(InvalidChoice::TooFewStay { members, least });
    }
    let kept = members == last.n();
    let invalid = |error| InvalidChoice::InvalidShape { error };
    let wanted = last.with_membership(membership).map_err(invalid)?;
    choice::checked(wanted.descriptor().clone(), change.allow_f0 || kept)
}

fn dap(change: &Change, current: Dap, n: usize) -> Result<Dap, InvalidChoice> {
    let kind = change.dap.unwrap_or(current.into());
    match change.k {
        Some(k) if !kind.is_coded() => Err(InvalidChoice::NoFragments { k }),
        Some(k) => Ok(kind.with(k)),
        None if current.is_coded() || kind == current.into() => Ok(kind.with(current.k())),
        None => Ok(kind.with(kind.default_k(n))),
    }
}

fn members(
    change: &Change,
    last: &Configuration,
    names: &Names,
) -> Result<Vec<ServerId>, InvalidChoice> {
    let ids = |wanted: &[String]| -> Result<Vec<ServerId>, InvalidChoice> {
        let found = wanted.iter().map(|name| choice::member(name, names));
        found.map(|record| record.map(|record| record.id)).collect()
    };
    let base = match change.servers.is_empty() {
        true => last.members().to_vec(),
        false => ids(&change.servers)?,
    };
    let removed = change.remove.iter();
    let removed = removed.map(|name| leaving(name, &base, names));
    let removed: Vec<ServerId> = removed.collect::<Result<_, _>>()?;
    let added = ids(&change.add)?;
    if let Some(server) = added.iter().find(|server| names.is_leaving(**server)) {
        let name = names.name(*server);
        return Err(InvalidChoice::Leaving { name });
    }
    let stays = |server: &&ServerId| base.contains(server) && !removed.contains(server);
    if let Some(server) = added.iter().find(stays) {
        let name = names.name(*server);
        return Err(InvalidChoice::MemberAlready { name });
    }
    let mut coming = added.into_iter();
    let place = |server: ServerId| match removed.contains(&server) {
        true => coming.next(),
        false => Some(server),
    };
    let mut members: Vec<ServerId> = base.into_iter().filter_map(place).collect();
    members.extend(coming);
    let record = |server: &ServerId| names.records().get(server);
    let known: Vec<&ServerRecord> = members.iter().filter_map(record).collect();
    choice::distinct(&known)?;
    Ok(members)
}

/// The member of this name or id; the directory may not know it any more.
fn leaving(name: &str, members: &[ServerId], names: &Names) -> Result<ServerId, InvalidChoice> {
    let is_named = |server: &&ServerId| names.name(**server) == name || server.to_string() == name;
    let named: Vec<ServerId> = members.iter().filter(is_named).copied().collect();
    match named.as_slice() {
        [server] => Ok(*server),
        [] => Err(InvalidChoice::NotAMember {
            name: name.into(),
            members: members.iter().map(|server| names.name(*server)).collect(),
        }),
        _ => Err(InvalidChoice::AmbiguousServer {
            name: name.into(),
            ids: named,
        }),
    }
}
