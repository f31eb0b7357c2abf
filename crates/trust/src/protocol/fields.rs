//! Fields of requests and answers: one numbering for all of them.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use super::ProtocolError;
use crate::grant::Grants;

pub(super) const KIND: u16 = MUST_UNDERSTAND | 1;
pub(super) const KEY: u16 = MUST_UNDERSTAND | 2;
pub(super) const NONCE: u16 = MUST_UNDERSTAND | 3;
pub(super) const HOLDER: u16 = MUST_UNDERSTAND | 4;
pub(super) const PROOF: u16 = MUST_UNDERSTAND | 5;
pub(super) const TOKEN: u16 = MUST_UNDERSTAND | 6;
pub(super) const SECRET: u16 = MUST_UNDERSTAND | 7;
pub(super) const SERVER: u16 = MUST_UNDERSTAND | 8;
pub(super) const PUBLIC_KEY: u16 = MUST_UNDERSTAND | 9;
pub(super) const SECONDS: u16 = MUST_UNDERSTAND | 10;
pub(super) const NAME: u16 = MUST_UNDERSTAND | 11;
pub(super) const GRANT: u16 = MUST_UNDERSTAND | 12;
pub(super) const CERTIFICATE: u16 = MUST_UNDERSTAND | 13;
pub(super) const DIGEST: u16 = MUST_UNDERSTAND | 14;
pub(super) const GENERATION: u16 = MUST_UNDERSTAND | 15;
pub(super) const TICKET: u16 = MUST_UNDERSTAND | 16;
pub(super) const ROOTS: u16 = MUST_UNDERSTAND | 17;
pub(super) const MORE: u16 = MUST_UNDERSTAND | 18;
pub(super) const ROW: u16 = MUST_UNDERSTAND | 19;
pub(super) const REVOKED: u16 = MUST_UNDERSTAND | 20;
pub(super) const ROTATING: u16 = MUST_UNDERSTAND | 21;
pub(super) const ISSUING: u16 = MUST_UNDERSTAND | 22;
pub(super) const OWN: u16 = MUST_UNDERSTAND | 23;
pub(super) const SENTENCE: u16 = MUST_UNDERSTAND | 24;
pub(super) const ADDRESS: u16 = MUST_UNDERSTAND | 25;
pub(super) const WHAT: u16 = MUST_UNDERSTAND | 26;
pub(super) const TRUSTED: u16 = MUST_UNDERSTAND | 27;
pub(super) const BEHALF: u16 = MUST_UNDERSTAND | 28;
pub(super) const DAY: u16 = MUST_UNDERSTAND | 29;
pub(super) const REGION: u16 = MUST_UNDERSTAND | 30;

/// Fields that are written.
pub(super) struct Writer(BytesMut);

impl Writer {
    pub(super) fn new(kind: u8) -> Writer {
        Writer::row().byte(KIND, kind)
    }

    /// The fields of a row, which has no kind.
    pub(super) fn row() -> Writer {
        Writer(BytesMut::new())
    }

    pub(super) fn put(mut self, field: u16, value: &[u8]) -> Writer {
        tlv::put_field(&mut self.0, field, value);
        self
    }

    pub(super) fn byte(self, field: u16, value: u8) -> Writer {
        self.put(field, &[value])
    }

    pub(super) fn u32(self, field: u16, value: u32) -> Writer {
        self.put(field, &value.to_le_bytes())
    }

    pub(super) fn u64(self, field: u16, value: u64) -> Writer {
        self.put(field, &value.to_le_bytes())
    }

    pub(super) fn u128(self, field: u16, value: u128) -> Writer {
        self.put(field, &value.to_le_bytes())
    }

    /// A field without content, which is there or not.
    pub(super) fn mark(self, field: u16, is_there: bool) -> Writer {
        match is_there {
            true => self.put(field, b""),
            false => self,
        }
    }

