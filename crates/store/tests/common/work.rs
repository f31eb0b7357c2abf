//! The layer above a log: what it writes, frees and keeps house, and what it may rely on afterwards.

use std::collections::{BTreeMap, BTreeSet};

use areo_store::checksum::crc32c;
use areo_store::{Handle, Log, MemoryDisk, StepOutcome, footprint};

use super::{OpenStore, Random, header, open, payload};

/// Small, so that segments are filled, sealed and reclaimed all the time.
pub const SEGMENT: u64 = 24 << 10;

/// The records as the layer above knows them.
#[derive(Clone, Default)]
pub struct Model {
    /// Appended and acknowledged, and not freed since: must be there.
    pub acknowledged: BTreeSet<u64>,
    /// Ever appended: may be there.
    pub appended: BTreeSet<u64>,
    /// Freed, and may be found again.
    buried: BTreeSet<u64>,
    /// Freed, and the log said that it cannot be found again.
    pub gone: BTreeSet<u64>,
    next_key: u64,
}

/// The layer above: writes keys, replaces some, frees what it replaced, keeps house. Stops at the first error.
pub struct Worker {
    pub log: Log<MemoryDisk>,
    pub model: Model,
    pub live: BTreeMap<u64, Handle>,
    pending: Vec<u64>,
    replaced: Vec<u64>,
}

impl Worker {
    pub fn start(disk: &MemoryDisk, mut model: Model) -> Self {
        let OpenStore { log, found, .. } = open(disk, SEGMENT);
        let mut worker = Self {
            log,
            model: Model::default(),
            live: BTreeMap::new(),
            pending: Vec::new(),
            replaced: Vec::new(),
        };
        for (key, copies) in found {
            // Copies of one record are joined; one that was freed before is freed again.
            let keep = usize::from(model.acknowledged.contains(&key));
            for (handle, _) in &copies[keep.min(copies.len())..] {
                worker.log.bury(*handle, key);
            }
            assert!(!model.gone.contains(&key), "{key} came back");
            if keep == 1 {
                worker.live.insert(key, copies[0].0);
                // What replaced it was not durable.
                model.buried.remove(&key);
            } else {
                model.buried.insert(key);
            }
        }
        model.acknowledged = worker.live.keys().copied().collect();
        worker.model = model;
        worker
    }

    fn append(&mut self, random: &mut Random) -> Option<()> {
        let key = self.model.next_key;
        let length = random.below(2500) as usize * usize::from(!random.one_in(5));
        let header = header(key, length);
        self.log.reserve(footprint(header.len(), length)).ok()?;
        let bytes = payload(key, length);
        let half = bytes.len() / 2;
        let parts = [bytes.slice(..half), bytes.slice(half..)];
        let handle = self.log.append(&header, &parts, crc32c(&bytes));
        self.model.next_key += 1;
        self.model.appended.insert(key);
        self.pending.push(key);
        self.live.insert(key, handle);
        // It replaces some older one, so that segments die.
        if random.below(10) < 7 {
            let candidates: Vec<u64> = self.model.acknowledged.iter().copied().collect();
            if let Some(old) = candidates.get(random.below(candidates.len().max(1) as u64) as usize)
            {
                self.log.bury(self.live.remove(old)?, *old);
                self.model.buried.insert(*old);
                self.model.acknowledged.remove(old);
                self.replaced.push(*old);
            }
        }
        Some(())
    }

    fn commit(&mut self) -> Option<()> {
        self.log.commit().ok()?;
        self.model.acknowledged.extend(self.pending.drain(..));
        self.replaced.clear();
        self.note_gone();
        Some(())
    }

    /// Asks which of the records that were freed cannot come back.
    fn note_gone(&mut self) {
        let is_gone = |key: &u64| !self.log.may_return(*key);
        let gone = self.model.buried.extract_if(.., |key| is_gone(key));
        self.model.gone.extend(gone);
    }

    pub fn work(&mut self, random: &mut Random, rounds: u64) -> Option<()> {
        for _ in 0..rounds {
            for _ in 0..=random.below(3) {
                self.append(random)?;
            }
            if random.one_in(3) {
                for _ in 0..random.below(8) {
                    match self.log.step().ok()? {
                        // A caller that asks too early must gain nothing.
                        StepOutcome::CommitFirst if random.one_in(3) => {}
                        StepOutcome::CommitFirst => self.commit()?,
                        StepOutcome::Idle => break,
                        StepOutcome::More => self.note_gone(),
                        StepOutcome::Damaged(_) => panic!("nothing is damaged here"),
                    }
                }
            }
            self.commit()?;
            if random.one_in(6) {
                self.log.seal().ok()?;
            }
        }
        Some(())
    }

    /// The records that must be found if the machine stops now, including those that a batch replaced which is not
    /// durable.
    pub fn stop(self) -> Model {
        let mut model = self.model;
        model.acknowledged.extend(self.replaced);
        model
    }
}
