//! Who can be asked to decide outside the cluster. Whoever knows a way there says so here; without that, nothing is decided
//! there, and the members of configurations decide as ever.

use areo_core::config::Decider;
use areo_core::error::Undecided;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

/// What is to be decided.
#[derive(Clone, Debug)]
pub struct Question {
    /// By whom.
    pub service: Decider,
    /// Under which key.
    pub key: String,
    /// What it is to be, if nothing is decided there yet.
    pub proposal: Bytes,
    /// How long the answer is waited for.
    pub timeout: Duration,
}

/// What was decided.
pub type Decision = Pin<Box<dyn Future<Output = Result<Bytes, Undecided>>>>;

static WAY: OnceLock<fn(Question) -> Decision> = OnceLock::new();

/// From now on questions are asked by `way`. The first call counts.
pub fn set_way(way: fn(Question) -> Decision) {
    WAY.get_or_init(|| way);
}

pub(crate) async fn decide(question: Question) -> Result<Bytes, Undecided> {
    match WAY.get() {
        Some(way) => way(question).await,
        None => Err(Undecided {
            service: question.service.to_string(),
            reason: "this program has no way to services outside".into(),
            handed_over: false,
        }),
    }
}
