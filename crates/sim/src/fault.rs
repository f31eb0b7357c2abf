//! The faults, and how often each fired: a fault that never fires in a full run is a test that cannot fail.

use crate::cluster::Cluster;
use crate::random::Random;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A fault that the simulator injects.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            pub const ALL: &[Fault] = &[$(Fault::$name,)*];

            /// The name in reports and options.
            pub fn name(self) -> &'static str {
                match self { $(Fault::$name => $text,)* }
            }
        }
    };
}

faults! {
    /// A message is lost for ever.
    Drop = "drop",
    /// A message is lost with its connection; the request goes out again on the next one.
    Reset = "reset",
    /// A message takes a hundred times as long as others.
    Delay = "delay",
    /// A connection ends in the middle of a frame; the request goes out again on the next one.
    CutFrame = "cut frame",
    /// A bit of a frame flips on its way.
    FlippedFrame = "flipped frame",
    /// A message overtakes an earlier one of the same link.
    Reorder = "reorder",
    /// A request arrives twice.
    DuplicateRequest = "duplicate request",
    /// A reply or a note arrives twice.
    DuplicateReply = "duplicate reply",
    /// Some clients and some servers hear nothing of each other.
    Partition = "partition",
    /// Servers hear some clients, who do not hear them, or the other way round.
    OneSidedPartition = "one-sided partition",
    /// Some clients and some servers hear nothing of each other for longer than an operation may take.
    LongPartition = "long partition",
    /// A set of servers, as large as the cluster tolerates, cannot be reached by any process.
    IsolateFew = "isolate f",
    /// A majority is out of everybody's reach.
    IsolateMajority = "isolate majority",
    /// A process is killed; its writes survive.
    Kill = "kill",
    /// All processes are killed at once.
    KillAll = "kill all",
    /// The power goes while a server is idle or between two batches.
    PowerLoss = "power loss",
    /// The power goes at an operation of the disk in the middle of a commit.
    CrashInCommit = "crash in commit",
    /// The process is killed when a batch is durable and no reply has left.
    CrashBeforeReply = "crash before reply",
    /// The power goes again while the server recovers.
    CrashInRecovery = "crash in recovery",
    /// Writes that were not synced are lost.
    LostWrites = "lost writes",
    /// A part of an unsynced write survives.
    TornWrite = "torn write",
    /// A sync fails; the process ends.
    SyncError = "sync error",
    /// A write fails, nothing of it is written; the process ends.
    WriteError = "write error",
    /// A read fails once.
    ReadError = "read error",
    /// A bit flips in a data file.
    BitFlip = "bit flip",
    /// A bit flips in a hint file, which spares the reading of a segment.
    HintFlip = "hint flip",
    /// A data file is gone, perhaps the newest.
    SegmentMissing = "segment missing",
    /// A data file was cut short.
    SegmentCut = "segment cut",
    /// All data files are gone, perhaps with the file beside the log that states the log's extent.
    LogMissing = "log missing",
    /// A hint file is gone.
    HintMissing = "hint missing",
    /// A server starts under another address than before.
    AddressChanged = "address changed",
    /// A server's disk is wiped; what starts there afterwards is another server.
    DiskWiped = "disk wiped",
    /// A server that keeps its records in memory ends; what starts there afterwards is another server.
    MemoryLost = "memory lost",
    /// A server is started from an old copy of its disk, again and again.
    DiskRolledBack = "disk rolled back",
    /// A server's disk is replaced by a copy from the same start, whose log is behind, and the server is refused.
    SnapshotRestored = "snapshot restored",
    /// A second process is started from an old copy of a server's disk.
    DiskCopied = "disk copied",
    /// The disk has no room.
    DiskFull = "disk full",
    /// The disks of any number of servers have no room for seconds.
    DisksFull = "disks full",
    /// A commit takes long.
    SlowDisk = "slow disk",
    /// A server is asked to stop: it refuses new requests, finishes those that it has, closes its store and ends.
    Drain = "drain",
    /// A client has too much under way for a server, and is refused at once.
    QueueFull = "queue full",
    /// A server that owes a large answer sends something, and not yet the end of it, when a client grows impatient.
    SlowBulk = "slow bulk",
    /// A process stands still and goes on.
    Pause = "pause",
    /// A server that starts waits before it serves.
    SlowStart = "slow start",
    /// The clock of a process is an hour ahead from one moment to the next.
    ClockJump = "clock jump",
    /// A client's process dies between two steps of an operation and another takes its place.
    ClientCrash = "client crash",
    /// A client gives an operation up between two of its steps, and goes on with others.
    Cancelled = "operation cancelled",
    /// More writes of one object at once than its configuration's delta allows for.
    ManyWriters = "more writers than delta",
    /// An operation of unknown outcome is tried again.
    Retry = "retry after timeout",
    /// A coverable write finds another version than the one it is based on.
    NotCovered = "coverable write lost",
    /// Two coverable writes that are based on one version succeed, which they may if they are concurrent.
    TwoWinners = "two winners of a version",
    /// A write that wants no object to be there makes one.
    Created = "put if absent",
    /// A deletion of a version succeeds.
    DeletedOn = "conditional deletion",
    /// A named write of unknown outcome is sent again by another process, and has been written once.
    RequestAgain = "request sent again",
    /// A value is written in blocks.
    LargeWrite = "large write",
    /// A sweep gives up the upload of a writer that is still at it.
    SweptUpload = "upload swept",
    /// A sweep removes blocks.
    BlocksRemoved = "blocks removed",
    /// The root domain is reconfigured.
    RootMoved = "root moved",
    /// A domain of the kind `abd` or `ec` becomes conditional.
    BecomesConditional = "domain becomes conditional",
    /// A conditional domain becomes one of the kind `abd` or `ec`.
    CeasesToBeConditional = "domain ceases to be conditional",
    /// A conditional write, or a manifest, is not applied before that.
    NotConditional = "conditional write not applied",
    /// A start is registered where the root domain has moved to.
    RegisteredElsewhere = "registered in a moved root",
    /// A name is decided where the root domain has moved to.
    DecidedElsewhere = "name decided in a moved root",
    /// Somebody else has written a block of a file in the meantime.
    BlockConflict = "block conflict",
    /// A file is removed.
    FileRemoved = "file removed",
    /// A sweep removes blocks that were left of a removed file.
    FileSwept = "removed file swept",
    /// The hint that a server is slow is wrong.
    WrongHint = "wrong hint",
    /// A server that no domain names is taken away, and another one takes its place.
    ServerTakenAway = "server taken away",
    /// A server that is gone, and that no domain names, is forgotten.
    ServerForgotten = "server forgotten",
    /// The directory of a forgotten server is started.
    ForgottenReturned = "forgotten server returns",
    /// A server that leads a domain is killed between two steps of a change.
    LeaderKilled = "leader killed",
    /// A server gives the root domain other members.
    RootGrown = "root grown",
    /// A server is about to do so while another one is, or it itself is.
    GrowersMeet = "root growers meet",
    /// A server that gives the root domain other members is killed meanwhile.
    GrowerKilled = "root grower killed",
    /// Servers of a domain of the kind `casss` remember anything of its objects, and hear anything.
    ArbitraryState = "arbitrary state",
    /// A server has no descriptor or no memory for a file, for seconds, as have any number of others.
    Exhausted = "descriptors run out",
    /// Elements of an object rot at several members, and too few are left to make its value.
    ObjectLost = "object lost",
    /// A join token is shown that has let another machine in.
    TokenContested = "token shown twice",
    /// A key is proven that was revoked, or a secret that was retired.
    TicketRefused = "ticket refused",
    /// A server completes a version in the place of a client that may only read.
    CompletedForReader = "completed for reader",
    /// The root domain did not answer the server that was shown a key; the server issued a ticket by the records that
    /// it had read.
    TicketAsRead = "ticket as read",
}

