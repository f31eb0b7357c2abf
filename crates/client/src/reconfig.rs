//! Changing servers, `[n,k]` and algorithm of a domain while clients read and write.
//!
//! A change is relative to the end of the domain's sequence as it is when the change is begun. It may take any time, and
//! goes on as long as it gets on; it ends with an error when none of its calls was answered by a quorum for as long as the
//! client's timeout. Whatever happens to whoever runs it, reads and writes go on, and anybody can resume it.

use crate::choice::InvalidChoice;
use crate::client::{self, STATUS_PATIENCE};
use crate::cluster::{ConfigurationInfo, Health, Names};
use crate::domain::{About, Domain};
use crate::error::{Asked, Error, NoQuorum, Operation};
use crate::known::Session;
use crate::metrics::{Counted, Metrics, counted};
use crate::{Dap, ServerId};
use areo_core::config::{Configuration, Descriptor};
use areo_core::dap;
use areo_core::dsm::large;
use areo_core::gather;
use areo_core::limits;
use areo_core::manager::reconfiguration;
use areo_core::message::{ListEntry, ListRequest, Request};
use areo_core::object::{Kind, Name};
use areo_core::reconfig::ares;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use areo_core::reconfig::ares::LeaveOff;
pub use areo_core::reconfig::transfer::Progress;
use change::wanted;
pub use change::{Change, DapKind};

mod change;
mod left;

#[cfg(test)]
mod tests;

/// Pages of the listing by which objects are counted, of 1000 each; of a larger domain it is said that there are more.
const COUNTED_PAGES: usize = 1000;

/// What a change would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The last configuration, which is to be replaced.
    pub old: ConfigurationInfo,
    /// The one that is to come.
    pub new: ConfigurationInfo,
    /// They are the same, but for their places.
    pub unchanged: bool,
    /// Pending configurations that somebody installs, or left; the last one is `old`. They are finished first.
    pub pending: Vec<ConfigurationInfo>,
    /// Servers of the new configuration that do not serve, with the reason.
    pub unreachable: Vec<(String, String)>,
    /// Objects and blocks of files that have to be moved, by a listing; without those that were deleted, and without the blocks
    /// of large objects, which are counted as one object each.
    pub objects: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Bytes of the elements that the new configuration makes of them, for all servers together.
    pub element_bytes: u64,
    /// Bytes of those elements that have to be sent, because their servers hold nothing that they could be made of.
    pub sent_bytes: u64,
    /// There are more objects than were listed.
    pub more: bool,
}

/// One configuration of a domain's sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceEntry {
    /// Which.
    pub configuration: ConfigurationInfo,
    /// It has the state of its predecessors; otherwise it is pending.
    pub is_final: bool,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconfigured {
    /// It is done.
    Installed(ConfigurationInfo),
    /// The domain has this configuration already; nothing was done.
    Unchanged(ConfigurationInfo),
    /// Another change was decided for the place; it is done now.
    Lost(ConfigurationInfo),
    /// Others went on meanwhile, to this configuration.
    Superseded(ConfigurationInfo),
}

/// A change that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconfigError {
    /// No such configuration can be, or should.
    Choice {
        /// Why.
        error: InvalidChoice,
    },
    /// Servers of the new configuration do not serve; nothing was done.
    Unreachable {
        /// The domain.
        domain: String,
        /// Their names, and why.
        servers: Vec<(String, String)>,
    },
    /// No quorum, before anybody could see anything of the change: the domain is as it was.
    NotBegun {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// No quorum. The change may be decided and pending then: reads and writes go on, anybody can resume it.
    Pending {
        /// What was tried, and what each server did.
        call: Box<NoQuorum>,
    },
    /// Servers refused this client, or what was decided cannot be read.
    Other {
        /// Why.
        error: Error,
    },
}

impl fmt::Display for ReconfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReconfigError::Choice { error } => error.fmt(f),
            ReconfigError::Unreachable { domain, servers } => {
                let list = |(name, reason): &(String, String)| format!("{name} {reason}");
                let servers: Vec<String> = servers.iter().map(list).collect();
                write!(
                    f,
                    "'{domain}' would have servers that do not serve ({}); nothing was done: start them, choose others, or insist (--force)",
                    servers.join(", ")
                )
            }
            ReconfigError::NotBegun { call } => write!(f, "{call}; the domain is as it was"),
            // It is not for others to go on with.
            ReconfigError::Pending { call } if call.obstacle.is_some() => {
                write!(f, "{call}; the change may be pending")
            }
            ReconfigError::Pending { call } => write!(
                f,
                "{call}; the change may be pending: reads and writes go on, and anybody can resume it"
            ),
            ReconfigError::Other { error } => error.fmt(f),
        }
    }
}

