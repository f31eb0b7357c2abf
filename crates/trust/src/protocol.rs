//! Requests about the trust of a cluster, and their answers, as bytes.
//!
//! They pass through no algorithm: the server that is asked reads and changes the log of trust ([`crate::registry`]) for its caller. A request
//! and an answer are fields (`areo_core::tlv`), of which the first names the kind; `areo_wire::codec::trust` puts the two bytes before
//! them by which a server knows them from other messages. A field of another kind of request is refused.
//!
//! A connection on which secrets go is encrypted: servers refuse these requests on plain ones.
//!
//! | request | of | answer |
//! |---|---|---|
//! | [`Ask::Prove`] | any caller | [`TrustAnswer::Ticket`] |
//! | [`Ask::Join`] | any caller | [`TrustAnswer::Joined`] |
//! | [`Ask::CreateToken`], [`Ask::Tokens`], [`Ask::RevokeToken`] | a key with `join` | [`TrustAnswer::Token`], [`TrustAnswer::Tokens`], [`TrustAnswer::Done`] |
//! | [`Ask::SigningKeys`] | a key with `gateway` | [`TrustAnswer::SigningKeys`] |
//! | [`Ask::GatewayCertificate`] | a key with `gateway` | [`TrustAnswer::GatewayCertificate`] |
//! | all others | a key with `keys` | [`TrustAnswer::Key`] and lists; [`TrustAnswer::Done`] |
//!
//! Any of them may be answered with [`TrustAnswer::Refused`].

mod answers;
mod ask;
mod fields;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;

use areo_core::config::ServerId;
use areo_core::tlv::TlvError;

use crate::authority::{AuthorityError, PublicKey};
use crate::grant::{GrantError, Grants};
use crate::host::{HostError, Hosts};
use crate::id::{KeyId, TokenId};
use crate::key::{AccessKey, Exchange, KeyRecord, NONCE_BYTES, PROOF_BYTES, Prover};
use crate::registry::{AuditRecord, AuthorityRow};
use crate::roots::{Root, RootDigest, Roots, RootsError};
use crate::secret::{self, NoRandomness, RandomSource, Secret};
use crate::signing::{ScopeError, SigningScope};
use crate::ticket;
use crate::token::{JoinToken, TokenRecord};

/// Rows of one answer to a request for a list, at most; then the caller asks for those after the last one.
pub const PAGE_ROWS: usize = 100;

/// A request about the trust of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Proves a key, for a ticket.
    Prove(KeyProof),
    /// Shows a join token, for the certificate of a server.
    Join {
        /// The id of the token.
        token: TokenId,
        /// The secret of the token.
        secret: Secret,
        /// The id that the server will have.
        server: ServerId,
        /// The public half of its key.
        key: PublicKey,
    },
    /// Asks for the CA of this server's certificate: of each server while the CA is rotated.
    Standing,
    /// Makes a join token.
    CreateToken {
        /// Time for which the token counts.
        ttl_seconds: u64,
    },
    /// A page of the tokens that were ever made, by id.
    Tokens {
        /// The last one of the page before.
        after: Option<TokenId>,
    },
    /// Revokes a join token.
    RevokeToken { token: TokenId },
    /// Makes an access key.
    CreateKey {
        /// Its name, which no other key that counts has.
        name: String,
        /// Grants of its owner.
        grants: Grants,
    },
    /// A page of the keys that were ever made, by id.
    Keys {
        /// The last one of the page before.
        after: Option<KeyId>,
    },
    /// Gives a key a second secret.
    RotateKey {
        /// Its name or id.
        key: String,
    },
    /// Drops the older secret of a key.
    RetireKey {
        /// Its name or id.
        key: String,
    },
    /// Gives a key other grants.
    ChangeGrants {
        /// Its name or id.
        key: String,
        /// The grants that it is to have.
        grants: Grants,
    },
    /// Revokes a key, for ever.
    RevokeKey {
        /// Its name or id.
        key: String,
    },
    /// The CAs that the cluster trusts.
    Authorities,
    /// Trusts one more CA.
    TrustAuthority {
        /// A root of the operator's own. `None`: a new one of the cluster.
        root: Option<Root>,
    },
    /// Has a trusted CA issue.
    IssueFrom {
        /// Digest of the CA's certificate.
        digest: RootDigest,
    },
    /// Trusts a CA no longer.
    DropRoot {
        /// Digest of the CA's certificate.
        digest: RootDigest,
    },
    /// A page of the changes of the cluster's trust, in their order.
    Audit {
        /// The first time that is wanted, in seconds since 1970.
        since_seconds: u64,
        /// The last change that was looked at for the page before.
        after: Option<u32>,
    },
    /// Asks for the signing keys of a key: by them a gateway verifies signatures of the key's owner.
    SigningKeys {
        key: KeyId,
        /// The day and the region.
        scope: SigningScope,
    },
    /// Asks for a certificate of the cluster's CA for a gateway.
    GatewayCertificate {
        /// The names by which callers reach it.
        hosts: Hosts,
        /// The public half of its key.
        key: PublicKey,
    },
}

