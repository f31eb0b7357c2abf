//! Checksums of a body, computed while it comes and compared at its end.

use md5::{Digest as _, Md5};
use ring::digest;

use super::checksum::{Algorithm, Checksum, Expected, Hasher};
use super::chunked::trailer_without_place;
use super::reader::BodyPlan;
use crate::auth::Payload;
use crate::wire::{Code, S3Error};

/// Length and checksums of a body that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Bytes of the object.
    pub length: u64,
    /// Their MD5; zeros if the plan has none.
    pub md5: [u8; 16],
    /// The checksum of the chosen algorithm.
    pub checksum: Option<Checksum>,
}

/// All checksums of a body, in one pass.
pub(super) struct Verification {
    length: u64,
    declared_length: u64,
    md5: Option<Md5>,
    /// The SHA-256 that the signature covers, and its computation.
    payload: Option<([u8; 32], digest::Context)>,
    hasher: Option<Hasher>,
    expected: Expected,
}

impl Verification {
    /// The checksums that a plan needs.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`]: it needs two algorithms, or a trailer that the payload does not have.
    pub(super) fn new(plan: &BodyPlan) -> Result<Verification, S3Error> {
        let expected = &plan.expected;
        if expected.trailer.is_some() && !plan.payload.has_trailer() {
            return Err(trailer_without_place());
        }
        let in_head = expected.checksum.as_ref().map(|one| one.algorithm);
        let wishes = [in_head, expected.trailer, plan.algorithm];
        let wishes: Vec<Algorithm> = wishes.into_iter().flatten().collect();
        if wishes.windows(2).any(|pair| pair[0] != pair[1]) {
            let words: Vec<&str> = wishes.iter().map(|one| one.word()).collect();
            let sentence = format!(
                "a body has one checksum, and the request names {}: send one x-amz-checksum header, and its algorithm",
                words.join(" and ")
            );
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        Ok(Verification {
            length: 0,
            declared_length: plan.length,
            md5: (plan.computes_md5 || expected.md5.is_some()).then(Md5::new),
            payload: match plan.payload {
                Payload::Hashed(hash) => Some((hash, digest::Context::new(&digest::SHA256))),
                _ => None,
            },
            hasher: wishes.first().copied().map(Hasher::new),
            expected: plan.expected.clone(),
        })
    }

    /// Bytes that the object has.
    pub(super) fn declared_length(&self) -> u64 {
        self.declared_length
    }

    /// Takes the next bytes of the object. True: they are the last ones.
    ///
    /// # Errors
    /// [`Code::IncompleteBody`]: there are more than were declared.
    pub(super) fn update(&mut self, bytes: &[u8]) -> Result<bool, S3Error> {
        self.length += bytes.len() as u64;
        if self.length > self.declared_length {
            return Err(self.wrong_length());
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some((_, sha256)) = &mut self.payload {
            sha256.update(bytes);
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        Ok(self.length == self.declared_length)
    }

    /// Compares everything. `trailer` is the checksum that came behind the body.
    ///
    /// # Errors
    /// [`Code::IncompleteBody`], [`Code::XAmzContentSHA256Mismatch`], [`Code::BadDigest`]
    pub(super) fn finish(mut self, trailer: Option<Checksum>) -> Result<Sums, S3Error> {
        if self.length != self.declared_length {
            return Err(self.wrong_length());
        }
        if let Some((declared, sha256)) = self.payload.take()
            && sha256.finish().as_ref() != declared
        {
            let sentence =
                "the SHA-256 of the body is not the one in x-amz-content-sha256: send it again";
            return Err(S3Error::new(Code::XAmzContentSHA256Mismatch, sentence));
        }
        let refused = |name: &str| {
            let sentence = format!("the body does not have the checksum in {name}: send it again");
            S3Error::new(Code::BadDigest, sentence)
        };
        let md5: Option<[u8; 16]> = self.md5.map(|md5| md5.finalize().into());
        if self.expected.md5.is_some() && self.expected.md5 != md5 {
            return Err(refused("Content-MD5"));
        }
        let checksum = self.hasher.map(Hasher::finish);
        for declared in [self.expected.checksum, trailer].into_iter().flatten() {
            if checksum.as_ref() != Some(&declared) {
                return Err(refused(declared.algorithm.header()));
            }
        }
        Ok(Sums {
            length: self.length,
            md5: md5.unwrap_or_default(),
            checksum,
        })
    }

    fn wrong_length(&self) -> S3Error {
        let sentence = format!(
            "the body has another length than the declared one of {} bytes: send it again",
            self.declared_length
        );
        S3Error::new(Code::IncompleteBody, sentence)
    }
}