impl std::error::Error for ReconfigError {}

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
    /// What the change would do. Asks, and changes nothing.
    ///
    /// # Errors
    /// [`ReconfigError`], but for [`ReconfigError::Pending`].
    pub async fn plan(&self, change: &Change) -> Result<Plan, ReconfigError> {
        let change = change.clone();
        self.work(move |work| async move { work.plan(&change).await })
            .await
    }

    /// Brings the domain to another configuration while clients read and write. `progress` is told what goes on, on the
    /// client's own thread: it must not wait for anything.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn reconfigure(
        &self,
        change: &Change,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Reconfigured, ReconfigError> {
        let change = change.clone();
        let progress = counting(self.metrics(), progress);
        counted!(
            self.metrics(),
            Counted::Reconfigure,
            self.work(move |work| async move { work.reconfigure(&change, &progress).await })
        )
    }

    /// Finishes what somebody left pending, and returns the configuration that is final by then; `None` if nothing is
    /// pending.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn resume(
        &self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<Option<ConfigurationInfo>, ReconfigError> {
        let progress = counting(self.metrics(), progress);
        counted!(
            self.metrics(),
            Counted::Reconfigure,
            self.work(move |work| async move { work.resume(&progress).await })
        )
    }

    /// The domain's configurations from the last final one on. Those before it are superseded.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Unauthorised`].
    pub async fn sequence(&self) -> Result<Vec<SequenceEntry>, Error> {
        self.work(|work| async move {
            let path = work.path().await?;
            let names = work.names(&path).await;
            let entry = |(position, c): (usize, &Arc<Configuration>)| SequenceEntry {
                configuration: names.configuration(c),
                is_final: position == 0,
            };
            Ok(path.iter().enumerate().map(entry).collect())
        })
        .await
    }
}

/// The same, counted.
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

/// One piece of work on a domain's sequence, on the network thread.
pub(crate) struct Work {
    pub(crate) session: Session,
    pub(crate) about: Arc<About>,
    /// How long it may go on without getting on.
    pub(crate) patience: Duration,
}

/// A change that can be made.
struct Chosen {
    /// The sequence as it is.
    path: Vec<Arc<Configuration>>,
    new: Arc<Configuration>,
    unchanged: bool,
    /// Servers of the new one that do not serve.
    unreachable: Vec<(String, String)>,
}

/// Adds one object to what there is to move.
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

impl Work {
    async fn path(&self) -> Result<Vec<Arc<Configuration>>, Error> {
        let known = self.about.known();
        let path = reconfiguration::path(&self.session.client, known).await;
        path.map_err(|failed| {
            let asked = self.asked(Operation::ReadSequence);
            self.session.not_applied(&asked, &failed)
        })
    }

    async fn names(&self, path: &[Arc<Configuration>]) -> Arc<Names> {
        client::find_members(&self.session, path).await;
        self.session.known.names()
    }

    async fn plan(&self, change: &Change) -> Result<Plan, ReconfigError> {
        let chosen = self.choose(change).await?;
        if !change.force {
            self.check(&chosen)?;
        }
        let names = self.names(&chosen.path).await;
        let old = chosen.path.last().expect("a sequence has an end");
        let pending = chosen.path[1..].iter();
        let mut plan = Plan {
            old: names.configuration(old),
            new: names.configuration(&chosen.new),
            unchanged: chosen.unchanged,
            pending: pending.map(|c| names.configuration(c)).collect(),
            unreachable: chosen.unreachable,
            objects: 0,
            bytes: 0,
            element_bytes: 0,
            sent_bytes: 0,
            more: false,
        };
        self.count((old, &chosen.new), &mut plan).await?;
        Ok(plan)
    }

