//! Tickets: what a client shows to every server, and what each server verifies alone.
//!
//! ```text
//!  0                64
//!  ┌────────────────┬──────────────────────────────────────────────────────────────────────────────────┐
//!  │ signature      │ fields: cluster, key, issued, expires, holder, standing, gateway, one per grant  │
//!  └────────────────┴──────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The cluster signs with Ed25519. A ticket names the public key that the client made for its process: in the hello to each server the client
//! signs that server's id and the session of TLS ([`Holder::prove`]), which both ends made and no other connection has: no nonce of the server is
//! needed. So a server that was taken over cannot use at another one what a client showed it.
//!
//! A gateway has tickets on behalf of other keys: such a ticket has the grants of the other key, without those that
//! [`Grants::on_behalf`] leaves out, names the key of the [`Gateway`] as well, and counts as long as both keys do.
//!
//! A key that is revoked is refused by the list that [`Verifier`] carries, and so is a ticket whose secret was retired or whose grants are
//! not the key's any more ([`Standing`]); the expiry bounds the damage where a server does not get the list. Clocks may differ by
//! [`SKEW_SECONDS`](crate::SKEW_SECONDS).

mod verifier;

use bytes::{BufMut, Bytes, BytesMut};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use areo_core::config::ServerId;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use crate::certificate::duration;
use crate::grant::{Grant, GrantError, Grants, MAX_GRANT_BYTES, MAX_GRANTS};
use crate::id::KeyId;
use crate::secret::{NoRandomness, SECRET_BYTES, Secret, system};
use crate::tls::BINDING_BYTES;

pub use verifier::Verifier;

/// The life of a ticket, in seconds.
pub const TICKET_SECONDS: u64 = 60 * 60;
/// Bytes of a public key of a signer or holder.
pub const PUBLIC_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;
/// The longest ticket, in bytes: it fits into a hello.
pub const MAX_TICKET_BYTES: usize = SIGNATURE_BYTES
    + MAX_GRANT_BYTES
    + 16
    + 3 * 8
    + PUBLIC_BYTES
    + STANDING_BYTES
    + GATEWAY_BYTES
    + (7 + MAX_GRANTS) * tlv::HEAD_BYTES;
/// Bytes of a standing.
pub(crate) const STANDING_BYTES: usize = 8;
/// Bytes of the key of a gateway and its standing.
const GATEWAY_BYTES: usize = 8 + STANDING_BYTES;

const CLUSTER: u16 = MUST_UNDERSTAND | 1;
const KEY: u16 = MUST_UNDERSTAND | 2;
const ISSUED: u16 = MUST_UNDERSTAND | 3;
const EXPIRES: u16 = MUST_UNDERSTAND | 4;
const HOLDER: u16 = MUST_UNDERSTAND | 5;
const GRANT: u16 = MUST_UNDERSTAND | 6;
const STANDING: u16 = MUST_UNDERSTAND | 7;
const GATEWAY: u16 = MUST_UNDERSTAND | 8;

/// The beginning of each signed ticket, so that no signature serves for two purposes.
const TICKET_MARK: &[u8] = b"areo ticket 1\0";
/// The beginning of each signed proof of possession.
const POSSESSION_MARK: &[u8] = b"areo possession 1\0";

/// The public half of a signer or of a holder.
pub type PublicKey = [u8; PUBLIC_BYTES];

/// Bytes that are no key of Ed25519.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no signing key: a seed of Ed25519 has {SECRET_BYTES} bytes")]
pub struct NoSigningKey;

/// The key with which a cluster signs tickets.
///
/// It is kept as its seed, which [`Secret`] wipes: the library's own document with a new key in PKCS #8 is not wiped.
pub struct Signer {
    pair: Ed25519KeyPair,
    seed: Secret,
}

impl Signer {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn create() -> Result<Signer, NoRandomness> {
        let seed = Secret::random(&system)?;
        Ok(Signer::load(&seed).expect("a seed has 32 bytes"))
    }

