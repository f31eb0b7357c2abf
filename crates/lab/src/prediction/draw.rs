//! Servers whose signals of a day, and whose end, are drawn.

use areo_steward::records::{ServerRecord, Smart};

/// A server on one day.
pub(super) struct DrawnServer {
    pub(super) record: ServerRecord,
    /// It is lost within 14 days.
    pub(super) is_lost: bool,
}

/// The reason of a loss, as far as signals show it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sound,
    Sudden,
    Disk,
    Machine,
}

/// Draws this number of servers, by this seed.
pub(super) fn servers(count: usize, seed: u64) -> Vec<DrawnServer> {
    let mut random = Random(seed);
    (0..count).map(|_| random.server()).collect()
}

/// The generator of one set of servers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn chance(&mut self, per_mille: u64) -> bool {
        self.next() % 1000 < per_mille
    }

    fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.next() % (last - first + 1)
    }

    /// A number of this range in so many of 1000 servers, otherwise 0.
    fn sometimes(&mut self, per_mille: u64, (first, last): (u64, u64)) -> u64 {
        match self.chance(per_mille) {
            true => self.between(first, last),
            false => 0,
        }
    }

    /// Eight of 100 servers are lost, three of ten of them without a sign.
    fn fate(&mut self) -> Fate {
        match self.next() % 1000 {
            0..24 => Fate::Sudden,
            24..60 => Fate::Disk,
            60..80 => Fate::Machine,
            _ => Fate::Sound,
        }
    }

    fn server(&mut self) -> DrawnServer {
        let fate = self.fate();
        // A sound server shows each of these now and then: flipped bits, load, upgrades.
        let mut record = ServerRecord {
            corrupted: self.sometimes(40, (1, 4)),
            io_errors: self.sometimes(6, (1, 2)),
            slow_sync_windows: self.sometimes(50, (1, 6)) as u32,
            restarts: self.sometimes(150, (1, 2)),
            growth_bytes_per_hour: self.between(0, 2) as f64,
            capacity_bytes: 1000,
            ..ServerRecord::default()
        };
        if fate == Fate::Disk {
            record.corrupted += self.sometimes(650, (1, 12));
            record.io_errors += self.sometimes(450, (1, 5));
            record.slow_sync_windows += self.sometimes(500, (3, 12)) as u32;
        }
        if fate == Fate::Machine {
            record.restarts += self.sometimes(750, (2, 10));
            record.slow_sync_windows += self.sometimes(400, (3, 12)) as u32;
        }
        // Four of ten disks do not say how they are.
        if self.chance(600) {
            record.smart = Some(self.smart(fate));
        }
        DrawnServer {
            record,
            is_lost: fate != Fate::Sound,
        }
    }

    fn smart(&mut self, fate: Fate) -> Smart {
        let mut smart = Smart {
            rises: self.sometimes(30, (1, 3)) as u32,
            is_critical: self.chance(3),
            wear_percent: self.between(0, 60) as u8,
        };
        // Some disks are used up and go on.
        if self.chance(20) {
            smart.wear_percent = self.between(85, 99) as u8;
        }
        if fate == Fate::Disk {
            smart.rises += self.sometimes(600, (1, 6)) as u32;
            smart.is_critical |= self.chance(150);
            if self.chance(300) {
                smart.wear_percent = self.between(85, 100) as u8;
            }
        }
        smart
    }
}
