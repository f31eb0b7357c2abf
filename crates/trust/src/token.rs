//! Join tokens: what a machine needs to become a server of a cluster.
//!
//! A token has the digest of the cluster's CA, an id, and a secret: `areo1.DIGEST.ID.SECRET`. The machine connects without
//! trust (`tls::joining_config`), finds the digest again, and only then sends id and secret. The cluster keeps a
//! [`TokenRecord`], which has the hash of the secret: what is read out of a record lets no machine in.
//!
//! The record decides that a token is used once: [`TokenRecord::redeem`] returns the record as it is to be, and the caller
//! writes it on condition that it is still the one that it read (`registry`). The answer to the first request may have been lost: a server
//! that repeats it is let in again, with the key of its first request alone, and until [`REPETITION_SECONDS`] after the expiry. A
//! token that is found later, in a history of a shell or on a disk, lets no machine in, not even as the server that used it.
//!
//! The expiry is judged by one clock and without tolerated skew: an operator who asks for ten minutes gets ten minutes.

use std::fmt;

use bytes::{Bytes, BytesMut};
use ring::digest::{Context, SHA256, digest};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use areo_core::config::ServerId;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use crate::authority::PublicKey;
use crate::certificate::{duration, utc};
use crate::id::TokenId;
use crate::roots::RootDigest;
use crate::secret::{NoRandomness, RandomSource, SECRET_BYTES, Secret};
use crate::text::{Form, TextError};

/// Seconds after the expiry in which a server may repeat its request.
pub const REPETITION_SECONDS: u64 = 10 * 60;

const FORM: Form = Form {
    what: "join token",
    mark: "areo",
};

const ID: u16 = MUST_UNDERSTAND | 1;
const SECRET_HASH: u16 = MUST_UNDERSTAND | 2;
const EXPIRES: u16 = MUST_UNDERSTAND | 3;
const USED_BY: u16 = MUST_UNDERSTAND | 4;
const USED_KEY: u16 = MUST_UNDERSTAND | 5;
const REVOKED: u16 = MUST_UNDERSTAND | 6;

/// A token as its owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// The digest of the cluster's CA.
    pub root: RootDigest,
    /// The id, by which the cluster finds its record.
    pub id: TokenId,
    /// The secret that proves it.
    pub secret: Secret,
}

impl JoinToken {
    /// A new token with the record that the cluster keeps of it.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn create(
        root: RootDigest,
        expires_seconds: u64,
        source: &RandomSource,
    ) -> Result<(JoinToken, TokenRecord), NoRandomness> {
        let token = JoinToken {
            root,
            id: TokenId::random(source)?,
            secret: Secret::random(source)?,
        };
        let record = TokenRecord {
            id: token.id,
            secret_hash: hash(token.id, &token.secret),
            expires_seconds,
            used: None,
            revoked_seconds: None,
        };
        Ok((token, record))
    }

    /// The text, to be shown once.
    pub fn expose_text(&self) -> Zeroizing<String> {
        let secret = self.secret.expose_text();
        Zeroizing::new(format!("areo1.{}.{}.{}", self.root, self.id, *secret))
    }

    /// Reads the text; space around it counts for nothing.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn parse(text: &str) -> Result<JoinToken, TextError> {
        let [root, id, secret] = FORM.split(text)?;
        Ok(JoinToken {
            root: RootDigest::parse(root).ok_or(FORM.damaged("digest", 32))?,
            id: TokenId::parse(id).ok_or(FORM.damaged("id", 8))?,
            secret: Secret::parse(secret).ok_or(FORM.damaged("secret", SECRET_BYTES))?,
        })
    }
}

/// The first use of a token: the server and the key for which it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenUse {
    /// The server that the token has let in.
    pub by: ServerId,
    /// SHA-256 of that server's public key.
    pub key_digest: [u8; 32],
}

impl TokenUse {
    fn new(by: ServerId, key: &PublicKey) -> TokenUse {
        let digest = digest(&SHA256, key.as_bytes());
        let key_digest = digest.as_ref().try_into();
        TokenUse {
            by,
            key_digest: key_digest.expect("SHA-256 has 32 bytes"),
        }
    }
}

/// The record of a token that the cluster keeps.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: TokenId,
    /// The hash of id and secret.
    secret_hash: [u8; 32],
    /// The end of its life, in seconds since 1970: then it lets in no server.
    pub expires_seconds: u64,
    /// The first use, if it was used.
    pub used: Option<TokenUse>,
    /// Since when it counts no longer, in seconds since 1970.
    pub revoked_seconds: Option<u64>,
}

impl fmt::Debug for TokenRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRecord")
            .field("id", &self.id)
            .field("expires_seconds", &self.expires_seconds)
            .field("used", &self.used)
            .field("revoked_seconds", &self.revoked_seconds)
            .finish_non_exhaustive()
    }
}

