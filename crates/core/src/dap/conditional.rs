//! Ranked registers: conditional writes with one winner, in one configuration (`[W-1 promise]` to `[W-9 one-round-read]`; Paxos
//! on a register, as `CASPaxos` by Rystsov 2018 has it, on coded elements, as RS-Paxos by Mu and others 2014 has them).
//!
//! Every write of a user's object, conditional or not, is a proposal. A proposer asks a quorum to promise a ballot, and learns
//! which version is *current*: what is chosen, or may be. It makes a version that is based on that one, and asks a quorum to
//! accept it at the ballot; then it is chosen. A member that has promised a larger ballot refuses, and the proposer begins again
//! with a larger one. So each version is based on the one that was chosen before it, and of two that are based on one version at
//! most one is chosen. Two quorums share `2q - n`, at least k, members, so that the current version can be read wherever a
//! version may be chosen.
//!
//! A version that is returned, or with which a condition is compared, is *settled* first unless the answers show that it is
//! chosen: proposed again by the own ballot. Otherwise a later proposer could find another one.
//!
//! | | rounds | bytes for a value of s bytes |
//! |---|---|---|
//! | PREPARE | 1 | tags |
//! | ACCEPT | 1 | n/k·s up |
//! | read | 1 if the answers show that the version is chosen; otherwise PREPARE and ACCEPT | s down |
//!
//! | pseudocode | here |
//! |---|---|
//! | `PREPARE(b)` `[W-1 promise]` | [`survey`] with a ballot; server: [`register::Register::promise`] |
//! | `ACCEPT(b, t, e)` `[W-2 accept]` | [`accept`]; server: [`register::Register::accept`] |
//! | `CONFIRM(t, b)` `[W-3 chosen]` | [`confirm`]; server: [`register::Register::choose`] |
//! | current version `[W-5 current-version]` | `judge` |
//!
//! Blocks, and what files consist of, are written once or coverably: for those the kind decides as [`super::ec`] does.

mod accept;
pub mod closing;
mod elements;
mod judge;
pub mod register;
mod survey;

use super::Scope;
use super::abd::copy_element;
use super::collect::elements::{alike, enough};
use super::ec::Ec;
use super::kind::{Kind, as_in};
use crate::config::Configuration;
use crate::element::{Element, Value};
use crate::env::Env;
use crate::error::{CallError, LostVersion, Unavailable};
use crate::gather::{self, Visit};
use crate::message::{Ballot, ChosenVersion, Lineage, Note, Proposal};
use crate::object::Name;
use crate::span;
use crate::tag::Tag;
use accept::Accept;
use elements::{Fetch, Fetched};
use survey::Survey;

pub use accept::AcceptOutcome;
pub use judge::CurrentVersion;
pub use survey::Answers;

/// The rules of the kind for objects that are no registers.
pub(crate) enum Conditional {}

impl Kind for Conditional {
    const FENCES: bool = Ec::FENCES;
    const REMEMBERS: super::kind::Remembers = Ec::REMEMBERS;

    as_in!(Ec: wants accepted decode admit trim is_busy);

    fn elements(c: &Configuration, name: &Name, value: &Value) -> Vec<Element> {
        match c.dap().is_coded() {
            true => Ec::elements(c, name, value),
            false => vec![copy_element(value); c.n()],
        }
    }
}

/// The outcome of a question to a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurveyOutcome {
    /// A quorum answered, and promised the ballot if there was one.
    Answered(Answers),
    /// A larger ballot was promised.
    Overtaken(Ballot),
    /// A configuration comes after this one (`[W-8 closing]`).
    Closed,
}

/// The part of the current version that the caller wants with the answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The part of its value.
    pub scope: Scope,
    /// The caller has the value of this version.
    pub have: Tag,
    /// The number of earlier attempts that ended without a result. The wait for late members grows with it where those that
    /// answered hold too few elements of the version.
    pub attempt: u32,
}

impl Wanted {
    /// For the first time, of a caller that has none.
    pub fn new(scope: Scope) -> Wanted {
        Wanted {
            scope,
            have: Tag::INITIAL,
            attempt: 0,
        }
    }

    /// Sets the number of attempts in the request.
    #[must_use]
    pub fn again(self, attempt: u32) -> Wanted {
        Wanted { attempt, ..self }
    }
}

