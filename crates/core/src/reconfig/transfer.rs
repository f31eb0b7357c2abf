//! Transfer: bringing the state of a domain's configurations into the next one (update-config; `docs/spec` 3.4 and 3.5
//! items 1, 7 and 13 to 15).
//!
//! The whole domain moves: its objects, tombstones included (`[X-18 tombstone-versions]`), its decided-once cells
//! (`[X-20 decided-once]`), and the register of servers if it is the root domain. What there is
//! to move is said by a quorum of each source that knows by then what comes next. An object created before that is
//! listed by one of them; whoever creates one later sees the pointer, and repeats the put in the target.
//!
//! Every request to a source carries the pointer to its successor, which the server takes in before it answers: *closing*
//! (`[A-8 closed-get]`). A put that a closed server handles later is acknowledged with the pointer, and so goes on. Of a put
//! that completed without having seen the pointer, a quorum answered before it was closed; the transfer's quorum shares a
//! member with that one, which showed what was put.
//!
//! Memory is bounded: objects move in groups, of which each ends before the next one begins.

mod objects;
mod registers;

use crate::config::{Configuration, Membership, ServerId};
use crate::consensus::agreement::AGREEMENT_CELL;
use crate::consensus::mailbox::MAILBOX_CELL;
use crate::consensus::paxos::{self, Outcome};
use crate::consensus::snapshot::FIRST_CELL;
use crate::consensus::{SUCCESSOR_CELL, fate, merging, speculating};
use crate::dap::{listing, registered};
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::{self, Visit};
use crate::limits;
use crate::message::{ListRequest, Transferred};
use crate::object::{Kind, Name};
use crate::pointer::Pointer;
use crate::tag::{ClientId, Tag, Writer};
use bytes::Bytes;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;

/// The progress of a reconfiguration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Consensus on the successor.
    Deciding,
    /// The decision is made known to the last configuration.
    Announcing,
    /// Objects are on their way.
    Transferring {
        /// Moved since the last time this was said; blocks of a large value are not objects of their own.
        objects: u64,
        /// Bytes of their values, and of blocks.
        bytes: u64,
    },
    /// The new configuration has everything.
    Finalizing,
    /// The old ones are told so.
    Collecting,
    /// The leader makes the change, and has transferred this much as far as is known (`[R-31 designated-leader]`).
    Waiting {
        /// The server on which it runs.
        leader: ServerId,
        transferred: Transferred,
    },
}

impl Progress {
    /// The objects and bytes that were moved since the last report.
    pub fn moved(self) -> Transferred {
        match self {
            Progress::Transferring { objects, bytes } => Transferred { objects, bytes },
            _ => Transferred::default(),
        }
    }
}

/// The end of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferOutcome {
    /// Everything that the sources held is at quorums of the target.
    Complete,
    /// The target, or a later configuration, is final already.
    Final(Arc<Configuration>),
    /// The target has a pending successor, and takes part in no decision any more.
    Overtaken,
}

/// Why a part of it stopped.
enum Stop {
    Unavailable(Unavailable),
    /// Somebody showed a final pointer to this configuration.
    Final(Arc<Configuration>),
    Overtaken,
}

