//! Access keys, and the proof that a client has one.
//!
//! A key is an id, a secret of 32 bytes and [`Grants`]; its text is `areokey1.ID.SECRET`. The secret never travels: client and server
//! send an HMAC of the whole [`Exchange`] under it. The exchange takes place over TLS alone, and names its session
//! ([`Exchange::binding`]): both ends contribute to these bytes, and no other session has them. So a proof counts once, without a nonce of the
//! server and the round that would fetch it. The server proves itself as well, so that a client notices a process with another's certificate.
//!
//! While a key is rotated it has two secrets: [`KeyRecord::rotate`] adds one, [`KeyRecord::retire`] drops the one before it. The servers of
//! the root domain keep the record, sealed (`secret::seal`): a proof needs the secret itself at both ends.

use std::fmt;

use bytes::BytesMut;
use ring::hmac::{HMAC_SHA256, Key, Tag, sign, verify};
use zeroize::{Zeroize, Zeroizing};

use areo_core::config::ServerId;
use areo_core::manager::check_server_name;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use crate::grant::{GrantError, Grants, NotPublicGrant};
use crate::id::KeyId;
use crate::secret::{NoRandomness, RandomSource, SECRET_BYTES, Secret};
use crate::signing::SigningScope;
use crate::text::{Form, TextError};
use crate::ticket::{STANDING_BYTES, Standing};
use crate::tls::BINDING_BYTES;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;

/// The id by which a gateway names callers without a key, if it asks for a ticket on their behalf: the ticket is one of the key that has the name
/// [`ANONYMOUS_NAME`], which has an id of its own.
pub const ANONYMOUS: KeyId = KeyId(0);
/// The name of the key that stands for callers without a key. Its record has no secret, so that it cannot be proven, and signs nothing.
pub const ANONYMOUS_NAME: &str = "anonymous";

const FORM: Form = Form {
    what: "access key",
    mark: "areokey",
};

const ID: u16 = MUST_UNDERSTAND | 1;
const NAME: u16 = MUST_UNDERSTAND | 2;
const SECRET: u16 = MUST_UNDERSTAND | 3;
const GRANT: u16 = MUST_UNDERSTAND | 4;
const REVOKED: u16 = MUST_UNDERSTAND | 5;
const STANDING: u16 = MUST_UNDERSTAND | 6;

/// A key as its owner has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    pub id: KeyId,
    /// The secret that proves it.
    pub secret: Secret,
}

impl AccessKey {
    /// The text, to be shown once. Its second part is the access key id of a client of S3, its third one the secret access key.
    pub fn expose_text(&self) -> Zeroizing<String> {
        let secret = self.secret.expose_text();
        Zeroizing::new(format!("areokey1.{}.{}", self.id, *secret))
    }

    /// Reads the text; space around it counts for nothing.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn parse(text: &str) -> Result<AccessKey, TextError> {
        let [id, secret] = FORM.split(text)?;
        Ok(AccessKey {
            id: KeyId::parse(id).ok_or(FORM.damaged("id", 8))?,
            secret: Secret::parse(secret).ok_or(FORM.damaged("secret", SECRET_BYTES))?,
        })
    }
}

/// One exchange between a client and a server: a proof of it is worth nothing in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub cluster: u128,
    /// The server that is asked for a ticket.
    pub server: ServerId,
    pub key: KeyId,
    /// Random bytes of the client.
    pub client_nonce: [u8; NONCE_BYTES],
    /// The public key of the client's process, which its ticket will name.
    pub holder: [u8; 32],
    /// The session of TLS on which the exchange takes place. There is no exchange on a plain connection.
    pub binding: [u8; BINDING_BYTES],
    /// The other key on whose behalf the ticket is to be, if the key is that of a gateway.
    pub behalf: Option<KeyId>,
}

/// The end that proves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The client proves its key.
    Client,
    /// The server proves its key.
    Server,
}

impl Exchange {
    /// The proof of one end that it has the secret.
    pub fn prove(&self, secret: &Secret, prover: Prover) -> [u8; PROOF_BYTES] {
        let tag = sign(&hmac_key(secret), &self.message(prover));
        tag_bytes(tag)
    }

    /// True if the other end's proof is right, in constant time.
    pub fn is_proven(&self, secret: &Secret, prover: Prover, proof: &[u8]) -> bool {
        verify(&hmac_key(secret), &self.message(prover), proof).is_ok()
    }

