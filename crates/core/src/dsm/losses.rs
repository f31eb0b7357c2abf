//! Objects that a person leaves unreadable, so that a change of their domain can end (`docs/spec` `[X-40 named-loss]`).

use super::Domain;
use super::interruption::PutInterruption;
use crate::element::Value;
use crate::env::Env;
use crate::error::WriteError;
use crate::object::{Metadata, Name};
use crate::tag::Tag;
use bytes::Bytes;

impl<E: Env> Domain<E> {
    /// Writes a mark in place of a version that cannot be read any more. False: another version has come since, or this one can be read
    /// again, and nothing was written; nor is the object a register, whose marks are conditional writes.
    ///
    /// The mark's tag is the same for all that write it, and below each version whose writer has seen the lost one: it takes the place of
    /// nothing else, and needs no consensus for that.
    ///
    /// # Errors
    /// [`WriteError`] says whether the mark may have been written.
    pub(crate) async fn leave_lost(&self, name: &Name, lost: Tag) -> Result<bool, WriteError> {
        let Some(tag) = lost.mark_of_loss().filter(|_| !self.is_ranked(name)) else {
            return Ok(false);
        };
        match self.read(name, None).await {
            Ok(_) => return Ok(false),
            Err(failed) if failed.lost_versions().iter().any(|it| it.tag == lost) => {}
            Err(failed) => return Err(WriteError::NotApplied(failed)),
        }
        let mark = mark_of_loss(lost);
        match self.put_from(&self.start(), name, (tag, &mark)).await {
            Ok(()) => {
                self.client.env.progressed();
                Ok(true)
            }
            Err(PutInterruption::Failed(error)) => Err(error),
            Err(PutInterruption::Ranked { .. }) => Ok(false),
        }
    }
}

/// The value that says that this version is lost. All that write it write these bytes: a tag belongs to one value.
pub(crate) fn mark_of_loss(lost: Tag) -> Value {
    let metadata = Metadata {
        lost: Some(lost),
        ..Metadata::default()
    };
    let metadata = metadata.encode().expect("it has no pair");
    Value::new(metadata, Bytes::new())
}
