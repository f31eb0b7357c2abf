//! An entry of the log: one change, with who made it, from where and when; as bytes, to be sealed.

use std::fmt;

use bytes::BytesMut;
use zeroize::Zeroize;

use areo_core::config::ServerId;
use areo_core::limits;
use areo_core::tlv::{self, MUST_UNDERSTAND, TlvError};

use crate::authority::{Authority, AuthorityError};
use crate::grant::{Grants, MAX_GRANT_BYTES, MAX_GRANTS};
use crate::id::KeyId;
use crate::key::{AccessKey, KeyError, KeyRecord};
use crate::roots::{MAX_CERTIFICATE_BYTES, Root, RootDigest, RootsError};
use crate::secret::{Secret, system};
use crate::ticket::{NoSigningKey, Signer};
use crate::token::TokenRecord;

/// The longest text of an address, in bytes; a longer one is cut.
pub const MAX_ADDRESS_BYTES: usize = 256;
const _: () = assert!(
    MAX_CERTIFICATE_BYTES
        + MAX_GRANT_BYTES
        + MAX_GRANTS * tlv::HEAD_BYTES
        + MAX_ADDRESS_BYTES
        + limits::NAME_BYTES
        + 1024
        <= limits::CELL_BYTES,
    "each entry fits into a cell"
);

const TIME: u16 = MUST_UNDERSTAND | 1;
const BY_KEY: u16 = MUST_UNDERSTAND | 2;
const BY_SERVER: u16 = MUST_UNDERSTAND | 3;
const ADDRESS: u16 = MUST_UNDERSTAND | 4;
const WHAT: u16 = MUST_UNDERSTAND | 5;
const AUTHORITY: u16 = MUST_UNDERSTAND | 6;
const ROOT: u16 = MUST_UNDERSTAND | 7;
const TOKEN: u16 = MUST_UNDERSTAND | 8;
const KEY: u16 = MUST_UNDERSTAND | 9;

/// The one on whose behalf a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The owner of a key.
    Key(KeyId),
    /// A server, under its own certificate or a token.
    Server(ServerId),
    /// The person who made the cluster.
    Founder,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Key(key) => write!(f, "key {key}"),
            Actor::Server(server) => write!(f, "server {server}"),
            Actor::Founder => f.write_str("founder"),
        }
    }
}

/// The origin of a change, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The one on whose behalf it is made.
    pub by: Actor,
    /// The address from which it was asked for.
    pub address: String,
    /// The clock of the server that makes it, in seconds since 1970.
    pub now_seconds: u64,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// The cluster was made.
    Founded = 1,
    /// One more root is trusted.
    RootTrusted = 2,
    /// Another CA issues from now on.
    RootIssues = 3,
    /// A root is trusted no longer.
    RootDropped = 4,
    /// A join token was made.
    TokenCreated = 5,
    /// A join token let a server in.
    TokenUsed = 6,
    /// A join token was revoked.
    TokenRevoked = 7,
    /// A key was made.
    KeyCreated = 8,
    /// A key has a second secret.
    KeyRotated = 9,
    /// The older secret of a key was dropped.
    KeyRetired = 10,
    /// A key has other grants.
    GrantsChanged = 11,
    /// A key was revoked.
    KeyRevoked = 12,
}

const KINDS: [(What, &str); 12] = [
    (What::Founded, "founded"),
    (What::RootTrusted, "root-trusted"),
    (What::RootIssues, "root-issues"),
    (What::RootDropped, "root-dropped"),
    (What::TokenCreated, "token-created"),
    (What::TokenUsed, "token-used"),
    (What::TokenRevoked, "token-revoked"),
    (What::KeyCreated, "key-created"),
    (What::KeyRotated, "key-rotated"),
    (What::KeyRetired, "key-retired"),
    (What::GrantsChanged, "grants-changed"),
    (What::KeyRevoked, "key-revoked"),
];

