//! The trust of a cluster: its CAs, join tokens, access keys, and the record of their changes.
//!
//! Any server carries a request out. One that does not answer is left for the next one where that is safe: the request was not sent to it, or
//! it only reads. A change that was sent and not answered may have been made ([`TrustError::Unknown`]).

mod rows;

use futures_util::future::BoxFuture;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_net::network::{AskError, BootstrapError};
use areo_trust::authority::PublicKey;
use areo_trust::host::Hosts;
use areo_trust::id::TokenId;
use areo_trust::protocol::{
    Ask, GatewayCertificate, KeyRow, Page, TokenRow, TrustAnswer, TrustRefusal,
};
use areo_trust::registry::{AuditRecord, AuthorityRow};
use areo_trust::roots::{Root, RootDigest, Roots};
use areo_trust::signing::SigningScope;
use areo_trust::token::JoinToken;

pub use areo_trust::grant::{Grant, GrantError, Grants};
pub use areo_trust::id::KeyId;
pub use areo_trust::key::{ANONYMOUS, ANONYMOUS_NAME, AccessKey};
pub use areo_trust::protocol::RefusalKind;
pub use areo_trust::secret::Secret;
pub use rows::{AuditInfo, KeyInfo};

use crate::session::{Session, World};
use areo_core::config::ServerId;

/// The longest wait for one server.
const SERVER_PATIENCE: Duration = Duration::from_secs(12);
/// The pause before the servers are asked again, after none could carry the request out.
const PAUSE: Duration = Duration::from_millis(200);

/// A request about the trust of the cluster that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// A server said why not.
    #[error(transparent)]
    Refused(#[from] TrustRefusal),
    /// No server took the request in time; nothing was changed.
    #[error("no server takes the request, and nothing was changed; the last one: {reason}")]
    Unavailable {
        /// The reason of the last server.
        reason: String,
    },
    /// The request was sent, and no answer came: it may have been carried out.
    #[error(
        "it is not known whether the change was made: {reason}; look before it is tried again (`areo audit ls`)"
    )]
    Unknown {
        /// The reason why the outcome is unknown.
        reason: String,
    },
    /// The answer is one to another request.
    #[error("a server answered another question than the one that was asked: update the programs")]
    Malformed,
}

impl TrustError {
    /// The kind, as servers name it.
    pub fn kind(&self) -> RefusalKind {
        match self {
            TrustError::Refused(refusal) => refusal.kind,
            TrustError::Unavailable { .. } => RefusalKind::Unavailable,
            TrustError::Unknown { .. } => RefusalKind::Unknown,
            TrustError::Malformed => RefusalKind::Other,
        }
    }
}

/// The state of one server while the CA is rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The CA that issued its certificate, if it is one that it trusts.
    pub issuer: Option<RootDigest>,
    /// The CAs by which it judges certificates.
    pub trusted: Vec<RootDigest>,
    /// The last change of the cluster's trust that it has read.
    pub generation: u32,
}

/// Requests about the trust of a cluster: [`crate::Client::trust`].
#[derive(Clone)]
pub struct Trust {
    session: Session,
}

/// Takes the one variant that answers a request.
macro_rules! only {
    ($answer:expr, $pattern:pat => $result:expr) => {
        match $answer {
            $pattern => Ok($result),
            _ => Err(TrustError::Malformed),
        }
    };
}

impl Trust {
    pub(crate) fn new(session: Session) -> Trust {
        Trust { session }
    }

    /// Makes a token with which one machine becomes a server.
    ///
    /// # Errors
    /// [`TrustError`], as for all others here.
    pub async fn create_token(&self, life: Duration) -> Result<JoinToken, TrustError> {
        let ttl_seconds = life.as_secs();
        let answer = self.ask(Ask::CreateToken { ttl_seconds }).await?;
        only!(answer, TrustAnswer::Token(token) => token)
    }