    /// Every part has a fixed length, and the last one is there or not by the first, so that no two exchanges have one message.
    fn message(&self, prover: Prover) -> Vec<u8> {
        let role: &[u8; 24] = match (prover, self.behalf) {
            (Prover::Client, None) => b"areo proof of client 1\0\0",
            (Prover::Server, None) => b"areo proof of server 1\0\0",
            (Prover::Client, Some(_)) => b"areo behalf of client 1\0",
            (Prover::Server, Some(_)) => b"areo behalf of server 1\0",
        };
        let behalf = self.behalf.map(|key| key.0.to_le_bytes());
        [
            &role[..],
            &self.cluster.to_le_bytes(),
            &self.server.0.to_le_bytes(),
            &self.key.0.to_le_bytes(),
            &self.client_nonce,
            &self.holder,
            &self.binding,
            behalf.as_ref().map_or(&[][..], |behalf| &behalf[..]),
        ]
        .concat()
    }
}

fn hmac_key(secret: &Secret) -> Key {
    Key::new(HMAC_SHA256, secret.expose())
}

fn tag_bytes(tag: Tag) -> [u8; PROOF_BYTES] {
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A record that cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The system gives no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The name is none.
    #[error("'{}' cannot name a key: names have 1 to 63 characters, no space and no comma", .name.escape_debug())]
    Name { name: String },
    /// The key stands for callers without a key, which get no such grant.
    #[error(transparent)]
    NotPublic(#[from] NotPublicGrant),
    /// The record cannot be read.
    #[error("the record of a key cannot be read: {0}")]
    Record(#[from] TlvError),
    /// A grant in it cannot be read.
    #[error("the record of a key cannot be read: {0}")]
    Grant(#[from] GrantError),
}

/// A proof that is not taken. The client learns nothing but this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// There is no such key, or the proof was made with another secret: nothing tells a stranger which ids exist.
    #[error(
        "this cluster does not know the key {key} with that secret: it was rotated, or is of another cluster"
    )]
    Unknown { key: KeyId },
    /// It was revoked. Only the owner of the secret learns it.
    #[error("the key {key} was revoked: have a new one made with `areo key create`")]
    Revoked { key: KeyId },
}

/// A proof that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The proof of the server under the same secret.
    pub answer: [u8; PROOF_BYTES],
    /// The secret that was proven, and the grants of the key: for the ticket.
    pub standing: Standing,
}

/// The record of a key that the cluster keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRecord {
    pub id: KeyId,
    /// Its name, for people.
    pub name: String,
    /// Grants of its holder.
    pub grants: Grants,
    /// Since when it counts no longer, in seconds since 1970.
    pub revoked_seconds: Option<u64>,
    /// One secret, or two while the key is rotated, the newest last; none of the key [`ANONYMOUS_NAME`].
    secrets: Vec<Secret>,
    /// The number of the first of them, and of the grants: a ticket with less counts no longer.
    least: Standing,
}

impl KeyRecord {
    /// A new key with the record that the cluster keeps of it. The secret of the key [`ANONYMOUS_NAME`] is in no record, and counts nowhere.
    ///
    /// # Errors
    /// [`KeyError::Name`], [`KeyError::NotPublic`], [`KeyError::NoRandomness`].
    pub fn create(
        name: &str,
        grants: Grants,
        source: &RandomSource,
    ) -> Result<(AccessKey, KeyRecord), KeyError> {
        let name = checked(name)?;
        let key = AccessKey {
            id: KeyId::random(source)?,
            secret: Secret::random(source)?,
        };
        let secrets = match name == ANONYMOUS_NAME {
            true => {
                grants.demand_public()?;
                Vec::new()
            }
            false => vec![key.secret.clone()],
        };
        let record = KeyRecord {
            id: key.id,
            name,
            grants,
            revoked_seconds: None,
            secrets,
            least: Standing::default(),
        };
        Ok((key, record))
    }

