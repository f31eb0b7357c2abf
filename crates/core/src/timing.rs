//! The waits of the algorithms: each constant for one reason. No outcome depends on them, only how long it takes and what is
//! sent for it.

use crate::instant::Instant;
use std::time::Duration;

/// The time that an object must be quiet before versions below its confirmed one go (`[X-3 unconfirmed-cap]`).
pub const QUIET: Duration = Duration::from_secs(2);
/// The time that a get-data waits for the servers that it asked for elements before it asks others, too.
pub const HEDGE: Duration = Duration::from_millis(15);
/// The time that an adoption waits, once a quorum has answered, for the others to answer: to each that does not, its element is sent.
pub const ADOPTION_GRACE: Duration = Duration::from_millis(15);
/// The time that a put waits for members that lack the version where a quorum held it from the start.
pub const REPAIR_GRACE: Duration = Duration::from_millis(15);
/// The time that an operation waits for a configuration of which one server showed a final successor, before it goes there.
pub const SUCCESSOR_GRACE: Duration = Duration::from_millis(15);
/// The time that a refusal that may pass (busy, starting) is left alone before the server is asked again.
pub const ASK_AGAIN: Duration = Duration::from_millis(25);
/// The time that a start waits for members of the root domain that have not answered once a quorum has registered it: one of them may know of a later
/// start. Long enough for a connection and a question over a slow way.
pub const REGISTRATION_PATIENCE: Duration = Duration::from_secs(1);
/// The steps in which that time is counted. A clock that jumps, or a process that stood still, loses one of them, not all.
pub const REGISTRATION_STEP: Duration = Duration::from_millis(25);
/// The interval at which a serving server has its start confirmed again, with the position of its log (`[X-31 log-position]`).
pub const RENEWAL: Duration = Duration::from_secs(5);
/// The longest wait of a start for an answer at the address at which its server was registered last (`[X-33 registered-address]`).
pub const ADDRESS_PATIENCE: Duration = Duration::from_secs(5);
/// A process that stood still for longer may have been taken for dead: it answers for no object until its start is confirmed
/// again (`[X-32 stood-still]`).
pub const STANDSTILL: Duration = Duration::from_secs(4);
/// The time that a write pauses before it asks members again that had no room: half of this, and up to as much again, by chance.
pub const ROOM_PAUSE: Duration = Duration::from_millis(25);
/// The time that a write that meets a member without room, or a put that meets a fence, waits for members that have not answered, if with these there
/// would be a quorum; a write doubles it each time that it has made room, up to 64 times.
pub const ROOM_GRACE: Duration = Duration::from_millis(50);
/// The time that a transfer pauses before it puts a version again that members hold too many unconfirmed ones beside.
pub const TRANSFER_PAUSE: Duration = Duration::from_millis(25);
/// The time that a proposer pauses, at most, after a first short attempt that met a larger ballot.
pub const PROPOSER_PAUSE: Duration = Duration::from_millis(5);
/// The time that a read that meets a proposal under way pauses, at most, before it asks again; twice as long before it asks the last time (`[W-9 one-round-read]`).
pub const READER_PAUSE: Duration = Duration::from_millis(2);
/// A longer attempt waited for members that were away: it says nothing of how far they are.
pub const ATTEMPT_MOST: Duration = Duration::from_millis(500);
/// The time for which a proposal that one member refused waits for the others: their answers may be the last chance
/// to learn its fate (`[W-15 conclusive-refusal]`).
pub const REFUSAL_GRACE: Duration = Duration::from_millis(5);
/// The time that a proposer that does not know what became of its proposal pauses before it asks, at most (`[W-6 ancestors]`).
pub const FATE_PAUSE: Duration = Duration::from_millis(1);
/// The time that a get-data pauses, at most, after its second attempt; twice as long after each further one, up to 16 times, or up to 256 times where
/// a finalized version has too few elements.
pub const RESTART_PAUSE: Duration = Duration::from_micros(500);
/// The time that a look at what members hold waits for silent ones.
pub const HOLDINGS_PATIENCE: Duration = Duration::from_millis(500);
/// The time that a repair waits for a member to take the element that it brings it: one of a large object takes its time.
pub const COMPLETION_PATIENCE: Duration = Duration::from_secs(5);
/// The time that an object that could not be repaired is left alone; twice as long after each further attempt, up to [`REPAIR_AGAIN_MOST`].
pub const REPAIR_AGAIN: Duration = Duration::from_secs(1);
/// The longest time for which an object that could not be repaired is left alone.
pub const REPAIR_AGAIN_MOST: Duration = Duration::from_mins(1);