    /// All tokens that were ever made.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, TrustError> {
        let mut rows: Vec<TokenRow> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.id);
            let answer = self.ask(Ask::Tokens { after }).await?;
            let page: Page<TokenRow> = only!(answer, TrustAnswer::Tokens(page) => page)?;
            rows.extend(page.rows);
            if !page.has_more {
                return Ok(rows);
            }
        }
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn revoke_token(&self, token: TokenId) -> Result<(), TrustError> {
        self.change(Ask::RevokeToken { token }).await
    }

    /// Makes a key.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn create_key(&self, name: &str, grants: &Grants) -> Result<AccessKey, TrustError> {
        let (name, grants) = (name.to_owned(), grants.clone());
        let answer = self.ask(Ask::CreateKey { name, grants }).await?;
        only!(answer, TrustAnswer::Key(key) => key)
    }

    /// All keys that were ever made.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn keys(&self) -> Result<Vec<KeyRow>, TrustError> {
        let mut rows: Vec<KeyRow> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.id);
            let answer = self.ask(Ask::Keys { after }).await?;
            let page: Page<KeyRow> = only!(answer, TrustAnswer::Keys(page) => page)?;
            rows.extend(page.rows);
            if !page.has_more {
                return Ok(rows);
            }
        }
    }

    /// Gives the key of this name or id a second secret.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn rotate_key(&self, key: &str) -> Result<AccessKey, TrustError> {
        let key = key.to_owned();
        let answer = self.ask(Ask::RotateKey { key }).await?;
        only!(answer, TrustAnswer::Key(key) => key)
    }

    /// Drops the older secret of the key of this name or id.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn retire_key(&self, key: &str) -> Result<(), TrustError> {
        let key = key.to_owned();
        self.change(Ask::RetireKey { key }).await
    }

    /// Gives the key of this name or id other grants.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn change_grants(&self, key: &str, grants: &Grants) -> Result<(), TrustError> {
        let (key, grants) = (key.to_owned(), grants.clone());
        self.change(Ask::ChangeGrants { key, grants }).await
    }

    /// Revokes the key of this name or id, for ever.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn revoke_key(&self, key: &str) -> Result<(), TrustError> {
        let key = key.to_owned();
        self.change(Ask::RevokeKey { key }).await
    }

    /// The CAs that the cluster trusts, the one that issues first.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn authorities(&self) -> Result<Vec<AuthorityRow>, TrustError> {
        let answer = self.ask(Ask::Authorities).await?;
        only!(answer, TrustAnswer::Authorities(rows) => rows)
    }

    /// Trusts one more CA: one of the operator's own, or a new one of the cluster.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn trust_authority(&self, root: Option<Root>) -> Result<RootDigest, TrustError> {
        let answer = self.ask(Ask::TrustAuthority { root }).await?;
        only!(answer, TrustAnswer::Authority { digest } => digest)
    }

    /// Has a trusted CA issue.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn issue_from(&self, digest: RootDigest) -> Result<(), TrustError> {
        self.change(Ask::IssueFrom { digest }).await
    }

    /// Trusts a CA no longer.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn drop_root(&self, digest: RootDigest) -> Result<(), TrustError> {
        self.change(Ask::DropRoot { digest }).await
    }

    /// All changes of the cluster's trust since a time, in seconds since 1970, in their order.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn audit(&self, since_seconds: u64) -> Result<Vec<AuditRecord>, TrustError> {
        let (mut records, mut after) = (Vec::new(), None);
        loop {
            let ask = Ask::Audit {
                since_seconds,
                after,
            };
            let answer = self.ask(ask).await?;
            let (rows, next) = only!(answer, TrustAnswer::Audit { rows, next } => (rows, next))?;
            records.extend(rows);
            match next {
                Some(next) if Some(next) > after => after = Some(next),
                Some(_) => return Err(TrustError::Malformed),
                None => return Ok(records),
            }
        }
    }

    /// The signing keys of S3 of a key, for a day in UTC as the decimal number yyyymmdd, and a region: 32 bytes for
    /// each secret of the key, the newest first; there are two while the key is rotated. A gateway verifies the
    /// signatures of the key's owner with them.
    ///
    /// # Errors
    /// [`TrustError`]; its kind is `NotFound` for a key that is unknown or was revoked, and `Usage` for a day that is more than a
    /// week away, or a text that is no region.
    pub async fn signing_keys(
        &self,
        key: KeyId,
        day: u32,
        region: &str,
    ) -> Result<Vec<Secret>, TrustError> {
        let scope = SigningScope::new(day, region).map_err(|error| TrustRefusal {
            kind: RefusalKind::Usage,
            sentence: error.to_string(),
        })?;
        let answer = self.ask(Ask::SigningKeys { key, scope }).await?;
        only!(answer, TrustAnswer::SigningKeys(keys) => keys)
    }

    /// A certificate of the CA that issues, for a gateway that callers reach by these names. It counts for a week.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn gateway_certificate(
        &self,
        hosts: &Hosts,
        key: &PublicKey,
    ) -> Result<GatewayCertificate, TrustError> {
        let (hosts, key) = (hosts.clone(), *key);
        let answer = self.ask(Ask::GatewayCertificate { hosts, key }).await?;
        only!(answer, TrustAnswer::GatewayCertificate(issued) => issued)
    }

    /// The CAs that the cluster trusted when this client had its last ticket, the one that issues first. `None`: the cluster has none, because its connections are plain.
    pub fn roots(&self) -> BoxFuture<'_, Option<Roots>> {
        Box::pin(async move {
            let known = |world: Rc<World>| async move { world.network.tls()?.roots() };
            self.session.thread().run(known).await
        })
    }

    /// The state of this server alone.
    ///
    /// # Errors
    /// [`TrustError`].
    pub async fn standing(&self, server: ServerId) -> Result<Standing, TrustError> {
        let answer = self.ask_of(vec![server], Ask::Standing).await?;
        only!(answer, TrustAnswer::Standing { issuer, trusted, generation } => Standing { issuer, trusted, generation })
    }

    async fn change(&self, ask: Ask) -> Result<(), TrustError> {
        let answer = self.ask(ask).await?;
        only!(answer, TrustAnswer::Done => ())
    }

    async fn ask(&self, ask: Ask) -> Result<TrustAnswer, TrustError> {
        let names = self.session.cluster().names();
        let servers = names.servers().map(|record| record.id).collect();
        self.ask_of(servers, ask).await
    }

    fn ask_of(
        &self,
        servers: Vec<ServerId>,
        ask: Ask,
    ) -> BoxFuture<'_, Result<TrustAnswer, TrustError>> {
        Box::pin(async move {
            let timeout = self.session.timeout();
            let asking = move |world: Rc<World>| ask_servers(world, servers, ask, timeout);
            self.session.thread().run(asking).await
        })
    }
}

