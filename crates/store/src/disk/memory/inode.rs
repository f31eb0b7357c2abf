//! The content of one file and what of it is not durable yet.

use super::{Survive, UnsyncedChange};

/// The present bytes, and for every unsynced change the bytes to undo it.
#[derive(Clone, Default)]
pub(super) struct Inode {
    /// The beginning of the content. What follows it is zeros: a file that was made long and is hardly written, as a
    /// segment is at first, costs little.
    bytes: Vec<u8>,
    length: usize,
    pending: Vec<Pending>,
}

#[derive(Clone)]
struct Pending {
    change: Change,
    /// A sync that should have made it durable failed: no later sync will.
    is_lost: bool,
}

#[derive(Clone)]
enum Change {
    /// The file got its first length.
    Length,
    /// `new` replaced `old` at `offset`; `new` may be longer, when the write made the file grow.
    Write {
        offset: usize,
        old: Vec<u8>,
        new: Vec<u8>,
    },
}

impl Inode {
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self {
            length: bytes.len(),
            bytes,
            pending: Vec::new(),
        }
    }

    pub(super) fn created(size: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(size),
            length: size,
            pending: vec![Pending {
                change: Change::Length,
                is_lost: false,
            }],
        }
    }

    /// The whole content of the file.
    pub(super) fn content(&self) -> Vec<u8> {
        let mut content = self.bytes.clone();
        content.resize(self.length, 0);
        content
    }

    /// Fills the buffer from `offset` on; returns how many bytes there were.
    pub(super) fn read(&self, offset: usize, buffer: &mut [u8]) -> usize {
        assert!(
            self.bytes.len() <= self.length,
            "the content ends where the file ends"
        );
        let count = buffer.len().min(self.length.saturating_sub(offset));
        let written = self.bytes.get(offset..).unwrap_or_default();
        let (head, zeros) = buffer[..count].split_at_mut(written.len().min(count));
        head.copy_from_slice(&written[..head.len()]);
        zeros.fill(0);
        count
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The bytes up to `end` are there to be changed.
    fn reach(&mut self, end: usize) {
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.length = self.length.max(end);
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            let end = offset + bytes.len();
            self.reach(end);
            self.bytes[offset..end].copy_from_slice(bytes);
        }
    }

    fn cut(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.length = length;
    }

    pub(super) fn flip(&mut self, offset: usize, mask: u8) {
        assert!(offset < self.length, "there is such a byte");
        self.reach(offset + 1);
        self.bytes[offset] ^= mask;
        // Rot is below the page cache: undoing an older write must not heal it.
        for pending in &mut self.pending {
            if let Change::Write {
                offset: start, old, ..
            } = &mut pending.change
                && let Some(byte) = offset.checked_sub(*start).and_then(|i| old.get_mut(i))
            {
                *byte ^= mask;
            }
        }
    }

    pub(super) fn write(&mut self, offset: usize, new: Vec<u8>) {
        let end = offset + new.len();
        let mut old = vec![0; end.min(self.length).saturating_sub(offset)];
        self.read(offset, &mut old);
        self.put(offset, &new);
        self.pending.push(Pending {
            change: Change::Write { offset, old, new },
            is_lost: false,
        });
    }

    pub(super) fn sync(&mut self) {
        if self.pending.iter().all(|pending| !pending.is_lost) {
            return self.pending.clear();
        }
        let (mut lost, synced): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|pending| pending.is_lost);
        // What was written again after a failed sync is durable now; undoing the older write must not undo it.
        for durable in &synced {
            for older in &mut lost {
                overlay(&mut older.change, &durable.change);
            }
        }
        self.pending = lost;
    }

    pub(super) fn sync_failed(&mut self) {
        for pending in &mut self.pending {
            pending.is_lost = true;
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.sync();
        self.cut(length);
        for pending in &mut self.pending {
            if let Change::Write { offset, old, new } = &mut pending.change {
                old.truncate(length.saturating_sub(*offset));
                new.truncate(length.saturating_sub(*offset));
            }
        }
    }

    /// Goes back to the durable bytes, then forward with the changes that survive.
    pub(super) fn crash(
        &mut self,
        name: &str,
        survive: &mut impl FnMut(UnsyncedChange<'_>) -> Survive,
    ) {
        let pending = std::mem::take(&mut self.pending);
        let length = self.length;
        for change in pending.iter().rev() {
            if let Change::Write { offset, old, new } = &change.change {
                self.put(*offset, old);
                if old.len() < new.len() {
                    self.cut(self.length.min(*offset + old.len()));
                }
            }
        }
        for Pending { change, is_lost } in pending {
            match change {
                Change::Length => {
                    if is_lost || survive(UnsyncedChange::Length { name }) == Survive::Nothing {
                        self.cut(0);
                    }
                }
                Change::Write { offset, new, .. } => {
                    let fate = if is_lost {
                        Survive::Nothing
                    } else {
                        survive(UnsyncedChange::Write {
                            name,
                            offset: offset as u64,
                            length: new.len(),
                        })
                    };
                    self.replay(offset, &new, fate, length);
                }
            }
        }
    }

    fn replay(&mut self, offset: usize, new: &[u8], fate: Survive, limit: usize) {
        let mut keep = |from: usize, to: usize| {
            let to = to.min(new.len()).min(limit.saturating_sub(offset));
            if from < to {
                self.put(offset + from, &new[from..to]);
            }
        };
        match fate {
            Survive::Nothing => {}
            Survive::All => keep(0, new.len()),
            Survive::Prefix(length) => keep(0, length),
            Survive::Sectors { size, mask } => {
                assert!(size > 0, "a sector has bytes");
                for (index, from) in (0..new.len()).step_by(size).enumerate() {
                    if mask >> (index % 64) & 1 == 1 {
                        keep(from, from + size);
                    }
                }
            }
        }
    }
}

/// Puts what `durable` wrote over the overlapping part of an older change.
fn overlay(older: &mut Change, durable: &Change) {
    let (
        Change::Write {
            offset: at,
            old,
            new,
        },
        Change::Write {
            offset: from,
            new: bytes,
            ..
        },
    ) = (older, durable)
    else {
        return;
    };
    for target in [old, new] {
        let start = (*at).max(*from);
        let end = (*at + target.len()).min(*from + bytes.len());
        if start < end {
            target[start - *at..end - *at].copy_from_slice(&bytes[start - *from..end - *from]);
        }
    }
}