    /// Counts what there is to move: objects, and blocks of files. Those of large objects are counted with their objects, whose
    /// length is theirs.
    async fn count(
        &self,
        between: (&Configuration, &Configuration),
        plan: &mut Plan,
    ) -> Result<(), Error> {
        let (mut kinds, mut after) = (
            [Kind::User, Kind::Genesis, Kind::Block].into_iter(),
            String::new(),
        );
        let mut kind = kinds.next();
        for _ in 0..COUNTED_PAGES {
            let Some(counted) = kind else { return Ok(()) };
            let request = ListRequest {
                kind: counted,
                prefix: String::new(),
                after: std::mem::take(&mut after),
                limit: limits::PAGE_ENTRIES as u16,
            };
            let domain = self.session.client.domain(self.about.known());
            let page = domain.list(&request).await;
            let page = page.map_err(|failed| {
                let asked = self.asked(Operation::List);
                self.session.not_applied(&asked, &failed)
            })?;
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
    async fn choose(&self, change: &Change) -> Result<Chosen, ReconfigError> {
        let names = self.session.servers(Operation::Reconfigure).await?;
        let path = self.path().await?;
        let last = path.last().expect("a sequence has an end");
        if last.dap() == Dap::Removed {
            return Err(self.removed());
        }
        let new = wanted(change, last, &names)?;
        let unchanged = is_same_but_for_index(last, &new);
        let unreachable = match unchanged {
            true => Vec::new(),
            false => self.unreachable(&new, &names).await,
        };
        Ok(Chosen {
            path,
            new,
            unchanged,
            unreachable,
        })
    }

    /// Members that do not serve at present, and why.
    async fn unreachable(&self, c: &Configuration, names: &Names) -> Vec<(String, String)> {
        let env = self.session.within(self.patience.min(STATUS_PATIENCE)).env;
        let replies = gather::survey(&env, c.members(), Request::Status).await;
        let unreachable = |(server, reply): (&ServerId, _)| {
            let reason = match client::health(&self.session, *server, reply) {
                Health::Answered(status) if status.serving => return None,
                Health::Answered(_) => "starting".into(),
                Health::Unreachable { reason } => reason,
            };
            Some((names.name(*server), reason))
        };
        let members = c.members().iter().zip(replies);
        members.filter_map(unreachable).collect()
    }

    fn check(&self, chosen: &Chosen) -> Result<(), ReconfigError> {
        match chosen.unreachable.is_empty() {
            true => Ok(()),
            false => Err(ReconfigError::Unreachable {
                domain: self.about.name.clone(),
                servers: chosen.unreachable.clone(),
            }),
        }
    }

    async fn reconfigure(
        &self,
        change: &Change,
        progress: &dyn Fn(Progress),
    ) -> Result<Reconfigured, ReconfigError> {
        let chosen = self.choose(change).await?;
        if !change.force {
            self.check(&chosen)?;
        }
        let Chosen { path, new, .. } = chosen;
        let (root, known) = (&self.session.known.root, &path[0]);
        let wanted = new.descriptor();
        let done =
            reconfiguration::reconfigure(&self.session.client, root, known, wanted, progress).await;
        let done = done.map_err(|error| self.failed(error))?;
        Ok(self.told(&done).await)
    }

    async fn told(&self, done: &ares::Reconfigured) -> Reconfigured {
        let (ares::Reconfigured::Installed(c)
        | ares::Reconfigured::Unchanged(c)
        | ares::Reconfigured::Lost(c)
        | ares::Reconfigured::Superseded(c)) = done;
        let names = self.names(std::slice::from_ref(c)).await;
        let info = names.configuration(c);
        match done {
            ares::Reconfigured::Installed(_) => Reconfigured::Installed(info),
            ares::Reconfigured::Unchanged(_) => Reconfigured::Unchanged(info),
            ares::Reconfigured::Lost(_) => Reconfigured::Lost(info),
            ares::Reconfigured::Superseded(_) => Reconfigured::Superseded(info),
        }
    }

    async fn resume(
        &self,
        progress: &dyn Fn(Progress),
    ) -> Result<Option<ConfigurationInfo>, ReconfigError> {
        let path = self.path().await?;
        let root = &self.session.known.root;
        let resumed = reconfiguration::resume(&self.session.client, root, &path[0], progress).await;
        let resumed = resumed.map_err(|error| self.failed(error))?;
        let Some(c) = resumed else {
            return Ok(None);
        };
        let names = self.names(std::slice::from_ref(&c)).await;
        Ok(Some(names.configuration(&c)))
    }

    fn failed(&self, error: ares::ReconfigError) -> ReconfigError {
        let asked = self.asked(Operation::Reconfigure);
        match error {
            ares::ReconfigError::Removed => self.removed(),
            ares::ReconfigError::Invalid(error) => InvalidChoice::InvalidShape { error }.into(),
            ares::ReconfigError::Decided(error) => client::later_version(&error).into(),
            ares::ReconfigError::NotBegun(failed) => {
                self.session.not_applied(&asked, &failed).into()
            }
            ares::ReconfigError::Undecided(undecided) => Error::Undecided {
                domain: self.about.name.clone(),
                undecided: Box::new(undecided),
            }
            .into(),
            ares::ReconfigError::Pending(failed) => self.session.unknown(&asked, &failed).into(),
        }
    }

    fn removed(&self) -> ReconfigError {
        let domain = self.about.name.clone();
        Error::Removed { domain }.into()
    }

    fn asked(&self, operation: Operation) -> Asked<'_> {
        let latest = self.about.latest(&self.session.client);
        Session::asked(operation, Some(&self.about.name), &latest, None)
    }
}

/// Members of the new configuration that have to be sent their element (`[X-17 adopted-elements]`).
fn needing(configurations: (&Configuration, &Configuration), name: &Name, length: u64) -> u64 {
    let needs = |position: &usize| {
        let kept = (length, false);
        !dap::is_adoptable(configurations, name, *position, kept)
    };
    (0..configurations.1.n()).filter(needs).count() as u64
}

fn is_same_but_for_index(c: &Configuration, other: &Configuration) -> bool {
    let moved = Descriptor {
        index: other.id().index,
        ..c.descriptor().clone()
    };
    moved == *other.descriptor()
}
