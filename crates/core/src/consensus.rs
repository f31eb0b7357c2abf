//! Consensus: decided-once cells, kept by the members of a configuration (`docs/spec` `[X-16 decider-in-descriptor]`,
//! `[X-20 decided-once]`).
//!
//! What must have one winner is decided here and never by a tagged write: the first configuration of a domain, and each
//! further one; the fate of an upload, and that of a version at too few members ([`fate`]). [`paxos`] needs no log and no leader.
//! What is proposed as the next configuration has the changes in it that others posted in the [`mailbox`].
//! In a domain whose configurations are a lattice [`agreement`] or [`speculating`] may take its place ([`merging`]): what is
//! proposed at the same time is merged. Or a [`snapshot`], which decides nothing: each proposal may become a successor.

pub mod agreement;
pub mod fate;
pub mod leader;
pub mod mailbox;
pub mod merging;
pub mod outside;
pub mod paxos;
pub mod snapshot;
pub mod speculating;

use crate::config::{Decider, ServerId};
use crate::env::Env;
use crate::error::{CallError, DeciderError};
use crate::gather::Visit;
use crate::limits;
use crate::message::CellReply;
use crate::span::ErrorType;
use crate::tag::Writer;
use agreement::AGREEMENT_CELL;
use bytes::Bytes;
use mailbox::MAILBOX_CELL;
use paxos::Acceptor;
use snapshot::FIRST_CELL;

/// Why it was not decided which configuration comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProposeError {
    /// The call to the members failed.
    Failed(CallError),
    /// Without the service outside.
    Undecided(DeciderError),
}

impl From<CallError> for ProposeError {
    fn from(failed: CallError) -> Self {
        ProposeError::Failed(failed)
    }
}

impl ErrorType for ProposeError {
    fn error_type(&self) -> &'static str {
        match self {
            ProposeError::Failed(failed) => failed.error_type(),
            ProposeError::Undecided(_) => "undecided",
        }
    }
}

/// A way to decide the next configuration: [`Members`], or a service [`outside`] (as in Ares II). Of all proposals for one configuration's successor
/// it returns the same one to everybody.
pub trait Consensus<E: Env> {
    /// Proposes an encoded configuration as the successor of the visited one. `None`: another client has made a
    /// successor known there already; the visit knows it.
    ///
    /// # Errors
    /// [`ProposeError`] if it was not decided in time.
    fn propose(
        &self,
        env: &E,
        at: &Visit,
        proposal: &Bytes,
    ) -> impl Future<Output = Result<Option<Bytes>, ProposeError>>;

    /// Draws a writer that was never used before.
    fn writer(&self) -> Writer;
}

/// The cell in which the members of a configuration decide which one comes next.
pub const SUCCESSOR_CELL: &[u8] = b"successor";
const _: () = assert!(
    limits::MEMBERS * size_of::<ServerId>() + limits::DECIDER_BYTES < limits::CELL_BYTES,
    "it has room for the largest configuration"
);

/// The members of the configuration themselves decide, by single-decree Paxos: the consensus of Ares.
pub struct Members<F>(
    /// Draws a writer that was never used before.
    pub F,
);

impl<E: Env, F: Fn() -> Writer> Consensus<E> for Members<F> {
    async fn propose(
        &self,
        env: &E,
        at: &Visit,
        proposal: &Bytes,
    ) -> Result<Option<Bytes>, ProposeError> {
        let cell = Bytes::from_static(SUCCESSOR_CELL);
        match paxos::propose(env, at, &cell, proposal, None, &self.0).await? {
            paxos::Outcome::Decided(decided) => Ok(Some(decided)),
            paxos::Outcome::Closed => Ok(None),
        }
    }

    fn writer(&self) -> Writer {
        self.0()
    }
}

/// The decider that the configuration names ([`Decider`], `[X-16 decider-in-descriptor]`).
pub struct AsDescribed<F>(
    /// Draws a writer that was never used before.
    pub F,
);

impl<E: Env, F: Fn() -> Writer> Consensus<E> for AsDescribed<F> {
    async fn propose(
        &self,
        env: &E,
        at: &Visit,
        proposal: &Bytes,
    ) -> Result<Option<Bytes>, ProposeError> {
        let service = &at.c().descriptor().decided_by;
        match service {
            Decider::Members => Members(&self.0).propose(env, at, proposal).await,
            Decider::Agreement
            | Decider::Speculation
            | Decider::Snapshot
            | Decider::Leader { .. } => {
                unreachable!("in a lattice, which is not a sequence")
            }
            Decider::Etcd { .. } => outside::propose(env, at, service, proposal)
                .await
                .map(Some)
                .map_err(ProposeError::Undecided),
        }
    }

    fn writer(&self) -> Writer {
        self.0()
    }
}

/// True if the cell keeps the join of the values sent to it, and decides nothing.
pub(crate) fn keeps_joins(cell: &[u8]) -> bool {
    [AGREEMENT_CELL, MAILBOX_CELL, FIRST_CELL].contains(&cell)
        || cell.starts_with(speculating::ROUNDS)
}

/// Joins a value to the acceptor's value of this cell. Returns the answer, and whether the value changed; `None`: the
/// value does not fit, or the cell keeps no joins.
pub(crate) fn join(
    acceptor: &mut Acceptor,
    cell: &[u8],
    value: &Bytes,
) -> Option<(CellReply, bool)> {
    match cell {
        AGREEMENT_CELL => acceptor.join(value),
        MAILBOX_CELL => Some(acceptor.post(value)),
        FIRST_CELL => acceptor.keep_first(value),
        cell if cell.starts_with(speculating::ROUNDS) => acceptor.propose(value),
        _ => None,
    }
}
