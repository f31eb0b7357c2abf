//! The questions of a run: one function per case.

pub(super) mod away;
mod conditions;
mod listings;
mod repeats;

use super::operation::{Condition, ShownOperation};
use super::run::{Client, Observation, Run};
use super::{Plan, Verdict};
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Writers that the gate of 32 has.
const GATE: usize = 32;

/// A case of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Create, create again, replace, replace a version that is gone.
    FourWrites,
    /// The ETag of a version in the answer to its write, of GET and of HEAD.
    Etags,
    /// N writers create one object.
    Create,
    /// N writers replace one version.
    Replace,
    /// 32 writers create, and replace one version, over two endpoints.
    Gate,
    /// Deletions of a version, some of them of one that is gone.
    ConditionalDelete,
    /// A request with its id is sent again.
    Retry,
    /// Uploads in parts are completed at once; one is completed twice.
    Completion,
    /// Writers, deletions and readers at all endpoints.
    ReadAfterWrite,
    /// Listings at all endpoints after writes and deletions.
    ListAfterWrite,
    /// Listings in small pages.
    Pages,
    /// Conditional writes while a minority of the servers is away.
    MinorityAway,
    /// Conditional writes while no quorum is left, so that objects can be neither read nor written.
    QuorumAway,
}

impl Case {
    /// All of them, in the order in which they run.
    pub const ALL: [Case; 13] = [
        Case::FourWrites,
        Case::Etags,
        Case::Create,
        Case::Replace,
        Case::Gate,
        Case::ConditionalDelete,
        Case::Retry,
        Case::Completion,
        Case::ReadAfterWrite,
        Case::ListAfterWrite,
        Case::Pages,
        Case::MinorityAway,
        Case::QuorumAway,
    ];

    /// Its name in reports, and in keys.
    pub fn name(self) -> &'static str {
        match self {
            Case::FourWrites => "four-writes",
            Case::Etags => "etags",
            Case::Create => "create-if-absent",
            Case::Replace => "compare-and-set",
            Case::Gate => "32-writers",
            Case::ConditionalDelete => "conditional-delete",
            Case::Retry => "retry",
            Case::Completion => "completion",
            Case::ReadAfterWrite => "read-after-write",
            Case::ListAfterWrite => "list-after-write",
            Case::Pages => "listing-pages",
            Case::MinorityAway => "minority-away",
            Case::QuorumAway => "quorum-away",
        }
    }

    /// The question to the store, in one sentence.
    pub fn question(self) -> &'static str {
        match self {
            Case::FourWrites => {
                "a create, a second create, a replacement, a replacement of a version that is gone: the second and the fourth are refused"
            }
            Case::Etags => "the answer to a write, GET, HEAD and a listing name one ETag",
            Case::Create => "of N writers with If-None-Match: * on one key one wins",
            Case::Replace => {
                "of N writers with If-Match on one version one wins, round after round"
            }
            Case::Gate => "of 32 writers on one key, and then of 32 on one version, one wins",
            Case::ConditionalDelete => {
                "a deletion with If-Match removes that version alone, and has one winner with writers of it"
            }
            Case::Retry => {
                "a request with one amz-sdk-invocation-id that is sent again is answered as one write, and is never applied again"
            }
            Case::Completion => {
                "of N completions with If-None-Match: * one wins; an upload that is completed twice is written once"
            }
            Case::ReadAfterWrite => {
                "GET and HEAD at any endpoint see each write and deletion that ended before"
            }
            Case::ListAfterWrite => {
                "a listing at any endpoint shows each write and deletion that ended before"
            }
            Case::Pages => "pages of a listing show each key once, in order, also after a key",
            Case::MinorityAway => {
                "conditional writes have one winner while a minority of the servers is away"
            }
            Case::QuorumAway => {
                "conditional writes have one winner although no quorum is there for a while"
            }
        }
    }

    /// Demands that the case can be drawn with this plan.
    ///
    /// # Errors
    /// A sentence: what is missing.
    pub(super) fn is_possible(self, plan: &Plan) -> Result<(), &'static str> {
        match self {
            Case::MinorityAway if plan.minority_away.is_none() => {
                Err("--minority-away COMMAND and --back COMMAND say how servers go and come back")
            }
            Case::QuorumAway if plan.quorum_away.is_none() => {
                Err("--quorum-away COMMAND and --back COMMAND say how servers go and come back")
            }
            _ => Ok(()),
        }
    }
}

/// Something that a case found beside the history: an answer that contradicts another one.
pub(super) struct Claim {
    pub(super) what: String,
    pub(super) operations: Vec<ShownOperation>,
}

/// Sentences of a case beside its operations.
#[derive(Default)]
pub(super) struct Remarks {
    pub(super) claims: Vec<Claim>,
    /// Verdicts that are not in the history.
    pub(super) verdict: Option<(Verdict, String)>,
    /// A sentence for people.
    pub(super) note: Option<String>,
}

/// Draws a case.
///
/// # Errors
/// A sentence: the case could not be drawn.
pub(super) async fn draw(case: Case, run: &Arc<Run>, plan: &Plan) -> Result<Remarks, String> {
    match case {
        Case::FourWrites => Ok(conditions::four_writes(run).await),
        Case::Etags => Ok(conditions::etags(run).await),
        Case::Create => Ok(conditions::create(run, case, plan.writers, plan.rounds).await),
        Case::Replace => Ok(conditions::replace(run, case, plan.writers, plan.rounds).await),
        Case::Gate => Ok(conditions::gate(run, GATE).await),
        Case::ConditionalDelete => Ok(conditions::delete(run, plan.writers, plan.rounds).await),
        Case::Retry => Ok(repeats::retry(run).await),
        Case::Completion => Ok(repeats::completion(run, plan.writers).await),
        Case::ReadAfterWrite => Ok(listings::read_after_write(run, plan.writers).await),
        Case::ListAfterWrite => Ok(listings::list_after_write(run, plan.writers).await),
        Case::Pages => Ok(listings::pages(run).await),
        Case::MinorityAway | Case::QuorumAway => away::away(run, case, plan).await,
    }
}

/// Writers of one object that begin at one moment, each at the next endpoint.
async fn race(run: &Arc<Run>, key: &str, writers: usize, condition: &Condition) {
    let write = |run: Arc<Run>, client: Client, key: String, condition: Condition| async move {
        run.put(client, &key, condition).await;
    };
    let all =
        |run: &Arc<Run>, client| write(run.clone(), client, key.to_owned(), condition.clone());
    together(run, writers, all).await;
}

/// Does something by several clients that begin at one moment.
async fn together<F>(run: &Arc<Run>, clients: usize, each: impl Fn(&Arc<Run>, Client) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(clients));
    let mut tasks = JoinSet::new();
    for client in run.clients(clients) {
        let (barrier, work) = (barrier.clone(), each(run, client));
        tasks.spawn(async move {
            barrier.wait().await;
            work.await;
        });
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Reads an object at each endpoint. Returns the observation of the last one.
async fn read_everywhere(run: &Run, key: &str) -> Observation {
    let mut last = Observation::Nothing;
    for client in run.clients(run.endpoints()) {
        last = run.get(client, key).await;
    }
    last
}
