//! How operations end when they do not succeed.

use crate::config::{Configuration, InvalidConfiguration, ServerId};
use crate::message::Refusal;
use crate::pointer::Fork;
use crate::tag::{NumbersUsedUp, Tag};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A quorum call that was not decided in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unavailable {
    /// Which configuration was asked, if it was one: it need not be the last final one.
    pub configuration: Option<Arc<Configuration>>,
    /// Replies that would have been enough.
    pub needed: usize,
    /// What each server did, in the order of the member list.
    pub servers: Vec<(ServerId, Response)>,
    /// How long the operation waited.
    pub waited: Duration,
    /// Some request was handed to a connection: it may have had its effect (`[X-9 honest-outcome]`).
    pub handed_over: bool,
    /// What ended the operation at once, if it was not for want of answers.
    pub obstacle: Option<Box<Obstacle>>,
}

/// What ends an operation at once, because more answers and more time would not help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The object cannot have another version (`[N-1 bounded-numbers]`).
    NumbersUsedUp(NumbersUsedUp),
    /// One index of the domain has two configurations.
    Forked(Fork),
    /// Later versions of a ranked register do not say any more whether this one is among those that they are based on
    /// (`[W-6 ancestors]`).
    Outrun(Tag),
    /// A conditional write met the end of the domain's time as a conditional one (`[W-13 ceasing-to-be-conditional]`).
    NotConditional,
    /// Changes that were made at the same time have a join that no configuration can be (`[R-30 walks-join]`).
    NotJoined(InvalidConfiguration),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::NumbersUsedUp(used_up) => used_up.fmt(f),
            Obstacle::Forked(fork) => fork.fmt(f),
            Obstacle::Outrun(tag) => write!(
                f,
                "the versions that are there do not say whether {tag} was written"
            ),
            Obstacle::NotConditional => f.write_str("the domain has ceased to be conditional"),
            Obstacle::NotJoined(why) => {
                write!(
                    f,
                    "what changes of the domain come to together cannot be: {why}"
                )
            }
        }
    }
}

/// Why a call to one configuration came to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// No quorum in time.
    Unavailable(Unavailable),
    /// A configuration with the state of this one, or of a later one, comes after it: what was asked for is there.
    Moved,
}

impl From<Unavailable> for CallError {
    fn from(unavailable: Unavailable) -> Self {
        CallError::Unavailable(unavailable)
    }
}

/// A service outside that did not decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeciderError {
    /// Which, as [`crate::config::Decider`] is written.
    pub service: String,
    /// Why, in a sentence's part.
    pub reason: String,
    /// It was asked: it may decide, or have decided, all the same.
    pub handed_over: bool,
}

impl fmt::Display for DeciderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} did not decide: {}", self.service, self.reason)
    }
}

/// What one server did with one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// It answered.
    Answered,
    /// It refused.
    Refused(Refusal),
    /// It could not be reached.
    Unreachable,
    /// It did not answer.
    Silent,
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Response::Answered => f.write_str("ok"),
            Response::Refused(refusal) => refusal.fmt(f),
            Response::Unreachable => f.write_str("unreachable"),
            Response::Silent => f.write_str("timed out"),
        }
    }
}

/// Nothing was sent for a version that cannot be.
impl From<NumbersUsedUp> for Unavailable {
    fn from(used_up: NumbersUsedUp) -> Self {
        Unavailable::obstructed(Obstacle::NumbersUsedUp(used_up), false)
    }
}

/// What was asked of the one configuration may have had its effect there.
impl From<Fork> for Unavailable {
    fn from(fork: Fork) -> Self {
        Unavailable::obstructed(Obstacle::Forked(fork), true)
    }
}

/// What the operation did before may have had its effect.
impl From<InvalidConfiguration> for Unavailable {
    fn from(why: InvalidConfiguration) -> Self {
        Unavailable::obstructed(Obstacle::NotJoined(why), true)
    }
}

impl Unavailable {
    /// Of a write that sent its version, and cannot learn what became of it.
    pub(crate) fn outrun(tag: Tag) -> Unavailable {
        Unavailable::obstructed(Obstacle::Outrun(tag), true)
    }

    /// Of a conditional write that was not applied before the domain ceased to be conditional.
    pub(crate) fn not_conditional() -> Unavailable {
        Unavailable::obstructed(Obstacle::NotConditional, false)
    }

    /// Whether it is that.
    pub fn is_not_conditional(&self) -> bool {
        matches!(self.obstacle.as_deref(), Some(Obstacle::NotConditional))
    }

    fn obstructed(obstacle: Obstacle, handed_over: bool) -> Unavailable {
        Unavailable {
            configuration: None,
            needed: 0,
            servers: Vec::new(),
            waited: Duration::ZERO,
            handed_over,
            obstacle: Some(Box::new(obstacle)),
        }
    }

    /// Servers that answered.
    pub fn answered(&self) -> usize {
        let answered = |(_, response): &&(ServerId, Response)| *response == Response::Answered;
        self.servers.iter().filter(answered).count()
    }

    /// Whether no quorum can register another server, however long it is waited for.
    pub fn is_register_full(&self) -> bool {
        let full = Response::Refused(Refusal::RegisterFull);
        let open = self
            .servers
            .iter()
            .filter(|(_, response)| *response != full);
        open.count() < self.needed
    }

    /// Whether a full disk is among the reasons.
    pub fn lacks_room(&self) -> bool {
        let full = Response::Refused(Refusal::Full);
        self.servers.iter().any(|(_, response)| *response == full)
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(obstacle) = &self.obstacle {
            return obstacle.fmt(f);
        }
        let (answered, needed) = (self.answered(), self.needed);
        let seconds = self.waited.as_secs_f64();
        write!(
            f,
            "{answered} of {needed} needed servers answered in {seconds:.1} s"
        )
    }
}

/// A write that was not acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// No quorum in time, and no server was sent the new version: it was not applied.
    NotApplied(Unavailable),
    /// No quorum acknowledged in time, but the new version was sent: it may have been applied, or be applied later.
    Unknown(Unavailable),
}
