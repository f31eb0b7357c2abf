//! Ballot floors (`[W-16 ballot-floor]`): what is left of promises for registers of which nothing is here. A write whose condition does not hold
//! on an absent object has a ballot promised, and nothing more: without this each such name would stay for ever.

use super::super::record::{Header, Ledger};
use super::ConfigurationState;
use super::ranked::KeptRegister;
use crate::config::ConfigurationId;
use crate::dap::conditional::register::{BallotFloor, Register};
use crate::element::Handle;
use crate::hash::stable_hash;
use crate::limits;
use crate::object::Name;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Rounds of repair that begin and end before a promise is folded: the one in which it was made counts for none.
const ROUNDS: u64 = 2;

/// The floors of a configuration, and the promises that are to go into them.
#[derive(Default)]
pub(super) struct BallotFloors {
    /// The floor of each bucket, with its record.
    floors: BTreeMap<u8, RecordedFloor>,
    /// Names of registers of which nothing was here when a ballot was promised, in the order of the rounds of that.
    waiting: VecDeque<(u64, Bytes)>,
    /// Rounds of repair that went over the configuration since the start.
    round: u64,
}

#[derive(Clone, Copy, Default)]
struct RecordedFloor {
    floor: BallotFloor,
    record: Option<Handle>,
}

/// The bucket of a name. Records contain bucket numbers, so that this function must never change.
fn bucket(name: &[u8]) -> u8 {
    let bucket = stable_hash(name) % limits::NAME_BUCKETS;
    u8::try_from(bucket).expect("there are 256")
}

impl BallotFloors {
    /// The floor of a name of which nothing is here.
    pub(super) fn of(&self, name: &[u8]) -> BallotFloor {
        let floor = self.floors.get(&bucket(name));
        floor.map_or_else(BallotFloor::default, |it| it.floor)
    }

    /// The promise of this name waits for its time, if it does not already.
    pub(super) fn wait(&mut self, name: &Bytes, kept: &mut KeptRegister) {
        kept.promised_in = self.round;
        if !kept.waits {
            kept.waits = true;
            self.waiting.push_back((self.round, name.clone()));
        }
    }

    fn recover(&mut self, bucket: u8, found: BallotFloor, handle: Handle, ledger: &mut Ledger) {
        let known = self.floors.entry(bucket).or_default();
        // A floor only rises: of two records one says what both say.
        if known.record.is_some() && known.floor.says(found) {
            ledger.supersede([handle]);
        } else {
            ledger.supersede(known.record.replace(handle));
            known.floor = found;
        }
    }

    fn is_due(&self) -> bool {
        let front = self.waiting.front();
        front.is_some_and(|(round, _)| round + ROUNDS <= self.round)
    }

    /// The next name whose time has come.
    fn next_due(&mut self) -> Option<Bytes> {
        let due = self.is_due().then(|| self.waiting.pop_front());
        due.flatten().map(|(_, name)| name)
    }

    pub(super) fn into_handles(self) -> impl Iterator<Item = Handle> {
        self.floors.into_values().filter_map(|it| it.record)
    }
}

impl ConfigurationState {
    /// A round of repair has gone over all objects of the configuration.
    pub(in crate::server) fn gone_over(&mut self) {
        self.floors.round += 1;
    }

    /// True if promises are old enough to be folded into floors.
    pub(in crate::server) fn has_old_promises(&self) -> bool {
        self.floors.is_due()
    }

    /// Folds promises of which nothing came into the floors of their buckets, some at a time.
    pub(in crate::server) fn fold_promises(&mut self, key: ConfigurationId, ledger: &mut Ledger) {
        let mut raised: BTreeSet<u8> = BTreeSet::new();
        let mut gone: Vec<Handle> = Vec::new();
        for _ in 0..limits::FOLDED_PROMISES {
            let Some(name) = self.floors.next_due() else {
                break;
            };
            let Some(kept) = self.registers.get_mut(&name) else {
                continue;
            };
            assert!(kept.waits, "it was in the queue");
            kept.waits = false;
            if !kept.register.is_foldable() {
                continue;
            }
            if kept.promised_in + ROUNDS > self.floors.round {
                kept.waits = true;
                let again = (kept.promised_in, name);
                self.floors.waiting.push_back(again);
                continue;
            }
            let bucket = bucket(&name);
            let folded = self.registers.remove(&name).expect("it was just seen");
            let known = self.floors.floors.entry(bucket).or_default();
            let promise = folded.register.floor();
            if !known.floor.says(promise) {
                known.floor = known.floor.max(promise);
                raised.insert(bucket);
            }
            assert!(known.floor.says(promise), "no promise falls");
            gone.extend(folded.record);
        }
        for bucket in raised {
            let known = self.floors.floors.get_mut(&bucket);
            let known = known.expect("it was raised");
            let floor = known.floor;
            assert!(
                floor.promised.is_possible(),
                "recovery takes in what is recorded"
            );
            let handle = ledger.append(Header::BallotFloor { key, bucket, floor });
            gone.extend(known.record.replace(handle));
        }
        // In the batch in which the floors become durable, or a later one.
        ledger.supersede(gone);
    }

    pub(in crate::server) fn recover_floor(
        &mut self,
        bucket: u8,
        floor: BallotFloor,
        handle: Handle,
        ledger: &mut Ledger,
    ) {
        self.floors.recover(bucket, floor, handle, ledger);
    }

    /// After the last record: promises that a floor says are gone, and came back; others wait for their time.
    pub(super) fn recovered_promises(&mut self, ledger: &mut Ledger) {
        let floors = &self.floors;
        let is_said = |name: &Bytes, kept: &mut KeptRegister| {
            kept.register.is_foldable() && floors.of(name).says(kept.register.floor())
        };
        let said = self.registers.extract_if(.., is_said);
        ledger.supersede(said.filter_map(|(_, kept)| kept.record));
        let waits = |kept: &KeptRegister| kept.register.is_foldable();
        for (name, kept) in self.registers.iter_mut().filter(|(_, kept)| waits(kept)) {
            self.floors.wait(name, kept);
        }
    }

    /// The register of a name of which nothing is here, with the promise of its bucket.
    pub(super) fn absent_register(&self, name: &Name) -> Register {
        Register::above(self.floors.of(name.as_bytes()))
    }
}
