//! The walk along the configurations of a domain (`docs/spec` 3.3, 3.4): the one traversal that every operation makes.
//!
//! An operation is a visit function: what it asks of one configuration. The walk calls it at the configuration where the
//! operation starts, follows what its servers say of the next one (find-next-config), spreads a pointer that is
//! not at a quorum (`[A-4 from-the-asked]`), calls it there, and ends where no server that answered knows a next one.
//!
//! **Asking ahead.** While a domain is being reconfigured every operation asks its last final configuration and the pending
//! one behind it. Which one comes behind is known from the operation before; so both are asked at once
//! ([`Walk::asking_ahead`]). Nothing rests on the guess: what was asked ahead counts only if this configuration's servers
//! say that it comes next. Neither does the order of the two answers matter: a version that completed before the operation
//! began is in one of the two configurations by then. One that is transferred meanwhile is still in the first; or it is
//! withheld there with a final pointer, and then the second one may have been asked before it had it, and is asked again.
//!
//! **Several successors.** In a lattice a configuration may have several. A walk remembers all that it heard of and has not
//! come to, and goes to the nearest, so that it visits them in the order of the lattice. At each configuration that it passes
//! it makes *all* of those known to a quorum, not only what the members there showed (`[R-24 spread-all-known]`): a later
//! operation that begins there would miss what this one does in the last. In a sequence there is one at most.
//!
//! **Successors beside each other.** In DynaStore neither of two successors need precede the other. What a walk has heard of and
//! has not come to may be beside the configuration that it asks. Then it makes the join of all that known there, and goes
//! on to that, too: so it ends at one configuration, which every other walk comes to or passes (`[R-30 walks-join]`).

use super::sequence::{self, Sequences};
use crate::config::{Configuration, Membership};
use crate::env::{Env, Work};
use crate::error::{CallError, Unavailable};
use crate::gather::{EarlyAnswers, Visit};
use crate::object::DomainId;
use crate::pointer::{Pointer, Successors};
use std::convert::Infallible;
use std::future::{Ready, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A walk that is about to begin.
pub struct Walk<'a, E> {
    /// The world, as the operation sees it.
    pub env: &'a E,
    /// The client's knowledge of sequences.
    pub sequences: &'a Sequences,
    /// The configuration that is visited first.
    pub start: Arc<Configuration>,
}

/// The step of an operation after a visit.
pub enum Step<B> {
    /// It goes on to the next configuration, if there is one.
    GoOn,
    /// It asks again: this configuration, or a later one that it heard of.
    Again(Arc<Configuration>),
    /// The walk ends here: successors do not matter to it.
    End(B),
}

/// The end of a walk.
pub enum WalkOutcome<B> {
    /// The walk came to the end of the sequence: this visit heard of no next configuration.
    ToTheEnd(Visit),
    /// The operation ended the walk.
    Ended(B),
}

