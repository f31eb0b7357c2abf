//! The judges: the operations as clients saw them, by the order of versions and by the judge of `crates/check`.

use super::{Answers, Case, Judge, Kind, Outcome};
use crate::history::{self, History};
use crate::opinion;
use areo_core::hash::stable_hash;
use areo_core::instant::Instant;
use areo_core::message::{Answer, Reply};
use areo_core::tag::Tag;

/// An operation that has begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedOperation {
    pub client: usize,
    /// Its number among the client's operations, from 0.
    pub number: usize,
    pub label: String,
    /// The operation as a judge of registers sees it.
    pub kind: Kind,
    /// For each client the number of its operations that had ended when this one began.
    pub after: Vec<usize>,
    /// Its result; `None` while it runs.
    pub ended: Option<Outcome>,
}

/// Every operation succeeds, they are linearizable, and a quorum holds every acknowledged version.
pub fn linearizable() -> Judge {
    Judge {
        seen: |observed| failed(observed).or_else(|| history_of(observed).1),
        held: is_held,
    }
}

/// A failure is a violation: no more servers crash than may, and no client loses patience.
fn failed(observed: &[ObservedOperation]) -> Option<String> {
    observed.iter().find_map(|of| match &of.ended {
        Some(ended @ (Outcome::Failed(_) | Outcome::Unknown(_))) => {
            let ObservedOperation { client, label, .. } = of;
            Some(format!("liveness: {label} of client {client} {ended}"))
        }
        _ => None,
    })
}

/// The history of the operations as JSON lines, and the first rule that it breaks.
pub(super) fn history_of(observed: &[ObservedOperation]) -> (String, Option<String>) {
    let object = (0, "x".to_owned());
    let (mut history, mut time) = (History::default(), 0);
    let mut begun: Vec<Option<history::Operation>> = vec![None; observed.len()];
    let mut ended = vec![false; observed.len()];
    // What had ended when an operation began grows with time: its size is an order of all beginnings.
    let mut order: Vec<usize> = (0..observed.len()).collect();
    order.sort_by_key(|place| observed[*place].after.iter().sum::<usize>());
    let everything = vec![usize::MAX; observed.iter().map(|o| o.client + 1).max().unwrap_or(0)];
    let last = order
        .iter()
        .map(|place| (Some(*place), &observed[*place].after));
    for (beginning, after) in last.chain([(None, &everything)]) {
        for (place, other) in observed.iter().enumerate() {
            if other.number < after[other.client]
                && !std::mem::replace(&mut ended[place], true)
                && let Some(operation) = &begun[place]
            {
                time += 1;
                let is_on = matches!(other.kind, Kind::Conditional(..));
                let how = (is_on, other.ended.as_ref());
                end(&mut history, Instant(time), operation, how);
            }
        }
        if let Some(place) = beginning {
            let of = &observed[place];
            let (kind, value) = match &of.kind {
                Kind::Read => (history::Kind::Read, None),
                Kind::Write(text) => {
                    let hash = stable_hash(text.as_bytes());
                    (history::Kind::Write, Some(hash))
                }
                Kind::Conditional(base, text) => {
                    let hash = stable_hash(text.as_bytes());
                    (history::Kind::ConditionalWrite(*base), Some(hash))
                }
                Kind::Other => continue,
            };
            time += 1;
            let (operation, _) = history.begin(Instant(time), (of.client, kind), &object, value);
            begun[place] = Some(operation);
        }
    }
    let violation = history.violation().map(str::to_owned);
    let lines = history.lines().to_owned();
    (
        lines.clone(),
        violation.or_else(|| second_opinion(observed, &lines)),
    )
}

/// `is_on`: the operation writes on a version.
fn end(
    history: &mut History,
    now: Instant,
    operation: &history::Operation,
    (is_on, ended): (bool, Option<&Outcome>),
) {
    match ended {
        Some(Outcome::Read(tag, value)) if is_on => {
            let value = value.as_ref().map(|text| stable_hash(text.as_bytes()));
            history.end_uncovered(&now.into(), operation, *tag, value);
        }
        Some(Outcome::Written(tag)) if is_on => {
            history.end_decided(&now.into(), operation, *tag);
        }
        Some(Outcome::Read(tag, value)) => {
            let value = value.as_ref().map(|text| stable_hash(text.as_bytes()));
            history.end_read(&now.into(), operation, *tag, value);
        }
        Some(Outcome::Written(tag)) => history.end_write(&now.into(), operation, *tag),
        Some(Outcome::Failed(_) | Outcome::NotApplied(_)) => history.end_failed(now, operation),
        Some(Outcome::Unknown(_) | Outcome::Other(_)) | None => history.end_unknown(now, operation),
    }
}

/// The judge that knows nothing of versions, with its general search. Nobody is asked before a read or a write has ended.
fn second_opinion(observed: &[ObservedOperation], lines: &str) -> Option<String> {
    let has_ended = |of: &ObservedOperation| {
        let is_judged = of.kind != Kind::Other;
        is_judged && matches!(of.ended, Some(Outcome::Read(..) | Outcome::Written(_)))
    };
    let is_told = observed.iter().any(has_ended);
    is_told.then(|| opinion::against(lines)).flatten()
}

/// A version that an operation has acknowledged or returned is at a quorum of its configuration, or a newer one is.
fn is_held(case: &Case, observed: &ObservedOperation, views: &[&[Answers]]) -> Option<String> {
    let Some(Outcome::Read(tag, _) | Outcome::Written(tag)) = observed.ended else {
        return None;
    };
    let (c, _) = case.subjects.first()?;
    let holds = |server: &areo_core::config::ServerId| {
        let place = case.servers.iter().position(|known| known == server);
        let view = views[place.expect("members are servers of the case")];
        newest(view) >= tag
    };
    let holders = c.members().iter().filter(|server| holds(server)).count();
    let needed = c.quorums().quorum();
    (holders < needed).then(|| {
        let ObservedOperation { client, label, .. } = observed;
        format!(
            "quorum: {label} of client {client} ended with {tag}, and {holders} of {needed} needed servers hold it or a newer version"
        )
    })
}

/// The newest version of the first subject that a server holds.
fn newest(view: &[Answers]) -> Tag {
    let answers = view.first().and_then(|answer| answer.as_ref().ok());
    match answers.and_then(Reply::answers).map(Vec::as_slice) {
        Some([Answer::Held(held)]) => held.stored.last().map_or(Tag::INITIAL, |(tag, _)| *tag),
        _ => Tag::INITIAL,
    }
}