    /// Adds a secret; the newest one so far counts beside it until [`KeyRecord::retire`], an older one no longer.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn rotate(&mut self, source: &RandomSource) -> Result<AccessKey, NoRandomness> {
        let secret = Secret::random(source)?;
        self.retire();
        self.secrets.push(secret.clone());
        let id = self.id;
        Ok(AccessKey { id, secret })
    }

    /// Drops all secrets but the newest.
    pub fn retire(&mut self) {
        let newest = self.secrets.len().saturating_sub(1);
        self.secrets.drain(..newest);
        let dropped = u32::try_from(newest).expect("there are two at most");
        self.least.secret = self.least.secret.saturating_add(dropped);
    }

    /// Gives the key other grants: tickets with those before count no longer.
    pub fn change_grants(&mut self, grants: Grants) {
        self.grants = grants;
        self.least.grants = self.least.grants.saturating_add(1);
    }

    /// True if this is the key of callers without a key: it has no secret. A key of that name with a secret is one of an earlier version, and is its
    /// holder's alone.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS_NAME && self.secrets.is_empty()
    }

    /// The least standing of a ticket of this key that counts.
    pub fn least(&self) -> Standing {
        self.least
    }

    /// A signing key of S3 for each of its secrets, the newest first.
    pub fn signing_keys(&self, scope: &SigningScope) -> Vec<Secret> {
        let newest_first = self.secrets.iter().rev();
        newest_first.map(|secret| scope.derive(secret)).collect()
    }

    /// True while a rotation is under way.
    pub fn is_rotating(&self) -> bool {
        self.secrets.len() > 1
    }

    /// True if this is one of its secrets, compared with each of them in constant time.
    pub fn has_secret(&self, shown: &Secret) -> bool {
        let found = self.secrets.iter().map(|secret| secret == shown);
        found.fold(false, |any, found| any | found)
    }

    /// Judges the proof of a client, and answers with that of the server under the same secret.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn judge(&self, exchange: &Exchange, proof: &[u8]) -> Result<Proven, ProofError> {
        let key = exchange.key;
        let proven =
            |(_, secret): &(u32, &Secret)| exchange.is_proven(secret, Prover::Client, proof);
        let secret = (self.least.secret..).zip(&self.secrets).find(proven);
        match secret.filter(|_| key == self.id) {
            None => Err(ProofError::Unknown { key }),
            Some(_) if self.revoked_seconds.is_some() => Err(ProofError::Revoked { key }),
            Some((number, secret)) => Ok(Proven {
                answer: exchange.prove(secret, Prover::Server),
                standing: Standing {
                    secret: number,
                    ..self.least
                },
            }),
        }
    }

    /// The record as bytes, secrets included: to be sealed.
    pub fn encode(&self) -> Secret {
        let grants: Vec<String> = self.grants.all().iter().map(ToString::to_string).collect();
        let content = self.name.len()
            + grants.iter().map(String::len).sum::<usize>()
            + self.secrets.len() * SECRET_BYTES
            + 16
            + STANDING_BYTES;
        let fields = 6 + grants.len();
        // As large as it will be, so that growing it leaves no copy of a secret behind.
        let mut out = BytesMut::with_capacity(content + fields * tlv::HEAD_BYTES);
        tlv::put_field(&mut out, ID, &self.id.0.to_le_bytes());
        tlv::put_field(&mut out, NAME, self.name.as_bytes());
        for secret in &self.secrets {
            tlv::put_field(&mut out, SECRET, secret.expose());
        }
        for grant in &grants {
            tlv::put_field(&mut out, GRANT, grant.as_bytes());
        }
        if let Some(seconds) = self.revoked_seconds {
            tlv::put_field(&mut out, REVOKED, &seconds.to_le_bytes());
        }
        self.least.put(&mut out, STANDING);
        let record = Secret::new(out.to_vec());
        out.as_mut().zeroize();
        record
    }

    /// Reads what [`KeyRecord::encode`] wrote.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn decode(bytes: &Secret) -> Result<KeyRecord, KeyError> {
        let (mut id, mut name, mut revoked_seconds) = (None, None, None);
        let mut least = Standing::default();
        let (mut secrets, mut grants) = (Vec::new(), Vec::new());
        for field in tlv::fields(bytes.expose()) {
            let (kind, value) = field?;
            match kind {
                ID => id = Some(KeyId(u64::from_le_bytes(tlv::number(kind, value)?))),
                NAME => name = Some(checked(&tlv::text(kind, value)?)?),
                SECRET => {
                    let secret = Zeroizing::new(tlv::number::<SECRET_BYTES>(kind, value)?);
                    secrets.push(Secret::new(secret.to_vec()));
                }
                GRANT => grants.push(tlv::text(kind, value)?.parse()?),
                REVOKED => {
                    revoked_seconds = Some(u64::from_le_bytes(tlv::number(kind, value)?));
                }
                STANDING => least = Standing::read(kind, value)?,
                _ => tlv::unknown(kind)?,
            }
        }
        let name = name.ok_or(TlvError::Missing { kind: NAME })?;
        let grants = Grants::new(grants)?;
        match secrets.len() {
            0 if name == ANONYMOUS_NAME => grants.demand_public()?,
            1 | 2 => {}
            _ => return Err(TlvError::Invalid { kind: SECRET }.into()),
        }
        Ok(KeyRecord {
            id: id.ok_or(TlvError::Missing { kind: ID })?,
            name,
            grants,
            revoked_seconds,
            secrets,
            least,
        })
    }
}

fn checked(name: &str) -> Result<String, KeyError> {
    let name = name.to_owned();
    match check_server_name(&name) {
        Ok(()) => Ok(name),
        Err(_) => Err(KeyError::Name { name }),
    }
}

/// One sentence for a person who looks at keys.
impl fmt::Display for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} ({})", self.id, self.name)
    }
}

#[cfg(test)]
mod tests;
