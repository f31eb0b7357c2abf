//! Errors of operations on the trust of a cluster: an enum for each.

use areo_core::config::ServerId;
use areo_core::error::Unavailable;

use crate::authority::AuthorityError;
use crate::grant::{MissingGrant, NotPublicGrant, PrefixedGrant};
use crate::id::{KeyId, TokenId};
use crate::key::{KeyError, ProofError};
use crate::roots::{RootDigest, RootsError};
use crate::secret::{NoRandomness, OpenError};
use crate::signing::ScopeError;
use crate::token::RedeemError;

use super::entry::RecordError;

/// The log of changes cannot be read, or a change not be appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// No quorum of the root domain in time; nothing was changed.
    #[error("the root domain does not answer, and nothing was changed; try again: {0}")]
    Unavailable(Unavailable),
    /// No quorum of the root domain in time; the change may have been made.
    #[error(
        "it is not known whether the change was made; look before it is tried again (`areo audit ls`): {0}"
    )]
    Unconfirmed(Unavailable),
    /// The log is empty.
    #[error(
        "this cluster has no CA and no keys yet: the server that was started with `--init` makes them when it serves"
    )]
    NotFounded,
    /// An entry does not open.
    #[error(
        "change {generation} of this cluster's trust cannot be read with the cluster key of this server: {error}; if other servers read it, let this one join anew"
    )]
    Sealed {
        /// The place of the entry.
        generation: u32,
        /// Why it does not.
        error: OpenError,
    },
    /// An entry opens and cannot be read.
    #[error("change {generation} of this cluster's trust cannot be read: {error}")]
    Record {
        /// The place of the entry.
        generation: u32,
        error: RecordError,
    },
    /// The log has all changes that can be numbered.
    #[error("this cluster's trust was changed 2^32 times and takes no more changes")]
    Full,
    /// The system gives no random bytes.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// A cluster that could not be founded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Another server has founded it.
    #[error(
        "this cluster was founded with the CA {digest}, not with that of this data directory: join it with a token"
    )]
    Other {
        /// The digest of that CA.
        digest: RootDigest,
    },
}

/// A certificate that could not be issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueError {
    /// The log was not read yet.
    #[error("this server has not read the cluster's trust yet: try again")]
    NotRead,
    /// The operator's own CA issues.
    #[error(
        "the CA {digest} is the operator's own, and the cluster cannot issue under it: give the server a certificate of it by file"
    )]
    OfOperator {
        /// The digest of that CA.
        digest: RootDigest,
    },
    /// The certificate cannot be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A root that is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustRootError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The roots that there are do not admit it.
    #[error(transparent)]
    Roots(#[from] RootsError),
}

/// A root that does not issue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueFromError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The cluster does not have its key.
    #[error(
        "the CA {digest} is the operator's own: the cluster has no key of it, and issues nothing under it"
    )]
    OfOperator {
        /// Digest of the CA.
        digest: RootDigest,
    },
    /// The roots that there are do not admit it.
    #[error(transparent)]
    Roots(#[from] RootsError),
}

/// A root that is not dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DropRootError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The roots that there are do not admit it.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// Tickets are signed by the key under it.
    #[error(
        "tickets are signed by a key that goes with the CA {digest}: trust another CA of the cluster's own first (`areo ca rotate`)"
    )]
    Signs {
        /// Digest of the CA.
        digest: RootDigest,
    },
}

/// A token that was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateTokenError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It would never count.
    #[error("a join token that counts for no time lets no server in: give it a longer `--ttl`")]
    NoTime,
}

/// A token that was not revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevokeTokenError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The cluster has no such token.
    #[error("this cluster has no join token {id}: `areo token ls` lists them")]
    Unknown { id: TokenId },
}