/// Brings everything that is in the sources, which are in their order and precede the target, into the target.
///
/// # Errors
/// [`Unavailable`] without a quorum of a source or of the target in time.
pub async fn transfer<E: Env>(
    env: &E,
    sources: &[Arc<Configuration>],
    target: &Arc<Configuration>,
    progress: &dyn Fn(Progress),
) -> Result<TransferOutcome, Unavailable> {
    let ends = (sources.first(), sources.last());
    let (Some(first), Some(last)) = ends else {
        unreachable!("a pending configuration has a predecessor")
    };
    assert!(last.is_at_least(first), "they follow each other");
    assert!(last.precedes(target), "and the target follows them");
    assert!(!target.dap().is_removal(), "a removal keeps nothing");
    let lost = &LostObjects::default();
    let source = &|position: usize| {
        let c = &sources[position];
        // In DynaStore the next one may be beside it.
        let next = sources.iter().find(|later| c.precedes(later));
        Source {
            env,
            c,
            pointer: Pointer::pending(next.unwrap_or(target)),
            target,
            progress,
            lost,
        }
    };
    let is_conditional = |c: &Arc<Configuration>| c.dap().is_conditional();
    let ceases = is_conditional(&sources[0]) && !is_conditional(target);
    let rest = &sources[usize::from(ceases)..];
    let plain = rest.partition_point(|c| !is_conditional(c));
    assert!(
        rest[plain..].iter().all(is_conditional) && (plain == rest.len() || is_conditional(target)),
        "the kind changes once on a path ([W-14 change-of-kind-alone])"
    );
    let mut parts: Vec<Part<'_>> = vec![
        Box::pin(backwards(sources, source, async |source| {
            source.cells().await
        })),
        Box::pin(async {
            if ceases {
                // First: what the next one has of them, if it is final, must be there before that one is emptied.
                match source(0).last_versions().await {
                    Err(Stop::Final(later)) if later.precedes(target) => {}
                    moved => moved?,
                }
            }
            let moves = async |source: Source<'_, E>| source.objects_and_servers().await;
            everything_else(sources, source, moves).await
        }),
    ];
    if is_conditional(target) {
        parts.push(Box::pin(async {
            let (plain, conditional) = sources.split_at(plain);
            let registers = async |source: Source<'_, E>| source.registers(&[]).await;
            let later = |position: usize| source(plain.len() + position);
            backwards(conditional, later, registers).await?;
            // [W-10 configuration-first]: after what conditional configurations hold.
            puts(plain, conditional, source).await
        }));
    }
    if target.descriptor().decided_by.merges() {
        parts.push(Box::pin(everything_else(sources, source, async |source| {
            source.agreement().await
        })));
    }
    let moved = gather::join(parts.len(), parts).await;
    let moved = moved.into_iter().collect::<Result<(), Stop>>();
    outcome(moved.and_then(|()| lost.none()))
}

/// Brings one object from one configuration into the one that comes next, where it is a ranked register in at least one of them.
///
/// # Errors
/// As [`transfer`].
pub async fn transfer_register<E: Env>(
    env: &E,
    source: &Arc<Configuration>,
    target: &Arc<Configuration>,
    name: &Name,
) -> Result<TransferOutcome, Unavailable> {
    assert!(
        target.is_ranked(name) || source.is_ranked(name),
        "it is a register there"
    );
    assert!(source.precedes(target), "the target follows the source");
    let lost = &LostObjects::default();
    let source = Source {
        env,
        c: source,
        pointer: Pointer::pending(target),
        target,
        progress: &|_| {},
        lost,
    };
    let moved = match target.is_ranked(name) {
        true => source.register(name, &[]).await,
        false => source.last_version(name).await,
    };
    outcome(moved.and_then(|_| lost.none()))
}

fn outcome(moved: Result<(), Stop>) -> Result<TransferOutcome, Unavailable> {
    match moved {
        Ok(()) => Ok(TransferOutcome::Complete),
        Err(Stop::Unavailable(unavailable)) => Err(unavailable),
        Err(Stop::Overtaken) => Ok(TransferOutcome::Overtaken),
        Err(Stop::Final(later)) => Ok(TransferOutcome::Final(later)),
    }
}

/// Moves the cells, or the registers, of all sources, from the last one on: a value accepted in a later configuration
/// goes before one accepted in an earlier one (`docs/decisions/0007-what-a-pointer-does.md`), and here the first
/// value to come counts.
async fn backwards<'a, E: Env>(
    sources: &[Arc<Configuration>],
    source: impl Fn(usize) -> Source<'a, E>,
    moves: impl AsyncFn(Source<'a, E>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let (mut first, mut rest) = (0, sources.len());
    while rest > first {
        rest -= 1;
        match moves(source(rest)).await {
            Err(Stop::Final(later)) => {
                first = place(sources, later)?;
                assert!(first > rest, "what one points to comes after it");
            }
            moved => moved?,
        }
    }
    Ok(())
}

