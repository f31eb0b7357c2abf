//! The only door from the algorithms to the world.

use crate::config::{Configuration, Decider, Members, Membership, ServerId};
use crate::error::{DeciderError, Unavailable};
use crate::instant::Instant;
use crate::message::Note;
use crate::pointer::Successors;
use crate::tally::Tally;
use crate::timing::BackOff;
use bytes::Bytes;
use std::future::Future;
use std::time::Duration;

/// Work of operations beside their calls, for counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Parity of a value was computed.
    Encoded {
        /// Bytes of the value.
        bytes: u64,
        /// Duration of the computation.
        time: Duration,
    },
    /// Data of a value was computed from parity.
    Decoded {
        /// Bytes of the value.
        bytes: u64,
        /// Duration of the computation.
        time: Duration,
    },
    /// The answers of a quorum fitted no version, so that it is asked again (2.7; the papers' retries).
    AskedAgain,
    /// Two configurations of one index were seen ([`crate::pointer::Fork`]).
    Forked,
    /// Servers of a new configuration took over elements that they held in earlier ones (`[X-17 adopted-elements]`).
    Adopted { elements: u64 },
    /// Servers of a new configuration were sent elements.
    Moved {
        elements: u64,
        /// Payload bytes of these elements.
        bytes: u64,
    },
}

/// A conclusion of a client from the answers of the members of a configuration of a lattice.
#[derive(Clone, Copy, Debug)]
pub enum Conclusion<'a> {
    /// Lattice agreement decided this membership, or a speculating snapshot may commit it, in this round.
    Merged {
        membership: &'a Membership,
        /// In which round; 0 where there are none.
        round: u32,
    },
    /// A weak snapshot: operations go on to these (`[R-22 collect-again]`).
    Collected { successors: &'a Successors },
}

/// The world as the algorithms see it. One clone per operation: it carries the operation's deadline, trace and
/// statistics. Implemented over TCP by `net` and by the simulator.
///
/// Futures need not be `Send`: connections, tallies and operations live on one thread and share no lock.
pub trait Env: Clone + 'static {
    /// Asks servers of `to` what `tally` wants of each, folds their replies into it as they arrive, and resolves at its
    /// first decision, or with [`Unavailable`] at the operation's deadline or when the tally finds it impossible.
    ///
    /// Undecided calls are sent again after a reconnect (handlers are idempotent); a peer whose queue is full is refused
    /// at once and never delays another; what was sent is never recalled, delivery to laggards is best effort.
    ///
    /// # Errors
    /// [`Unavailable`] says what each server did.
    fn gather<T: Tally + 'static>(
        &self,
        to: &Members,
        tally: T,
    ) -> impl Future<Output = Result<T::Output, Unavailable>>;

    /// Sends a note without an answer, best effort and without haste: it may wait for another message to the same
    /// server.
    fn tell(&self, to: &Members, note: Note);

    /// Waits for this time.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;

    /// The current time of the operation's clock.
    fn now(&self) -> Instant;

    /// Microseconds since 1970, roughly: where a ballot begins to count. Nothing rests on it but how often a ballot is refused.
    fn clock_us(&self) -> u64 {
        self.now().0 / 1000
    }

    /// A random number, for ids and pauses.
    fn random(&self) -> u64;

    /// Waits for a random while, shorter than this: those that met do not meet again.
    fn pause(&self, most: Duration) -> impl Future<Output = ()> {
        let most = u64::try_from(most.as_micros()).expect("a pause is short");
        assert!(most > 0, "there is something to draw from");
        self.sleep(Duration::from_micros(self.random() % most))
    }

    /// The pause of a proposer whose attempt has failed; its next one begins then (`[R-9 random-backoff]`).
    fn back_off(&self, back_off: &mut BackOff) -> impl Future<Output = ()> {
        async move {
            self.pause(back_off.failed(self.now())).await;
            back_off.begin(self.now());
        }
    }

    /// The operation has got on: bytes of a value came, an object or a cell is done with, or it has heard of a later configuration. One that
    /// has no deadline ends when it does not ([`crate::gather::Deadline`]).
    fn progressed(&self) {}

    /// Takes note of what the operation did, for whoever counts it. Nobody does unless the world says so.
    fn count(&self, _work: Work) {}

    /// Takes note of a conclusion, for a world that judges it against those of others. Only simulated ones do.
    fn concluded(&self, _at: &Configuration, _conclusion: Conclusion<'_>) {}

    /// Asks a service outside to decide: of all values that are ever proposed to it under a key it returns the same one to
    /// everybody ([`crate::consensus::outside`]). Worlds without a way there say so.
    ///
    /// # Errors
    /// [`DeciderError`].
    fn decide_outside(
        &self,
        service: &Decider,
        _key: &str,
        _proposal: &Bytes,
    ) -> impl Future<Output = Result<Bytes, DeciderError>> {
        let undecided = DeciderError {
            service: service.to_string(),
            reason: "this program has no way to services outside".into(),
            handed_over: false,
        };
        async move { Err(undecided) }
    }

    /// A hint that this server did not answer lately; a tally may prefer others, and must not rely on it.
    fn slow(&self, server: ServerId) -> bool;
}