/// The certificate of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayCertificate {
    /// It, by the CA that issues.
    pub certificate: CertificateDer<'static>,
    /// The CAs that the cluster trusts, the one that issues first.
    pub roots: Roots,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    /// The key was proven.
    Ticket(TicketAnswer),
    /// The token was used; the machine is a server from now on.
    Joined(JoinAnswer),
    /// The CA of the server's certificate, and the CAs by which it judges.
    Standing {
        /// The digest of the CA that issued its certificate, if it is one that it trusts.
        issuer: Option<RootDigest>,
        /// The digests of the CAs by which it judges certificates.
        trusted: Vec<RootDigest>,
        /// The last change of the cluster's trust that it has read.
        generation: u32,
    },
    /// A token was made: the only time that it is shown.
    Token(JoinToken),
    /// A page of tokens.
    Tokens(Page<TokenRow>),
    /// A key was made, or has a second secret: the only time that it is shown.
    Key(AccessKey),
    /// A page of keys.
    Keys(Page<KeyRow>),
    /// The CAs that the cluster trusts, the one that issues first.
    Authorities(Vec<AuthorityRow>),
    /// The CA is trusted.
    Authority {
        /// Digest of the CA's certificate.
        digest: RootDigest,
    },
    /// A page of changes.
    Audit {
        /// The rows that are late enough.
        rows: Vec<AuditRecord>,
        /// The last change that was looked at, if others follow it.
        next: Option<u32>,
    },
    /// A signing key for each secret of a key, the newest first: one, or two while the key is rotated.
    SigningKeys(Vec<Secret>),
    /// A certificate for a gateway, and the CAs that the cluster trusts.
    GatewayCertificate(GatewayCertificate),
    /// The change was made, or had been before.
    Done,
    /// The request was not carried out.
    Refused(TrustRefusal),
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<R> {
    /// The rows of this part.
    pub rows: Vec<R>,
    /// True if others follow.
    pub has_more: bool,
}

/// The proof of a client that it has a key.
///
/// It is bound to the session of TLS on which it is sent ([`Exchange::binding`]), so that it counts there alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyProof {
    pub key: KeyId,
    /// Random bytes of the client.
    pub client_nonce: [u8; NONCE_BYTES],
    /// The public key of the client's process, which its ticket will name.
    pub holder: ticket::PublicKey,
    /// The other key on whose behalf the ticket is to be, if the proven one has the grant `gateway`.
    pub behalf: Option<KeyId>,
    /// The proof, made with the secret of the key.
    pub proof: [u8; PROOF_BYTES],
}

/// The connection on which a proof is made, as both ends know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofSite {
    pub cluster: u128,
    /// The server that is asked.
    pub server: ServerId,
    /// The session of TLS.
    pub binding: [u8; crate::tls::BINDING_BYTES],
}

impl KeyProof {
    /// The proof of this key on one connection, for a ticket of its own.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn create(
        key: &AccessKey,
        holder: ticket::PublicKey,
        site: &ProofSite,
        source: &RandomSource,
    ) -> Result<KeyProof, NoRandomness> {
        KeyProof::on_behalf(key, None, holder, (site, source))
    }

    /// The proof of this key on one connection, for a ticket on behalf of another key if one is named.
    ///
    /// # Errors
    /// [`NoRandomness`].
    pub fn on_behalf(
        key: &AccessKey,
        behalf: Option<KeyId>,
        holder: ticket::PublicKey,
        (site, source): (&ProofSite, &RandomSource),
    ) -> Result<KeyProof, NoRandomness> {
        let unproven = KeyProof {
            key: key.id,
            client_nonce: secret::random(source)?,
            holder,
            behalf,
            proof: [0; PROOF_BYTES],
        };
        let proof = unproven.exchange(site).prove(&key.secret, Prover::Client);
        Ok(KeyProof { proof, ..unproven })
    }

    /// The exchange that it is a proof of, on the connection on which it was sent.
    pub fn exchange(&self, site: &ProofSite) -> Exchange {
        Exchange {
            cluster: site.cluster,
            server: site.server,
            key: self.key,
            client_nonce: self.client_nonce,
            holder: self.holder,
            binding: site.binding,
            behalf: self.behalf,
        }
    }
}