/// A server that is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedeemError {
    /// There is no record, or the secret is another one: nothing tells a stranger which ids exist.
    #[error(
        "this cluster has no such join token {id}: it was damaged, or is of another cluster; make a new one with `areo token create`"
    )]
    Unknown {
        /// The id in the token.
        id: TokenId,
    },
    /// It was revoked. Only the owner of the secret learns it.
    #[error("the join token {id} was revoked: make a new one with `areo token create`")]
    Revoked {
        /// The id of the token.
        id: TokenId,
    },
    /// The token was used already.
    #[error(
        "the join token {id} was used by server {by}, and lets one server in: make a new one with `areo token create`"
    )]
    Used {
        /// The id of the token.
        id: TokenId,
        /// The server that used it.
        by: ServerId,
    },
    /// The server that used it has another key by now, or a stranger calls itself by that server's id.
    #[error(
        "the join token {id} was used by server {by} with another key, and counts for that key alone: make a new one with `areo token create`"
    )]
    OtherKey {
        /// The id of the token.
        id: TokenId,
        /// The server that used it.
        by: ServerId,
    },
    /// Its time is over.
    #[error(
        "the join token {id} expired at {}, {} ago by the clock of the server that was asked, which shows {}: make a new one with `areo token create --ttl`, or set that clock",
        utc(*.expires_seconds),
        duration(.now_seconds.saturating_sub(*.expires_seconds)),
        utc(*.now_seconds)
    )]
    Expired {
        /// The id of the token.
        id: TokenId,
        /// The end of its life, in seconds since 1970.
        expires_seconds: u64,
        /// The clock by which it was judged.
        now_seconds: u64,
    },
}

impl TokenRecord {
    /// Lets a server in that shows this id and secret: the record as it is to be written if it has not changed since.
    ///
    /// The first use must come from an id that no server is registered under, because a certificate for a registered id would
    /// make the new machine that server. The record does not know the registered ids: the caller checks this before it redeems a
    /// record whose `used` is `None`. A repetition comes from the id that the first use registered.
    ///
    /// # Errors
    /// [`RedeemError`].
    pub fn redeem(
        &self,
        id: TokenId,
        secret: &Secret,
        server: ServerId,
        key: &PublicKey,
        now_seconds: u64,
    ) -> Result<TokenRecord, RedeemError> {
        let is_secret: bool = hash(id, secret).ct_eq(&self.secret_hash).into();
        if id != self.id || !is_secret {
            return Err(RedeemError::Unknown { id });
        }
        if self.revoked_seconds.is_some() {
            return Err(RedeemError::Revoked { id });
        }
        let this_use = TokenUse::new(server, key);
        let counts_until = match self.used {
            None => self.expires_seconds,
            Some(used) if used == this_use => {
                self.expires_seconds.saturating_add(REPETITION_SECONDS)
            }
            Some(TokenUse { by, .. }) if by == server => {
                return Err(RedeemError::OtherKey { id, by });
            }
            Some(TokenUse { by, .. }) => return Err(RedeemError::Used { id, by }),
        };
        if now_seconds >= counts_until {
            return Err(RedeemError::Expired {
                id,
                expires_seconds: self.expires_seconds,
                now_seconds,
            });
        }
        Ok(TokenRecord {
            used: Some(this_use),
            ..self.clone()
        })
    }

    /// The record as bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, ID, &self.id.0.to_le_bytes());
        tlv::put_field(&mut out, SECRET_HASH, &self.secret_hash);
        tlv::put_field(&mut out, EXPIRES, &self.expires_seconds.to_le_bytes());
        if let Some(used) = &self.used {
            tlv::put_field(&mut out, USED_BY, &used.by.0.to_le_bytes());
            tlv::put_field(&mut out, USED_KEY, &used.key_digest);
        }
        if let Some(seconds) = self.revoked_seconds {
            tlv::put_field(&mut out, REVOKED, &seconds.to_le_bytes());
        }
        out.freeze()
    }

    /// Reads what [`TokenRecord::encode`] wrote.
    ///
    /// # Errors
    /// [`TlvError`].
    pub fn decode(bytes: &[u8]) -> Result<TokenRecord, TlvError> {
        let (mut id, mut secret_hash, mut expires) = (None, None, None);
        let (mut used_by, mut used_key, mut revoked_seconds) = (None, None, None);
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                ID => id = Some(TokenId(u64::from_le_bytes(tlv::number(kind, value)?))),
                SECRET_HASH => secret_hash = Some(tlv::number(kind, value)?),
                EXPIRES => expires = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                USED_BY => {
                    used_by = Some(ServerId(u128::from_le_bytes(tlv::number(kind, value)?)));
                }
                USED_KEY => used_key = Some(tlv::number(kind, value)?),
                REVOKED => {
                    revoked_seconds = Some(u64::from_le_bytes(tlv::number(kind, value)?));
                }
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        let used = match (used_by, used_key) {
            (None, None) => None,
            (Some(by), Some(key_digest)) => Some(TokenUse { by, key_digest }),
            (Some(_), None) => return Err(missing(USED_KEY)),
            (None, Some(_)) => return Err(missing(USED_BY)),
        };
        Ok(TokenRecord {
            id: id.ok_or(missing(ID))?,
            secret_hash: secret_hash.ok_or(missing(SECRET_HASH))?,
            expires_seconds: expires.ok_or(missing(EXPIRES))?,
            used,
            revoked_seconds,
        })
    }
}

/// A secret has 256 random bits: a plain hash of it cannot be guessed.
fn hash(id: TokenId, secret: &Secret) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(b"areo join token 1\0");
    context.update(&id.0.to_le_bytes());
    context.update(secret.expose());
    let digest = context.finish();
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests;
