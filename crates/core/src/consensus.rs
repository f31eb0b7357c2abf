//! Consensus: decided-once cells, kept by the members of a configuration (`algorithms.md` `[X-16]`, `[X-20]`).
//!
//! What must have one winner is decided here and never by a tagged write: the first configuration of a domain, and each
//! further one; the fate of an upload and conditional writes later. [`paxos`] needs no log and no leader.

pub mod paxos;

use crate::env::Env;
use crate::error::Failed;
use crate::gather::Visit;
use crate::tag::Writer;
use bytes::Bytes;

/// What decides which configuration comes next: [`Members`], or a service outside (as in Ares II). Of all proposals for one
/// configuration's successor it returns the same one to everybody.
pub trait Consensus<E: Env> {
    /// Proposes an encoded configuration as the successor of the one visited. `None`: somebody has made a successor known
    /// there already; the visit knows it.
    ///
    /// # Errors
    /// [`Failed`] if it was not decided in time.
    fn propose(
        &self,
        env: &E,
        at: &Visit,
        proposal: &Bytes,
    ) -> impl Future<Output = Result<Option<Bytes>, Failed>>;
}

/// The cell in which the members of a configuration decide which one comes next.
pub const SUCCESSOR_CELL: &[u8] = b"successor";

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
    ) -> Result<Option<Bytes>, Failed> {
        let cell = Bytes::from_static(SUCCESSOR_CELL);
        match paxos::propose(env, at, &cell, proposal, None, &self.0).await? {
            paxos::Outcome::Decided(decided) => Ok(Some(decided)),
            paxos::Outcome::Closed => Ok(None),
        }
    }
}
