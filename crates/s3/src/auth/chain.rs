//! Signatures over the chunks of a body.

use std::fmt;

use ring::hmac;

use super::canonical::{hex, sha256};
use crate::wire::{Code, S3Error};

/// The chain of signatures over a body: the signature of a chunk covers the one before it, and the first one that of the head.
#[derive(Clone)]
pub struct ChunkChain {
    pub(super) key: hmac::Key,
    /// The date of the request as its signature has it.
    pub(super) timestamp: String,
    /// The scope of the signing key: `DAY/REGION/s3/aws4_request`.
    pub(super) scope: String,
    /// The signature before the next one.
    pub(super) previous: [u8; 32],
}

impl ChunkChain {
    /// Verifies the signature of the next chunk, of which `sha256` is the hash of its bytes.
    ///
    /// # Errors
    /// [`Code::SignatureDoesNotMatch`]
    pub fn verify_chunk(
        &mut self,
        chunk_sha256: &[u8; 32],
        signature: &[u8; 32],
    ) -> Result<(), S3Error> {
        let hashes = [hex(&sha256(b"")), hex(chunk_sha256)];
        let text = self.string_to_sign("AWS4-HMAC-SHA256-PAYLOAD", &hashes.join("\n"));
        self.verify(&text, signature, "a chunk")
    }

    /// Verifies the signature of the trailer, which is a line `name:value\n` for each of its headers.
    ///
    /// # Errors
    /// [`Code::SignatureDoesNotMatch`]
    pub fn verify_trailer(&mut self, trailer: &[u8], signature: &[u8; 32]) -> Result<(), S3Error> {
        let hash = hex(&sha256(trailer));
        let text = self.string_to_sign("AWS4-HMAC-SHA256-TRAILER", &hash);
        self.verify(&text, signature, "the trailer")
    }

    fn string_to_sign(&self, algorithm: &str, hashes: &str) -> String {
        let (timestamp, scope, previous) = (&self.timestamp, &self.scope, hex(&self.previous));
        format!("{algorithm}\n{timestamp}\n{scope}\n{previous}\n{hashes}")
    }

    fn verify(&mut self, text: &str, signature: &[u8; 32], of: &str) -> Result<(), S3Error> {
        if hmac::verify(&self.key, text.as_bytes(), signature).is_err() {
            let sentence = format!("the signature of {of} of the body is not the computed one");
            return Err(S3Error::new(Code::SignatureDoesNotMatch, sentence));
        }
        self.previous = *signature;
        Ok(())
    }

    /// The signature that the next chunk needs. For tests, which send bodies.
    pub(crate) fn sign_chunk(&mut self, bytes: &[u8]) -> String {
        let hashes = [hex(&sha256(b"")), hex(&sha256(bytes))];
        let text = self.string_to_sign("AWS4-HMAC-SHA256-PAYLOAD", &hashes.join("\n"));
        self.sign(&text)
    }

    /// The signature that the trailer needs.
    pub(crate) fn sign_trailer(&mut self, trailer: &[u8]) -> String {
        let text = self.string_to_sign("AWS4-HMAC-SHA256-TRAILER", &hex(&sha256(trailer)));
        self.sign(&text)
    }

    fn sign(&mut self, text: &str) -> String {
        let tag = hmac::sign(&self.key, text.as_bytes());
        let signature = tag.as_ref().try_into();
        self.previous = signature.expect("an HMAC-SHA-256 has 32 bytes");
        hex(&self.previous)
    }
}

impl fmt::Debug for ChunkChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkChain")
            .field("timestamp", &self.timestamp)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
