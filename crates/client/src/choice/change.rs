//! A wanted change, and the configuration that it makes of another one.

use super::invalid::{InvalidChoice, checked};
use super::servers::{distinct, member};
use crate::cluster::Names;
use crate::experimental::Experimental;
use crate::reconfig_kind::ReconfigKind;
use crate::shape::DapKind;
use areo_core::config::{Configuration, Dap, Decider, Descriptor, Membership, ServerId};
use areo_core::message::ServerRecord;
use std::sync::Arc;

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
    /// Data fragments; of a domain that becomes erasure-coded [`Shape::default_k`](crate::Shape::default_k).
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
pub(crate) fn wanted(
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
    let wanted = checked(descriptor, change.allow_f0 || kept)?;
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
    checked(wanted.descriptor().clone(), change.allow_f0 || kept)
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
        let found = wanted.iter().map(|name| member(name, names));
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
    distinct(&known)?;
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

/// True if the configurations differ in nothing but their index.
pub(crate) fn is_same_but_for_index(c: &Configuration, other: &Configuration) -> bool {
    let moved = Descriptor {
        index: other.id().index,
        ..c.descriptor().clone()
    };
    moved == *other.descriptor()
}

#[cfg(test)]
mod tests;
