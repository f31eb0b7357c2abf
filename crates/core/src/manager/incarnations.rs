//! The reincarnation service of the study of self-stabilizing coded storage (5.6, `docs/spec` 2.12): bounded names of clients. A client is
//! called by the number of the hardware on which it runs, and by how often one was started there.
//!
//! The servers of the study keep a table of these numbers, and a client asks a majority and tells one. Here each is a register of
//! the root domain, which is the same in two phases, and moves with its domain. A start always takes a new number
//! (`[CASSS-8 new-number]`), and begins to count its writes anywhere: two clients at a time that are of one hardware by mistake
//! have one name, and no writer in common (`[X-7 writer-per-write]`). So numbers may begin anew when they have come to their end.

use super::Root;
use crate::dap::FoundVersion;
use crate::dsm::coverable::CoverableOutcome;
use crate::element::Value;
use crate::env::Env;
use crate::error::WriteError;
use crate::object::{Kind, Name};
use crate::tag::ClientId;
use bytes::Bytes;

/// Numbers of one piece of hardware: 1 up to this.
const LAST: u32 = u32::MAX - 1;

/// The register of the hardware's number.
fn register(hardware: u32) -> Name {
    let key = format!("incarnation/{hardware:08x}");
    Name::new(Kind::System, &key).expect("it is short")
}

/// The number that was found; 0, which is none, where there is nothing that can be read.
fn number(found: &FoundVersion) -> u32 {
    let value = found.value.as_ref().filter(|value| !value.deleted);
    let bytes = value.map(|value| value.content.concat());
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_le_bytes)
}

impl<E: Env> Root<E> {
    /// Gives the client the name of this hardware's next start. To be called before it is known to write anything under a name.
    ///
    /// # Errors
    /// [`WriteError`]: it has the name that it had.
    pub async fn reincarnate(&self, hardware: u32) -> Result<ClientId, WriteError> {
        let register = register(hardware);
        let found = self.domain.read(&register, None).await;
        let mut found = found.map_err(WriteError::NotApplied)?;
        loop {
            let own = number(&found) % LAST + 1;
            assert!((1..=LAST).contains(&own), "numbers are bounded");
            let value = Value::new(Bytes::new(), Bytes::copy_from_slice(&own.to_le_bytes()));
            let version = Some(found.tag).filter(|tag| !tag.is_initial());
            match self.domain.put_if(&register, &value, version).await? {
                CoverableOutcome::Changed(_) => {
                    let id = ClientId(u64::from(hardware) << 32 | u64::from(own));
                    self.domain.client.take_identity(id);
                    return Ok(id);
                }
                // Another start came in between.
                CoverableOutcome::Unchanged(newer) => found = newer,
            }
        }
    }
}