impl What {
    /// Its word, for listings.
    pub fn word(self) -> &'static str {
        let kind = KINDS.iter().find(|(what, _)| *what == self);
        kind.expect("each has a word").1
    }

    pub(crate) fn of(number: u8) -> Option<What> {
        let kind = KINDS.iter().find(|(what, _)| *what as u8 == number);
        kind.map(|(what, _)| *what)
    }
}

/// The object of a change, as it is after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Founded(Foundation),
    Authority(AuthorityRecord),
    Root(RootDigest),
    Token(TokenRecord),
    Key(KeyRecord),
}

/// A change of the cluster's trust, as an entry of its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(super) origin: Origin,
    pub(super) what: What,
    pub(super) content: Content,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Its fields cannot be read.
    #[error(transparent)]
    Fields(#[from] TlvError),
    /// A key in it cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A root in it cannot be read.
    #[error(transparent)]
    Root(#[from] RootsError),
    /// It is of a kind that this version does not know.
    #[error("it is a change of kind {number}, of a later version of areo: use that version")]
    LaterVersion {
        /// The number of the kind.
        number: u8,
    },
    /// It does not follow from the changes before it.
    #[error("it does not follow from the changes before it")]
    Order,
}

/// A root that a cluster trusts, with the keys that issue under it, if the cluster has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityRecord {
    root: Root,
    secrets: Option<AuthoritySecrets>,
}

/// The keys under a root of the cluster's own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AuthoritySecrets {
    /// The key of the CA as PKCS #8.
    ca: Secret,
    /// The seed of the signer of tickets.
    signer: Secret,
}

impl AuthorityRecord {
    /// A new CA with a signer of tickets.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn create(cluster: u128, now_seconds: u64) -> Result<AuthorityRecord, AuthorityError> {
        let authority = Authority::create(cluster, now_seconds)?;
        let signer = Signer::create()?;
        Ok(AuthorityRecord::new(&authority, &signer))
    }

    /// The record of a CA with a signer of tickets.
    pub fn new(authority: &Authority, signer: &Signer) -> AuthorityRecord {
        let secrets = AuthoritySecrets {
            ca: authority.private(),
            signer: signer.private().clone(),
        };
        AuthorityRecord {
            root: authority.root().clone(),
            secrets: Some(secrets),
        }
    }

    /// A root of the operator's own PKI: the cluster issues nothing under it.
    pub fn of_operator(root: Root) -> AuthorityRecord {
        let secrets = None;
        AuthorityRecord { root, secrets }
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The CA, unless it is the operator's own.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn authority(&self, cluster: u128) -> Option<Result<Authority, AuthorityError>> {
        let secrets = self.secrets.as_ref()?;
        Some(Authority::load(cluster, &secrets.ca, self.root.clone()))
    }

    /// The signer of tickets, unless the CA is the operator's own.
    pub(super) fn signer(&self) -> Option<Result<Signer, NoSigningKey>> {
        self.secrets
            .as_ref()
            .map(|secrets| Signer::load(&secrets.signer))
    }

    /// The bytes, secrets included: to be sealed.
    pub fn encode(&self) -> Secret {
        encoded(|out| {
            tlv::put_field(out, AUTHORITY_ROOT, self.root.certificate());
            if let Some(secrets) = &self.secrets {
                tlv::put_field(out, AUTHORITY_CA, secrets.ca.expose());
                tlv::put_field(out, AUTHORITY_SIGNER, secrets.signer.expose());
            }
        })
    }

    /// Reads what [`AuthorityRecord::encode`] wrote.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(bytes: &Secret) -> Result<AuthorityRecord, RecordError> {
        AuthorityRecord::read(bytes.expose())
    }

    fn read(bytes: &[u8]) -> Result<AuthorityRecord, RecordError> {
        let (mut root, mut ca, mut signer) = (None, None, None);
        for field in tlv::fields(bytes) {
            let (kind, value) = field?;
            match kind {
                AUTHORITY_ROOT => root = Some(Root::from_der(value)?),
                AUTHORITY_CA => ca = Some(Secret::new(value.to_vec())),
                AUTHORITY_SIGNER => signer = Some(Secret::new(value.to_vec())),
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        let root = root.ok_or(missing(AUTHORITY_ROOT))?;
        let secrets = match (ca, signer) {
            (None, None) => None,
            (Some(ca), Some(signer)) => Some(AuthoritySecrets { ca, signer }),
            (Some(_), None) => return Err(missing(AUTHORITY_SIGNER).into()),
            (None, Some(_)) => return Err(missing(AUTHORITY_CA).into()),
        };
        let record = AuthorityRecord { root, secrets };
        if matches!(record.signer(), Some(Err(NoSigningKey))) {
            let kind = AUTHORITY_SIGNER;
            return Err(TlvError::Invalid { kind }.into());
        }
        Ok(record)
    }
}

const AUTHORITY_ROOT: u16 = MUST_UNDERSTAND | 1;
const AUTHORITY_CA: u16 = MUST_UNDERSTAND | 2;
const AUTHORITY_SIGNER: u16 = MUST_UNDERSTAND | 3;

/// The trust with which a cluster begins. It is made before there is a root domain that could keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foundation {
    pub authority: AuthorityRecord,
    /// The key of the first administrator.
    pub key: KeyRecord,
}

