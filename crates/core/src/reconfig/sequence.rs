//! The configuration sequence of a domain: what a client remembers of it, and reading and writing its pointers
//! (`docs/spec` 3.1 to 3.4).
//!
//! Every configuration's servers know which one comes next, pending or final ([`crate::pointer`]). An operation starts at
//! the freshest final configuration that its client knows (`[A-7 freshest-start]`), and goes on from the configuration that
//! it has just asked, never from the largest that any client knows (`[A-4 from-the-asked]`), until one's servers know of no
//! next ([`super::walk`]).
//!
//! | pseudocode | here | rounds |
//! |---|---|---|
//! | read-config | [`walk::path`](super::walk::path) | one for each configuration, and one for each pending pointer that has to be spread |
//! | put-config | [`put_config`] | 1 |
//! | find-next-config | [`super::walk`] | 0; 1 to spread a pending pointer; 1 more without piggybacking |
//!
//! A pending pointer is at a quorum before anybody makes use of the configuration that it points to; so from any
//! configuration a quorum leads on along the whole chain, and to spread a *final* pointer is a courtesy that nobody waits
//! for.

use crate::config::Configuration;
use crate::env::{Conclusion, Env};
use crate::error::{CallError, Unavailable};
use crate::gather::{self, Fold, Quorum, Visit};
use crate::message::{Body, Note, Reply};
use crate::object::DomainId;
use crate::pointer::{Fork, Pointer, Successors};
use crate::span;
use crate::tag::Writer;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The memory of a client of sequences: of each domain the highest final configuration that it saw. Operations of one client share it, so that none
/// goes a way again that another one went (`[A-7 freshest-start]`).
#[derive(Default, Debug)]
pub struct Sequences {
    finals: RefCell<BTreeMap<(DomainId, u32), Arc<Configuration>>>,
    /// The last pending successor seen after the highest final configuration: a hint that saves time. Correctness
    /// does not depend on it.
    pending: RefCell<BTreeMap<(DomainId, u32), Arc<Configuration>>>,
    /// The configuration that this client proposed last, as a leader, while it has proposed nothing at ballot 0 there.
    led: RefCell<BTreeMap<(DomainId, u32), Arc<Configuration>>>,
}

impl Sequences {
    /// The configuration to start at: `known`, which must be final, or at a later configuration of the same domain.
    pub fn start(&self, known: &Arc<Configuration>) -> Arc<Configuration> {
        let mut finals = self.finals.borrow_mut();
        let start = finals
            .entry(domain_of(known))
            .or_insert_with(|| known.clone());
        if start.precedes(known) {
            *start = known.clone();
        }
        assert!(!start.precedes(known), "what is known rises");
        start.clone()
    }

    /// The highest final configuration of the domain of `c`, which need not be final itself: the operation began at one.
    pub fn highest_final(&self, c: &Arc<Configuration>) -> Arc<Configuration> {
        let finals = self.finals.borrow();
        let highest = finals.get(&domain_of(c));
        highest.expect("operations start at a final one").clone()
    }

    /// Remembers a final configuration.
    pub fn learn(&self, c: &Arc<Configuration>) {
        self.start(c);
    }

    /// True if the configuration is known to be final, or to be superseded by one that is.
    pub(super) fn has_final(&self, c: &Configuration) -> bool {
        let finals = self.finals.borrow();
        let highest = finals.get(&domain_of(c));
        highest.is_some_and(|highest| highest.is_at_least(c))
    }

    /// Remembers a pending configuration, for the next guess.
    pub(crate) fn expect(&self, next: &Arc<Configuration>) {
        let mut pending = self.pending.borrow_mut();
        pending.insert(domain_of(next), next.clone());
    }

    /// Remembers a configuration that this client proposed, and others did not.
    pub(super) fn lead(&self, c: &Arc<Configuration>) {
        let mut led = self.led.borrow_mut();
        led.insert(domain_of(c), c.clone());
    }

    /// The writer with which this client may propose the successor of the configuration at ballot 0, if it may: once
    /// (`[R-11 owned-ballot]`).
    pub(super) fn take_ballot(&self, c: &Configuration) -> Option<Writer> {
        let mut led = self.led.borrow_mut();
        let is_led = led.get(&domain_of(c)).is_some_and(|led| **led == *c);
        let taken = is_led.then(|| led.remove(&domain_of(c))).flatten();
        taken.and_then(|led| led.descriptor().decided_by.owner())
    }

    /// Checks that the known part of the sequence allows for the pointer.
    pub(super) fn fits(&self, pointer: &Pointer) -> Result<(), Fork> {
        let (finals, pending) = (self.finals.borrow(), self.pending.borrow());
        let domain = domain_of(&pointer.configuration);
        let last = finals.get(&domain).map(Pointer::finalized);
        let expected = pending.get(&domain).map(Pointer::pending);
        let mut seen = last.into_iter().chain(expected);
        seen.try_for_each(|seen| Fork::check(&seen, pointer))
    }

