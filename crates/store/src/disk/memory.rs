//! A disk in memory that can lie in every way a real one does.
//!
//! Everything is deterministic: the caller's closure makes all random choices. Clones are handles to the same
//! disk. What a real page cache hides is visible here: a write is *unsynced* until its file is synced, and
//! [`MemoryDisk::crash`] asks for every unsynced write whether it survived, whole, torn or not at all.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Disk, File};

mod errors;
mod inode;

use errors::Errors;
use inode::Inode;

/// A disk in memory with faults on demand. See the module's documentation.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

/// An open file of a [`MemoryDisk`]. After a crash it is stale: every call fails, so that a process that is dead cannot
/// write any more.
#[derive(Clone)]
pub struct MemoryFile {
    state: Arc<Mutex<State>>,
    inode: u64,
    epoch: u64,
}

/// One change that was not synced when the power went, in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsyncedChange<'a> {
    /// Bytes written to a file.
    Write {
        /// The file's name, empty if it has none.
        name: &'a str,
        /// The offset of the bytes in the file.
        offset: u64,
        /// The number of bytes.
        length: usize,
    },
    /// The length given to a file when it was created. [`Survive::Nothing`] leaves it empty.
    Length {
        /// The file's name, empty if it has none.
        name: &'a str,
    },
    /// All changes of names since the last [`Disk::sync_dir`]. File systems with a journal keep their order, as
    /// [`Survive::Prefix`] does; others do not, and with [`Survive::Sectors`] each change is a sector of its own.
    Names {
        /// Number of the changes.
        changes: usize,
    },
}

/// The part that survives of one [`UnsyncedChange`] change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survive {
    /// None of the change survives.
    Nothing,
    /// The whole change survives.
    All,
    /// Only the first bytes (or name changes) survive: this number of them.
    Prefix(usize),
    /// For each group of 64 sectors the sectors whose bit is set survive: a torn write.
    Sectors {
        /// The length of a sector in bytes; not 0.
        size: usize,
        /// Bit i stands for the sectors i, i + 64, ...
        mask: u64,
    },
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    name_changes: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    /// Capacity of the disk; `None`: no limit.
    capacity_bytes: Option<u64>,
    operations: u64,
    power_off_at: Option<u64>,
    is_off: bool,
    epoch: u64,
    syncs: u64,
    fail_sync_at: Option<u64>,
    errors: Errors,
}

#[derive(Clone)]
enum NameChange {
    Link(String, u64),
    Unlink(String),
    Rename(String, String),
}

impl MemoryDisk {
    /// An empty disk without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty disk that can hold files of `capacity_bytes` in total.
    pub fn with_capacity(capacity_bytes: u64) -> Self {
        let disk = Self::default();
        disk.set_capacity(Some(capacity_bytes));
        disk
    }