    /// Takes a key back from its seed.
    ///
    /// # Errors
    /// [`NoSigningKey`].
    pub fn load(seed: &Secret) -> Result<Signer, NoSigningKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).map_err(|_| NoSigningKey)?;
        let seed = seed.clone();
        Ok(Signer { pair, seed })
    }

    /// The seed, to be sealed and kept.
    pub fn private(&self) -> &Secret {
        &self.seed
    }

    /// Its public half, which every server has.
    pub fn public(&self) -> PublicKey {
        public(&self.pair)
    }

    pub fn sign(&self, ticket: &Ticket) -> Bytes {
        let bytes = self.sign_anything(&ticket.encode());
        assert!(bytes.len() <= MAX_TICKET_BYTES, "grants are bounded");
        bytes
    }

    /// Signs bytes as if they were the fields of a ticket.
    pub(crate) fn sign_anything(&self, fields: &[u8]) -> Bytes {
        let signature = self.pair.sign(&[TICKET_MARK, fields].concat());
        let mut out = BytesMut::with_capacity(SIGNATURE_BYTES + fields.len());
        out.put_slice(signature.as_ref());
        out.put_slice(fields);
        out.freeze()
    }

    /// The signer of inputs for `fuzzing`, which has to be one and the same in every run.
    pub(crate) fn of_fuzzing() -> Signer {
        Signer::load(&Secret::new(vec![7; SECRET_BYTES])).expect("a seed has 32 bytes")
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer")
    }
}

/// The key of a client's process, made anew for each: it is kept nowhere.
pub struct Holder(Ed25519KeyPair);

impl Holder {
    /// A new one.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn create() -> Result<Holder, NoRandomness> {
        let seed = Secret::random(&system)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose());
        Ok(Holder(pair.expect("a seed has 32 bytes")))
    }

    /// The holder of inputs for `fuzzing`, which has to be one and the same in every run.
    pub(crate) fn of_fuzzing() -> Holder {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[5; SECRET_BYTES]);
        Holder(pair.expect("a seed has 32 bytes"))
    }

    /// Its public half, which the ticket names.
    pub fn public(&self) -> PublicKey {
        public(&self.0)
    }

    /// The proof for one server that this process holds the ticket.
    pub fn prove(&self, possession: &Possession) -> [u8; SIGNATURE_BYTES] {
        let signature = self.0.sign(&possession.message());
        let bytes = signature.as_ref().try_into();
        bytes.expect("a signature of Ed25519 has 64 bytes")
    }
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Holder")
    }
}

fn public(pair: &Ed25519KeyPair) -> PublicKey {
    let bytes = pair.public_key().as_ref().try_into();
    bytes.expect("a public key of Ed25519 has 32 bytes")
}

/// A statement that a holder signs for one server: worth nothing at another one, nor on another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Possession {
    pub cluster: u128,
    /// The server that is called.
    pub server: ServerId,
    /// The session of TLS that the connection is. A plain connection carries no ticket.
    pub binding: [u8; BINDING_BYTES],
}

impl Possession {
    fn message(&self) -> Vec<u8> {
        [
            POSSESSION_MARK,
            &self.cluster.to_le_bytes(),
            &self.server.0.to_le_bytes(),
            &self.binding,
        ]
        .concat()
    }
}

/// The secret of a key that a ticket was issued for, and the grants that it has: both are numbered from 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The number of the secret. It rises when the key is rotated.
    pub secret: u32,
    /// The number of the grants. It rises when they are changed.
    pub grants: u32,
}

impl Standing {
    /// Appends it as a field. The first standing of a key has none, as in the first version of tickets and records.
    pub(crate) fn put(self, out: &mut BytesMut, kind: u16) {
        if self != Standing::default() {
            tlv::put_field(out, kind, &self.number().to_le_bytes());
        }
    }

    /// Reads the content of a field.
    pub(crate) fn read(kind: u16, value: &[u8]) -> Result<Standing, TlvError> {
        let number = tlv::number::<STANDING_BYTES>(kind, value)?;
        Ok(Standing::of(u64::from_le_bytes(number)))
    }

