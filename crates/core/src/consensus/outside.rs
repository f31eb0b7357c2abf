//! Consensus outside: a service that decides for everybody who asks, by create-if-absent on a key for each domain and index
//! (Ares II, `docs/spec` 3.1). Which service, is said by the configuration whose successor is decided
//! (`[X-16 decider-in-descriptor]`), so that two reconfigurers never ask different ones.
//!
//! The service knows nothing of final pointers: it decides an index once, for ever, and whoever proposes it late is told what
//! was decided. Announcing that to the members then shows what became of it, as with Paxos.
//!
//! | | rounds |
//! |---|---|
//! | [`propose`] | 1 to the service, instead of 2 to the members |

use crate::config::{Configuration, ConfigurationId, Decider};
use crate::env::Env;
use crate::error::DeciderError;
use crate::gather::Visit;
use bytes::Bytes;

/// The key under which the service keeps the successor of this configuration. Ids of domains are random, so that
/// clusters can share a service.
pub fn key_after(c: &ConfigurationId) -> String {
    let ConfigurationId {
        domain,
        partition,
        index,
        ..
    } = c;
    let next = index
        .checked_add(1)
        .expect("fewer than 2^32 configurations");
    format!("/areo/{:032x}/{partition}/{next}", domain.0)
}

/// Proposes an encoded configuration as the successor of the visited one, and returns the decision.
///
/// # Errors
/// [`DeciderError`] says whether it may be decided all the same.
pub async fn propose<E: Env>(
    env: &E,
    at: &Visit,
    service: &Decider,
    proposal: &Bytes,
) -> Result<Bytes, DeciderError> {
    let id = at.c().id();
    let key = key_after(&id);
    let decided = env.decide_outside(service, &key, proposal).await?;
    // Others may write there, too.
    let is_next = |c: &Configuration| c.id().domain == id.domain && c.id().index == id.index + 1;
    match Configuration::decode(decided.clone()) {
        Ok(c) if !is_next(&c) => Err(DeciderError {
            service: service.to_string(),
            reason: format!("what is there under '{key}' cannot come next"),
            handed_over: false,
        }),
        // What cannot be read is told by whoever needs it.
        _ => Ok(decided),
    }
}