/// Asks a quorum which version of the register is current; with a ballot, has it promised before (PREPARE). `closed`: the visit
/// closes the configuration, and nothing is promised there any more.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn survey<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    (ballot, closed): (Option<Ballot>, bool),
    wanted: Wanted,
) -> Result<SurveyOutcome, CallError> {
    let wants = Ec::wants(env, at.c(), name, wanted.scope, 0);
    let survey = async {
        loop {
            let asked = (ballot, closed);
            let tally = Survey::new(at.c(), name, asked, wants.clone(), wanted);
            match gather::gather(env, at, tally).await? {
                survey::Outcome::Answered(answers) => {
                    return Ok(SurveyOutcome::Answered(answers));
                }
                survey::Outcome::Overtaken(by) => return Ok(SurveyOutcome::Overtaken(by)),
                survey::Outcome::Closed => return Ok(SurveyOutcome::Closed),
                // A member has lost what it said before. Another quorum may do without it.
                survey::Outcome::Contradicted => {
                    env.sleep(crate::timing::ASK_AGAIN).await;
                }
            }
        }
    };
    span::watch!(span::in_configuration!(span::PREPARE, at.c()), survey)
}

/// The value of the current version, of elements that came with the answers or are fetched; `None`: it went for a newer one, or
/// members are late, so that the caller begins again. Of the initial version there is none.
///
/// # Errors
/// [`CallError`] without enough elements in time; with [`crate::error::Obstacle::Lost`] if there are too few, and were before
/// (`[W-18 lost-version]`).
pub async fn value_of<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    answers: &Answers,
    scope: Scope,
) -> Result<Option<(Value, u64)>, CallError> {
    let tag = answers.current.tag;
    assert!(!tag.is_initial(), "the initial version has no value");
    let payload = scope == Scope::Whole;
    // What came for its metadata has no payload, and is not the value.
    let came: &[Element] = match answers.has_payload || !payload {
        true => &answers.elements,
        false => &[],
    };
    // One that states something else of the value is out of order.
    let alike = alike(came.len(), |it| came.get(it));
    let of_one = || alike.iter().map(|it| &came[*it]);
    let elements = if enough(at.c(), scope, of_one()) {
        of_one().cloned().collect()
    } else {
        let of_members = (&answers.holders[..], answers.attempt);
        let fetch = Fetch::new(at.c(), name, (tag, scope), of_members);
        match gather::gather(env, at, fetch).await? {
            Fetched::Elements(elements) => elements,
            Fetched::Lost { found, responses } if answers.attempt > 0 && answers.is_certain => {
                let needed = elements::needed(at.c(), scope);
                let lost = LostVersion {
                    name: name.clone(),
                    tag,
                    found,
                    needed,
                };
                return Err(Unavailable::lost(at.c(), lost, responses).into());
            }
            // It may have been on its way.
            Fetched::Lost { .. } | Fetched::Again => return Ok(None),
        }
    };
    let length = elements[0].length;
    let value = match payload {
        true => Ec::decode(env, at.c(), elements),
        false => super::abd::copy_value(elements.into_iter().next().expect("one is enough")),
    };
    Ok(Some((value, length)))
}

/// The version that is proposed.
#[derive(Clone, Debug)]
pub struct ProposedVersion<'a> {
    /// The ballot, which a quorum has promised.
    pub ballot: Ballot,
    pub tag: Tag,
    /// The lineage that it comes from.
    pub lineage: Lineage,
    /// Its value; `None`: a quorum holds its elements.
    pub value: Option<&'a Value>,
    /// Members that hold its element, by position; empty of a new version.
    pub holders: &'a [bool],
    /// The version that it is based on is known to be chosen.
    pub base_chosen: bool,
}

/// Proposes a version: a new one, or the current one again, which settles it.
///
/// # Errors
/// [`CallError`] without a quorum in time.
pub async fn accept<E: Env>(
    env: &E,
    at: &Visit,
    name: &Name,
    proposed: ProposedVersion<'_>,
) -> Result<AcceptOutcome, CallError> {
    let ProposedVersion {
        ballot,
        tag,
        lineage,
        value,
        holders,
        base_chosen,
    } = proposed;
    assert!(
        !tag.is_initial(),
        "the initial version is chosen everywhere"
    );
    let held = |position: usize| holders.get(position).copied().unwrap_or(false);
    let elements = match value {
        Some(value) => {
            let elements = super::encoded(env, at.c(), name, value).into_iter();
            let brought = |(place, element)| (!held(place)).then_some(element);
            elements.enumerate().map(brought).collect()
        }
        None => vec![None; at.c().n()],
    };
    let proposal = Proposal {
        ballot,
        tag,
        element: None,
        lineage,
        settles: !holders.is_empty(),
        base_chosen,
    };
    let accept = async {
        span::record_tag(tag);
        let tally = Accept::new(at.c(), name, proposal, elements);
        gather::gather(env, at, tally).await
    };
    span::watch!(span::in_configuration!(span::ACCEPT, at.c()), accept)
}

/// Sends all members a note that the version is chosen at this ballot.
pub fn confirm<E: Env>(env: &E, at: &Visit, name: &Name, chosen: ChosenVersion) {
    assert!(
        !chosen.tag.is_initial(),
        "the initial version needs no confirmation"
    );
    let configuration = at.c().id();
    let note = Note::Chosen {
        configuration,
        name: name.clone(),
        chosen,
    };
    env.tell(at.c().members(), note);
}