/// Counts of everything that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCounts(Vec<u64>);

impl Default for FaultCounts {
    fn default() -> FaultCounts {
        FaultCounts(vec![0; Fault::ALL.len()])
    }
}

impl FaultCounts {
    /// Number of times that this fault fired.
    pub fn count(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    pub(crate) fn add(&mut self, other: &FaultCounts) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// The faults that never fired.
    pub fn missing(&self) -> Vec<Fault> {
        let all = Fault::ALL.iter().copied();
        all.filter(|fault| self.count(*fault) == 0).collect()
    }
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in Fault::ALL {
            writeln!(f, "  {:<24} {}", fault.name(), self.count(*fault))?;
        }
        Ok(())
    }
}

/// Faults that a run leaves out, to find the ones that a violation needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    /// Faults that never strike.
    pub without: BTreeSet<Fault>,
    /// Strikes that do not happen, counted from 0 for each fault.
    pub skipped: BTreeSet<(Fault, u64)>,
}

/// Salt of the draw how often leaders are killed.
const LEADERS: u64 = 0x1ead0;
/// Salt of the draw whether snapshots are put back.
const SNAPSHOTS: u64 = 0x54a9;
/// Salt of the draw how often descriptors run out.
const DESCRIPTORS: u64 = 0xde5c;

