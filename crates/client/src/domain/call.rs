//! One operation on one object.

use super::About;
use crate::checksum;
use crate::error::{Asked, Error, Operation};
use crate::known::Session;
use crate::object::{Metadata, PutOptions, now_ms};
use areo_core::config::Configuration;
use areo_core::element::Value;
use areo_core::error::{Unavailable, WriteError};
use areo_core::object::Name;
use bytes::Bytes;
use std::sync::Arc;

/// An operation on one object, on the network thread.
pub(crate) struct Call {
    pub(crate) session: Session,
    pub(crate) about: Arc<About>,
    pub(super) operation: Operation,
    pub(crate) name: Name,
}

impl Call {
    pub(crate) fn c(&self) -> &Arc<Configuration> {
        self.about.known()
    }

    fn asked(&self) -> Asked<'_> {
        let (domain, key) = (Some(&*self.about.name), Some(self.name.key()));
        let latest = self.about.latest(&self.session.client);
        Session::asked(self.operation, domain, &latest, key)
    }

    pub(super) fn not_found(&self) -> Error {
        not_found(&self.about.name, self.name.key())
    }

    pub(crate) fn read_error(&self, failed: &Unavailable) -> Error {
        self.session.not_applied(&self.asked(), failed)
    }

    pub(crate) fn write_error(&self, error: &WriteError) -> Error {
        match error {
            WriteError::NotApplied(failed) => self.session.not_applied(&self.asked(), failed),
            WriteError::Unknown(failed) => self.session.unknown(&self.asked(), failed),
        }
    }
}

pub(super) fn not_found(domain: &str, key: &str) -> Error {
    Error::NotFound {
        domain: domain.into(),
        key: Some(key.into()),
    }
}

/// The value with its metadata, if that is within the limits.
pub(super) fn value_to_put(content: Bytes, options: PutOptions) -> Result<Value, Error> {
    options.check()?;
    let metadata = Metadata {
        content_type: options.content_type,
        user: options.user_metadata,
        checksum: Some(checksum::of(std::slice::from_ref(&content))),
        written_at_ms: now_ms(),
        blocks: None,
    };
    Ok(Value::new(metadata.encode()?, content))
}
