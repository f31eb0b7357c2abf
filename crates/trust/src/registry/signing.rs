//! Signing keys of access keys, for gateways.

use std::rc::Rc;

use areo_core::env::Env;
use areo_core::error::Unavailable;
use areo_core::manager::Root;

use crate::id::KeyId;
use crate::protocol::{Ask, GatewayCertificate, TrustAnswer, TrustRefusal};
use crate::secret::Secret;
use crate::signing::SigningScope;

use super::error::{LogError, SigningKeysError};
use super::{Registry, View};

/// The view by which the caller of a request is judged, and the request carried out.
pub(super) struct JudgingView {
    pub(super) view: Rc<View>,
    /// The reason why the view may not be of the latest changes.
    unavailable: Option<Unavailable>,
}

impl Registry {
    /// The view of all changes that were acknowledged before. A request for signing keys changes nothing: where the root domain does not answer, it is
    /// judged by the changes that were read last, as a proof is ([`Registry::issue_ticket`]).
    ///
    /// # Errors
    /// [`LogError`].
    pub(super) async fn judging_view<E: Env>(
        &self,
        root: &Root<E>,
        ask: &Ask,
    ) -> Result<JudgingView, LogError> {
        let (view, unavailable) = match (self.refresh(root).await, ask) {
            (Err(LogError::Unavailable(unavailable)), Ask::SigningKeys { .. }) => {
                let view = self.view().ok_or(LogError::NotFounded)?;
                (view, Some(unavailable))
            }
            (refreshed, _) => (refreshed?, None),
        };
        Ok(JudgingView { view, unavailable })
    }

    /// Answers a gateway. A key that these changes do not have may be a newer one, so that it is not refused where the root domain does not answer.
    pub(super) fn answer_gateway(
        &self,
        ask: &Ask,
        now_seconds: u64,
        judging: JudgingView,
    ) -> Result<TrustAnswer, TrustRefusal> {
        let (key, scope) = match ask {
            Ask::SigningKeys { key, scope } => (*key, scope),
            Ask::GatewayCertificate { hosts, key } => {
                let certificate = self.issue_to_gateway(hosts, key, now_seconds)?;
                let roots = judging.view.roots.clone();
                let issued = GatewayCertificate { certificate, roots };
                return Ok(TrustAnswer::GatewayCertificate(issued));
            }
            _ => unreachable!("these are the requests of gateways"),
        };
        let derived = self.signing_keys(key, scope, now_seconds);
        match (derived, judging.unavailable) {
            (Ok(keys), _) => Ok(TrustAnswer::SigningKeys(keys)),
            (Err(_), Some(unavailable)) => Err(LogError::Unavailable(unavailable).into()),
            (Err(error), None) => Err(error.into()),
        }
    }

    /// The signing keys of a key by the changes that were read last: one for each of its secrets, the newest first.
    ///
    /// # Errors
    /// [`SigningKeysError`].
    pub fn signing_keys(
        &self,
        key: KeyId,
        scope: &SigningScope,
        now_seconds: u64,
    ) -> Result<Vec<Secret>, SigningKeysError> {
        scope.demand_near(now_seconds)?;
        let state = self.judging();
        let state = state.as_ref().ok_or(LogError::NotFounded)?;
        let record = state.keys.get(&key);
        // The key of callers without a key signs nothing.
        let record = record.filter(|record| !record.is_anonymous());
        let record = record.ok_or(SigningKeysError::Unknown { key })?;
        match record.revoked_seconds {
            None => Ok(record.signing_keys(scope)),
            Some(_) => Err(SigningKeysError::Revoked { key }),
        }
    }
}
