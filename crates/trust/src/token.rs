//! Join tokens: what a machine needs to become a server of a cluster.
//!
//! A token has the digest of the cluster's CA, an id, and a secret: `areo1.DIGEST.ID.SECRET`. The machine connects without
//! trust (`tls::joining_config`), finds the digest again, and only then sends id and secret. The cluster keeps a
//! [`TokenRecord`], which has the hash of the secret: what is read out of a record lets no machine in.
//!
//! The record decides that a token is used once: [`TokenRecord::redeem`] returns the record as it is to be, and the caller
//! writes it on condition that it is still the one that it read. The answer to the first request may have been lost: a server
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
use crate::certificate::duration;
use crate::id::TokenId;
use crate::roots::RootDigest;
use crate::secret::{NoRandomness, SECRET_BYTES, Secret};
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
    ) -> Result<(JoinToken, TokenRecord), NoRandomness> {
        let token = JoinToken {
            root,
            id: TokenId::random()?,
            secret: Secret::random()?,
        };
        let record = TokenRecord {
            id: token.id,
            secret_hash: hash(token.id, &token.secret),
            expires_seconds,
            used: None,
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

/// The record of a token that the cluster keeps. A revoked one has no record.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The token's id.
    pub id: TokenId,
    /// The hash of id and secret.
    secret_hash: [u8; 32],
    /// The end of its life, in seconds since 1970: then it lets in no server.
    pub expires_seconds: u64,
    /// Its first use.
    pub used: Option<TokenUse>,
}

impl fmt::Debug for TokenRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRecord")
            .field("id", &self.id)
            .field("expires_seconds", &self.expires_seconds)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

/// A server that is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedeemError {
    /// There is no record, or the secret is another one: nothing tells a stranger which ids exist.
    #[error(
        "this cluster has no such join token {id}: it was revoked, or is of another cluster; make a new one with `areo token create`"
    )]
    Unknown {
        /// The id in the token.
        id: TokenId,
    },
    /// It was used.
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
    #[error("the join token {id} expired {} ago: make a new one with `areo token create --ttl`", duration(*.seconds))]
    Expired {
        /// The id of the token.
        id: TokenId,
        /// Since when, in seconds.
        seconds: u64,
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
            let seconds = now_seconds - self.expires_seconds;
            return Err(RedeemError::Expired { id, seconds });
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
        out.freeze()
    }

    /// Reads what [`TokenRecord::encode`] wrote.
    ///
    /// # Errors
    /// [`TlvError`].
    pub fn decode(bytes: &[u8]) -> Result<TokenRecord, TlvError> {
        let (mut id, mut secret_hash, mut expires) = (None, None, None);
        let (mut used_by, mut used_key) = (None, None);
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
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const FIRST: ServerId = ServerId(1);
    const SECOND: ServerId = ServerId(2);
    const EXPIRY: u64 = NOW + 3600;

    fn create() -> (JoinToken, TokenRecord) {
        JoinToken::create(RootDigest([0xab; 32]), EXPIRY).unwrap()
    }

    /// The public key of a server, which differs in its last byte.
    fn key(last: u8) -> PublicKey {
        let mut point = [4; 65];
        point[64] = last;
        PublicKey::new(&point).unwrap()
    }

    #[test]
    fn a_token_is_one_word_and_comes_back_from_it() {
        let (token, _) = create();
        let text = token.expose_text();
        let digest = format!("areo1.{}.", "ab".repeat(32));
        assert!(
            text.starts_with(&digest) && text.len() == 152,
            "{}",
            text.len()
        );
        assert_eq!(JoinToken::parse(&text).as_ref(), Ok(&token));
        assert_eq!(
            JoinToken::parse(&format!(" {}\n", *text)),
            Ok(token.clone())
        );
        let secret = token.secret.expose_text();
        assert!(!format!("{token:?}").contains(&secret[..8]));
    }

    #[test]
    fn each_way_to_be_wrong_has_its_sentence_without_the_secret() {
        let (token, _) = create();
        let text = token.expose_text();
        let secret = token.secret.expose_text();
        let upper = text.replace(&*secret, &"F".repeat(64));
        let longer = format!("{}.more", *text);
        let second = text.replacen("areo1", "areo2", 1);
        let digest = text.replacen('b', "g", 1);
        let id = text.replace(&token.id.to_string(), "12345");
        let long = "a".repeat(257);
        let cases: [(&str, &str); 10] = [
            ("", "empty"),
            (&long, "257 bytes"),
            ("hello", "begins with 'areo1.'"),
            ("areo.x", "begins with 'areo1.'"),
            (&second, "later version"),
            (&text[..60], "2 parts and not 4"),
            (&longer, "5 parts and not 4"),
            (
                &digest,
                "the digest of this join token is damaged: 64 digits",
            ),
            (&id, "the id of this join token is damaged: 16 digits"),
            (&upper, "the secret of this join token is damaged"),
        ];
        for (wrong, sentence) in cases {
            let found = JoinToken::parse(wrong).unwrap_err().to_string();
            assert!(found.contains(sentence), "{found}");
            assert!(!found.contains(&secret[..8]), "{found}");
        }
        let cut = &text[..text.len() - 1];
        let found = JoinToken::parse(cut).unwrap_err().to_string();
        assert!(
            found.starts_with("the secret of this join token"),
            "{found}"
        );
    }

    #[test]
    fn a_token_lets_one_server_in_once_and_again_when_it_repeats() {
        let (token, record) = create();
        let redeem = |record: &TokenRecord, server, last, now| {
            record.redeem(token.id, &token.secret, server, &key(last), now)
        };
        let used = redeem(&record, FIRST, 1, NOW).unwrap();
        assert_eq!(used.used, Some(TokenUse::new(FIRST, &key(1))));
        let (id, by) = (token.id, FIRST);
        let second = Err(RedeemError::Used { id, by });
        assert_eq!(redeem(&used, SECOND, 2, NOW), second);
        assert_eq!(redeem(&used, SECOND, 1, NOW), second);
        let other_key = Err(RedeemError::OtherKey { id, by });
        assert_eq!(redeem(&used, FIRST, 2, NOW), other_key);
        let repeated = redeem(&used, FIRST, 1, NOW + 1);
        assert_eq!(repeated, Ok(used), "its answer was lost");
    }

    #[test]
    fn a_use_is_repeated_until_ten_minutes_after_the_expiry() {
        let (token, record) = create();
        let redeem = |record: &TokenRecord, last, now| {
            record.redeem(token.id, &token.secret, FIRST, &key(last), now)
        };
        let used = redeem(&record, 1, EXPIRY - 1).unwrap();
        let end = EXPIRY + REPETITION_SECONDS;
        assert_eq!(redeem(&used, 1, end - 1), Ok(used.clone()));
        let (id, seconds) = (token.id, REPETITION_SECONDS);
        let expired = Err(RedeemError::Expired { id, seconds });
        assert_eq!(redeem(&used, 1, end), expired);
        assert!(redeem(&used, 2, EXPIRY).is_err(), "another key");
        let first = redeem(&record, 1, EXPIRY);
        assert_eq!(first, Err(RedeemError::Expired { id, seconds: 0 }));
        let endless = TokenRecord {
            expires_seconds: u64::MAX,
            ..used
        };
        assert!(redeem(&endless, 1, u64::MAX - 1).is_ok());
    }

    #[test]
    fn a_token_that_is_expired_or_not_its_own_lets_nothing_in() {
        let (token, record) = create();
        let (other, _) = create();
        let id = token.id;
        let at = |now| record.redeem(id, &token.secret, FIRST, &key(1), now);
        assert!(at(NOW + 3599).is_ok());
        let expired = at(NOW + 3600 + 180).unwrap_err();
        assert_eq!(expired, RedeemError::Expired { id, seconds: 180 });
        assert!(
            expired.to_string().contains("expired 3 min ago"),
            "{expired}"
        );
        let foreign = record.redeem(id, &other.secret, FIRST, &key(1), NOW);
        assert_eq!(foreign, Err(RedeemError::Unknown { id }));
        let id = other.id;
        let foreign = record.redeem(id, &token.secret, FIRST, &key(1), NOW);
        assert_eq!(foreign, Err(RedeemError::Unknown { id }));
    }

    #[test]
    fn a_record_comes_back_from_bytes_and_has_no_secret() {
        let (token, record) = create();
        let used = record.redeem(token.id, &token.secret, SECOND, &key(1), NOW);
        let used = used.unwrap();
        let long = used.encode();
        for record in [record.clone(), used] {
            let bytes = record.encode();
            assert_eq!(TokenRecord::decode(&bytes), Ok(record.clone()));
            let secret = token.secret.expose();
            assert!(bytes.windows(8).all(|window| window != &secret[..8]));
        }
        let unused = record.encode().len();
        let ends: Vec<usize> = (0..=long.len())
            .filter(|end| TokenRecord::decode(&long[..*end]).is_ok())
            .collect();
        assert_eq!(ends, [unused, long.len()], "a use has both its fields");
        let key_alone = [&long[..unused], &long[unused + tlv::HEAD_BYTES + 16..]].concat();
        let kind = USED_BY;
        let missing = Err(TlvError::Missing { kind });
        assert_eq!(TokenRecord::decode(&key_alone), missing);
    }
}
