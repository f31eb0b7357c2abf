//! Join tokens: what a machine needs to become a server of a cluster.
//!
//! A token has the digest of the cluster's CA, an id, and a secret: `areo1.DIGEST.ID.SECRET`. The machine connects without
//! trust (`tls::joining_config`), finds the digest again, and only then sends id and secret. The cluster keeps a
//! [`TokenRecord`], which has the hash of the secret: what is read out of a record lets no machine in.
//!
//! The record decides that a token is used once: [`TokenRecord::redeem`] returns the record as it is to be, and the caller
//! writes it on condition that it is still the one that it read. A server that repeats its request is let in again, because the
//! answer to its first one may have been lost. The expiry is judged by one clock and without tolerated skew: an operator who asks
//! for ten minutes gets ten minutes.

use std::fmt;

use bytes::{Bytes, BytesMut};
use ring::digest::{Context, SHA256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use areo_core::config::ServerId;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use crate::certificate::duration;
use crate::id::TokenId;
use crate::roots::RootDigest;
use crate::secret::{NoRandomness, SECRET_BYTES, Secret};
use crate::text::{Form, TextError};

const FORM: Form = Form {
    what: "join token",
    mark: "areo",
};

const ID: u16 = MUST_UNDERSTAND | 1;
const SECRET_HASH: u16 = MUST_UNDERSTAND | 2;
const EXPIRES: u16 = MUST_UNDERSTAND | 3;
const USED_BY: u16 = MUST_UNDERSTAND | 4;

/// A token as its owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// The digest of the cluster's CA.
    pub root: RootDigest,
    /// The id, by which the cluster finds its record.
    pub id: TokenId,
    /// What proves it.
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
            used_by: None,
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

/// What the cluster keeps of a token. A revoked one has no record.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The token's id.
    pub id: TokenId,
    /// The hash of id and secret.
    secret_hash: [u8; 32],
    /// From when on it lets in no server, in seconds since 1970.
    pub expires_seconds: u64,
    /// The server that it has let in.
    pub used_by: Option<ServerId>,
}

impl fmt::Debug for TokenRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRecord")
            .field("id", &self.id)
            .field("expires_seconds", &self.expires_seconds)
            .field("used_by", &self.used_by)
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
    /// # Errors
    /// [`RedeemError`].
    pub fn redeem(
        &self,
        id: TokenId,
        secret: &Secret,
        server: ServerId,
        now_seconds: u64,
    ) -> Result<TokenRecord, RedeemError> {
        let is_secret: bool = hash(id, secret).ct_eq(&self.secret_hash).into();
        if id != self.id || !is_secret {
            return Err(RedeemError::Unknown { id });
        }
        match self.used_by {
            Some(by) if by == server => return Ok(self.clone()),
            Some(by) => return Err(RedeemError::Used { id, by }),
            None => {}
        }
        if now_seconds >= self.expires_seconds {
            let seconds = now_seconds - self.expires_seconds;
            return Err(RedeemError::Expired { id, seconds });
        }
        Ok(TokenRecord {
            used_by: Some(server),
            ..self.clone()
        })
    }

    /// The record as bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, ID, &self.id.0.to_le_bytes());
        tlv::put_field(&mut out, SECRET_HASH, &self.secret_hash);
        tlv::put_field(&mut out, EXPIRES, &self.expires_seconds.to_le_bytes());
        if let Some(server) = self.used_by {
            tlv::put_field(&mut out, USED_BY, &server.0.to_le_bytes());
        }
        out.freeze()
    }

    /// Reads what [`TokenRecord::encode`] wrote.
    ///
    /// # Errors
    /// [`TlvError`].
    pub fn decode(bytes: &[u8]) -> Result<TokenRecord, TlvError> {
        let (mut id, mut secret_hash, mut expires, mut used_by) = (None, None, None, None);
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                ID => id = Some(TokenId(u64::from_le_bytes(tlv::number(kind, value)?))),
                SECRET_HASH => secret_hash = Some(tlv::number(kind, value)?),
                EXPIRES => expires = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                USED_BY => {
                    used_by = Some(ServerId(u128::from_le_bytes(tlv::number(kind, value)?)));
                }
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        Ok(TokenRecord {
            id: id.ok_or(missing(ID))?,
            secret_hash: secret_hash.ok_or(missing(SECRET_HASH))?,
            expires_seconds: expires.ok_or(missing(EXPIRES))?,
            used_by,
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

    fn create() -> (JoinToken, TokenRecord) {
        JoinToken::create(RootDigest([0xab; 32]), NOW + 3600).unwrap()
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
        let redeem =
            |record: &TokenRecord, server, now| record.redeem(token.id, &token.secret, server, now);
        let used = redeem(&record, FIRST, NOW).unwrap();
        assert_eq!(used.used_by, Some(FIRST));
        let (id, by) = (token.id, FIRST);
        assert_eq!(
            redeem(&used, SECOND, NOW),
            Err(RedeemError::Used { id, by })
        );
        let later = NOW + 100_000;
        assert_eq!(
            redeem(&used, FIRST, later),
            Ok(used.clone()),
            "its answer was lost"
        );
    }

    #[test]
    fn a_token_that_is_expired_or_not_its_own_lets_nothing_in() {
        let (token, record) = create();
        let (other, _) = create();
        let id = token.id;
        let at = |now| record.redeem(id, &token.secret, FIRST, now);
        assert!(at(NOW + 3599).is_ok());
        let expired = at(NOW + 3600 + 180).unwrap_err();
        assert_eq!(expired, RedeemError::Expired { id, seconds: 180 });
        assert!(
            expired.to_string().contains("expired 3 min ago"),
            "{expired}"
        );
        let foreign = record.redeem(id, &other.secret, FIRST, NOW);
        assert_eq!(foreign, Err(RedeemError::Unknown { id }));
        let id = other.id;
        let foreign = record.redeem(id, &token.secret, FIRST, NOW);
        assert_eq!(foreign, Err(RedeemError::Unknown { id }));
    }

    #[test]
    fn a_record_comes_back_from_bytes_and_has_no_secret() {
        let (token, record) = create();
        let used = record.redeem(token.id, &token.secret, SECOND, NOW).unwrap();
        for record in [record, used] {
            let bytes = record.encode();
            assert_eq!(TokenRecord::decode(&bytes), Ok(record.clone()));
            let secret = token.secret.expose();
            assert!(bytes.windows(8).all(|window| window != &secret[..8]));
        }
        for missing in [&b""[..], &create().1.encode()[..14]] {
            assert!(TokenRecord::decode(missing).is_err());
        }
    }
}