/// Moves the versions that were put in the sources before the domain became conditional: of each object the largest
/// version that any of them holds (`[W-12 becoming-conditional]`). `conditional`: the sources after them, whose
/// registers were moved.
async fn puts<'a, E: Env>(
    plain: &[Arc<Configuration>],
    conditional: &[Arc<Configuration>],
    source: impl Fn(usize) -> Source<'a, E>,
) -> Result<(), Stop> {
    let is_plain = |c: &Arc<Configuration>| !c.dap().is_conditional();
    assert!(plain.iter().all(is_plain), "the others were moved before");
    let mut first = 0;
    while first < plain.len() {
        let later: Vec<Source<'_, E>> = (first + 1..plain.len()).map(&source).collect();
        match source(first).registers(&later).await {
            // What that one held is in the configuration that it points to.
            Err(Stop::Final(later)) => {
                let before = first;
                first = match place(plain, later) {
                    Ok(first) => first,
                    Err(Stop::Final(later)) => return place(conditional, later).map(|_| ()),
                    Err(stop) => return Err(stop),
                };
                assert!(first > before, "what one points to comes after it");
            }
            moved => {
                moved?;
                first += 1;
            }
        }
    }
    Ok(())
}

/// Moves the state that is not moved backwards: its largest value counts, or the join of all values, in any order.
async fn everything_else<'a, E: Env>(
    sources: &[Arc<Configuration>],
    source: impl Fn(usize) -> Source<'a, E>,
    moves: impl AsyncFn(Source<'a, E>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut position = 0;
    while position < sources.len() {
        match moves(source(position)).await {
            Err(Stop::Final(later)) => {
                let before = std::mem::replace(&mut position, place(sources, later)?);
                assert!(position > before, "what one points to comes after it");
            }
            moved => {
                moved?;
                position += 1;
            }
        }
    }
    Ok(())
}

/// Position of the first source that is not before `later`, a final configuration, at which the transfer goes on.
/// `later` has the state of the sources before it, and moving an object twice does no harm.
///
/// # Errors
/// [`Stop::Final`] if all sources come before `later`.
fn place(sources: &[Arc<Configuration>], later: Arc<Configuration>) -> Result<usize, Stop> {
    let is_later = |c: &Arc<Configuration>| c.is_at_least(&later);
    let found = sources.iter().position(is_later);
    found.ok_or(Stop::Final(later))
}

/// A part of the state that is to be moved.
type Part<'a> = Pin<Box<dyn Future<Output = Result<(), Stop>> + 'a>>;

/// One configuration that is being emptied into the target.
struct Source<'a, E> {
    env: &'a E,
    c: &'a Arc<Configuration>,
    /// The pointer to its successor, which closes it.
    pointer: Pointer,
    target: &'a Arc<Configuration>,
    progress: &'a dyn Fn(Progress),
    lost: &'a LostObjects,
}

/// Objects that cannot be read in a source, and that the target does not have (`[W-18 lost-version]`). What becomes of them a person
/// decides; everything else is moved before that is said.
#[derive(Default)]
struct LostObjects(RefCell<Vec<Unavailable>>);

impl LostObjects {
    /// Takes note of one.
    fn add(&self, name: &Name, tag: Tag, failed: Unavailable) -> Result<(), Stop> {
        assert!(failed.is_lost(), "it can be read, or is out of reach");
        self.0.borrow_mut().push(failed.of_lost(name, tag));
        match self.0.borrow().len() < limits::LOST_OBJECTS {
            true => Ok(()),
            false => self.none(),
        }
    }

    /// True if the object is one of them.
    fn has(&self, name: &Name) -> bool {
        let lost = self.0.borrow();
        let mut all = lost.iter().flat_map(Unavailable::lost_versions);
        all.any(|it| it.name == *name)
    }

    /// Stops if there is one.
    fn none(&self) -> Result<(), Stop> {
        let lost = self.0.borrow();
        let first = lost.first().cloned();
        let all = lost.iter().flat_map(Unavailable::lost_versions).cloned();
        match first {
            None => Ok(()),
            Some(first) => Err(Stop::Unavailable(first.with_lost(all.collect()))),
        }
    }
}

