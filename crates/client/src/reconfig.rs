//! Changing servers, `[n,k]` and algorithm of a domain while clients read and write.
//!
//! A change is relative to the end of the domain's sequence as it is when the change is begun. It may take any time, and
//! goes on as long as it gets on; it ends with an error when none of its calls was answered by a quorum for as long as the
//! client's timeout. If the client that runs it dies, reads and writes go on, and any client can resume it.

use crate::choice::{Change, InvalidChoice, is_same_but_for_index, wanted};
use crate::cluster::{ConfigurationGraph, ConfigurationInfo, Edge, Health, Names, SequenceEntry};
use crate::domain::Domain;
use crate::error::{Error, LostObject, NoQuorum};
use crate::metrics::Metrics;
use crate::operation::Operation;
use crate::session::{Context, Deadline, RunningJob, STATUS_PATIENCE};
use areo_core::config::Configuration;
use areo_core::dap;
use areo_core::dsm::large;
use areo_core::message::{ListEntry, ListRequest};
use areo_core::object::{Kind, Name};
use areo_core::span::ErrorType;
use futures_util::future::BoxFuture;
use std::sync::Arc;

pub use areo_core::message::Transferred;
pub use areo_core::reconfig::transfer::Progress;
pub use conflict::Contradiction;
pub use departure::{Departure, Successor};
pub(crate) use departure::{PlannedDeparture, departures};
use failed::failed;
pub use forget::ForgetError;
pub(crate) use forget::{forget, mark_leaving};
pub use label::LabelError;
pub(crate) use label::label;
pub(crate) use level::finalize;
pub use level::{FinalizeError, LevelChange};
pub use plan::{Plan, UnreachableServer};
use run::{check, reconfigure};

mod conflict;
mod departure;
mod failed;
mod forget;
mod label;
mod left;
mod level;
mod plan;
mod run;

#[cfg(test)]
mod tests;

/// Pages of the listing by which objects are counted, of 1000 each; of a larger domain it is said that there are more.
const COUNTED_PAGES: usize = 1000;

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconfigOutcome {
    /// The change is made: this configuration is in use.
    Installed(ConfigurationInfo),
    /// The domain has this configuration already; nothing was done.
    Unchanged(ConfigurationInfo),
    /// It was done, and others went on from it meanwhile, to this configuration.
    Superseded(ConfigurationInfo),
    /// An experiment left it pending, as it wanted ([`crate::experimental`]). [`Domain::resume`] finishes it.
    LeftOff(ConfigurationInfo),
}

/// A change that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReconfigError {
    /// No such configuration can be, or should.
    #[error("{error}")]
    Choice {
        /// The reason why the change is refused.
        error: InvalidChoice,
    },
    /// Servers of the new configuration do not serve; nothing was done.
    #[error("'{domain}' would have servers that do not serve ({}); nothing was done: start them, choose others, or insist (--force)", listed(.servers))]
    Unreachable {
        /// Name of the domain that was to be changed.
        domain: String,
        /// The servers, each with the reason.
        servers: Vec<UnreachableServer>,
    },
    /// Another change came first, and the two contradict each other; nothing was done.
    #[error("another change of '{domain}' came first, to configuration {}, {}, and {about}; nothing was done: look at `areo domain show {domain}`, and say again what is to be different", .configuration.index, .configuration.shape)]
    Conflict {
        /// Name of the domain that was to be changed.
        domain: String,
        /// Its configuration by that other change.
        configuration: Box<ConfigurationInfo>,
        /// The subject of both changes.
        about: Contradiction,
    },
    /// No quorum, before any process could see the change: the domain is as it was.
    #[error("{call}; the domain is as it was")]
    NotBegun {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// No quorum. The change may be decided and pending then: reads and writes go on, any client can resume it.
    #[error("{call}; the change may be pending{}", who_resumes(.call))]
    Pending {
        /// The call, and the response of each server.
        call: Box<NoQuorum>,
    },
    /// Servers refused this client, or the decided configuration cannot be read.
    #[error("{error}")]
    Other {
        /// The error of the call.
        error: Error,
    },
}