/// The answer to a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketAnswer {
    /// The signed ticket, for the hello to each server.
    pub ticket: Bytes,
    /// The proof of the server that it knows the key as well ([`Prover::Server`]).
    pub answer: [u8; PROOF_BYTES],
    /// The CAs that the cluster trusts, the one that issues first.
    pub roots: Roots,
    /// Certificates of the server by other CAs of the cluster, for the key that it shows on this connection: a client that knows one of these CAs, and not the
    /// one of the connection, takes the new one from no one else.
    pub other_certificates: Vec<CertificateDer<'static>>,
}

/// The answer to a machine that is a server from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinAnswer {
    /// The key under which the trust of the cluster is sealed.
    pub cluster_key: Secret,
    /// The certificate for its own key.
    pub certificate: CertificateDer<'static>,
    /// The CAs that the cluster trusts; the first one issued the certificate.
    pub roots: Roots,
}

/// A token in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRow {
    pub id: TokenId,
    /// The end of its life, in seconds since 1970.
    pub expires_seconds: u64,
    /// The server that it let in.
    pub used_by: Option<ServerId>,
    /// Since when it counts no longer, in seconds since 1970.
    pub revoked_seconds: Option<u64>,
}

impl From<&TokenRecord> for TokenRow {
    fn from(record: &TokenRecord) -> TokenRow {
        TokenRow {
            id: record.id,
            expires_seconds: record.expires_seconds,
            used_by: record.used.map(|used| used.by),
            revoked_seconds: record.revoked_seconds,
        }
    }
}

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub id: KeyId,
    pub name: String,
    /// Grants of its owner.
    pub grants: Grants,
    /// True while two secrets count.
    pub is_rotating: bool,
    /// Since when it counts no longer, in seconds since 1970.
    pub revoked_seconds: Option<u64>,
}

impl From<&KeyRecord> for KeyRow {
    fn from(record: &KeyRecord) -> KeyRow {
        KeyRow {
            id: record.id,
            name: record.name.clone(),
            grants: record.grants.clone(),
            is_rotating: record.is_rotating(),
            revoked_seconds: record.revoked_seconds,
        }
    }
}

/// The reason for which a request was not carried out, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct TrustRefusal {
    /// The kind, for the exit code of a program.
    pub kind: RefusalKind,
    /// The fault, and the way to mend it.
    pub sentence: String,
}

/// The kinds of refusals. Their numbers are the exit codes of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalKind {
    /// None of the others.
    Other = 1,
    /// It can never be carried out as it is.
    Usage = 2,
    /// The token, key or CA does not exist.
    NotFound = 3,
    /// It is not in the state that the request needs.
    Lost = 4,
    /// No quorum in time, or too many requests; nothing was changed.
    Unavailable = 5,
    /// The caller may not do it.
    Unauthorised = 6,
    /// The change may have been made.
    Unknown = 8,
}

impl RefusalKind {
    /// The kind of this number; one of a later version is none of the others.
    fn of(number: u8) -> RefusalKind {
        let kinds = [
            RefusalKind::Usage,
            RefusalKind::NotFound,
            RefusalKind::Lost,
            RefusalKind::Unavailable,
            RefusalKind::Unauthorised,
            RefusalKind::Unknown,
        ];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == number);
        kind.unwrap_or(RefusalKind::Other)
    }
}

/// Bytes that are no request, or no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The kind is not known here.
    #[error("kind {kind} of a message about trust is of a later version: use that version")]
    Kind {
        /// Number of the kind.
        kind: u8,
    },
    /// The fields cannot be read.
    #[error("a message about trust cannot be read: {0}")]
    Fields(#[from] TlvError),
    /// A grant cannot be read.
    #[error("{0}")]
    Grant(#[from] GrantError),
    /// A certificate of a CA cannot be read.
    #[error("{0}")]
    Roots(#[from] RootsError),
    /// A public key cannot be read.
    #[error("{0}")]
    Key(#[from] AuthorityError),
    /// A day or a region of signing keys is none.
    #[error("{0}")]
    Scope(#[from] ScopeError),
    /// A name of a gateway is none, or there are too many.
    #[error("{0}")]
    Host(#[from] HostError),
}

#[cfg(test)]
mod tests;
