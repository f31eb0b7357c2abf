//! Notes between members of a configuration that restart the counters of objects (`docs/spec` 2.11).

use super::HeldVersions;
use crate::config::{ConfigurationId, ServerId};
use crate::hash::stable_hash;
use crate::object::Name;
use std::sync::Arc;

/// The phase of a member in an agreement of all members.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Phase<T> {
    /// Nothing is agreed on.
    Idle,
    /// It agrees on this value (phase 1).
    Agreeing(T),
    /// All have agreed on this value: it is being carried out (phase 2).
    Applying(T),
    /// It heard of a state to which no run leads (a proposal of `none`).
    Recovering,
}

/// The phase of a member, and its knowledge of the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Stance<T> {
    /// Its phase (`prp` in the paper).
    pub phase: Phase<T>,
    /// It has heard that all others are at the same, and know of it (`all`).
    pub all: bool,
}

impl<T> Stance<T> {
    /// The stance of a member that has nothing to do.
    pub const IDLE: Stance<T> = Stance {
        phase: Phase::Idle,
        all: false,
    };
}

/// A note between two members about a restart of objects. It has no lasting effect if it is lost, comes twice, or
/// comes late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestartNote {
    pub configuration: ConfigurationId,
    /// The sender.
    pub from: ServerId,
    /// The sender has objects to restart, or is in a restart: it waits for an answer.
    pub asks: bool,
    /// Numbers the sender's notes.
    pub turn: u64,
    /// The last note of the receiver that the sender has heard; 0: none.
    pub heard: u64,
    /// The sender's stance. Values in it are the [`digest`] of the objects' names.
    pub stance: Stance<u64>,
    /// The receiver's stance, as far as the sender has heard.
    pub echo: Stance<u64>,
    /// If the sender agrees or applies: its reports on the objects. Otherwise some or all of the objects that it
    /// abstains for.
    pub objects: Arc<[ObjectReport]>,
}

/// A member's holdings of an object, versions with impossible tags included (`[N-1 bounded-numbers]`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectReport {
    pub name: Name,
    /// The member does not answer for it (`[X-11 damage-abstains]`).
    pub abstains: bool,
    /// Tags, with no element.
    pub held: HeldVersions,
}

impl ObjectReport {
    /// The report of a member that abstains for this object, and does not report its holdings.
    pub fn abstaining(name: &Name) -> ObjectReport {
        ObjectReport {
            name: name.clone(),
            abstains: true,
            held: HeldVersions::default(),
        }
    }
}

impl RestartNote {
    /// True if its objects are those that its sender agrees on, if it does.
    pub fn is_possible(&self) -> bool {
        match self.stance.phase {
            Phase::Agreeing(value) | Phase::Applying(value) => digest(&self.objects) == value,
            Phase::Idle | Phase::Recovering => true,
        }
    }
}

/// The value that represents these objects in an agreement.
pub fn digest(objects: &[ObjectReport]) -> u64 {
    let mut bytes = Vec::new();
    for object in objects {
        let name = object.name.as_bytes();
        bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
        bytes.extend_from_slice(name);
    }
    stable_hash(&bytes)
}