fn listed(servers: &[UnreachableServer]) -> String {
    let list = |s: &UnreachableServer| format!("{} {}", s.server, s.reason);
    let servers: Vec<String> = servers.iter().map(list).collect();
    servers.join(", ")
}

fn who_resumes(call: &NoQuorum) -> &'static str {
    match call.obstacle {
        // It is not for others to go on with.
        Some(_) => "",
        None => ": reads and writes go on, and any client can resume it",
    }
}

impl ReconfigError {
    /// Objects that cannot be read any more, if that is why the change is pending: it can be finished once each of them is written over,
    /// removed, or left so ([`Domain::leave_unreadable`]).
    pub fn lost_objects(&self) -> &[LostObject] {
        match self {
            ReconfigError::Pending { call } => call.lost_objects(),
            _ => &[],
        }
    }
}

impl ErrorType for ReconfigError {
    fn error_type(&self) -> &'static str {
        match self {
            ReconfigError::Choice { .. } => "invalid",
            ReconfigError::Conflict { .. } => "conflict",
            ReconfigError::Unreachable { .. } | ReconfigError::NotBegun { .. } => "not_begun",
            ReconfigError::Pending { .. } => "pending",
            ReconfigError::Other { error } => error.error_type(),
        }
    }
}

impl From<InvalidChoice> for ReconfigError {
    fn from(error: InvalidChoice) -> ReconfigError {
        ReconfigError::Choice { error }
    }
}

impl From<Error> for ReconfigError {
    fn from(error: Error) -> ReconfigError {
        match error {
            Error::Unavailable { call } => ReconfigError::NotBegun { call },
            Error::Unknown { call } => ReconfigError::Pending { call },
            error => ReconfigError::Other { error },
        }
    }
}

impl Domain {
    /// The effect that the change would have. Asks, and changes nothing.
    ///
    /// # Errors
    /// [`ReconfigError`], but for [`ReconfigError::Pending`].
    pub fn plan<'a>(&'a self, change: &'a Change) -> BoxFuture<'a, Result<Plan, ReconfigError>> {
        Box::pin(async move {
            let change = change.clone();
            let plan = move |context| async move { plan(&context, &change).await };
            self.run(Deadline::Idle, Operation::Reconfigure, None, plan)
                .await
        })
    }

    /// Brings the domain to another configuration while clients read and write. Changes that other clients make at the same time are
    /// made in the same configuration if they go together; if another change is decided first, this one is
    /// made after it, unless the two contradict each other. `progress` is called with each step, on the
    /// client's own thread: it must not wait for anything.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn reconfigure(
        &self,
        change: &Change,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ReconfigOutcome, ReconfigError> {
        let made = self.reconfigure_telling(change.clone(), Box::new(progress));
        self.operate(Operation::Reconfigure, "", made).await
    }

    fn reconfigure_telling(
        &self,
        change: Change,
        progress: BoxedProgress,
    ) -> RunningJob<Result<ReconfigOutcome, ReconfigError>> {
        let progress = counting(self.metrics(), progress);
        let work = move |context| async move { reconfigure(&context, &change, &progress).await };
        self.run(Deadline::Idle, Operation::Reconfigure, None, work)
    }

    /// Finishes a change that another client left pending, and returns the configuration that is final by then; `None` if nothing is
    /// pending.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn resume(
        &self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Option<ConfigurationInfo>, ReconfigError> {
        let resumed = self.resume_telling(Box::new(progress));
        self.operate(Operation::Reconfigure, "", resumed).await
    }

    fn resume_telling(
        &self,
        progress: BoxedProgress,
    ) -> RunningJob<Result<Option<ConfigurationInfo>, ReconfigError>> {
        let progress = counting(self.metrics(), progress);
        let work = move |context| async move { resume(&context, &progress).await };
        self.run(Deadline::Idle, Operation::Reconfigure, None, work)
    }