/// The faults that a seed draws, their rates, and the faults that have fired so far.
pub(crate) struct Plan {
    /// A random source for each fault, so that leaving one fault out does not change the others.
    sources: Vec<Random>,
    /// For each fault the number of times that it was drawn, whether or not it then happened.
    drawn: RefCell<Vec<u64>>,
    restriction: Restriction,
    /// Per mille per opportunity, by fault; 0: never.
    rates: RefCell<Vec<u64>>,
    fired: RefCell<FaultCounts>,
}

impl Plan {
    /// Each fault is in about half of all seeds, so that every combination of two turns up soon.
    pub(crate) fn drawn(random: &Random, restriction: Restriction, cluster: &Cluster) -> Plan {
        let rate = |fault: &Fault| {
            // At the end of one of five seeds, beside all else that they draw.
            match fault {
                Fault::ArbitraryState | Fault::ObjectLost => return 200,
                // In one of two steps or of four, where there are any.
                Fault::LeaderKilled => return [500, 250][(random.beside(LEADERS) % 2) as usize],
                Fault::GrowerKilled => return 400,
                Fault::SnapshotRestored if may_strike(*fault, cluster) => {
                    return [0, 300, 300][(random.beside(SNAPSHOTS) % 3) as usize];
                }
                Fault::Exhausted => return [0, 5, 20][(random.beside(DESCRIPTORS) % 3) as usize],
                fault if is_drawn_beside(*fault) => return 0,
                _ => {}
            }
            let (often, strength) = (random.chance(500), random.between(1, 4));
            match often && may_strike(*fault, cluster) {
                true => strength * usual_rate(*fault),
                false => 0,
            }
        };
        let mut rates: Vec<u64> = Fault::ALL.iter().map(rate).collect();
        // They take the same from a cluster, which loses only so much: beside all of them little else would be lost.
        let kept = random.index(MISSING_RECORDS.len());
        for (place, fault) in MISSING_RECORDS.iter().enumerate() {
            rates[*fault as usize] *= u64::from(place == kept);
        }
        Plan::of(rates, random, restriction)
    }

    pub(crate) fn none(random: &Random) -> Plan {
        let rates = vec![0; Fault::ALL.len()];
        Plan::of(rates, random, Restriction::default())
    }

    fn of(rates: Vec<u64>, random: &Random, restriction: Restriction) -> Plan {
        let source = |fault: &Fault| match is_drawn_beside(*fault) {
            true => Random::new(random.beside(0)),
            false => Random::new(random.draw()),
        };
        Plan {
            sources: Fault::ALL.iter().map(source).collect(),
            drawn: RefCell::new(vec![0; rates.len()]),
            restriction,
            rates: RefCell::new(rates),
            fired: RefCell::default(),
        }
    }

    /// Stops all faults: no rate is above zero any more.
    pub(crate) fn end(&self) {
        self.rates.borrow_mut().fill(0);
    }

    /// Draws whether the fault happens now, and counts it if it does.
    pub(crate) fn strikes(&self, fault: Fault) -> bool {
        let strikes = self.draws(fault);
        if strikes {
            self.note(fault);
        }
        strikes
    }