    /// The pointer that probably comes after the configuration, pending: some operation went on from there to it. Nothing without piggybacking: Ares
    /// goes step by step. Nothing in a lattice, where several may come next; nor where the domain becomes conditional, because registers are asked in
    /// another way.
    pub(super) fn guess(&self, c: &Arc<Configuration>) -> Option<Arc<Configuration>> {
        let is_asked_alike = |next: &Arc<Configuration>| {
            let becomes = c.dap().is_conditional() != next.dap().is_conditional();
            c.options().piggyback && !becomes
        };
        self.expected(c).filter(is_asked_alike)
    }

    /// The pointer that some operation saw after the configuration, pending. Nothing in a lattice, where several may come next.
    pub(crate) fn expected(&self, c: &Arc<Configuration>) -> Option<Arc<Configuration>> {
        let pending = self.pending.borrow();
        let after = |next: &&Arc<Configuration>| {
            c.descriptor().lattice.is_none() && next.id().index == c.id().index + 1
        };
        pending.get(&domain_of(c)).filter(after).cloned()
    }
}

fn domain_of(c: &Configuration) -> (DomainId, u32) {
    let id = c.id();
    (id.domain, id.partition)
}

/// Asks a quorum for the pointer; the visit has it afterwards.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn read_config<E: Env>(env: &E, at: &Visit) -> Result<(), Unavailable> {
    let fold = |(): &mut (), _from: usize, reply: Reply| match reply {
        Reply::Config => Fold::Count,
        _ => Fold::Ignore,
    };
    let tally = Quorum::of(at.c(), Body::ReadConfig, (), fold);
    let asked = gather::gather(env, at, tally);
    let span = span::in_configuration!(span::CONFIG_READ, at.c());
    match span::watch!(span, asked) {
        Ok(()) | Err(CallError::Moved) => Ok(()),
        Err(CallError::Unavailable(unavailable)) => Err(unavailable),
    }
}

/// Makes the pointer known to a quorum of the configuration. Returns the nearest that one of them knows: in a sequence the
/// largest, which is at least this one.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn put_config<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    pointer: &Pointer,
) -> Result<Pointer, Unavailable> {
    let known = put_successors(env, c, &pointer.into()).await?;
    let nearest = known.nearest().expect("a closed request is answered so");
    Ok(nearest.clone())
}

/// Makes the known successors of the asked configuration known to a quorum there, unless a final pointer is known.
/// The successors that members show with their answers are known afterwards. Returns whether members had shown all of
/// them before.
///
/// In DynaStore it is made known until a quorum shows that and nothing else: of what is known at the end of two such calls one
/// contains the other, so that all operations go on to a common successor (`[R-22 collect-again]`).
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn spread<E: Env>(
    env: &E,
    at: &Visit,
    known: &mut Successors,
) -> Result<bool, Unavailable> {
    let mut above = known.above(at.c());
    let was_agreed = at.is_agreed() && at.successors().cover(&above);
    let mut is_agreed = was_agreed || above.is_empty();
    while !is_agreed && known.last_final().is_none() {
        let shown = put_successors(env, at.c(), &above).await?;
        known.join(&shown)?;
        let all = known.above(at.c());
        is_agreed = !at.c().branches() || all == above;
        above = all;
    }
    assert!(
        known.last_final().is_some() || above.iter().all(|it| known.says(it)),
        "what is known only grows"
    );
    if at.c().branches() && known.last_final().is_none() && !above.is_empty() {
        let successors = &above;
        env.concluded(at.c(), Conclusion::Collected { successors });
    }
    Ok(was_agreed)
}

/// Makes all of the pointers known to a quorum of the configuration, unless one of its members knows a final one. Returns all
/// that they show.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
async fn put_successors<E: Env>(
    env: &E,
    c: &Arc<Configuration>,
    successors: &Successors,
) -> Result<Successors, Unavailable> {
    let at = Visit::closing(c, successors);
    let span = span::in_configuration!(span::CONFIG_PUT, c);
    span::watch!(span, read_config(env, &at))?;
    let known = at.successors();
    assert!(
        known.last_final().is_some() || known.cover(successors),
        "servers take pointers upwards, and withhold what they say behind a final one"
    );
    Ok(known)
}

/// Sends all members the successor, without waiting: a final pointer saves them and others a round. Correctness does
/// not depend on it.
pub(super) fn announce<E: Env>(env: &E, c: &Arc<Configuration>, pointer: &Pointer) {
    assert!(
        pointer.is_final(),
        "a pending pointer is put, not announced"
    );
    let note = Note::Next {
        configuration: c.id(),
        pointer: pointer.clone(),
    };
    env.tell(c.members(), note);
}