/// A cluster that cannot be founded on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundationError {
    /// There is no CA.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// There is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Foundation {
    /// A new CA, and the key of the first administrator.
    ///
    /// # Errors
    /// [`FoundationError`].
    pub fn create(
        cluster: u128,
        now_seconds: u64,
    ) -> Result<(Foundation, AccessKey), FoundationError> {
        let authority = AuthorityRecord::create(cluster, now_seconds)?;
        let (owned, key) = KeyRecord::create("admin", Grants::of_administrator(), &system)?;
        Ok((Foundation { authority, key }, owned))
    }

    /// The bytes, secrets included: to be sealed.
    pub fn encode(&self) -> Secret {
        encoded(|out| self.put(out))
    }

    fn put(&self, out: &mut BytesMut) {
        tlv::put_field(out, AUTHORITY, self.authority.encode().expose());
        tlv::put_field(out, KEY, self.key.encode().expose());
    }

    /// Reads what [`Foundation::encode`] wrote.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(bytes: &Secret) -> Result<Foundation, RecordError> {
        let mut fields = ContentFields::default();
        for field in tlv::fields(bytes.expose()) {
            let (kind, value) = field?;
            if !fields.take(kind, value)? {
                tlv::unknown(kind)?;
            }
        }
        fields.foundation()
    }
}

impl Entry {
    pub(crate) fn encode(&self) -> Secret {
        encoded(|out| {
            tlv::put_field(out, TIME, &self.origin.now_seconds.to_le_bytes());
            match self.origin.by {
                Actor::Key(key) => tlv::put_field(out, BY_KEY, &key.0.to_le_bytes()),
                Actor::Server(server) => tlv::put_field(out, BY_SERVER, &server.0.to_le_bytes()),
                Actor::Founder => {}
            }
            let address = &self.origin.address;
            let end = address.floor_char_boundary(MAX_ADDRESS_BYTES);
            tlv::put_field(out, ADDRESS, &address.as_bytes()[..end]);
            tlv::put_field(out, WHAT, &[self.what as u8]);
            match &self.content {
                Content::Founded(foundation) => foundation.put(out),
                Content::Authority(record) => {
                    tlv::put_field(out, AUTHORITY, record.encode().expose());
                }
                Content::Root(digest) => tlv::put_field(out, ROOT, &digest.0),
                Content::Token(record) => tlv::put_field(out, TOKEN, &record.encode()),
                Content::Key(record) => tlv::put_field(out, KEY, record.encode().expose()),
            }
        })
    }

