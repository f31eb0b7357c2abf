//! Operations that the probe has done, and what it saw of them.

use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// The condition of a write. A value stands for its ETag: each value is written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// The write has no condition.
    None,
    /// The object is absent: `If-None-Match: *`.
    Absent,
    /// `If-Match` with the ETag of this value.
    Match(String),
}

/// The request that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The body of the object.
    Get,
    /// The ETag of the object.
    Head,
    /// The entry of the object in a listing.
    List,
    /// A deletion of a version that another deletion had removed.
    Delete,
}

/// The request of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A write of a value.
    Put {
        /// The value, unique in the run.
        value: String,
        /// The condition for that.
        condition: Condition,
        /// True if the value is written by the completion of an upload in parts.
        is_completion: bool,
    },
    /// Makes the object absent.
    Delete {
        /// The condition for that.
        condition: Condition,
    },
    /// A read of the object.
    Read {
        /// The kind of request.
        by: Reading,
        /// The value that was seen; `None` is absent.
        observed: Option<String>,
    },
}

/// The end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The operation succeeded.
    Done,
    /// 412 or 404: the condition did not hold. Nothing was written.
    ConditionFailed,
    /// 409: another write came between. Nothing was written.
    Conflict,
    /// 501: the store does not do this. Nothing was written.
    NotImplemented,
    /// Another error that says that nothing was written.
    Rejected,
    /// 500, 503 or no answer: a write may take effect at any later time or never.
    Unknown,
}

/// One operation of the probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// The number of the client.
    pub(super) client: usize,
    /// The number of the endpoint.
    pub(super) endpoint: usize,
    /// Key of the object.
    pub(super) key: String,
    pub(super) action: Action,
    /// The time at which it was sent, in nanoseconds since the run began.
    pub(super) invoked_ns: u64,
    /// The time at which its answer was there.
    pub(super) ended_ns: u64,
    pub(super) ending: Ending,
    /// The status and the code of the answer, for people.
    pub(super) answer: String,
}

impl Operation {
    /// The value that it wrote or may have written.
    pub(super) fn written(&self) -> Option<&str> {
        match &self.action {
            Action::Put { value, .. } if self.may_have_effect() => Some(value),
            _ => None,
        }
    }

    /// The value that has to be there for the operation to take effect.
    pub(super) fn base(&self) -> Option<&str> {
        match &self.action {
            Action::Put { condition, .. } | Action::Delete { condition } => match condition {
                Condition::Match(base) => Some(base),
                _ => None,
            },
            Action::Read { .. } => None,
        }
    }

    /// The value that it saw.
    pub(super) fn observed(&self) -> Option<&str> {
        match &self.action {
            Action::Read { observed, .. } => observed.as_deref(),
            _ => None,
        }
    }

    /// True for a write with a condition.
    pub(super) fn is_conditional(&self) -> bool {
        match &self.action {
            Action::Put { condition, .. } | Action::Delete { condition } => {
                *condition != Condition::None
            }
            Action::Read { .. } => false,
        }
    }

    /// True for a write, or a deletion, that took effect or may have.
    pub(super) fn may_have_effect(&self) -> bool {
        let ended = matches!(self.ending, Ending::Done | Ending::Unknown);
        ended && !matches!(self.action, Action::Read { .. })
    }

    /// True for a deletion that took effect or may have.
    pub(super) fn is_deletion(&self) -> bool {
        self.may_have_effect() && matches!(self.action, Action::Delete { .. })
    }

    /// True if it took effect, or saw, that the object is absent.
    pub(super) fn needs_absence(&self) -> bool {
        match &self.action {
            Action::Put { condition, .. } => {
                *condition == Condition::Absent && self.may_have_effect()
            }
            Action::Read { observed, .. } => observed.is_none() && self.ending == Ending::Done,
            Action::Delete { .. } => false,
        }
    }
}

/// Counts deletions of one version that succeed beside another one as readings of absence: stores do not agree
/// whether the deletion of an absent object is answered with 204 or with 404. The deletion that ended first is the
/// one that removed the object.
pub(super) fn settle_deletions(operations: &mut [Operation]) {
    let version = |one: &Operation| match (&one.action, one.ending, one.base()) {
        (Action::Delete { .. }, Ending::Done, Some(base)) => {
            Some((one.key.clone(), base.to_owned()))
        }
        _ => None,
    };
    let mut first: HashMap<(String, String), u64> = HashMap::new();
    for one in operations.iter() {
        if let Some(version) = version(one) {
            let ended = first.entry(version).or_insert(one.ended_ns);
            *ended = (*ended).min(one.ended_ns);
        }
    }
    for one in operations {
        if let Some(version) = version(one)
            && first[&version] < one.ended_ns
        {
            one.action = Action::Read {
                by: Reading::Delete,
                observed: None,
            };
        }
    }
}

/// An operation as reports show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownOperation {
    /// The time at which it was sent, in milliseconds since the first one of the set.
    pub from_ms: f64,
    /// The time at which its answer was there; `None` if the outcome is unknown.
    pub to_ms: Option<f64>,
    pub client: String,
    pub endpoint: String,
    pub request: String,
    pub answer: String,
}

/// Operations as reports show them.
pub(super) fn shown(operations: &[&Operation], endpoints: &[String]) -> Vec<ShownOperation> {
    let begin = operations.iter().map(|one| one.invoked_ns).min();
    let begin = begin.unwrap_or(0);
    let ms = |ns: u64| (ns.saturating_sub(begin) / 1_000) as f64 / 1_000.0;
    let show = |one: &&Operation| ShownOperation {
        from_ms: ms(one.invoked_ns),
        to_ms: (one.ending != Ending::Unknown).then(|| ms(one.ended_ns)),
        client: format!("client {}", one.client),
        endpoint: endpoints[one.endpoint].clone(),
        request: format!("{} {}", one.action, one.key),
        answer: one.seen(),
    };
    operations.iter().map(show).collect()
}

impl Operation {
    fn seen(&self) -> String {
        match &self.action {
            Action::Read {
                observed: Some(value),
                ..
            } => format!("{}, '{value}'", self.answer),
            Action::Read { observed: None, .. } if self.ending == Ending::Done => {
                format!("{}, absent", self.answer)
            }
            _ if self.ending == Ending::Unknown => format!("{}, outcome unknown", self.answer),
            _ => self.answer.clone(),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::None => Ok(()),
            Condition::Absent => f.write_str(" if absent"),
            Condition::Match(base) => write!(f, " if '{base}'"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Put {
                value,
                condition,
                is_completion,
            } => {
                let verb = if *is_completion { "COMPLETE" } else { "PUT" };
                write!(f, "{verb} '{value}'{condition}")
            }
            Action::Delete { condition } => write!(f, "DELETE{condition}"),
            Action::Read { by, .. } => f.write_str(match by {
                Reading::Get => "GET",
                Reading::Head => "HEAD",
                Reading::List => "LIST",
                Reading::Delete => "DELETE",
            }),
        }
    }
}
