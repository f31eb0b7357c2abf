//! The way to services outside that decide which configuration of a domain comes next: etcd.

use areo_client::{Decider, DeciderError, Decision, Question};
use areo_etcd::{Etcd, EtcdError};
use bytes::Bytes;
use std::time::Duration;

/// The way there, for clients.
pub(crate) fn way(question: Question) -> Decision {
    Box::pin(decide(question))
}

/// Asks one member after the other: the question may be asked any number of times.
async fn decide(question: Question) -> Result<Bytes, DeciderError> {
    let service = question.service.to_string();
    let Decider::Etcd { endpoints } = &question.service else {
        unreachable!("the members of a configuration are not outside")
    };
    let patience = question.timeout / u32::try_from(endpoints.len()).unwrap_or(u32::MAX);
    let (mut reasons, mut handed_over) = (Vec::new(), false);
    for endpoint in endpoints {
        match ask(endpoint, &question, patience).await {
            Ok(decided) => return Ok(decided),
            Err((error, asked)) => {
                handed_over |= asked;
                reasons.push(format!("{endpoint}: {error}"));
            }
        }
    }
    Err(DeciderError {
        service,
        reason: reasons.join("; "),
        handed_over,
    })
}

/// Asks one endpoint. The second part of an error is true if the question was sent, so that it may have had its
/// effect.
async fn ask(
    endpoint: &str,
    question: &Question,
    patience: Duration,
) -> Result<Bytes, (EtcdError, bool)> {
    let etcd = Etcd::connect(&format!("http://{endpoint}"), patience).await;
    let etcd = etcd.map_err(|error| (error, false))?;
    let decided = etcd.create(&question.key, question.proposal.clone()).await;
    decided.map_err(|error| {
        let asked = matches!(error, EtcdError::Unreachable { .. });
        (error, asked)
    })
}