impl<E: Env> Walk<'_, E> {
    /// Visits every configuration to the end of the sequence; returns the visit to the last one. [`CallError::Moved`] from a
    /// visit: what it asked for is in the configuration that the pointer leads to.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn to_the_end(
        self,
        mut visit: impl AsyncFnMut(&Visit) -> Result<(), CallError>,
    ) -> Result<Visit, Unavailable> {
        let visit = async |at: &Visit| visit(at).await.map(|()| Step::<Infallible>::GoOn);
        match self.until(visit).await? {
            WalkOutcome::ToTheEnd(last) => Ok(last),
            WalkOutcome::Ended(never) => match never {},
        }
    }

    /// Visits configurations until the visit function ends the operation, or the sequence ends.
    ///
    /// # Errors
    /// As [`Walk::to_the_end`].
    pub async fn until<B>(
        self,
        mut visit: impl AsyncFnMut(&Visit) -> Result<Step<B>, CallError>,
    ) -> Result<WalkOutcome<B>, Unavailable> {
        let nothing = None::<fn(Visit) -> Ready<Result<(), CallError>>>;
        let visit = async |at: &Visit, _ahead: Option<()>| visit(at).await;
        self.asking_ahead(nothing, visit).await
    }

    /// [`Self::until`] that also asks the configuration that probably comes next with `ask`, while the visit function is busy here. The visit there
    /// gets the answer. If it is of no use, it says [`Step::Again`] and is called without one.
    ///
    /// # Errors
    /// As [`Walk::to_the_end`].
    pub async fn asking_ahead<T, F: Future<Output = Result<T, CallError>>, B>(
        self,
        ask: Option<impl Fn(Visit) -> F>,
        mut visit: impl AsyncFnMut(&Visit, Option<T>) -> Result<Step<B>, CallError>,
    ) -> Result<WalkOutcome<B>, Unavailable> {
        let mut current = self.start.clone();
        let (mut known, early) = (Successors::default(), EarlyAnswers::default());
        let mut ahead: Option<Ahead<F>> = None;
        loop {
            let asked = ahead.take_if(|ahead| *ahead.at.c() == current);
            let guess = ask.as_ref().zip(self.sequences.guess(&current));
            ahead = guess.map(|(ask, next)| Ahead::ask(&next, ask));
            let (at, step) = {
                let here = pin!(async {
                    if let Some(asked) = asked {
                        let (at, answer) = asked.answer().await;
                        let step = match answer {
                            Ok(answer) => visit(&at, Some(answer)).await,
                            // What becomes of a lost version the visit itself decides.
                            Err(CallError::Unavailable(lost)) if lost.is_lost() => {
                                Ok(Step::Again(current.clone()))
                            }
                            Err(failed) => Err(failed),
                        };
                        if !matches!(step, Ok(Step::Again(_))) {
                            return (at, step);
                        }
                    }
                    let at = Visit::within(&current, &early);
                    let step = visit(&at, None).await;
                    (at, step)
                });
                beside(here, &mut ahead).await
            };
            match step {
                Ok(Step::GoOn) => {}
                Ok(Step::Again(heard_of)) => {
                    early.forget();
                    assert_eq!(
                        sequence_of(&heard_of),
                        sequence_of(&current),
                        "it asks again there"
                    );
                    if current.precedes(&heard_of) {
                        current = heard_of;
                    }
                    continue;
                }
                Ok(Step::End(output)) => return Ok(WalkOutcome::Ended(output)),
                // What it held is in the configuration that the pointer leads to ([A-5 withheld-hop]), and was perhaps not
                // there yet when that was asked.
                Err(CallError::Moved) => {
                    ahead = None;
                    early.forget();
                }
                Err(CallError::Unavailable(unavailable)) => return Err(unavailable),
            }
            match self.advance(&at, &mut known).await? {
                None => {
                    assert!(
                        at.is_last(),
                        "a walk ends where no next configuration was heard of"
                    );
                    return Ok(WalkOutcome::ToTheEnd(at));
                }
                Some(next) => {
                    assert!(!current.is_at_least(&next), "a walk never leads back");
                    current = next;
                }
            }
        }
    }
}

fn sequence_of(c: &Configuration) -> (DomainId, u32) {
    (c.id().domain, c.id().partition)
}