    /// Both numbers as one: that of the secret has the lower bits.
    fn number(self) -> u64 {
        u64::from(self.grants) << 32 | u64::from(self.secret)
    }

    fn of(number: u64) -> Standing {
        let half =
            |shift: u32| u32::try_from(number >> shift & 0xffff_ffff).expect("it has 32 bits");
        Standing {
            secret: half(0),
            grants: half(32),
        }
    }
}

/// The key with which a gateway has proven that it may act on behalf of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    pub key: KeyId,
    /// The secret that was proven, and the number of its grants, `gateway` among them.
    pub standing: Standing,
}

impl Gateway {
    fn put(self, out: &mut BytesMut) {
        let numbers = [
            self.key.0.to_le_bytes(),
            self.standing.number().to_le_bytes(),
        ];
        tlv::put_field(out, GATEWAY, &numbers.concat());
    }

    fn read(kind: u16, value: &[u8]) -> Result<Gateway, TlvError> {
        let both = u128::from_le_bytes(tlv::number::<GATEWAY_BYTES>(kind, value)?);
        let half = |shift: u32| u64::try_from(both >> shift & u128::from(u64::MAX));
        let half = |shift| half(shift).expect("it has 64 bits");
        Ok(Gateway {
            key: KeyId(half(0)),
            standing: Standing::of(half(64)),
        })
    }
}

/// The contents of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub cluster: u128,
    /// The key whose grants it has: the one that was proven, or another one on whose behalf a gateway acts.
    pub key: KeyId,
    /// The time of its signature, in seconds since 1970.
    pub issued_seconds: u64,
    /// The end of its life, in seconds since 1970.
    pub expires_seconds: u64,
    /// The public key of the client's process.
    pub holder: PublicKey,
    /// The number of the secret that was proven, and of the grants. On behalf of a key that has two secrets: that of the older one.
    pub standing: Standing,
    /// The gateway that has the ticket, and has proven its own key. `None`: the owner of the key has.
    pub gateway: Option<Gateway>,
    /// Grants of its owner.
    pub grants: Grants,
}

/// A ticket that is refused. Each sentence has the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// It is too short or too long.
    #[error(
        "this is no ticket: it has {bytes} bytes, and tickets have {SIGNATURE_BYTES} to {MAX_TICKET_BYTES}"
    )]
    Length { bytes: usize },
    /// The cluster did not sign it.
    #[error(
        "the ticket was not signed by this cluster: it was changed, is of another cluster, or the cluster has another signing key since; prove the key again"
    )]
    Signature,
    /// It is of another cluster that has this cluster's signing key.
    #[error("the ticket is for cluster {found:032x}, and this is cluster {expected:032x}")]
    OtherCluster {
        /// Id of this cluster.
        expected: u128,
        /// The cluster in the ticket.
        found: u128,
    },
    /// Its fields cannot be read.
    #[error("the ticket cannot be read: {0}")]
    Fields(#[from] TlvError),
    /// A grant in it cannot be read.
    #[error("the ticket cannot be read: {0}")]
    Grant(#[from] GrantError),
    /// It counts no longer.
    #[error("the ticket expired {} ago: prove the key again; if that happens at once, compare the clocks of both machines", duration(*.seconds))]
    Expired {
        /// Since when, in seconds.
        seconds: u64,
    },
    /// It does not count yet.
    #[error("the ticket was signed {} ahead of this server's clock: compare the clocks of the servers", duration(*.seconds))]
    NotYet {
        /// Until then, in seconds.
        seconds: u64,
    },
    /// Its key was revoked.
    #[error("the key {key} was revoked: have a new one made with `areo key create`")]
    Revoked { key: KeyId },
    /// The secret that was proven for it was retired.
    #[error(
        "the ticket of key {key} was issued for a secret that was retired since: prove the key again with its newest secret (`areo key rotate`)"
    )]
    Retired { key: KeyId },
    /// The key has other grants.
    #[error(
        "the grants of key {key} were changed since the ticket was issued: prove the key again"
    )]
    GrantsChanged { key: KeyId },
    /// The caller does not have the key that the ticket names.
    #[error(
        "the caller does not hold the ticket of key {key}: it was made for another process or another server"
    )]
    Possession { key: KeyId },
}

