//! The last version of a register, where the domain ceases to be conditional (`[W-13 ceasing-to-be-conditional]`): it is decided once,
//! in the configuration that is closed, by ballots above all others.
//!
//! Those who leave the configuration are proposers that propose nothing new: each has the current version chosen by a closing ballot.
//! Members that know what comes next accept only these. Once a version is chosen so, it is current for each later closing
//! proposer, as any chosen version is (`[W-5 current-version]`); and as nothing new is proposed any more, it stays.
//!
//! | | rounds |
//! |---|---|
//! | it was decided before | 1 |
//! | otherwise | 3 |

use super::{AcceptOutcome, CurrentVersion, ProposedVersion, SurveyOutcome, Wanted};
use super::{accept, confirm, survey, value_of};
use crate::config::Configuration;
use crate::dap::Scope;
use crate::element::Value;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::limits;
use crate::message::{Ballot, ChosenVersion};
use crate::object::Name;
use crate::pointer::Pointer;
use crate::tag::{ClientId, Tag, Writer};
use crate::timing::BackOff;
use bytes::Bytes;
use std::sync::Arc;

/// The last version of a register that is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastVersion {
    /// The version, with its lineage.
    pub current: CurrentVersion,
    pub value: Value,
    /// The length of that.
    pub length: u64,
}

/// Decides the last version of a register in a configuration whose successor, `pointer`, is not conditional. `ends`:
/// if the object was never written a tombstone is chosen, so that no earlier proposal of the caller will ever be
/// chosen.
///
/// # Errors
/// [`CallError`]; [`CallError::Moved`] if what comes next is final, and has it.
pub async fn close<E: Env>(
    env: &E,
    (c, pointer): (&Arc<Configuration>, &Pointer),
    name: &Name,
    ends: bool,
) -> (Visit, Result<Option<LastVersion>, CallError>) {
    assert!(c.is_ranked(name), "it is a register there");
    assert!(
        !pointer.configuration.is_ranked(name),
        "and none afterwards"
    );
    let at = Visit::closing(c, pointer);
    let closed = decide(env, &at, name, ends).await;
    (at, closed)
}

async fn decide<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    ends: bool,
) -> Result<Option<LastVersion>, CallError> {
    let wanted = Wanted::new(Scope::Version);
    let (mut above, mut ballot, mut attempt) = (0, None, 0);
    let mut is_overtaken = false;
    let mut back_off = BackOff::new(env.now());
    loop {
        match survey(env, at, name, (ballot, true), wanted.again(attempt)).await? {
            SurveyOutcome::Answered(answers) => {
                above = above.max(answers.promised);
                let current = answers.current.clone();
                let is_decided = current.chosen.is_some_and(|ballot| ballot.is_closing());
                if current.tag.is_initial() && !ends {
                    return Ok(None);
                }
                let read = match (current.tag.is_initial(), is_decided || ballot.is_some()) {
                    (_, false) => None,
                    (true, true) => Some((Value::tombstone(Bytes::new()), 0)),
                    (false, true) => value_of(env, at, name, &answers, Scope::Whole).await?,
                };
                if let Some((value, length)) = read {
                    let last = LastVersion {
                        current: of_closed(env, current)?,
                        value,
                        length,
                    };
                    if is_decided {
                        return Ok(Some(last));
                    }
                    if let Some(ballot) = ballot {
                        match propose(env, at, name, (ballot, &last), &answers.holders).await? {
                            AcceptOutcome::Chosen => return Ok(Some(last)),
                            AcceptOutcome::Overtaken(by) | AcceptOutcome::Void(by) => {
                                above = above.max(by.place());
                            }
                            AcceptOutcome::Closed | AcceptOutcome::Again => {}
                        }
                    }
                }
            }
            SurveyOutcome::Overtaken(by) => {
                above = above.max(by.place());
                is_overtaken = true;
            }
            SurveyOutcome::Closed => unreachable!("it is known to be closed"),
        }
        if ballot.is_some() {
            env.back_off(&mut back_off).await;
            attempt += 1;
        }
        // Who overtook it may have decided it; and for a caller that may only read, members do.
        ballot = (!std::mem::take(&mut is_overtaken)).then(|| next_ballot(env, above));
    }
}

/// A closing ballot above the ones that were heard of. It needs to be unique, nothing else.
fn next_ballot<E: Env>(env: &E, above: u64) -> Ballot {
    let place = (above + 1).max(env.clock_us()) % limits::CLOSING;
    let proposer = Writer {
        client: ClientId(env.random()),
        counter: env.random(),
    };
    let ballot = Ballot {
        number: limits::CLOSING + place,
        proposer,
    };
    assert!(
        ballot.is_closing() && ballot.is_possible(),
        "above all others"
    );
    ballot
}

/// The current version; in place of the initial one, which no member can accept, a tombstone on it.
fn of_closed<E: Env>(env: &E, current: CurrentVersion) -> Result<CurrentVersion, CallError> {
    if !current.tag.is_initial() {
        return Ok(current);
    }
    let writer = Writer {
        client: ClientId(env.random()),
        counter: 1,
    };
    let tag = Tag::INITIAL.next(writer);
    Ok(CurrentVersion {
        tag: tag.map_err(|used_up| CallError::Unavailable(used_up.into()))?,
        deleted: true,
        lineage: current.lineage.followed_by(Tag::INITIAL, 0),
        ..CurrentVersion::default()
    })
}

async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (ballot, last): (Ballot, &LastVersion),
    holders: &[bool],
) -> Result<AcceptOutcome, CallError> {
    assert_eq!(holders.len(), at.c().n(), "known of each member");
    let tag = last.current.tag;
    let proposed = ProposedVersion {
        ballot,
        tag,
        lineage: last.current.lineage.clone(),
        value: Some(&last.value),
        holders,
        base_chosen: false,
    };
    let accepted = accept(env, at, name, proposed).await?;
    if accepted == AcceptOutcome::Chosen {
        confirm(env, at, name, ChosenVersion { ballot, tag });
    }
    Ok(accepted)
}
