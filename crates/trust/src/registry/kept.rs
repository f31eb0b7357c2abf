//! The part of the trust that a server keeps on its disk. It judges by that until it has read the log again: without a quorum of the root
//! domain, the commands that say so are let in by it.

use std::collections::BTreeMap;

use bytes::BytesMut;
use zeroize::Zeroize;

use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use crate::key::KeyRecord;
use crate::roots::Roots;
use crate::secret::Secret;

use super::entry::{AuthorityRecord, RecordError};
use super::state::{State, TrustedAuthority};

const GENERATION: u16 = MUST_UNDERSTAND | 1;
const AUTHORITY: u16 = MUST_UNDERSTAND | 2;
const KEY: u16 = MUST_UNDERSTAND | 3;

impl State {
    /// The CAs and keys as bytes, secrets included: to be sealed.
    pub(super) fn keep(&self) -> Secret {
        let authorities = self.in_order().map(|record| (AUTHORITY, record.encode()));
        let keys = self.keys.values().map(|record| (KEY, record.encode()));
        let records: Vec<(u16, Secret)> = authorities.chain(keys).collect();
        let bytes = |(_, record): &(u16, Secret)| tlv::HEAD_BYTES + record.expose().len();
        let generation = self.generation.to_le_bytes();
        let bytes = records.iter().map(bytes).sum::<usize>();
        // A buffer that does not grow leaves no copy behind.
        let mut out = BytesMut::with_capacity(tlv::HEAD_BYTES + generation.len() + bytes);
        tlv::put_field(&mut out, GENERATION, &generation);
        for (kind, record) in &records {
            tlv::put_field(&mut out, *kind, record.expose());
        }
        let kept = Secret::new(out.to_vec());
        out.as_mut().zeroize();
        kept
    }

    /// Reads what [`State::keep`] wrote: a state without tokens, to which no change can be applied.
    ///
    /// # Errors
    /// [`RecordError`].
    pub(super) fn recall(kept: &Secret) -> Result<State, RecordError> {
        let (mut generation, mut records, mut keys) = (None, Vec::new(), BTreeMap::new());
        for field in tlv::fields(kept.expose()) {
            let (kind, value) = field?;
            let record = || Secret::new(value.to_vec());
            match kind {
                GENERATION => generation = Some(u32::from_le_bytes(tlv::number(kind, value)?)),
                AUTHORITY => records.push(AuthorityRecord::decode(&record())?),
                KEY => {
                    let key = KeyRecord::decode(&record())?;
                    keys.insert(key.id, key);
                }
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        let issuing = records.first().ok_or(missing(AUTHORITY))?.root().clone();
        let founding = issuing.digest();
        let mut roots = Roots::new(issuing);
        for record in &records[1..] {
            roots.trust(record.root().clone())?;
        }
        let trusted = |record: AuthorityRecord| {
            let since_seconds = 0;
            let digest = record.root().digest();
            (
                digest,
                TrustedAuthority {
                    since_seconds,
                    record,
                },
            )
        };
        Ok(State {
            generation: generation.ok_or(missing(GENERATION))?,
            founding,
            roots,
            authorities: records.into_iter().map(trusted).collect(),
            past: Vec::new(),
            tokens: BTreeMap::new(),
            keys,
        })
    }
}
