//! Reads and writes that fail once, as a bad sector or a bad cable makes them (EIO), and calls that fail for want of a descriptor or
//! of memory (EMFILE, ENOMEM). The disk goes on afterwards.

use std::io;

use rustix::io::Errno;

use super::MemoryDisk;

/// The calls that are to fail, and the memory of one that has.
#[derive(Clone, Copy, Default)]
pub(super) struct Errors {
    reads: Countdown,
    writes: Countdown,
    has_struck: bool,
    /// While something is lacking: bits drawn by the caller, one for each call.
    scarcity: Option<u64>,
    has_lacked: bool,
}

/// Calls of one kind until the one that fails; nothing if none does.
#[derive(Clone, Copy, Default)]
struct Countdown(Option<u64>);

impl Countdown {
    /// Counts a call. Whether it is the one that fails.
    fn is_over(&mut self) -> bool {
        let is_over = self.0 == Some(0);
        self.0 = self.0.and_then(|left| left.checked_sub(1));
        is_over
    }
}

impl Errors {
    pub(super) fn read(&mut self) -> io::Result<()> {
        let fails = self.reads.is_over();
        self.fail(fails, "the disk cannot read this")
    }

    pub(super) fn write(&mut self) -> io::Result<()> {
        let fails = self.writes.is_over();
        self.fail(fails, "the disk cannot write this")
    }

    /// A call that takes a descriptor.
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.lack(Errno::MFILE)
    }

    /// A call that changes a name.
    pub(super) fn change_name(&mut self) -> io::Result<()> {
        self.lack(Errno::NOMEM)
    }

    fn lack(&mut self, errno: Errno) -> io::Result<()> {
        let Some(bits) = &mut self.scarcity else {
            return Ok(());
        };
        *bits = bits.rotate_right(1);
        let fails = *bits & 1 == 1;
        self.has_lacked |= fails;
        match fails {
            true => Err(errno.into()),
            false => Ok(()),
        }
    }

    fn fail(&mut self, fails: bool, what: &str) -> io::Result<()> {
        self.has_struck |= fails;
        match fails {
            true => Err(io::Error::other(what)),
            false => Ok(()),
        }
    }
}

impl MemoryDisk {
    /// Lets the read number `read`, counted from now and 0, fail once.
    pub fn fail_read(&self, read: u64) {
        self.lock().errors.reads = Countdown(Some(read));
    }

    /// Lets the write number `write`, counted from now and 0, fail once: nothing of it is written.
    pub fn fail_write(&self, write: u64) {
        self.lock().errors.writes = Countdown(Some(write));
    }

    /// Lets calls that open, create, rename or remove files fail for want of a descriptor or of memory. Each set bit fails one call,
    /// in their order; `None`: none fails.
    pub fn set_scarcity(&self, bits: Option<u64>) {
        self.lock().errors.scarcity = bits;
    }

    /// True if a call has failed for want of a descriptor or of memory since the last [`Self::crash`].
    pub fn has_lacked(&self) -> bool {
        self.lock().errors.has_lacked
    }

    /// True if a read or a write has failed since the last [`Self::crash`].
    pub fn has_failed(&self) -> bool {
        self.lock().errors.has_struck
    }
}
