//! Obstacles that end an operation at once.

use crate::shape::Shape;
use areo_core::config::{Configuration, ServerId};
use areo_core::error;
use areo_core::object::Name;
use areo_core::tag::Tag as Version;
use std::fmt;

/// Why an operation was ended before its time: no further answer would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The object has the last version that there can be, which no execution of this software wrote: its number was made up
    /// or damaged before it was stored.
    NumbersUsedUp {
        /// The version with the last number.
        largest: Version,
    },
    /// Versions of a conditional domain do not say whether this one was written: too many came after it.
    Outrun {
        /// The version whose fate is unknown.
        version: Version,
    },
    /// A conditional write met a reconfiguration after which the domain is not conditional: it was not applied, and never will be.
    NotConditional,
    /// Changes that were made of the domain at the same time have a join that no configuration can be.
    NotJoined {
        /// The reason why the join is no configuration.
        reason: String,
    },
    /// Two configurations were decided for one index of the domain's sequence.
    Forked {
        /// Index in the domain's sequence.
        index: u32,
        /// The two; the one that was seen first comes first.
        decided: Box<[ForkBranch; 2]>,
    },
    /// Too few elements are left of these objects. Each can be written over and removed.
    Lost {
        /// The objects; of a reconfiguration those that it found before it ended.
        objects: Vec<LostObject>,
    },
}

/// An object that cannot be read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostObject {
    /// Its key; of a block of a file or of a large object the name of that.
    pub key: String,
    /// Its newest version, as far as servers list it.
    pub version: Version,
    /// The number of its sound elements, at least.
    pub found: usize,
    /// The number of elements that make the value.
    pub needed: usize,
    /// Internal name of the object, which includes its kind.
    pub(crate) name: Name,
}

impl fmt::Display for LostObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LostObject {
            version,
            found,
            needed,
            ..
        } = self;
        write!(
            f,
            "of version {version} {found} of the {needed} elements that it takes are left"
        )
    }
}

/// One of the configurations of a forked sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkBranch {
    /// The digest that the other one does not have.
    pub digest: u64,
    /// Shape of the configuration.
    pub shape: Shape,
    /// The names of its members, in order.
    pub members: Vec<String>,
}

/// Lost objects that a sentence names.
const LISTED: usize = 20;

impl LostObject {
    fn of(lost: &error::LostVersion) -> LostObject {
        LostObject {
            key: lost.name.user_key().into(),
            version: lost.tag,
            found: lost.found,
            needed: lost.needed,
            name: lost.name.clone(),
        }
    }
}

impl Obstacle {
    pub(super) fn of(
        obstacle: &error::Obstacle,
        describe: impl Fn(ServerId) -> (String, Option<String>),
    ) -> Obstacle {
        match obstacle {
            error::Obstacle::NumbersUsedUp(used_up) => Obstacle::NumbersUsedUp {
                largest: used_up.largest,
            },
            error::Obstacle::Outrun(version) => Obstacle::Outrun { version: *version },
            error::Obstacle::NotConditional => Obstacle::NotConditional,
            error::Obstacle::NotJoined(why) => Obstacle::NotJoined {
                reason: why.to_string(),
            },
            error::Obstacle::Lost(lost) => Obstacle::Lost {
                objects: lost.iter().map(LostObject::of).collect(),
            },
            error::Obstacle::Forked(fork) => {
                let [first, second] = &fork.configurations;
                let decided = |c: &Configuration| ForkBranch {
                    digest: c.id().digest,
                    shape: Shape::of(c),
                    members: c.members().iter().map(|id| describe(*id).0).collect(),
                };
                Obstacle::Forked {
                    index: first.id().index,
                    decided: Box::new([decided(first), decided(second)]),
                }
            }
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::NumbersUsedUp { largest } => {
                write!(
                    f,
                    "no version can come after {largest}, since numbers end at 2^62: copy the object to another key"
                )
            }
            Obstacle::Outrun { version } => write!(
                f,
                "the versions that are there do not say whether {version} was written"
            ),
            Obstacle::NotConditional => f.write_str(
                "the domain has ceased to be conditional: of several conditional writes more than one may succeed from now on",
            ),
            Obstacle::NotJoined { reason } => write!(
                f,
                "the changes that were made of the domain at the same time cannot be made together: {reason}"
            ),
            Obstacle::Lost { objects } => {
                for (position, object) in objects.iter().take(LISTED).enumerate() {
                    let before = if position == 0 { "" } else { "; " };
                    write!(f, "{before}'{}' cannot be read: {object}", object.key)?;
                }
                match objects.len().saturating_sub(LISTED) {
                    0 => Ok(()),
                    more => write!(f, "; and {more} more"),
                }
            }
            Obstacle::Forked { index, decided } => {
                let [first, second] = &**decided;
                write!(
                    f,
                    "configuration {index} was decided twice, as {first} and as {second}: \
                     see 'A domain with two successors' in docs/operations.md"
                )
            }
        }
    }
}

impl fmt::Display for ForkBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ForkBranch {
            digest,
            shape,
            members,
        } = self;
        write!(f, "{digest:016x} ({shape} on {})", members.join(", "))
    }
}