    /// Changes the limit of all file lengths together; `None` removes it.
    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.lock().capacity_bytes = capacity_bytes;
    }

    /// Number of changing operations so far: create, write, sync, truncate, rename, remove, directory sync.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Cuts the power during the operation number `operation` (counted from 0 as in [`Self::operations`]): that one may
    /// or may not happen, as [`Self::crash`] decides, and it and all later ones fail.
    pub fn power_off_at(&self, operation: u64) {
        self.lock().power_off_at = Some(operation);
    }

    /// Lets the sync of data number `sync`, counted from now and 0, fail once. As with a real kernel the writes that it
    /// should have made durable stay readable and are never written, unless they are written again.
    pub fn fail_sync(&self, sync: u64) {
        let mut state = self.lock();
        state.fail_sync_at = Some(state.syncs + sync);
    }

    /// A crash of the machine: every unsynced change survives as `survive` says, older ones first, then the power is
    /// back. Open files are stale afterwards.
    pub fn crash(&self, mut survive: impl FnMut(UnsyncedChange<'_>) -> Survive) {
        let mut state = self.lock();
        state.is_off = false;
        state.power_off_at = None;
        state.fail_sync_at = None;
        state.errors = Errors::default();
        state.epoch += 1;
        state.crash_names(&mut survive);
        let by_inode: BTreeMap<u64, String> = state
            .names
            .iter()
            .map(|(name, inode)| (*inode, name.clone()))
            .collect();
        state.inodes.retain(|inode, _| by_inode.contains_key(inode));
        for (inode, content) in &mut state.inodes {
            content.crash(&by_inode[inode], &mut survive);
        }
    }

    /// Flips the bits of `mask` in one byte of a file, as rot does: no write, no error, durable.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn flip(&self, name: &str, offset: usize, mask: u8) {
        let mut state = self.lock();
        let inode = *state.names.get(name).expect("the file exists");
        let content = state.inodes.get_mut(&inode).expect("names have inodes");
        content.flip(offset, mask);
    }

    /// The present content of a file, if it exists.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        let inode = state.names.get(name)?;
        Some(state.inodes[inode].content())
    }

    /// Puts a file there, durable at once; replaces an earlier file of the name.
    pub fn put(&self, name: &str, content: Vec<u8>) {
        let mut state = self.lock();
        let inode = state.next_inode;
        state.next_inode += 1;
        state.inodes.insert(inode, Inode::durable(content));
        state.names.insert(name.to_owned(), inode);
        state.durable_names.insert(name.to_owned(), inode);
    }

    /// Removes a file, durable at once: a file that went missing.
    pub fn lose(&self, name: &str) {
        let mut state = self.lock();
        state.names.remove(name);
        state.durable_names.remove(name);
    }

    /// A hash of the names and contents of all files: disks that differ in any byte or name have different hashes, by
    /// all odds.
    pub fn fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let state = self.lock();
        let mut hasher = DefaultHasher::new();
        for (name, inode) in &state.names {
            (name, state.inodes[inode].content()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// An independent copy of this disk with all its unsynced changes, and with no power cut planned.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        let state = self.lock();
        let copy = State {
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            name_changes: state.name_changes.clone(),
            inodes: state.inodes.clone(),
            power_off_at: None,
            is_off: false,
            fail_sync_at: None,
            errors: Errors::default(),
            ..*state
        };
        Self {
            state: Arc::new(Mutex::new(copy)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the lock is held")
    }

    fn file(&self, inode: u64, epoch: u64) -> MemoryFile {
        MemoryFile {
            state: Arc::clone(&self.state),
            inode,
            epoch,
        }
    }
}

impl State {
    /// Counts a changing operation. `true`: the power went during this one, so the caller makes its change and then fails.
    fn begin_change(&mut self) -> io::Result<bool> {
        self.check_power()?;
        let dies = self.power_off_at == Some(self.operations);
        self.operations += 1;
        self.is_off = dies;
        Ok(dies)
    }

    fn check_power(&self) -> io::Result<()> {
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        Ok(())
    }

    /// The bytes that could still be allocated.
    fn free_bytes(&self) -> u64 {
        let Some(capacity) = self.capacity_bytes else {
            return u64::MAX;
        };
        let lengths = self.names.values().map(|inode| self.inodes[inode].length());
        capacity.saturating_sub(lengths.sum::<usize>() as u64)
    }

    fn change_name(&mut self, change: NameChange) {
        change.clone().apply(&mut self.names);
        self.name_changes.push(change);
    }

    fn crash_names(&mut self, survive: &mut impl FnMut(UnsyncedChange<'_>) -> Survive) {
        let changes = std::mem::take(&mut self.name_changes);
        if changes.is_empty() {
            return;
        }
        let fate = survive(UnsyncedChange::Names {
            changes: changes.len(),
        });
        let is_kept = |place: usize| match fate {
            Survive::Nothing => false,
            Survive::All => true,
            Survive::Prefix(length) => place < length,
            Survive::Sectors { mask, .. } => mask >> (place % 64) & 1 == 1,
        };
        for (place, change) in changes.into_iter().enumerate() {
            if is_kept(place) {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        assert!(
            self.names
                .values()
                .all(|inode| self.inodes.contains_key(inode)),
            "a name that survives has its file"
        );
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Link(name, inode) => {
                names.insert(name, inode);
            }
            Self::Unlink(name) => {
                names.remove(&name);
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(&from) {
                    names.insert(to, inode);
                }
            }
        }
    }
}

const DIED: &str = "the power went during this operation";

fn finish(dies: bool) -> io::Result<()> {
    if dies {
        return Err(io::Error::other(DIED));
    }
    Ok(())
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.check_power()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str, size_bytes: u64) -> io::Result<MemoryFile> {
        let mut state = self.lock();
        state.check_power()?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.errors.open()?;
        if size_bytes > state.free_bytes() {
            return Err(ErrorKind::StorageFull.into());
        }
        let dies = state.begin_change()?;
        let inode = state.next_inode;
        state.next_inode += 1;
        let size = usize::try_from(size_bytes).map_err(|_| ErrorKind::StorageFull)?;
        let before = state.inodes.insert(inode, Inode::created(size));
        assert!(
            before.is_none(),
            "the number of a file is never given again"
        );
        state.change_name(NameChange::Link(name.to_owned(), inode));
        finish(dies)?;
        Ok(self.file(inode, state.epoch))
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let mut state = self.lock();
        state.check_power()?;
        let inode = *state.names.get(name).ok_or(ErrorKind::NotFound)?;
        state.errors.open()?;
        Ok(self.file(inode, state.epoch))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        if !state.names.contains_key(from) {
            return Err(ErrorKind::NotFound.into());
        }
        state.errors.change_name()?;
        let dies = state.begin_change()?;
        state.change_name(NameChange::Rename(from.to_owned(), to.to_owned()));
        finish(dies)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        if !state.names.contains_key(name) {
            return Err(ErrorKind::NotFound.into());
        }
        state.errors.change_name()?;
        let dies = state.begin_change()?;
        state.change_name(NameChange::Unlink(name.to_owned()));
        finish(dies)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.lock();
        finish(state.begin_change()?)?;
        for change in std::mem::take(&mut state.name_changes) {
            change.apply(&mut state.durable_names);
        }
        // What has no name any more can come back by no crash.
        let linked: Vec<u64> = state.names.values().copied().collect();
        state.inodes.retain(|inode, _| linked.contains(inode));
        Ok(())
    }

    fn beside(&self) -> Self {
        self.clone()
    }

    fn free_space(&self) -> io::Result<u64> {
        let state = self.lock();
        state.check_power()?;
        Ok(state.free_bytes())
    }
}

impl MemoryFile {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock().expect("no panic while the lock is held");
        state.check_power()?;
        if state.epoch != self.epoch {
            return Err(io::Error::other("the file was opened before the crash"));
        }
        if !state.inodes.contains_key(&self.inode) {
            return Err(ErrorKind::NotFound.into());
        }
        act(&mut state)
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|state| {
            state.errors.read()?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            Ok(state.inodes[&self.inode].read(start, buffer))
        })
    }

    fn write_vectored_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.with(|state| {
            state.errors.write()?;
            let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
            for part in parts {
                bytes.extend_from_slice(part);
            }
            let start = usize::try_from(offset).map_err(|_| ErrorKind::StorageFull)?;
            let length = state.inodes[&self.inode].length();
            let growth = (start + bytes.len()).saturating_sub(length) as u64;
            if growth > state.free_bytes() {
                return Err(ErrorKind::StorageFull.into());
            }
            let dies = state.begin_change()?;
            let written = bytes.len();
            let inode = state.inodes.get_mut(&self.inode).expect("checked by with");
            inode.write(start, bytes);
            finish(dies)?;
            Ok(written)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state| {
            finish(state.begin_change()?)?;
            let fails = state.fail_sync_at == Some(state.syncs);
            state.syncs += 1;
            let inode = state.inodes.get_mut(&self.inode).expect("checked by with");
            if fails {
                inode.sync_failed();
                // As if it could be tried again, which is a trap.
                return Err(rustix::io::Errno::INTR.into());
            }
            inode.sync();
            Ok(())
        })
    }

    fn length(&self) -> io::Result<u64> {
        self.with(|state| Ok(state.inodes[&self.inode].length() as u64))
    }

    fn truncate(&self, length_bytes: u64) -> io::Result<()> {
        self.with(|state| {
            let dies = state.begin_change()?;
            // A cut that the power interrupts has not happened; one that happened is durable with all data before it.
            finish(dies)?;
            let inode = state.inodes.get_mut(&self.inode).expect("checked by with");
            inode.truncate(usize::try_from(length_bytes).map_err(|_| ErrorKind::StorageFull)?);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
