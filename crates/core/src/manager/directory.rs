//! The directory in the root domain: which servers there are, and where domains are by now.
//!
//! Both are joins at the servers, not objects: of a server the record of its latest start (`[X-21]`), of a domain the
//! highest configuration known to be final. The latter is a hint (3.6): an old one costs hops, nothing else, and it never
//! names a configuration that is not final.

use crate::config::{Configuration, ServerId};
use crate::dsm::Client;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{Fold, Servers};
use crate::message::{Directory, Reply, Request, ServerRecord};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The latest configuration of a domain that a quorum of the root domain knows to be final; `known` if that is later.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn latest<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    known: &Arc<Configuration>,
) -> Result<Arc<Configuration>, Unavailable> {
    let heard = ask_latest(client, root, known, None).await?;
    client.sequences().learn(&heard);
    Ok(client.sequences().start(known))
}

/// Makes a final configuration known to a quorum of the members of `to`: the root domain's, so that whoever looks the
/// domain up starts there; or its own, so that they answer for older ones.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn announce<E: Env>(
    client: &Client<E>,
    to: &Arc<Configuration>,
    c: &Arc<Configuration>,
) -> Result<(), Unavailable> {
    let told = ask_latest(client, to, c, Some(c.clone())).await?;
    client.sequences().learn(&told);
    Ok(())
}

async fn ask_latest<E: Env>(
    client: &Client<E>,
    of: &Arc<Configuration>,
    c: &Arc<Configuration>,
    known: Option<Arc<Configuration>>,
) -> Result<Arc<Configuration>, Unavailable> {
    let id = c.id();
    let request = Request::Latest {
        domain: id.domain,
        partition: id.partition,
        known,
    };
    let is_of_it = move |c: &Arc<Configuration>| {
        (c.id().domain, c.id().partition) == (id.domain, id.partition)
    };
    let fold = move |latest: &mut Arc<Configuration>, _from: usize, reply: Reply| match reply {
        Reply::Latest(known) => {
            let later = known.filter(|c| is_of_it(c) && c.id().index > latest.id().index);
            *latest = later.unwrap_or_else(|| latest.clone());
            Fold::Count
        }
        _ => Fold::Ignore,
    };
    let tally = Servers::new(of.n(), of.quorums().quorum(), request, c.clone(), fold);
    client.env.gather(of.members(), tally).await
}

/// The servers of the cluster as a quorum of the root domain knows them, by id; of each the latest record.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn servers<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
) -> Result<BTreeMap<ServerId, ServerRecord>, Unavailable> {
    let fold =
        |known: &mut BTreeMap<ServerId, ServerRecord>, _from: usize, reply: Reply| match reply {
            Reply::Directory(Directory { servers, .. }) => {
                for record in servers {
                    merge_record(known, record);
                }
                Fold::Count
            }
            _ => Fold::Ignore,
        };
    let tally = Servers::new(
        root.n(),
        root.quorums().quorum(),
        Request::Directory,
        BTreeMap::new(),
        fold,
    );
    client.env.gather(root.members(), tally).await
}

/// Keeps the record of the larger incarnation.
pub fn merge_record(known: &mut BTreeMap<ServerId, ServerRecord>, record: ServerRecord) {
    match known.get(&record.id) {
        Some(newer) if newer.incarnation >= record.incarnation => {}
        _ => drop(known.insert(record.id, record)),
    }
}

/// How a registration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// A quorum of the root domain knows the record.
    Registered,
    /// A later incarnation is registered: the registering server has an older state than it once had.
    Outdated {
        /// The incarnation that is registered.
        registered: u64,
    },
}

/// Registers a server, or its new incarnation, with a quorum of the root domain.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn register<E: Env>(
    client: &Client<E>,
    root: &Arc<Configuration>,
    record: ServerRecord,
) -> Result<Registration, Unavailable> {
    let fold = |outcome: &mut Registration, _from: usize, reply: Reply| match reply {
        Reply::Registered => Fold::Count,
        Reply::Outdated { registered } => {
            *outcome = Registration::Outdated { registered };
            Fold::Decide
        }
        _ => Fold::Ignore,
    };
    let quorum = root.quorums().quorum();
    let tally = Servers::new(
        root.n(),
        quorum,
        Request::Register(record),
        Registration::Registered,
        fold,
    );
    client.env.gather(root.members(), tally).await
}