impl Ticket {
    /// A ticket for the holder of a key that has its first secret and its first grants, for [`TICKET_SECONDS`].
    pub fn new(
        cluster: u128,
        key: KeyId,
        grants: Grants,
        holder: PublicKey,
        now_seconds: u64,
    ) -> Ticket {
        Ticket {
            cluster,
            key,
            issued_seconds: now_seconds,
            expires_seconds: now_seconds.saturating_add(TICKET_SECONDS),
            holder,
            standing: Standing::default(),
            gateway: None,
            grants,
        }
    }

    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        tlv::put_field(&mut out, CLUSTER, &self.cluster.to_le_bytes());
        tlv::put_field(&mut out, KEY, &self.key.0.to_le_bytes());
        tlv::put_field(&mut out, ISSUED, &self.issued_seconds.to_le_bytes());
        tlv::put_field(&mut out, EXPIRES, &self.expires_seconds.to_le_bytes());
        tlv::put_field(&mut out, HOLDER, &self.holder);
        self.standing.put(&mut out, STANDING);
        if let Some(gateway) = self.gateway {
            gateway.put(&mut out);
        }
        for grant in self.grants.all() {
            tlv::put_field(&mut out, GRANT, grant.to_string().as_bytes());
        }
        out.freeze()
    }

    /// Reads the fields, whose signature must have been verified.
    fn decode(bytes: &[u8]) -> Result<Ticket, TicketError> {
        let (mut cluster, mut key, mut issued) = (None, None, None);
        let (mut expires, mut holder) = (None, None);
        let (mut standing, mut gateway) = (Standing::default(), None);
        let mut grants: Vec<Grant> = Vec::new();
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                CLUSTER => cluster = Some(u128::from_le_bytes(tlv::number(kind, value)?)),
                KEY => key = Some(KeyId(u64::from_le_bytes(tlv::number(kind, value)?))),
                ISSUED => issued = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                EXPIRES => expires = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                HOLDER => holder = Some(tlv::number(kind, value)?),
                STANDING => standing = Standing::read(kind, value)?,
                GATEWAY => gateway = Some(Gateway::read(kind, value)?),
                GRANT => grants.push(tlv::text(kind, value)?.parse()?),
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        Ok(Ticket {
            cluster: cluster.ok_or(missing(CLUSTER))?,
            key: key.ok_or(missing(KEY))?,
            issued_seconds: issued.ok_or(missing(ISSUED))?,
            expires_seconds: expires.ok_or(missing(EXPIRES))?,
            holder: holder.ok_or(missing(HOLDER))?,
            standing,
            gateway,
            grants: Grants::new(grants)?,
        })
    }

    /// The second in which a signed ticket was issued, by the clock of the server that issued it. It is for the process that was given the ticket,
    /// which has no key to verify the signature with. `None`: it cannot be read.
    pub fn issued_at(bytes: &[u8]) -> Option<u64> {
        let (_, fields) = bytes.split_at_checked(SIGNATURE_BYTES)?;
        Ticket::decode(fields)
            .ok()
            .map(|ticket| ticket.issued_seconds)
    }

    /// The key of a signed ticket and its grants, for the process that was given the ticket. `None`: it cannot be read.
    pub fn grants_of(bytes: &[u8]) -> Option<(KeyId, Grants)> {
        let (_, fields) = bytes.split_at_checked(SIGNATURE_BYTES)?;
        let ticket = Ticket::decode(fields).ok()?;
        Some((ticket.key, ticket.grants))
    }

    /// Judges the proof of a caller that it holds this ticket.
    ///
    /// # Errors
    /// [`TicketError::Possession`].
    pub fn is_held(&self, possession: &Possession, proof: &[u8]) -> Result<(), TicketError> {
        UnparsedPublicKey::new(&ED25519, &self.holder)
            .verify(&possession.message(), proof)
            .map_err(|_| TicketError::Possession { key: self.key })
    }
}

#[cfg(test)]
mod tests;