    /// The domain's configurations from the last final one on. Those before it are superseded.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub fn sequence(&self) -> BoxFuture<'_, Result<Vec<SequenceEntry>, Error>> {
        Box::pin(async move {
            let read = |context: Context| async move {
                let path = path(&context).await?;
                Ok(entries(&context, &path).await)
            };
            self.run(Deadline::Idle, Operation::ReadSequence, None, read)
                .await
        })
    }

    /// The configurations of [`Domain::sequence`], and which of them is known to come after which. In a domain that is reconfigured over a lattice
    /// several may come after one.
    ///
    /// # Errors
    /// As [`Domain::sequence`].
    pub fn graph(&self) -> BoxFuture<'_, Result<ConfigurationGraph, Error>> {
        Box::pin(async move {
            let read = |context: Context| async move {
                let failed = |failed| context.during(Operation::ReadSequence).not_applied(&failed);
                let graph = context.handle().graph().await.map_err(failed)?;
                let all = graph.iter().map(|node| node.configuration.clone());
                let nodes = entries(&context, &all.collect::<Vec<_>>()).await;
                let edges = graph.iter().enumerate().flat_map(|(from, node)| {
                    let after = node.successors.iter();
                    after.map(move |to| Edge { from, to: *to })
                });
                let edges = edges.collect();
                Ok(ConfigurationGraph { nodes, edges })
            };
            self.run(Deadline::Idle, Operation::ReadSequence, None, read)
                .await
        })
    }
}

/// A path as users see it.
async fn entries(context: &Context, path: &[Arc<Configuration>]) -> Vec<SequenceEntry> {
    let names = context.names_of(path).await;
    let entry = |(position, c): (usize, &Arc<Configuration>)| SequenceEntry {
        configuration: names.configuration(c),
        is_final: position == 0,
    };
    path.iter().enumerate().map(entry).collect()
}

/// The caller's function that learns of each step.
pub(crate) type BoxedProgress = Box<dyn Fn(Progress) + Send>;

/// Counts the transfers of a change, and passes its progress on.
fn counting(
    metrics: &Metrics,
    progress: impl Fn(Progress) + Send + 'static,
) -> impl Fn(Progress) + Send + 'static {
    let metrics = metrics.clone();
    move |step| {
        metrics.reconfiguring(step);
        progress(step);
    }
}

/// A change that can be made.
struct PlannedChange {
    /// The sequence as it is.
    path: Vec<Arc<Configuration>>,
    new: Arc<Configuration>,
    unchanged: bool,
    /// Servers of the new one that do not serve.
    unreachable: Vec<UnreachableServer>,
}

/// Adds one object to the amount to move.
fn add(
    kind: Kind,
    entry: &ListEntry,
    (old, new): (&Configuration, &Configuration),
    plan: &mut Plan,
) {
    plan.objects += 1;
    plan.bytes += entry.length;
    let name = Name::new(kind, &entry.key).expect("a server listed it");
    let each = dap::element_bytes(new, entry.length);
    plan.element_bytes += each * new.n() as u64;
    plan.sent_bytes += each * needing((old, new), &name, entry.length);
}

async fn path(context: &Context) -> Result<Vec<Arc<Configuration>>, Error> {
    let path = context.handle().path().await;
    let failed = |failed| context.during(Operation::ReadSequence).not_applied(&failed);
    path.map_err(failed)
}

async fn plan(context: &Context, change: &Change) -> Result<Plan, ReconfigError> {
    let chosen = choose(context, change).await?;
    check(context, change, &chosen.unreachable)?;
    let names = context.names_of(&chosen.path).await;
    let old = chosen.path.last().expect("a sequence has an end");
    let pending = chosen.path[1..].iter();
    let mut plan = Plan {
        old: names.configuration(old),
        new: names.configuration(&chosen.new),
        unchanged: chosen.unchanged,
        pending: pending.map(|c| names.configuration(c)).collect(),
        unreachable: chosen.unreachable,
        spare_now: plan::spare_now(context, old).await,
        objects: 0,
        bytes: 0,
        element_bytes: 0,
        sent_bytes: 0,
        more: false,
    };
    count(context, (old, &chosen.new), &mut plan).await?;
    Ok(plan)
}

