//! The errors of operations.

use crate::config::{Configuration, InvalidConfiguration, ServerId};
use crate::message::Refusal;
use crate::object::Name;
use crate::pointer::Fork;
use crate::tag::{NumbersUsedUp, Tag};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A quorum call that was not decided in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unavailable {
    /// The configuration that was asked, if it was one: it need not be the last final one.
    pub configuration: Option<Arc<Configuration>>,
    /// Replies that would have been enough.
    pub needed: usize,
    /// The response of each server, in the order of the member list.
    pub servers: Vec<(ServerId, Response)>,
    /// The time that the operation waited.
    pub waited: Duration,
    /// Some request was handed to a connection: it may have had its effect (`[X-9 honest-outcome]`).
    pub handed_over: bool,
    /// The obstacle that ended the operation at once, if it was not for want of answers.
    pub obstacle: Option<Box<Obstacle>>,
}

/// A reason that ends an operation at once, because more answers and more time would not help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The object cannot have another version (`[N-1 bounded-numbers]`).
    NumbersUsedUp(NumbersUsedUp),
    /// Two configurations were decided for one index of the domain.
    Forked(Fork),
    /// Later versions of a ranked register do not say any more whether this one is among those that they are based on
    /// (`[W-6 ancestors]`).
    Outrun(Tag),
    /// A conditional write met the end of the domain's time as a conditional one (`[W-13 ceasing-to-be-conditional]`).
    NotConditional,
    /// Changes that were made at the same time have a join that no configuration can be (`[R-30 walks-join]`).
    NotJoined(InvalidConfiguration),
    /// Too few elements are left of these versions, each of which is the current one of its object (`[W-18 lost-version]`).
    Lost(Vec<LostVersion>),
}

/// The current version of an object, of which fewer elements are left than make its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostVersion {
    pub name: Name,
    pub tag: Tag,
    /// The number of its elements that are left, at least. They are of one value.
    pub found: usize,
    /// The number of elements that make the value.
    pub needed: usize,
}

impl fmt::Display for LostVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LostVersion {
            tag, found, needed, ..
        } = self;
        write!(
            f,
            "version {tag} has {found} of the {needed} elements that it takes to read it"
        )
    }
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
            Obstacle::Lost(lost) => {
                let objects = lost.iter().map(|it| format!("{:?}: {it}", it.name));
                f.write_str(&objects.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// Why a call to one configuration came to nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// No quorum in time.
    Unavailable(Unavailable),
    /// A configuration with the state of this one, or of a later one, succeeds it: the requested state is there.
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
    /// The service, as [`crate::config::Decider`] is written.
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

/// The response of one server to one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    Answered,
    Refused(Refusal),
    /// It could not be reached.
    Unreachable,
    /// It did not answer in time.
    Silent,
    /// It had not answered when the call ended before its time, since no answer of it could help.
    NotAwaited,
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Response::Answered => f.write_str("ok"),
            Response::Refused(refusal) => refusal.fmt(f),
            Response::Unreachable => f.write_str("unreachable"),
            Response::Silent => f.write_str("timed out"),
            Response::NotAwaited => f.write_str("not waited for"),
        }
    }
}

/// The numbers of a quorum call that was not decided, for sentences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnswerCount {
    /// Number of servers that answered without a refusal.
    pub answered: usize,
    /// Servers that refused: they have answered, too.
    pub refused: usize,
    /// Servers that would have been enough.
    pub needed: usize,
}

impl AnswerCount {
    pub fn of(responses: impl Iterator<Item = Response>, needed: usize) -> AnswerCount {
        let none = AnswerCount {
            answered: 0,
            refused: 0,
            needed,
        };
        responses.fold(none, |mut count, response| {
            count.answered += usize::from(response == Response::Answered);
            count.refused += usize::from(matches!(response, Response::Refused(_)));
            count
        })
    }
}

/// `2 of 4 needed servers answered`, `1 of 4 needed servers accepted the request and 2 declined it`.
impl fmt::Display for AnswerCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AnswerCount {
            answered,
            refused,
            needed,
        } = self;
        write!(f, "{answered} of {needed} needed servers ")?;
        match refused {
            0 => f.write_str("answered"),
            _ => write!(f, "accepted the request and {refused} declined it"),
        }
    }
}

/// Nothing was sent for a version that cannot be.
impl From<NumbersUsedUp> for Unavailable {
    fn from(used_up: NumbersUsedUp) -> Self {
        Unavailable::obstructed(Obstacle::NumbersUsedUp(used_up), false)
    }
}

/// A fork fails the operation; a request to the one configuration may have had its effect there.
impl From<Fork> for Unavailable {
    fn from(fork: Fork) -> Self {
        Unavailable::obstructed(Obstacle::Forked(fork), true)
    }
}

/// An invalid configuration fails the operation, whose earlier requests may have had their effect.
impl From<InvalidConfiguration> for Unavailable {
    fn from(why: InvalidConfiguration) -> Self {
        Unavailable::obstructed(Obstacle::NotJoined(why), true)
    }
}

impl Unavailable {
    /// True if some server refused, or no version could come after those that servers answered with.
    pub(crate) fn is_refused(&self) -> bool {
        let refused = |(_, response): &(_, Response)| matches!(response, Response::Refused(_));
        let used_up = matches!(
            self.obstacle.as_deref(),
            Some(Obstacle::NumbersUsedUp(_) | Obstacle::NotConditional)
        );
        used_up || self.servers.iter().any(refused)
    }

