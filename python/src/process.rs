//! What belongs to the process that made it.

use crate::failure::Failure;
use std::mem;
use std::process;

/// A value that counts in the process that made it alone.
///
/// A child that was forked has a copy of the value, without the thread that works for it, and perhaps with locks that the thread held. So the child may neither
/// use the value nor drop it.
pub(crate) struct OfProcess<T> {
    pid: u32,
    /// `None` while it is dropped.
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> OfProcess<T> {
        OfProcess {
            pid: process::id(),
            value: Some(value),
        }
    }

    fn is_here(&self) -> bool {
        self.pid == process::id()
    }

    /// # Errors
    /// The process was forked since.
    pub(crate) fn get(&self) -> Result<&T, Failure> {
        let here = self.value.as_ref().filter(|_| self.is_here());
        here.ok_or_else(Failure::forked)
    }

    /// # Errors
    /// The process was forked since.
    pub(crate) fn get_mut(&mut self) -> Result<&mut T, Failure> {
        let is_here = self.is_here();
        let here = self.value.as_mut().filter(|_| is_here);
        here.ok_or_else(Failure::forked)
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !self.is_here() {
            mem::forget(self.value.take());
        }
    }
}