    pub(crate) fn decode(bytes: &Secret) -> Result<Entry, RecordError> {
        let (mut time, mut by, mut address, mut what) = (None, Actor::Founder, None, None);
        let mut content = ContentFields::default();
        for field in tlv::fields(bytes.expose()) {
            let (kind, value) = field?;
            match kind {
                TIME => time = Some(u64::from_le_bytes(tlv::number(kind, value)?)),
                BY_KEY => by = Actor::Key(KeyId(u64::from_le_bytes(tlv::number(kind, value)?))),
                BY_SERVER => {
                    let server = u128::from_le_bytes(tlv::number(kind, value)?);
                    by = Actor::Server(ServerId(server));
                }
                ADDRESS if value.len() <= MAX_ADDRESS_BYTES => {
                    address = Some(tlv::text(kind, value)?);
                }
                ADDRESS => return Err(TlvError::Invalid { kind }.into()),
                WHAT => {
                    let [number] = tlv::number(kind, value)?;
                    what = Some(What::of(number).ok_or(RecordError::LaterVersion { number })?);
                }
                _ if content.take(kind, value)? => {}
                _ => tlv::unknown(kind)?,
            }
        }
        let missing = |kind| TlvError::Missing { kind };
        let what = what.ok_or(missing(WHAT))?;
        Ok(Entry {
            origin: Origin {
                by,
                address: address.ok_or(missing(ADDRESS))?,
                now_seconds: time.ok_or(missing(TIME))?,
            },
            what,
            content: content.of(what)?,
        })
    }

    /// The object of the change, in a word or two.
    pub(super) fn about(&self) -> String {
        match &self.content {
            Content::Founded(foundation) => foundation.authority.root.digest().to_string(),
            Content::Authority(record) => record.root.digest().to_string(),
            Content::Root(digest) => digest.to_string(),
            Content::Token(record) => match record.used {
                Some(used) => format!("{} by server {}", record.id, used.by),
                None => record.id.to_string(),
            },
            Content::Key(record) => format!("{} {}", record.id, record.name),
        }
    }
}

/// The fields of an entry's content, as far as they were read.
#[derive(Default)]
struct ContentFields {
    authority: Option<AuthorityRecord>,
    root: Option<RootDigest>,
    token: Option<TokenRecord>,
    key: Option<KeyRecord>,
}

impl ContentFields {
    /// False: the field is none of these.
    fn take(&mut self, kind: u16, value: &[u8]) -> Result<bool, RecordError> {
        match kind {
            AUTHORITY => self.authority = Some(AuthorityRecord::read(value)?),
            ROOT => self.root = Some(RootDigest(tlv::number(kind, value)?)),
            TOKEN => self.token = Some(TokenRecord::decode(value)?),
            KEY => self.key = Some(KeyRecord::decode(&Secret::new(value.to_vec()))?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn foundation(self) -> Result<Foundation, RecordError> {
        let missing = |kind| TlvError::Missing { kind };
        Ok(Foundation {
            authority: self.authority.ok_or(missing(AUTHORITY))?,
            key: self.key.ok_or(missing(KEY))?,
        })
    }

    fn of(self, what: What) -> Result<Content, RecordError> {
        let missing = |kind| TlvError::Missing { kind };
        Ok(match what {
            What::Founded => Content::Founded(self.foundation()?),
            What::RootTrusted => Content::Authority(self.authority.ok_or(missing(AUTHORITY))?),
            What::RootIssues | What::RootDropped => Content::Root(self.root.ok_or(missing(ROOT))?),
            What::TokenCreated | What::TokenUsed | What::TokenRevoked => {
                Content::Token(self.token.ok_or(missing(TOKEN))?)
            }
            What::KeyCreated
            | What::KeyRotated
            | What::KeyRetired
            | What::GrantsChanged
            | What::KeyRevoked => Content::Key(self.key.ok_or(missing(KEY))?),
        })
    }
}

/// Fields as a secret, which leaves no copy behind: the buffer is as large as any record from the start.
fn encoded(put: impl FnOnce(&mut BytesMut)) -> Secret {
    let mut out = BytesMut::with_capacity(limits::CELL_BYTES);
    put(&mut out);
    let record = Secret::new(out.to_vec());
    out.as_mut().zeroize();
    record
}
