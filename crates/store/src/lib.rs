//! The disk of a server: an append-only segment log behind a small [`Disk`] trait.
//!
//! This crate knows bytes, not objects. A [`Log`] is a heap of *records* (a small header, a payload, the
//! payload's CRC-32C) that are only ever appended, freed, and copied together when a segment is mostly dead. It has no
//! thread and no clock of its own: committing, sealing and reclaiming are steps that its owner calls.
//!
//! What the layer above may rely on, and must bring along:
//!
//! - A record is a *join*: applying it twice, or in another order, changes nothing. So recovery reports records in any
//!   order, may report one twice (a crash while it was being copied), and may report one that was freed.
//! - A record is durable once [`Log::finish_commit`] has returned for the batch it was appended to; nothing that
//!   reflects it may leave the server before that `[X-10 durable-replies]`.
//! - Damage is reported, never repaired by guessing: [`PayloadState::PayloadDamaged`], [`ReadError::Damaged`], and, when
//!   it is not even known which record was lost, [`OpenReport::unknown_damaged`] `[X-11 damage-abstains]`.
//!
//! The byte format is drawn in `docs/data-file.md`. Reading order: [`disk`], `format`, `batch`, `index`, `log` and below
//! it `log/space`, `log/scan`, `log/open`, `log/step`; on top of it [`records`], the typed layer; [`directory`] stands beside the log.

mod batch;
pub mod checksum;
pub mod directory;
pub mod disk;
mod error;
mod format;
pub mod fuzzing;
mod index;
mod log;
pub mod records;

pub use batch::{Commit, CommitProof};
pub use directory::{Directory, DirectoryError, IdentityError};
pub use disk::{Disk, File, FileDisk, MemoryDisk};
pub use error::{CommitError, OpenError, ReadError, ReserveError, StepError};
pub use format::{MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, footprint};
pub use index::Handle;
pub use log::{
    CloseError, Log, LogOptions, OpenReport, PayloadState, RecoveredRecord, ScrubOutcome,
    ScrubPlace, StepOutcome, TornTail, Usage,
};
