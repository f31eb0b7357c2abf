//! Bytes that are never shown: wiped when dropped, compared in constant time, absent from every `Debug`.
//!
//! # At rest
//!
//! [`seal`] encrypts a secret before it goes to a disk or into an object, and [`open`] reverses it. The algorithm is AES-256-GCM with
//! a random nonce of 96 bits: one key may seal 2^32 blobs before two nonces are likelier than 2^-32 to be the same.
//!
//! ```text
//!  0      4         5            17
//!  ┌──────┬─────────┬────────────┬──────────────────────┬──────────┐
//!  │ ASEC │ version │ nonce      │ encrypted content    │ tag (16) │
//!  └──────┴─────────┴────────────┴──────────────────────┴──────────┘
//! ```
//!
//! The tag covers the bytes before the nonce and the *purpose*, a text that the caller passes at both ends: a blob that was sealed for
//! one purpose does not open as another one.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::SecureRandom;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::hexadecimal;

/// Bytes of a secret that [`Secret::random`] draws, and of a key that seals.
pub const SECRET_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"ASEC";
const VERSION: u8 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 1;

/// Bytes that only their owner may know.
///
/// `Debug` shows none of them, so that a type that contains a secret may derive it. There is no `Display`: the place that
/// writes a secret down says [`Secret::expose`], which a reader can search for.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// A secret of [`SECRET_BYTES`].
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn random(source: &RandomSource) -> Result<Secret, NoRandomness> {
        let bytes = Zeroizing::new(random::<SECRET_BYTES>(source)?);
        Ok(Secret::new(bytes.to_vec()))
    }

    /// Takes bytes over; the caller has no other copy of them.
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    /// The secret bytes. The name shows each use in the code.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as hexadecimal digits, for a text that is shown once.
    pub fn expose_text(&self) -> Zeroizing<String> {
        Zeroizing::new(hexadecimal::write(&self.0))
    }

    /// Reads [`SECRET_BYTES`] from hexadecimal digits; none if the text is anything else.
    pub fn parse(text: &str) -> Option<Secret> {
        let bytes = Zeroizing::new(hexadecimal::read::<SECRET_BYTES>(text)?);
        Some(Secret::new(bytes.to_vec()))
    }
}

/// Takes as long for equal secrets as for different ones of one length.
impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret of {} bytes", self.0.len())
    }
}

/// The system has no random bytes to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes: no key can be made on it")]
pub struct NoRandomness;

/// Fills bytes at random: [`system`], except in a simulation, whose runs repeat themselves.
pub type RandomSource = dyn Fn(&mut [u8]) -> Result<(), NoRandomness>;

/// The system's generator.
///
/// # Errors
/// [`NoRandomness`].
pub fn system(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    let filled = ring::rand::SystemRandom::new().fill(bytes);
    filled.map_err(|_| NoRandomness)
}

/// Random bytes.
///
/// # Errors
/// [`NoRandomness`].
pub fn random<const N: usize>(source: &RandomSource) -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    source(&mut bytes)?;
    Ok(bytes)
}

/// A blob that does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The bytes are not what [`seal`] writes.
    #[error("this is no sealed secret: it does not begin as one, or is cut short")]
    NotSealed,
    /// A later version wrote it.
    #[error("the secret was sealed by a later version (format {version}): use that version")]
    LaterVersion {
        /// The version of the format.
        version: u8,
    },
    /// The key is another one, the purpose is another one, or the bytes were changed. Nothing tells which.
    #[error(
        "the sealed secret does not open: it was changed, or was sealed under another key or for another purpose"
    )]
    Refused,
}

/// A key that [`seal`] or [`open`] was called with is not [`SECRET_BYTES`] long; both panic, because their callers make it.
const KEY_LENGTH: &str = "a sealing key has 32 bytes";

/// Encrypts `content` under `key`, for one purpose.
///
/// # Errors
/// [`NoRandomness`].
///
/// # Panics
/// If the key is not [`SECRET_BYTES`] long.
pub fn seal(
    key: &Secret,
    purpose: &str,
    content: &Secret,
    source: &RandomSource,
) -> Result<Vec<u8>, NoRandomness> {
    let nonce = random::<NONCE_LEN>(source)?;
    let mut blob = Vec::with_capacity(HEAD_BYTES + NONCE_LEN + content.0.len() + 16);
    blob.extend_from_slice(&MAGIC);
    blob.push(VERSION);
    let covered = covered(&blob, purpose);
    blob.extend_from_slice(&nonce);
    // The plain bytes stand in a buffer of their own, which is wiped: growing `blob` could leave a copy behind.
    let mut bytes = Zeroizing::new(content.0.to_vec());
    let tag = aead(key)
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(covered),
            &mut bytes,
        )
        .expect("a secret is far shorter than the 64 GiB that one nonce may encrypt");
    blob.extend_from_slice(&bytes);
    blob.extend_from_slice(tag.as_ref());
    Ok(blob)
}

