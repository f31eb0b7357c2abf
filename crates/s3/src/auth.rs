//! Identifies the sender of a request: Signature Version 4 in a header, in a query, and over the chunks of a body.
//!
//! | step | type | needs |
//! |---|---|---|
//! | read the claim of a request | [`Claim::parse`] | the head |
//! | judge its region and its time | [`Claim::check_region`], [`Claim::check_time`] | the gateway's region, a clock |
//! | fetch the signing keys of the claimed day | [`SigningKeys`] | the holder of secrets |
//! | compare the signature | [`Claim::verify`] | the head and the keys |
//! | compare the signatures of chunks | [`ChunkChain`] | the verified signature of the head |
//!
//! [`authenticate`] does the first four in order. All but the third are pure.
//!
//! A header that begins with `x-amz-` changes the meaning of a request, so that each of them must be signed. Signature Version 2 and 4A are refused, and
//! so are two signatures in one request.

mod canonical;
mod chain;
mod claim;
mod key;
mod payload;
mod sign;
mod timestamp;
#[cfg(test)]
pub(crate) mod vectors;

use std::future::Future;

use http::HeaderMap;
use http::request::Parts;

use crate::wire::S3Error;

pub(crate) use canonical::{hex, parse_hex, sha256};
pub use chain::ChunkChain;
pub use claim::{Claim, MAX_EXPIRY_SECONDS, MAX_SKEW_SECONDS, VerifiedSignature};
pub use key::{SigningKey, derive_signing_key};
pub use payload::Payload;
pub use sign::{payload_hash, sign};
pub use timestamp::Timestamp;

/// The service in the scope of every signature.
pub const SERVICE: &str = "s3";

/// The holder of the keys that sign requests.
pub trait SigningKeys {
    /// The live signing keys of an access key for a day (`YYYYMMDD` as a number) and a region: one, or two while the secret is being replaced.
    ///
    /// # Errors
    /// [`Code::InvalidAccessKeyId`](crate::wire::Code): there is no such access key; or the holder of the keys is not reached.
    fn signing_keys(
        &self,
        key_id: &str,
        day: u32,
        region: &str,
    ) -> impl Future<Output = Result<Vec<SigningKey>, S3Error>> + Send;
}

/// The sender of a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// The request has no signature.
    Anonymous,
    /// The request is signed by an access key, and the signature is right.
    Key(Box<VerifiedSignature>),
}

impl Caller {
    /// The id of the access key.
    pub fn key_id(&self) -> Option<&str> {
        match self {
            Caller::Anonymous => None,
            Caller::Key(verified) => Some(&verified.key_id),
        }
    }

    /// The declared form of the request's body.
    ///
    /// # Errors
    /// An anonymous request declares a form that does not exist, or one with signatures.
    pub fn payload(&self, headers: &HeaderMap) -> Result<Payload, S3Error> {
        match self {
            Caller::Anonymous => Payload::of_anonymous(headers),
            Caller::Key(verified) => Ok(verified.payload),
        }
    }

    /// The state from which signatures of chunks go on.
    pub fn chain(&self) -> Option<&ChunkChain> {
        match self {
            Caller::Anonymous => None,
            Caller::Key(verified) => Some(&verified.chain),
        }
    }
}

/// Judges the signature of a request for a gateway of `region`. `now_seconds` counts from 1970.
///
/// # Errors
/// The signature cannot be read, is not allowed, is out of its time, or is not that of the request; and errors of `keys`.
pub async fn authenticate(
    parts: &Parts,
    region: &str,
    keys: &impl SigningKeys,
    now_seconds: u64,
) -> Result<Caller, S3Error> {
    let Some(claim) = Claim::parse(parts)? else {
        return Ok(Caller::Anonymous);
    };
    claim.check_region(region)?;
    // A request out of its time must not cause the derivation of a key for a foreign day.
    claim.check_time(now_seconds)?;
    let found = keys.signing_keys(claim.key_id(), claim.day(), claim.region());
    let verified = claim.verify(parts, &found.await?, now_seconds)?;
    Ok(Caller::Key(Box::new(verified)))
}