/// Counts the amount to move: objects, and blocks of files. Blocks of large objects are counted with their objects,
/// which have their length.
async fn count(
    context: &Context,
    between: (&Configuration, &Configuration),
    plan: &mut Plan,
) -> Result<(), Error> {
    let mut kinds = [Kind::User, Kind::Upload, Kind::Genesis, Kind::Block].into_iter();
    let (mut kind, mut after) = (kinds.next(), String::new());
    for _ in 0..COUNTED_PAGES {
        let Some(counted) = kind else { return Ok(()) };
        let request = ListRequest {
            after: std::mem::take(&mut after),
            ..ListRequest::new(counted, "")
        };
        let page = context.handle().list(&request).await;
        let page = page.map_err(|failed| context.during(Operation::List).not_applied(&failed))?;
        let of_large =
            |entry: &&ListEntry| counted == Kind::Block && entry.key.starts_with(large::PREFIX);
        for entry in page.entries.iter().filter(|entry| !of_large(entry)) {
            add(counted, entry, between, plan);
        }
        match page.next {
            Some(next) => after = next,
            None => kind = kinds.next(),
        }
    }
    plan.more = kind.is_some();
    Ok(())
}

/// The configuration that the change makes of the last one.
async fn choose(context: &Context, change: &Change) -> Result<PlannedChange, ReconfigError> {
    let names = context.servers().await?;
    let path = path(context).await?;
    let last = path.last().expect("a sequence has an end");
    if last.dap().is_removal() {
        return Err(context.removed().into());
    }
    let new = wanted(change, last, &names)?;
    let unchanged = is_same_but_for_index(last, &new);
    let unreachable = if unchanged {
        Vec::new()
    } else {
        unreachable(context, &new, &names).await
    };
    Ok(PlannedChange {
        path,
        new,
        unchanged,
        unreachable,
    })
}

/// Members that do not serve at present, and why.
async fn unreachable(
    context: &Context,
    c: &Configuration,
    names: &Names,
) -> Vec<UnreachableServer> {
    let patience = context.timeout().min(STATUS_PATIENCE);
    let health = context.health(c.members(), patience).await;
    let unreachable = |(server, health): (_, Health)| {
        let reason = match health {
            Health::Answered(status) if status.serving => return None,
            Health::Answered(_) => "starting".into(),
            Health::Unreachable { reason } => reason,
        };
        let server = names.name(server);
        Some(UnreachableServer { server, reason })
    };
    let members = c.members().iter().copied();
    members.zip(health).filter_map(unreachable).collect()
}

async fn resume(
    context: &Context,
    progress: &dyn Fn(Progress),
) -> Result<Option<ConfigurationInfo>, ReconfigError> {
    let path = path(context).await?;
    let root = context.root();
    let resumed = context.client.domain(&path[0]).resume(root, progress).await;
    let c = match resumed {
        Ok(Some(c)) => c,
        Ok(None) => return Ok(None),
        Err(error) => return Err(failed(context, error).await),
    };
    let names = context.names_of(std::slice::from_ref(&c)).await;
    Ok(Some(names.configuration(&c)))
}

/// Members of the new configuration that have to be sent their element (`[X-17 adopted-elements]`).
fn needing(configurations: (&Configuration, &Configuration), name: &Name, length: u64) -> u64 {
    let needs = |position: &usize| {
        let kept = (length, false);
        !dap::is_adoptable(configurations, name, *position, kept)
    };
    (0..configurations.1.n()).filter(needs).count() as u64
}
