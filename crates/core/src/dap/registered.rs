//! The register of servers in one configuration of the root domain: a join by incarnation (`[X-21]`), kept beside the
//! objects.

use crate::config::ServerId;
use crate::env::Env;
use crate::error::Failed;
use crate::gather::{self, Fold, Quorum, Visit};
use crate::message::{Body, Reply, ServerRecord};
use std::collections::BTreeMap;

/// How a registration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// A quorum knows the record.
    Registered,
    /// A later incarnation is registered: the registering server has an older state than it once had.
    Outdated {
        /// The incarnation that is registered.
        registered: u64,
    },
}

/// Keeps the record of the larger incarnation.
pub fn merge(known: &mut BTreeMap<ServerId, ServerRecord>, record: ServerRecord) {
    match known.get(&record.id) {
        Some(newer) if newer.incarnation >= record.incarnation => {}
        _ => drop(known.insert(record.id, record)),
    }
}

/// The servers that a quorum knows, by id; of each the latest record.
///
/// # Errors
/// [`Failed`].
pub async fn list<E: Env>(env: &E, at: &Visit) -> Result<BTreeMap<ServerId, ServerRecord>, Failed> {
    let fold = |known: &mut BTreeMap<_, _>, _from: usize, reply: Reply| match reply {
        Reply::Servers(records) => {
            for record in records {
                merge(known, record);
            }
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), Body::Servers, BTreeMap::new(), fold);
    gather::gather(env, at, tally).await
}

/// Makes a record that was registered elsewhere known to a quorum. Members that know a later one need nothing; the others do,
/// because that later one may never be at a quorum.
///
/// # Errors
/// [`Failed`].
pub async fn hand_on<E: Env>(env: &E, at: &Visit, record: ServerRecord) -> Result<(), Failed> {
    let fold = |(): &mut (), _from: usize, reply: Reply| match reply {
        Reply::Registered | Reply::Outdated { .. } => Fold::Count,
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), Body::Register(record), (), fold);
    gather::gather(env, at, tally).await
}

/// Registers a server, or its new incarnation, with a quorum.
///
/// # Errors
/// [`Failed`].
pub async fn register<E: Env>(
    env: &E,
    at: &Visit,
    record: ServerRecord,
) -> Result<Registration, Failed> {
    let fold = |outcome: &mut Registration, _from: usize, reply: Reply| match reply {
        Reply::Registered => Fold::Count,
        Reply::Outdated { registered } => {
            *outcome = Registration::Outdated { registered };
            Fold::Decide
        }
        _ => Fold::Ignore,
    };
    let body = Body::Register(record);
    let tally = Quorum::of(at.c(), body, Registration::Registered, fold);
    gather::gather(env, at, tally).await
}