/// A server that is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedeemTokenError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The token does not let it in.
    #[error(transparent)]
    Token(#[from] RedeemError),
    /// Its id is that of a server of the cluster.
    #[error(
        "server {server} is one of this cluster already, and a token makes no second one of it: start the new server on an empty data directory"
    )]
    Registered { server: ServerId },
}

/// A key that was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateKeyError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// One of its grants has a prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixedGrant),
    /// The record cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Another key has the name.
    #[error(
        "the name '{name}' is taken by key {id}: take another one, or revoke that key first (`areo key revoke`)"
    )]
    NameTaken {
        name: String,
        /// The key that has it.
        id: KeyId,
    },
}

/// A key that was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeKeyError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// One of its grants has a prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixedGrant),
    /// The cluster has no such key.
    #[error("this cluster has no key {id}: `areo key ls` lists them")]
    Unknown { id: KeyId },
    /// It was revoked, which is final.
    #[error(
        "the key {id} was revoked, which is final: make another one with `areo key create`, which may have its name"
    )]
    Revoked { id: KeyId },
    /// It stands for callers without a key, which get no such grant.
    #[error(transparent)]
    NotPublic(#[from] NotPublicGrant),
    /// It stands for callers without a key.
    #[error(
        "the key {id} stands for callers without a key: it has no secret that could be rotated"
    )]
    WithoutSecret { id: KeyId },
    /// It has two secrets already.
    #[error(
        "the key {id} has two secrets already: retire the older one when all clients have the newer (`areo key retire`); if the newer one was lost, make another key and revoke this one"
    )]
    Rotating { id: KeyId },
    /// No other key could make keys.
    #[error(
        "the key {id} is the last one with the grant 'keys', and nothing could be mended without one: make another one with that grant first"
    )]
    LastOfKeys { id: KeyId },
}

/// A ticket that was not issued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueTicketError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The proof is not taken.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The exchange was with another cluster.
    #[error(
        "the key was proven to cluster {found:032x}, and this is cluster {expected:032x}: connect to that one"
    )]
    OtherCluster {
        /// Id of this cluster.
        expected: u128,
        /// The cluster of the exchange.
        found: u128,
    },
    /// The key was proven to act on behalf of another one, and is none of a gateway.
    #[error(transparent)]
    NoGateway(#[from] MissingGrant),
    /// Callers without a key may do nothing.
    #[error(
        "callers without a key may do nothing in this cluster: `areo key create anonymous --grant read:DOMAIN` lets them read"
    )]
    NoAnonymous,
    /// A gateway has proven its key, and there is no such key as the other one.
    #[error(
        "this cluster has no key {key}, so that no gateway acts on behalf of it: `areo key ls` lists them"
    )]
    BehalfUnknown {
        /// The key on whose behalf the ticket was asked for.
        key: KeyId,
    },
    /// A gateway has proven its key, and the other one was revoked.
    #[error(
        "the key {key} was revoked, so that no gateway acts on behalf of it any more: have a new one made with `areo key create`"
    )]
    BehalfRevoked {
        /// The key on whose behalf the ticket was asked for.
        key: KeyId,
    },
    /// The cluster has no CA of its own.
    #[error(
        "no CA of this cluster has a key that signs tickets: trust one of the cluster's own (`areo ca rotate`)"
    )]
    NoSigner,
}

/// A key without signing keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeysError {
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The day is not about the one of this server.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The cluster has no such key.
    #[error("this cluster has no key {key}: `areo key ls` lists them")]
    Unknown { key: KeyId },
    /// The key was revoked.
    #[error("the key {key} was revoked: have a new one made with `areo key create`")]
    Revoked { key: KeyId },
}

/// A key that was shown whole, and does not open the requested path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BearerError {
    /// The log was never read.
    #[error("this server has not read the keys of its cluster yet: try again")]
    NotRead,
    /// The key does not count.
    #[error(transparent)]
    Key(#[from] ProofError),
    /// The key may not do it.
    #[error(transparent)]
    Missing(#[from] MissingGrant),
}
