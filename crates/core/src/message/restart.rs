//! What the members of a configuration say to each other while they restart the counters of objects (`docs/spec` 2.11).

use super::HeldVersions;
use crate::config::{ConfigurationId, ServerId};
use crate::hash::stable_hash;
use crate::object::Name;
use std::sync::Arc;

/// Where a member is in an agreement of all members.
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

/// The phase of a member, and what it knows of the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Stance<T> {
    /// Where it is (`prp`).
    pub phase: Phase<T>,
    /// It has heard that all others are at the same, and know of it (`all`).
    pub all: bool,
}

impl<T> Stance<T> {
    /// Of a member that has nothing to do.
    pub const IDLE: Stance<T> = Stance {
        phase: Phase::Idle,
        all: false,
    };
}

/// What one member says to another of a restart. It changes nothing for good if it is lost, comes twice, or comes late.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RestartNote {
    /// Of which configuration.
    pub configuration: ConfigurationId,
    /// Who says it.
    pub from: ServerId,
    /// The sender has objects to restart, or is in a restart: it waits for an answer.
    pub asks: bool,
    /// Numbers the sender's notes.
    pub turn: u64,
    /// The last note of the receiver that the sender has heard; 0: none.
    pub heard: u64,
    /// Where the sender is; a value is the [`digest`] of the objects' names.
    pub stance: Stance<u64>,
    /// Where the receiver is, as far as the sender has heard.
    pub echo: Stance<u64>,
    /// Of a sender that agrees or applies: what it has of the objects. Otherwise the objects that it abstains for, or some of them.
    pub objects: Arc<[ObjectReport]>,
}

/// What a member has of an object, versions of impossible tags included (`[N-1 bounded-numbers]`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectReport {
    /// Which object.
    pub name: Name,
    /// The member does not answer for it (`[X-11 damage-abstains]`).
    pub abstains: bool,
    /// Tags, with no element.
    pub held: HeldVersions,
}

impl ObjectReport {
    /// Of a member that abstains for this object, and does not say what it has of it.
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

/// What stands for these objects in an agreement.
pub fn digest(objects: &[ObjectReport]) -> u64 {
    let mut bytes = Vec::new();
    for object in objects {
        let name = object.name.as_bytes();
        bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
        bytes.extend_from_slice(name);
    }
    stable_hash(&bytes)
}