/// Decrypts what [`seal`] made of a secret with the same key and purpose.
///
/// # Errors
/// [`OpenError`].
///
/// # Panics
/// If the key is not [`SECRET_BYTES`] long.
pub fn open(key: &Secret, purpose: &str, blob: &[u8]) -> Result<Secret, OpenError> {
    let (head, rest) = blob
        .split_first_chunk::<HEAD_BYTES>()
        .ok_or(OpenError::NotSealed)?;
    if head[..MAGIC.len()] != MAGIC {
        return Err(OpenError::NotSealed);
    }
    let version = head[MAGIC.len()];
    if version != VERSION {
        return Err(OpenError::LaterVersion { version });
    }
    let (nonce, encrypted) = rest
        .split_first_chunk::<NONCE_LEN>()
        .ok_or(OpenError::NotSealed)?;
    let mut bytes = Zeroizing::new(encrypted.to_vec());
    let length = aead(key)
        .open_in_place(
            Nonce::assume_unique_for_key(*nonce),
            Aad::from(covered(head, purpose)),
            &mut bytes,
        )
        .map_err(|_| OpenError::Refused)?
        .len();
    bytes.truncate(length);
    Ok(Secret(bytes))
}

fn aead(key: &Secret) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key.0).expect(KEY_LENGTH))
}

fn covered(head: &[u8], purpose: &str) -> Vec<u8> {
    [head, purpose.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_in_no_debug_output() {
        let secret = Secret::new(b"sesame-open".to_vec());
        let shown = format!("{secret:?} {:?}", Some(&secret));
        assert!(!shown.contains("sesame"), "{shown}");
        assert!(
            !shown.contains(&*secret.expose_text()) && !shown.contains("115"),
            "{shown}"
        );
    }

    #[test]
    fn secrets_are_drawn_anew_and_compared_by_content() {
        let (one, other) = (
            Secret::random(&system).unwrap(),
            Secret::random(&system).unwrap(),
        );
        assert_ne!(one, other);
        assert_eq!(one, one.clone());
        assert_ne!(one, Secret::new(one.expose()[..31].to_vec()));
        let again = Secret::parse(&one.expose_text());
        assert_eq!(again.as_ref(), Some(&one));
    }

    #[test]
    fn a_sealed_secret_opens_with_its_key_and_purpose_alone() {
        let (key, other) = (
            Secret::random(&system).unwrap(),
            Secret::random(&system).unwrap(),
        );
        let content = Secret::new(b"a private key".to_vec());
        let blob = seal(&key, "ca", &content, &system).unwrap();
        assert_eq!(open(&key, "ca", &blob).as_ref(), Ok(&content));
        assert_eq!(open(&other, "ca", &blob), Err(OpenError::Refused));
        assert_eq!(open(&key, "key", &blob), Err(OpenError::Refused));
        let sealed_again = seal(&key, "ca", &content, &system).unwrap();
        assert_ne!(blob, sealed_again, "the nonce is drawn anew");
    }

    #[test]
    fn a_changed_or_cut_blob_does_not_open() {
        let key = Secret::random(&system).unwrap();
        let blob = seal(&key, "ca", &Secret::new(vec![7; 20]), &system).unwrap();
        for bit in 0..blob.len() * 8 {
            let mut changed = blob.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&key, "ca", &changed).is_err(), "bit {bit}");
        }
        for length in 0..blob.len() {
            assert!(open(&key, "ca", &blob[..length]).is_err(), "{length} bytes");
        }
        let mut later = blob;
        later[4] = 2;
        let sentence = open(&key, "ca", &later).unwrap_err().to_string();
        assert!(sentence.contains("later version (format 2)"), "{sentence}");
    }

    #[test]
    fn a_blob_of_the_first_version_stays_readable() {
        let key = Secret::new(vec![9; SECRET_BYTES]);
        let blob = hexadecimal::read::<37>(GOLDEN).unwrap();
        let content = open(&key, "golden", &blob).unwrap();
        assert_eq!(content.expose(), b"kept");
    }

    const GOLDEN: &str =
        "4153454301dc97ebde2f903c1ff9131a177ab6b6834402f4dbf3303abe02b7356dcb08fd9a";
}