    /// The error of a write that sent its version, and cannot learn what became of it.
    pub(crate) fn outrun(tag: Tag) -> Unavailable {
        Unavailable::obstructed(Obstacle::Outrun(tag), true)
    }

    /// The error of a conditional write that was not applied before the domain ceased to be conditional.
    pub(crate) fn not_conditional() -> Unavailable {
        Unavailable::obstructed(Obstacle::NotConditional, false)
    }

    /// The failure of an operation on a version of which too few elements are left. `responses`: the response of each member, by position.
    pub(crate) fn lost(
        c: &Arc<Configuration>,
        lost: LostVersion,
        responses: Vec<Response>,
    ) -> Unavailable {
        assert!(lost.found < lost.needed, "otherwise it can be read");
        assert_eq!(responses.len(), c.n(), "each member is spoken of");
        let needed = lost.needed;
        Unavailable {
            configuration: Some(c.clone()),
            needed,
            servers: c.members().iter().copied().zip(responses).collect(),
            ..Unavailable::obstructed(Obstacle::Lost(vec![lost]), false)
        }
    }

    /// The loss of a block that was left unreadable (`[X-40 named-loss]`).
    pub(crate) fn left(name: &Name, tag: Tag) -> Unavailable {
        let lost = LostVersion {
            name: name.clone(),
            tag,
            found: 0,
            needed: 1,
        };
        Unavailable::obstructed(Obstacle::Lost(vec![lost]), false)
    }

    /// This failure as the loss of an object, if a quorum cannot come because members found their record of the object damaged. `tag`: the
    /// largest version that members list.
    pub(crate) fn of_lost(self, name: &Name, tag: Tag) -> Unavailable {
        assert!(self.is_lost(), "it can be read, or is out of reach");
        if !self.lost_versions().is_empty() {
            return self;
        }
        let lost = LostVersion {
            name: name.clone(),
            tag,
            found: self.answered(),
            needed: self.needed,
        };
        self.with_lost(vec![lost])
    }

    /// True if the object cannot be read, even if more members answer: too few elements are left of it (`[W-18 lost-version]`), or too many
    /// members found their record of it damaged.
    pub fn is_lost(&self) -> bool {
        let damaged = Response::Refused(Refusal::Damaged);
        let damaged = self.servers.iter().filter(|(_, it)| *it == damaged).count();
        match self.obstacle.as_deref() {
            None => damaged > 0 && self.servers.len() - damaged < self.needed,
            Some(obstacle) => matches!(obstacle, Obstacle::Lost(_)),
        }
    }

    /// Turns this failure into the loss of several objects.
    pub(crate) fn with_lost(self, lost: Vec<LostVersion>) -> Unavailable {
        let obstacle = Some(Box::new(Obstacle::Lost(lost)));
        Unavailable { obstacle, ..self }
    }

    /// The versions of which too few elements are left, if that ended the operation.
    pub fn lost_versions(&self) -> &[LostVersion] {
        match self.obstacle.as_deref() {
            Some(Obstacle::Lost(lost)) => lost,
            _ => &[],
        }
    }

    /// The one that met the larger version, of two that met lost versions of one object.
    pub(crate) fn later_lost(one: Option<Box<Unavailable>>, other: Unavailable) -> Unavailable {
        let tag = |failed: &Unavailable| failed.lost_versions().first().map(|it| it.tag);
        assert!(tag(&other).is_some(), "it names what is lost");
        let one = one.filter(|one| tag(one) > tag(&other));
        one.map_or(other, |one| *one)
    }

    /// True if no larger version was found than the one that is lost.
    pub(crate) fn hides(&self, found: Option<Tag>) -> bool {
        let lost = self.lost_versions().first().map(|it| it.tag);
        assert!(lost.is_some(), "it names what is lost");
        found <= lost
    }

    /// True if it is that.
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

    /// Number of servers that answered.
    pub fn answered(&self) -> usize {
        self.count().answered
    }

    fn count(&self) -> AnswerCount {
        let responses = self.servers.iter().map(|(_, response)| *response);
        AnswerCount::of(responses, self.needed)
    }

    /// True if no quorum can register another server, however long it is waited for.
    pub fn is_register_full(&self) -> bool {
        self.is_refused_for_good(Refusal::RegisterFull)
    }

    /// True if no quorum registers a start of this program, however long it is waited for (`[X-46 cluster-level]`).
    pub fn is_old_program(&self) -> bool {
        self.is_refused_for_good(Refusal::OldProgram)
    }

    /// True if the servers without this refusal are no quorum.
    fn is_refused_for_good(&self, refusal: Refusal) -> bool {
        let refused = Response::Refused(refusal);
        let open = self.servers.iter().filter(|(_, it)| *it != refused);
        open.count() < self.needed
    }

    /// True if damage is the cause: with the members that found their record damaged there would have been a quorum, or too few elements
    /// are left (`[W-18 lost-version]`).
    pub fn is_damage(&self) -> bool {
        let damaged = Response::Refused(Refusal::Damaged);
        let damaged = self.servers.iter().filter(|(_, it)| *it == damaged).count();
        let is_refused = damaged > 0 && self.answered() + damaged >= self.needed;
        self.is_lost() || self.obstacle.is_none() && is_refused
    }

    /// True if a full disk is among the reasons.
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
        write!(f, "{} in {:.1} s", self.count(), self.waited.as_secs_f64())
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
