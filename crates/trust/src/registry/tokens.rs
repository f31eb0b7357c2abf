//! Join tokens: made, listed, revoked, and used by one server each.

use areo_core::config::ServerId;
use areo_core::env::Env;
use areo_core::manager::Root;

use crate::authority::PublicKey;
use crate::id::TokenId;
use crate::secret::Secret;
use crate::token::{JoinToken, RedeemError, TokenRecord};

use super::entry::{Content, Origin, What};
use super::error::{CreateTokenError, LogError, RedeemTokenError, RevokeTokenError};
use super::{Registry, State, Verdict};

/// A token as a machine shows it that wants to become a server.
#[derive(Clone, Copy, Debug)]
pub struct Redemption<'a> {
    /// The id of the token.
    pub id: TokenId,
    /// The secret of the token.
    pub secret: &'a Secret,
    /// The id that the server will have.
    pub server: ServerId,
    /// The key that its certificate will be for.
    pub key: &'a PublicKey,
}

impl Registry {
    /// Makes a token for one server, which counts for so many seconds by the clock of the server that judges it. It has the digest of the CA
    /// that issues now.
    ///
    /// # Errors
    /// [`CreateTokenError`].
    pub async fn create_token<E: Env>(
        &self,
        root: &Root<E>,
        ttl_seconds: u64,
        origin: &Origin,
    ) -> Result<JoinToken, CreateTokenError> {
        if ttl_seconds == 0 {
            return Err(CreateTokenError::NoTime);
        }
        let expires = origin.now_seconds.saturating_add(ttl_seconds);
        let judge = |state: &State| {
            let digest = state.roots.issuing().digest();
            let (token, record) =
                JoinToken::create(digest, expires, &*self.random).map_err(LogError::from)?;
            Ok(Verdict::Change(
                What::TokenCreated,
                Content::Token(record),
                token,
            ))
        };
        self.change(root, origin, judge).await
    }

    /// All tokens that were ever made, used, expired and revoked ones as well.
    ///
    /// # Errors
    /// [`LogError`].
    pub async fn tokens<E: Env>(&self, root: &Root<E>) -> Result<Vec<TokenRecord>, LogError> {
        self.refresh(root).await?;
        let state = self.state.borrow();
        let tokens = state.iter().flat_map(|state| state.tokens.values());
        Ok(tokens.cloned().collect())
    }

    /// Revokes a token: it lets no server in from now on, nor is its use repeated. A repetition changes nothing.
    ///
    /// # Errors
    /// [`RevokeTokenError`].
    pub async fn revoke_token<E: Env>(
        &self,
        root: &Root<E>,
        id: TokenId,
        origin: &Origin,
    ) -> Result<(), RevokeTokenError> {
        let judge = |state: &State| {
            let record = state.tokens.get(&id);
            let record = record.ok_or(RevokeTokenError::Unknown { id })?;
            if record.revoked_seconds.is_some() {
                return Ok(Verdict::AsItIs(()));
            }
            let mut record = record.clone();
            record.revoked_seconds = Some(origin.now_seconds);
            let content = Content::Token(record);
            Ok(Verdict::Change(What::TokenRevoked, content, ()))
        };
        self.change(root, origin, judge).await
    }

    /// Lets a server in that shows a token, once; then it may be issued a certificate for this key. The same server may repeat it with the same
    /// key, because the answer may have been lost. Judged by `origin`'s clock.
    ///
    /// The first use must come from an id that no server is registered under: a certificate for a registered id would make the new
    /// machine that server.
    ///
    /// # Errors
    /// [`RedeemTokenError`].
    pub async fn redeem_token<E: Env>(
        &self,
        root: &Root<E>,
        shown: &Redemption<'_>,
        origin: &Origin,
    ) -> Result<(), RedeemTokenError> {
        let id = shown.id;
        let redeem = |state: &State| {
            let record = state.tokens.get(&id).ok_or(RedeemError::Unknown { id })?;
            let (server, now) = (shown.server, origin.now_seconds);
            let redeemed = record.redeem(id, shown.secret, server, shown.key, now)?;
            Ok::<_, RedeemError>((redeemed.used != record.used).then_some(redeemed))
        };
        // A stranger without a token is refused before the directory is asked.
        self.refresh(root).await?;
        let is_first = {
            let state = self.state.borrow();
            let state = state.as_ref().ok_or(LogError::NotFounded)?;
            redeem(state).map_err(RedeemTokenError::Token)?.is_some()
        };
        if is_first {
            let servers = root.servers().await.map_err(LogError::Unavailable)?;
            let server = shown.server;
            if servers.contains_key(&server) {
                return Err(RedeemTokenError::Registered { server });
            }
        }
        let judge = |state: &State| {
            let redeemed = redeem(state).map_err(RedeemTokenError::Token)?;
            Ok(match redeemed {
                None => Verdict::AsItIs(()),
                Some(record) => Verdict::Change(What::TokenUsed, Content::Token(record), ()),
            })
        };
        self.change(root, origin, judge).await
    }
}