/// The time that a reconfigurer waits for the leader to get on before it makes its change itself (`[R-31 designated-leader]`).
pub const LEADER_PATIENCE: Duration = Duration::from_secs(2);
/// The first pause of a reconfigurer before it looks again; a quarter longer after each look at which nothing is new, up to
/// [`LEADER_PAUSE_MOST`]. So it notices the end of a change after a quarter of the time that the change took.
pub const LEADER_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause between two looks.
pub const LEADER_PAUSE_MOST: Duration = Duration::from_millis(100);
/// The interval at which a server looks for posted changes that it could not make before.
pub const LEAD_AGAIN: Duration = Duration::from_secs(1);

/// The interval at which members say to each other which versions of objects they know (2.10).
pub const GOSSIP: Duration = Duration::from_secs(1);

/// The interval at which members speak to each other during a restart of counters (2.11).
pub const RESTART: Duration = Duration::from_millis(200);
/// The time that a member may be silent before the others wait for it, and begin no restart.
pub const RESTART_SILENCE: Duration = Duration::from_secs(3);

/// The pauses of a proposer that meets larger ballots (`[R-9 random-backoff]`). Pauses that are short beside the exchanges of an attempt
/// would let proposers that are far from each other meet again and again; and the more failures, the more proposers there seem to be.
#[derive(Debug)]
pub struct BackOff {
    /// The time at which the attempt began.
    begun: Instant,
    failures: u32,
}

impl BackOff {
    /// The back-off of a proposer whose first attempt begins now.
    pub fn new(now: Instant) -> BackOff {
        BackOff {
            begun: now,
            failures: 0,
        }
    }

    /// The attempt has failed: how long the proposer pauses at most.
    pub fn failed(&mut self, now: Instant) -> Duration {
        let took = now.since(self.begun).min(ATTEMPT_MOST);
        let most = took.max(PROPOSER_PAUSE) * (1 << self.failures.min(4));
        self.failures += 1;
        assert!(most <= 16 * ATTEMPT_MOST, "a pause has an end");
        most
    }

    /// True if several attempts have failed.
    pub fn is_again(&self) -> bool {
        self.failures > 1
    }

    /// The next attempt begins.
    pub fn begin(&mut self, now: Instant) {
        assert!(now >= self.begun, "attempts follow each other");
        self.begun = now;
    }
}

const _: () = assert!(
    LEADER_PAUSE_MOST.as_nanos() < LEADER_PATIENCE.as_nanos(),
    "a leader is looked at more than once"
);
const _: () = assert!(
    GOSSIP.as_nanos() < RESTART_SILENCE.as_nanos(),
    "who speaks now and then is not silent"
);
const _: () = assert!(
    STANDSTILL.as_millis() + 500 < ADDRESS_PATIENCE.as_millis(),
    "a process that gave no answer for so long notices, although it notes the time now and then only"
);
const _: () = assert!(
    HEDGE.as_nanos() < QUIET.as_nanos(),
    "versions outlive a read that hedges"
);
const _: () = assert!(
    ASK_AGAIN.as_nanos() < REGISTRATION_PATIENCE.as_nanos(),
    "a member that is starting is asked again before it is given up"
);