impl<E: Env> Walk<'_, E> {
    /// After a visit: the next configuration, if any is known. Pending ones are first made known to a quorum of the
    /// configuration that was just asked (`[A-4 from-the-asked]`); a final one is remembered. `known`: configurations
    /// that were heard of in this walk, and not visited; those that were heard of here are added to it.
    async fn advance(
        &self,
        at: &Visit,
        known: &mut Successors,
    ) -> Result<Option<Arc<Configuration>>, Unavailable> {
        if !at.c().options().piggyback {
            sequence::read_config(self.env, at).await?;
        }
        let heard = at.successors();
        *known = known.beyond(at.c());
        let joined = known.join(&heard).and_then(|_| {
            let mut known = known.iter();
            known.try_for_each(|pointer| self.sequences.fits(pointer))
        });
        if let Err(fork) = joined {
            self.env.count(Work::Forked);
            return Err(fork.into());
        }
        if let Some(join) = self.join_beside(at.c(), known)? {
            known.insert(Pointer::pending(&join))?;
        }
        let is_agreed = sequence::spread(self.env, at, known).await?;
        let Some(pointer) = known.nearest() else {
            return Ok(None);
        };
        if at.c().era() > 0 && at.c().changes_into(&pointer.configuration) {
            // [W-14 change-of-kind-alone]
            self.sequences.learn(at.c());
        }
        if pointer.is_final() {
            if !is_agreed && at.c().precedes(&pointer.configuration) {
                sequence::announce(self.env, at.c(), pointer);
            }
            if !self.sequences.has_final(&pointer.configuration) {
                self.env.progressed();
            }
            self.sequences.learn(&pointer.configuration);
        } else {
            self.sequences.expect(&pointer.configuration);
        }
        Ok(Some(pointer.configuration.clone()))
    }

    /// The join of the asked configuration with those that were heard of and not visited, if one of these is its
    /// sibling (`[R-30 walks-join]`).
    fn join_beside(
        &self,
        c: &Arc<Configuration>,
        known: &Successors,
    ) -> Result<Option<Arc<Configuration>>, Unavailable> {
        let mut beside = known.iter().filter(|it| !c.precedes(&it.configuration));
        if known.last_final().is_some() || beside.next().is_none() {
            return Ok(None);
        }
        assert!(c.branches(), "elsewhere configurations are comparable");
        let membership = |c: &Configuration| c.descriptor().lattice.clone();
        let all = known.iter().map(|it| &it.configuration).chain([c]);
        let joined = all
            .filter_map(|c| membership(c))
            .reduce(|joined: Membership, one| joined.join(&one))
            .expect("each configuration of a lattice has one");
        let joined = self.start.with_membership(joined)?;
        let follows = |it: &Pointer| joined.is_at_least(&it.configuration);
        assert!(
            c.precedes(&joined) && known.iter().all(follows),
            "a join comes after what it joins"
        );
        Ok(Some(joined))
    }
}

/// The sequence from its last final configuration to its end, as far as it can be seen: `mu` to `lambda`. All but the
/// first are pending.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn path<E: Env>(
    env: &E,
    sequences: &Sequences,
    known: &Arc<Configuration>,
) -> Result<Vec<Arc<Configuration>>, Unavailable> {
    let ask = async |at: &Visit| read_pointers(env, at).await;
    path_asking(env, sequences, known, ask).await
}

/// A configuration and what its members know to come after it.
pub struct GraphNode {
    pub configuration: Arc<Configuration>,
    /// Places of its successors in the graph.
    pub successors: Vec<usize>,
}

/// The configurations of [`path`], each with those among them that its members know to come after it. What is announced meanwhile
/// may be missing.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn graph<E: Env>(
    env: &E,
    sequences: &Sequences,
    known: &Arc<Configuration>,
) -> Result<Vec<GraphNode>, Unavailable> {
    let path = path(env, sequences, known).await?;
    let mut graph = Vec::new();
    for c in &path {
        // Again: what the walk came to last it made known to those that it had asked before.
        let at = Visit::new(c);
        sequence::read_config(env, &at).await?;
        let shown = at.successors();
        let place = |shown: &Pointer| path.iter().position(|c| *c == shown.configuration);
        let successors: Vec<usize> = shown.iter().filter_map(place).collect();
        assert!(
            successors.iter().all(|after| *after > graph.len()),
            "pointers lead upwards, and so does a path"
        );
        graph.push(GraphNode {
            configuration: c.clone(),
            successors,
        });
    }
    Ok(graph)
}

