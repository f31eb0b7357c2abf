//! The files with keys of a server.

use std::fs;
use std::io::{self, ErrorKind};

use bytes::Bytes;

use super::{Directory, DirectoryError, JOIN, TRUST, replace};
use crate::checksum::crc32c;
use crate::disk::FileDisk;

impl Directory {
    /// The keys and certificates as [`Directory::write_trust`] wrote them last; `None`: none were.
    ///
    /// # Errors
    /// [`DirectoryError::Damaged`], [`DirectoryError::Io`].
    pub fn read_trust(&self) -> Result<Option<Bytes>, DirectoryError> {
        self.read_keys(TRUST)
    }

    /// The id and the key with which this machine asks to be a server, as [`Directory::write_join`] wrote them last; `None`: it does not.
    ///
    /// # Errors
    /// [`DirectoryError::Damaged`], [`DirectoryError::Io`].
    pub fn read_join(&self) -> Result<Option<Bytes>, DirectoryError> {
        self.read_keys(JOIN)
    }

    fn read_keys(&self, name: &str) -> Result<Option<Bytes>, DirectoryError> {
        let path = self.path.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => Bytes::from(bytes),
            Err(source) if source.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(DirectoryError::Io { path, source }),
        };
        match bytes.split_first_chunk::<4>() {
            Some((checksum, trust)) if u32::from_le_bytes(*checksum) == crc32c(trust) => {
                Ok(Some(bytes.slice_ref(trust)))
            }
            _ => Err(DirectoryError::Damaged { path }),
        }
    }

    /// Replaces the keys and certificates, atomically and durably: after a crash they are the old or the new ones.
    ///
    /// # Errors
    /// That of the system.
    pub fn write_trust(&self, trust: &[u8]) -> io::Result<()> {
        self.write_keys(TRUST, trust)
    }

    /// Replaces the id and the key with which this machine asks to be a server, likewise. They go with the first identity.
    ///
    /// # Errors
    /// That of the system.
    pub fn write_join(&self, join: &[u8]) -> io::Result<()> {
        self.write_keys(JOIN, join)
    }

    fn write_keys(&self, name: &str, keys: &[u8]) -> io::Result<()> {
        let checksum = crc32c(keys).to_le_bytes();
        let bytes = [&checksum[..], keys].concat();
        replace(&FileDisk::new(&self.path), name, &bytes)
    }
}