    /// Draws whether the fault is to happen now. The caller counts it once it has happened.
    pub(crate) fn draws(&self, fault: Fault) -> bool {
        let place = fault as usize;
        if !self.sources[place].chance(self.rates.borrow()[place]) {
            return false;
        }
        let number = self.drawn.borrow()[place];
        self.drawn.borrow_mut()[place] += 1;
        let Restriction { without, skipped } = &self.restriction;
        !without.contains(&fault) && !skipped.contains(&(fault, number))
    }

    /// All strikes that were drawn, in the order of faults.
    pub(crate) fn strikes_drawn(&self) -> Vec<(Fault, u64)> {
        let drawn = self.drawn.borrow();
        let of = |fault: Fault| (0..drawn[fault as usize]).map(move |number| (fault, number));
        let strikes = Fault::ALL.iter().copied().flat_map(of);
        strikes
            .filter(|strike| !self.restriction.without.contains(&strike.0))
            .filter(|strike| !self.restriction.skipped.contains(strike))
            .collect()
    }

    /// The run is one without this fault.
    pub(crate) fn leaves_out(&self, fault: Fault) -> bool {
        self.restriction.without.contains(&fault)
    }

    pub(crate) fn is_planned(&self, fault: Fault) -> bool {
        self.rates.borrow()[fault as usize] > 0
    }

    pub(crate) fn note(&self, fault: Fault) {
        self.fired.borrow_mut().0[fault as usize] += 1;
    }

    pub(crate) fn fired(&self) -> FaultCounts {
        self.fired.borrow().clone()
    }
}

/// Faults after which a server lacks records for good. Each seed has one kind of them at most.
const MISSING_RECORDS: [Fault; 3] = [Fault::SegmentMissing, Fault::SegmentCut, Fault::LogMissing];

/// True if the fault was added later than the others, so that its draw must not change theirs.
fn is_drawn_beside(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Created
            | Fault::DeletedOn
            | Fault::RequestAgain
            | Fault::ArbitraryState
            | Fault::LeaderKilled
            | Fault::Exhausted
            | Fault::ObjectLost
            | Fault::TokenContested
            | Fault::TicketRefused
            | Fault::TicketAsRead
            | Fault::CompletedForReader
            | Fault::SnapshotRestored
            | Fault::RootGrown
            | Fault::GrowersMeet
            | Fault::GrowerKilled
    )
}

/// True if the cluster tolerates the loss that the fault causes.
fn may_strike(fault: Fault, cluster: &Cluster) -> bool {
    match fault {
        Fault::DiskWiped
        | Fault::ServerTakenAway
        | Fault::DiskRolledBack
        | Fault::SnapshotRestored
        | Fault::DiskCopied
        | Fault::BitFlip
        | Fault::ReadError
        | Fault::HintFlip
        | Fault::HintMissing
        | Fault::SegmentMissing
        | Fault::SegmentCut
        | Fault::LogMissing => cluster.may_lose_data(),
        _ => true,
    }
}

/// Per mille: of messages, of commits, of starts, or of the moments at which something may happen to processes and links.
fn usual_rate(fault: Fault) -> u64 {
    match fault {
        Fault::Reset
        | Fault::Delay
        | Fault::DuplicateRequest
        | Fault::DuplicateReply
        | Fault::ClockJump
        | Fault::HintFlip
        | Fault::HintMissing => 10,
        Fault::Drop | Fault::CrashBeforeReply | Fault::SyncError | Fault::LongPartition => 2,
        Fault::CrashInCommit | Fault::DisksFull => 3,
        Fault::CrashInRecovery => 60,
        Fault::SlowStart | Fault::SlowBulk => 200,
        Fault::ServerTakenAway => 900,
        Fault::SlowDisk | Fault::WrongHint => 20,
        Fault::IsolateMajority | Fault::KillAll => 4,
        Fault::BitFlip | Fault::AddressChanged => 100,
        Fault::CutFrame | Fault::FlippedFrame => 5,
        Fault::DiskRolledBack | Fault::DiskCopied => 40,
        Fault::SegmentMissing
        | Fault::SegmentCut
        | Fault::LogMissing
        | Fault::WriteError
        | Fault::QueueFull => 1,
        Fault::DiskWiped => 8,
        _ => 25,
    }
}