/// Asks for pointers and nothing else. Without piggybacking the walk does that itself.
pub(super) async fn read_pointers<E: Env>(env: &E, at: &Visit) -> Result<(), CallError> {
    if at.c().options().piggyback {
        sequence::read_config(env, at).await?;
    }
    Ok(())
}

/// [`path`] with a request of the caller to each configuration on the way: any request, because members show
/// successors with every reply.
///
/// # Errors
/// As [`path`].
pub(super) async fn path_asking<E: Env>(
    env: &E,
    sequences: &Sequences,
    known: &Arc<Configuration>,
    mut ask: impl AsyncFnMut(&Visit) -> Result<(), CallError>,
) -> Result<Vec<Arc<Configuration>>, Unavailable> {
    let mut path = Vec::new();
    let walk = Walk {
        env,
        sequences,
        start: sequences.start(known),
    };
    let visit = async |at: &Visit| {
        if sequences.has_final(at.c()) {
            path.clear();
        }
        path.push(at.c().clone());
        ask(at).await
    };
    walk.to_the_end(visit).await?;
    let path = since_last_change_of_kind(path);
    let upwards = path.is_sorted_by(|a: &Arc<Configuration>, b| a.id() < b.id());
    let (last, before) = path.split_last().expect("it has a first configuration");
    assert!(
        upwards && before.iter().all(|c| c.precedes(last)),
        "a path leads upwards from a final configuration"
    );
    Ok(path)
}

/// The path without configurations that a change of the kind supersedes: of several such changes, the configurations
/// before the last one were final before it was proposed (`[W-14 change-of-kind-alone]`).
pub(super) fn since_last_change_of_kind(
    mut path: Vec<Arc<Configuration>>,
) -> Vec<Arc<Configuration>> {
    let changes = path.windows(2).enumerate();
    let changes = changes.filter(|(_, pair)| pair[0].changes_into(&pair[1]));
    let changes: Vec<usize> = changes.map(|(place, _)| place).collect();
    let first = match changes.as_slice() {
        [.., last] if path[*last].dap().is_conditional() => *last,
        [.., before, _] => *before + 1,
        _ => 0,
    };
    path.drain(..first);
    path
}

/// A call that is under way at a configuration that the operation has not come to yet.
struct Ahead<F: Future> {
    at: Visit,
    state: State<F>,
}

enum State<F: Future> {
    Asked(Pin<Box<F>>),
    Answered(F::Output),
}

impl<T, F: Future<Output = Result<T, CallError>>> Ahead<F> {
    /// Asks, as soon as it is polled.
    fn ask(c: &Arc<Configuration>, ask: impl Fn(Visit) -> F) -> Ahead<F> {
        let at = Visit::new(c);
        let call = Box::pin(ask(at.clone()));
        let state = State::Asked(call);
        Ahead { at, state }
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if let State::Asked(call) = &mut self.state
            && let Poll::Ready(answer) = call.as_mut().poll(context)
        {
            self.state = State::Answered(answer);
        }
    }

    /// Its answer, and the visit that heard it.
    async fn answer(self) -> (Visit, Result<T, CallError>) {
        let answer = match self.state {
            State::Asked(call) => call.await,
            State::Answered(answer) => answer,
        };
        (self.at, answer)
    }
}

/// Waits for the visit; what is asked ahead gets on meanwhile. The visit is pinned already: what a future takes by value has its
/// place in it twice, and every operation is as large as its largest visit.
async fn beside<O, T, F: Future<Output = Result<T, CallError>>>(
    mut visit: Pin<&mut impl Future<Output = O>>,
    ahead: &mut Option<Ahead<F>>,
) -> O {
    poll_fn(|context| {
        // First what the operation is waiting for: its requests leave first.
        let output = visit.as_mut().poll(context);
        if output.is_pending()
            && let Some(ahead) = ahead
        {
            ahead.poll(context);
        }
        output
    })
    .await
}