/// Asks one server after the other, until one has carried the request out or refuses it.
async fn ask_servers(
    world: Rc<World>,
    servers: Vec<ServerId>,
    ask: Ask,
    timeout: Duration,
) -> Result<TrustAnswer, TrustError> {
    let until = Instant::now() + timeout;
    let mut last = TrustError::Unavailable {
        reason: "no server is known".to_owned(),
    };
    loop {
        for server in &servers {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(last);
            }
            let patience = left.min(SERVER_PATIENCE);
            let asked = world.network.ask_trust(*server, patience, |_| ask.clone());
            match asked.await {
                Ok(response) => match response.answer {
                    // Another one may reach a quorum, or is up already.
                    TrustAnswer::Refused(refusal) if refusal.kind == RefusalKind::Unavailable => {
                        last = refusal.into();
                    }
                    TrustAnswer::Refused(refusal) => return Err(refusal.into()),
                    answer => return Ok(answer),
                },
                Err(error) => last = after(&error, &ask)?,
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The error to end with if no other server carries the request out.
///
/// # Errors
/// No other one may be asked.
fn after(error: &AskError, ask: &Ask) -> Result<TrustError, TrustError> {
    let reason = error.to_string();
    if let BootstrapError::Refused { refusal } = error.cause
        && refusal == areo_core::message::Refusal::Unauthorised
    {
        let kind = RefusalKind::Unauthorised;
        let sentence = format!(
            "{reason}: the access key does not count here; look at the cluster file or AREO_KEY"
        );
        return Err(TrustRefusal { kind, sentence }.into());
    }
    match error.is_sent && !ask.only_reads() {
        true => Err(TrustError::Unknown { reason }),
        false => Ok(TrustError::Unavailable { reason }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::message::Refusal;

    #[test]
    fn a_change_that_was_sent_is_not_sent_to_another_server() {
        let key = || "camera".to_owned();
        let error = |is_sent| AskError {
            cause: BootstrapError::TimedOut,
            is_sent,
        };
        let revoke = Ask::RevokeKey { key: key() };
        let unknown = after(&error(true), &revoke).unwrap_err();
        assert_eq!(unknown.kind(), RefusalKind::Unknown);
        for (is_sent, ask) in [
            (false, revoke),
            (true, Ask::Authorities),
            (false, Ask::Authorities),
        ] {
            let last = after(&error(is_sent), &ask).expect("another one may be asked");
            assert_eq!(last.kind(), RefusalKind::Unavailable);
        }
        let refusal = Refusal::Unauthorised;
        let cause = BootstrapError::Refused { refusal };
        let refused = AskError {
            cause,
            is_sent: false,
        };
        let ended = after(&refused, &Ask::Authorities).unwrap_err();
        assert_eq!(ended.kind(), RefusalKind::Unauthorised);
    }
}