impl<E: Env> Source<'_, E> {
    /// Moves everything but the cells. What of it needs the others not at once.
    async fn objects_and_servers(&self) -> Result<(), Stop> {
        let mut parts: Vec<Part<'_>> = vec![Box::pin(self.servers())];
        let is_register = |kind: &Kind| {
            let any = self.c.dap().is_conditional() || self.target.dap().is_conditional();
            kind.is_register() && any
        };
        for kind in Kind::ALL.into_iter().filter(|kind| !is_register(kind)) {
            parts.push(Box::pin(self.kind(kind)));
        }
        let moved = gather::join(parts.len(), parts).await;
        moved.into_iter().collect()
    }

    async fn kind(&self, kind: Kind) -> Result<(), Stop> {
        let mut after = String::new();
        loop {
            let request = ListRequest {
                after,
                ..ListRequest::new(kind, "")
            };
            let at = self.closed();
            let listed = listing::list(self.env, &at, &request).await;
            let page = listed.map_err(|failed| stop(failed, &at))?;
            self.objects(kind, &page.entries).await?;
            match page.horizon {
                Some(horizon) => after = horizon,
                None => return Ok(()),
            }
        }
    }

    /// Moves the registered servers, if this is the root domain.
    async fn servers(&self) -> Result<(), Stop> {
        let at = self.closed();
        let listed = registered::list(self.env, &at, 0).await;
        let records = listed.map_err(|failed| stop(failed, &at))?;
        let register = records.into_values().map(|record| async move {
            let to = Visit::new(self.target);
            let known = registered::hand_on(self.env, &to, record).await;
            known.map_err(|failed| stop(failed, &to))
        });
        let registered = gather::join(limits::TRANSFER_WINDOW, register).await;
        registered.into_iter().collect()
    }

    /// A visit in which only servers that know the successor answer.
    fn closed(&self) -> Visit {
        Visit::closing(self.c, &self.pointer)
    }

    /// Decides in the target the values that acceptors here accepted, unless something was decided there already.
    async fn cells(&self) -> Result<(), Stop> {
        let mut after = Bytes::new();
        loop {
            let at = self.closed();
            let listed = paxos::list(self.env, &at, &Bytes::new(), &after).await;
            let page = listed.map_err(|failed| stop(failed, &at))?;
            for cell in page.cells.keys() {
                // What comes next, and the fate of a version, are those of one configuration.
                let of_next = [SUCCESSOR_CELL, AGREEMENT_CELL, MAILBOX_CELL, FIRST_CELL];
                let is_of_configuration = of_next.contains(&&cell[..])
                    || cell.starts_with(speculating::ROUNDS)
                    || fate::is_fate(cell);
                if !is_of_configuration {
                    self.cell(cell).await?;
                    self.env.progressed();
                }
            }
            match (page.truncated, page.cells.into_keys().next_back()) {
                (true, Some(last)) => after = last,
                _ => return Ok(()),
            }
        }
    }

    /// Moves the agreement on merged changes: ensures that the target's proposers start from everything that
    /// proposers here agreed on (`[R-16 agreement-moves]`).
    async fn agreement(&self) -> Result<(), Stop> {
        let at = self.closed();
        let agreed = merging::read(self.env, &at).await;
        let agreed = agreed.map_err(|failed| stop(failed, &at))?;
        // What is proposed in the target contains the target.
        let has = self.target.descriptor().lattice.as_ref();
        let is_new = |agreed: &Membership| has.is_none_or(|has| !agreed.is_within(has));
        let Some(agreed) = agreed.filter(is_new) else {
            return Ok(());
        };
        let to = Visit::new(self.target);
        let known = merging::hand_on(self.env, &to, &agreed).await;
        known.map_err(|failed| stop(failed, &to))
    }

    async fn cell(&self, cell: &Bytes) -> Result<(), Stop> {
        let at = self.closed();
        let state = paxos::read(self.env, &at, cell).await;
        let Some(value) = state.map_err(|failed| stop(failed, &at))?.value() else {
            return Ok(());
        };
        let to = Visit::new(self.target);
        // Ballots need to be unique, nothing else.
        let proposer = || Writer {
            client: ClientId(self.env.random()),
            counter: self.env.random(),
        };
        match paxos::propose(self.env, &to, cell, &value, None, proposer).await {
            Ok(Outcome::Decided(_)) => Ok(()),
            Ok(Outcome::Closed) => Err(Stop::Overtaken),
            Err(failed) => Err(stop(failed, &to)),
        }
    }
}

fn stop(failed: CallError, at: &Visit) -> Stop {
    match failed {
        CallError::Unavailable(unavailable) => Stop::Unavailable(unavailable),
        CallError::Moved => {
            let shown = at.successors();
            let pointer = shown.last_final().expect("a final pointer was shown");
            Stop::Final(pointer.configuration.clone())
        }
    }
}
