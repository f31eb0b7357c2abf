//! Decided-once cells over the configurations of a domain's sequence (`docs/spec` `[X-20 decided-once]`).
//!
//! A configuration that has a successor promises and accepts nothing any more; what a quorum of its closed acceptors had
//! accepted is carried along to the next one. There it counts only as long as nothing was accepted: acceptances of a later
//! configuration go before those of an earlier one, ballots are compared within one configuration.

use super::Client;
use crate::config::Configuration;
use crate::consensus::paxos::{self, Outcome, Page, State};
use crate::env::Env;
use crate::error::{Failed, Unavailable};
use crate::gather::Visit;
use crate::message::Note;
use crate::reconfig::sequence;
use crate::tag::Writer;
use bytes::Bytes;
use std::sync::Arc;

/// Decides the cell and returns its value: `value`, or what was decided before. `c`: any final configuration of the domain.
///
/// # Errors
/// [`Unavailable`] without a quorum in time; the value may be decided all the same, now or by a later proposer.
pub async fn decide<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    cell: &Bytes,
    value: &Bytes,
) -> Result<Bytes, Unavailable> {
    let mut current = client.sequences().start(c);
    let mut inherited = None;
    loop {
        let at = Visit::new(&current);
        let writer = || client.next_writer();
        let proposed =
            paxos::propose(&client.env, &at, cell, value, inherited.as_ref(), writer).await;
        match proposed {
            Ok(Outcome::Decided(decided)) => return Ok(decided),
            Ok(Outcome::Closed) | Err(Failed::Moved) => {}
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
        }
        if let Some(next) = hand_over(client, &at, cell, &mut inherited).await? {
            current = next;
        }
    }
}

/// The same for the one proposer that owns the cell's first ballot, and uses it for one value only: one round where nobody
/// else has proposed anything.
///
/// # Errors
/// As [`decide`]; if nothing was handed over, the value is not and will not be decided.
pub async fn decide_as_owner<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    cell: &Bytes,
    value: &Bytes,
    owner: Writer,
) -> Result<Bytes, Unavailable> {
    // Only where the sequence begins: in a later configuration what was accepted in an earlier one has precedence.
    let at = Visit::new(&client.sequences().start(c));
    match paxos::propose_as_owner(&client.env, &at, cell, value, owner).await {
        Ok(Some(decided)) => return Ok(decided),
        Ok(None) | Err(Failed::Moved) => {}
        Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
    }
    let decided = decide(client, c, cell, value).await;
    decided.map_err(|failed| Unavailable {
        handed_over: true,
        ..failed
    })
}

/// The decided value, if there is one. Finishes what another proposer left undecided.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn learn<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    cell: &Bytes,
) -> Result<Option<Bytes>, Unavailable> {
    let mut current = client.sequences().start(c);
    let mut inherited = None;
    loop {
        let at = Visit::new(&current);
        match paxos::read(&client.env, &at, cell).await {
            Ok(State::Decided(decided)) => return Ok(Some(decided)),
            Ok(State::Accepted(value)) => return decide(client, c, cell, &value).await.map(Some),
            Ok(State::Empty) | Err(Failed::Moved) => {}
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
        }
        match hand_over(client, &at, cell, &mut inherited).await? {
            Some(next) => current = next,
            None => {
                return match inherited {
                    Some(value) => decide(client, c, cell, &value).await.map(Some),
                    None => Ok(None),
                };
            }
        }
    }
}

/// The cells whose names begin with `prefix` and are larger than `after`. `c`: any final configuration of the domain.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn list<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    prefix: &Bytes,
    after: &Bytes,
) -> Result<Page, Unavailable> {
    let mut current = client.sequences().start(c);
    let mut all: Option<Page> = None;
    loop {
        let at = Visit::new(&current);
        match paxos::list(&client.env, &at, prefix, after).await {
            Ok(page) => {
                all = Some(match all.take() {
                    Some(all) => all.merge(page),
                    None => page,
                });
            }
            // What it listed is listed by the configuration that the pointer leads to.
            Err(Failed::Moved) => {}
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
        }
        match sequence::advance(&client.env, client.sequences(), &at).await? {
            None => return Ok(all.unwrap_or_default()),
            Some(next) => current = next,
        }
    }
}

/// Tells the members that the cell is needed no more; nothing rests on it that they hear of it. Only for the cell of an upload
/// that is dead: a version is complete that is larger than the one that it is, or would be. Without it, nobody can tell
/// any more what was decided, and something else may be. `c`: any final configuration of the domain.
pub(super) fn forget<E: Env>(client: &Client<E>, c: &Arc<Configuration>, cell: &Bytes) {
    let c = client.sequences().start(c);
    let note = Note::Forget {
        configuration: c.id(),
        cell: cell.clone(),
    };
    client.env.tell(c.members(), note);
}

/// Goes on to the next configuration, if there is one, with what was accepted in this one.
async fn hand_over<E: Env>(
    client: &Client<E>,
    at: &Visit,
    cell: &Bytes,
    inherited: &mut Option<Bytes>,
) -> Result<Option<Arc<Configuration>>, Unavailable> {
    let next = sequence::advance(&client.env, client.sequences(), at).await?;
    let pending = at.next().filter(|pointer| !pointer.is_final());
    if let (Some(_), Some(pointer)) = (&next, pending) {
        match paxos::read(&client.env, &Visit::closing(at.c(), &pointer), cell).await {
            Ok(state) => *inherited = state.value().or(inherited.take()),
            // What was accepted was transferred by whoever made the successor final.
            Err(Failed::Moved) => {}
            Err(Failed::Unavailable(unavailable)) => return Err(unavailable),
        }
    }
    Ok(next)
}