    pub(super) fn if_some<T>(
        self,
        value: Option<T>,
        put: impl FnOnce(Writer, T) -> Writer,
    ) -> Writer {
        match value {
            Some(value) => put(self, value),
            None => self,
        }
    }

    pub(super) fn grants(mut self, grants: &Grants) -> Writer {
        for grant in grants.all() {
            self = self.put(GRANT, grant.to_string().as_bytes());
        }
        self
    }

    pub(super) fn bytes(self) -> Bytes {
        self.0.freeze()
    }
}

/// Fields that are read: each that is there has to be taken.
pub(super) struct Fields<'a>(BTreeMap<u16, Vec<&'a [u8]>>);

impl<'a> Fields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Fields<'a>, ProtocolError> {
        let mut fields: BTreeMap<u16, Vec<&[u8]>> = BTreeMap::new();
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            fields.entry(kind).or_default().push(value);
        }
        Ok(Fields(fields))
    }

    /// All fields of this type, in their order.
    pub(super) fn all(&mut self, field: u16) -> Vec<&'a [u8]> {
        self.0.remove(&field).unwrap_or_default()
    }

    /// The one field of this type.
    pub(super) fn maybe(&mut self, field: u16) -> Result<Option<&'a [u8]>, ProtocolError> {
        match self.all(field)[..] {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(TlvError::Invalid { kind: field }.into()),
        }
    }

    pub(super) fn one(&mut self, field: u16) -> Result<&'a [u8], ProtocolError> {
        let value = self.maybe(field)?;
        Ok(value.ok_or(TlvError::Missing { kind: field })?)
    }

    pub(super) fn number<const N: usize>(&mut self, field: u16) -> Result<[u8; N], ProtocolError> {
        Ok(tlv::number(field, self.one(field)?)?)
    }

    pub(super) fn maybe_number<const N: usize>(
        &mut self,
        field: u16,
    ) -> Result<Option<[u8; N]>, ProtocolError> {
        let value = self.maybe(field)?;
        Ok(value.map(|value| tlv::number(field, value)).transpose()?)
    }

    pub(super) fn byte(&mut self, field: u16) -> Result<u8, ProtocolError> {
        Ok(self.number::<1>(field)?[0])
    }

    pub(super) fn u32(&mut self, field: u16) -> Result<u32, ProtocolError> {
        Ok(u32::from_le_bytes(self.number(field)?))
    }

    pub(super) fn u64(&mut self, field: u16) -> Result<u64, ProtocolError> {
        Ok(u64::from_le_bytes(self.number(field)?))
    }

    pub(super) fn maybe_u64(&mut self, field: u16) -> Result<Option<u64>, ProtocolError> {
        Ok(self.maybe_number(field)?.map(u64::from_le_bytes))
    }

    pub(super) fn u128(&mut self, field: u16) -> Result<u128, ProtocolError> {
        Ok(u128::from_le_bytes(self.number(field)?))
    }

    pub(super) fn text(&mut self, field: u16) -> Result<String, ProtocolError> {
        Ok(tlv::text(field, self.one(field)?)?)
    }

    pub(super) fn mark(&mut self, field: u16) -> Result<bool, ProtocolError> {
        match self.maybe(field)? {
            None => Ok(false),
            Some([]) => Ok(true),
            Some(_) => Err(TlvError::Invalid { kind: field }.into()),
        }
    }

    pub(super) fn grants(&mut self) -> Result<Grants, ProtocolError> {
        let mut grants = Vec::new();
        for value in self.all(GRANT) {
            grants.push(tlv::text(GRANT, value)?.parse()?);
        }
        Ok(Grants::new(grants)?)
    }

    /// Refuses fields that were not taken and must be understood.
    pub(super) fn finish(self) -> Result<(), ProtocolError> {
        for kind in self.0.into_keys() {
            tlv::unknown(kind)?;
        }
        Ok(())
    }
}
