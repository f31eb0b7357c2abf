//! Housekeeping, one bounded step at a time.

use crate::disk::{Disk, is_full, may_pass};
use crate::error::StepError;
use crate::index::Handle;

use super::Log;

/// The outcome of a step of [`Log::step`], which says something about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// There is nothing to do.
    Idle,
    /// There is more to do.
    More,
    /// There is more to do after the next commit.
    CommitFirst,
    /// There is more to do. A live record turned out to be damaged: abstain for its key, and free it when it has been
    /// repaired or overwritten `[X-11 damage-abstains]`.
    Damaged(Handle),
}

impl<D: Disk> Log<D> {
    /// Does one bounded piece of housekeeping (about 1 MiB of work): removes segments whose copies are durable, seals a
    /// full segment, prepares the spare, or copies live records out of a mostly dead segment into the open batch.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn step(&mut self) -> Result<StepOutcome, StepError> {
        if self.poison.is_set() {
            return Err(StepError::Poisoned);
        }
        if self.remove_retired()? || self.trim()? || self.prepare_spare()? {
            return Ok(StepOutcome::More);
        }
        if self.renew_extent()? {
            return Ok(StepOutcome::More);
        }
        if self.census_due && self.write_census()? {
            return Ok(StepOutcome::CommitFirst);
        }
        // On a full disk what little is left is for the spare.
        if !self.space.pressure
            && let Some(outcome) = self.hint_step()?
        {
            return Ok(outcome);
        }
        let outcome = self.reclaim_step()?;
        if self.poison.is_set() {
            return Err(StepError::Poisoned);
        }
        Ok(outcome.unwrap_or(StepOutcome::Idle))
    }

    /// `true`: a spare was made.
    fn prepare_spare(&mut self) -> Result<bool, StepError> {
        if !self.space.wants_spare || self.has_spare() {
            return Ok(false);
        }
        match self.create_spare() {
            Ok(()) => {
                self.space.pressure = false;
                Ok(true)
            }
            Err(error) if is_full(&error) => {
                self.space.pressure = true;
                Ok(false)
            }
            Err(error) if may_pass(&error) => Ok(false),
            Err(source) => Err(StepError::Io {
                operation: "making the spare segment",
                source,
            }),
        }
    }
}
