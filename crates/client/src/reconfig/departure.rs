//! Taking a server out of all domains that name it: another server takes its place, or a domain goes on with one less.
//!
//! Each domain is changed by itself, as by [`Domain::reconfigure`]. That the server is to go is remembered in the root domain
//! (`[X-36 leaving-server]`), so that it is not chosen where another one goes. Nothing else is written down: the configurations that
//! still name the server are left to do, so that any client can go on where another one stopped.
//!
//! Two clients may take out two servers at once, and one of them may have chosen the other's server before that was marked. Each
//! marks its server before it looks which domains name it, and looks at the marks after its change: one of them sees
//! the other's, and chooses again.

use super::{
    BoxedProgress, Progress, ReconfigError, UnreachableServer, counting, path, reconfigure, resume,
};
use crate::choice::{self, Change, InvalidChoice, wanted};
use crate::cluster::{ConfigurationInfo, Health, Names, ROOT_DOMAIN, ServerInfo, ZONE};
use crate::domain::Domain;
use crate::error::Error;
use crate::operation::Operation;
use crate::session::{Context, Deadline, KnownDomain, RunningJob, STATUS_PATIENCE};
use areo_core::config::{Configuration, Members, ServerId};
use areo_core::gather;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Domains that are asked at once which servers they name.
const DOMAINS_AT_ONCE: usize = 64;

/// The successor of a server that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Successor {
    /// The server of this name or id.
    Server(String),
    /// The given server; in a domain that it is a member of already another one, as with [`Successor::FreeOrNone`].
    Preferred(ServerId),
    /// A server that serves and is no member yet: of several the one that is in the fewest domains. A root domain that grows by itself
    /// may have all of them: it goes on as with [`Successor::FreeOrNone`].
    Free,
    /// A free server; where there is none, the domain goes on with one server less if it still tolerates a crash.
    FreeOrNone,
}

/// A domain that names a server which is to go.
#[derive(Clone, Debug)]
pub struct Departure {
    domain: Domain,
    server: ServerId,
    successor: Successor,
    step: Result<Step, Error>,
}

/// A step in one domain.
#[derive(Clone, Debug)]
struct Step {
    /// `None`: a pending change, which takes the server away, is to be finished.
    change: Option<Change>,
    old: ConfigurationInfo,
    new: ConfigurationInfo,
}

/// A planned departure without a handle of its domain.
pub(crate) struct PlannedDeparture {
    pub(crate) name: Option<String>,
    pub(crate) known: Arc<Configuration>,
    server: ServerId,
    successor: Successor,
    step: Result<Step, Error>,
}

impl PlannedDeparture {
    pub(crate) fn of(self, domain: Domain) -> Departure {
        Departure {
            domain,
            server: self.server,
            successor: self.successor,
            step: self.step,
        }
    }
}

impl Departure {
    /// The domain that the server leaves.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The configuration that names the server.
    ///
    /// # Errors
    /// The domain's configurations could not be read: it may name the server.
    pub fn old(&self) -> Result<&ConfigurationInfo, &Error> {
        self.step.as_ref().map(|step| &step.old)
    }

    /// The configuration that is to come.
    ///
    /// # Errors
    /// As [`Departure::old`].
    pub fn planned(&self) -> Result<&ConfigurationInfo, &Error> {
        self.step.as_ref().map(|step| &step.new)
    }

    /// The change that takes the server away. `None`: it is pending already, and is finished.
    pub fn change(&self) -> Option<&Change> {
        self.step.as_ref().ok()?.change.as_ref()
    }

    /// Takes the server out of the domain, and returns the domain's configuration by then. If another client has done it
    /// meanwhile, that is as good. `progress`: as with [`Domain::reconfigure`].
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn run(
        &self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ConfigurationInfo, ReconfigError> {
        let step = self.step.clone().map_err(ReconfigError::from)?;
        let left = self.run_telling(step, Box::new(progress));
        self.domain.operate(Operation::Reconfigure, "", left).await
    }

    fn run_telling(
        &self,
        step: Step,
        progress: BoxedProgress,
    ) -> RunningJob<Result<ConfigurationInfo, ReconfigError>> {
        let (server, successor) = (self.server, self.successor.clone());
        let progress = counting(self.domain.metrics(), progress);
        let work = move |context| async move {
            leave(&context, server, step.change, &successor, &progress).await
        };
        self.domain
            .run(Deadline::Idle, Operation::Reconfigure, None, work)
    }
}

/// Takes the server out, and its successor if that is to go by now: then another one comes in its place.
async fn leave(
    context: &Context,
    mut server: ServerId,
    mut change: Option<Change>,
    successor: &Successor,
    progress: &dyn Fn(Progress),
) -> Result<ConfigurationInfo, ReconfigError> {
    let is_chosen = !matches!(successor, Successor::Server(_));
    loop {
        if is_chosen && leaving_successor(context, change.as_ref()).await?.is_some() {
            change = chosen_again(context, server, successor).await?;
        }
        let left = leave_once(context, server, change.as_ref(), progress).await?;
        match leaving_successor(context, change.as_ref()).await? {
            Some(coming) if is_chosen && left.members.iter().any(|it| it.id == coming) => {
                (server, change) = (coming, chosen_again(context, coming, successor).await?);
            }
            _ => return Ok(left),
        }
    }
}

/// The server that comes by this change, if it is to go by now.
async fn leaving_successor(
    context: &Context,
    change: Option<&Change>,
) -> Result<Option<ServerId>, ReconfigError> {
    let Some(coming) = change.and_then(|it| it.add.first()) else {
        return Ok(None);
    };
    let names = context.servers().await?;
    let mut leaving = names.servers().filter(|it| it.is_leaving());
    let found = leaving.find(|it| it.id.to_string() == *coming);
    Ok(found.map(|it| it.id))
}

/// The change that takes the server out of this domain, as of now.
async fn chosen_again(
    context: &Context,
    server: ServerId,
    successor: &Successor,
) -> Result<Option<Change>, ReconfigError> {
    let names = context.servers().await?;
    let choosing = SuccessorChoice {
        serving: serving(context, &names).await,
        domains: BTreeMap::new(),
        leaving: server,
        names: &names,
        successor,
    };
    let step = choosing.step(context.domain.name(), &path(context).await?)?;
    Ok(step.and_then(|step| step.change))
}

async fn leave_once(
    context: &Context,
    server: ServerId,
    change: Option<&Change>,
    progress: &dyn Fn(Progress),
) -> Result<ConfigurationInfo, ReconfigError> {
    let mut failed = None;
    loop {
        let path = path(context).await?;
        let last = path.last().expect("a sequence has an end");
        if !path.iter().any(|c| is_member(c, server)) || last.dap().is_removal() {
            return Ok(context.names_of(&path).await.configuration(last));
        }
        let Some(change) = change.filter(|_| is_member(last, server)) else {
            return finish(context, last, progress).await;
        };
        if let Some(failed) = failed {
            return Err(failed);
        }
        failed = match reconfigure(context, change, progress).await {
            Ok(_) => None,
            // Another client may have come first: then nothing is left of the change, or that client's is to be finished.
            Err(error @ (ReconfigError::Choice { .. } | ReconfigError::Conflict { .. })) => {
                Some(error)
            }
            Err(error) => return Err(error),
        };
    }
}

/// Finishes the pending change that ends with `last`.
async fn finish(
    context: &Context,
    last: &Arc<Configuration>,
    progress: &dyn Fn(Progress),
) -> Result<ConfigurationInfo, ReconfigError> {
    if let Some(c) = resume(context, progress).await? {
        return Ok(c);
    }
    let names = context.names_of(std::slice::from_ref(last)).await;
    Ok(names.configuration(last))
}

fn is_member(c: &Configuration, server: ServerId) -> bool {
    c.position(server).is_some()
}

/// The steps after which no domain names the server; the root domain first.
///
/// # Errors
/// [`ReconfigError::Choice`], [`ReconfigError::Unreachable`] if it cannot be done in one of them: then it is begun in none.
pub(crate) async fn departures(
    context: &Context,
    domains: Vec<(String, Arc<Configuration>)>,
    server: &str,
    successor: &Successor,
) -> Result<Vec<PlannedDeparture>, ReconfigError> {
    let names = context.servers().await?;
    let sequences = sequences(context, domains).await;
    let leaving = leaving(server, &names, &sequences)?;
    if let Successor::Server(name) = successor {
        if choice::member(name, &names)?.id == leaving {
            let name = names.name(leaving);
            return Err(InvalidChoice::ReplacesItself { name }.into());
        }
        choice::coming(name, &names)?;
    }
    let choosing = SuccessorChoice {
        serving: serving(context, &names).await,
        domains: count(&sequences),
        leaving,
        names: &names,
        successor,
    };
    let mut planned = Vec::new();
    for Sequence { name, known, path } in sequences {
        let step = match path {
            Err(error) => Err(error),
            Ok(path) => match choosing.step(name.as_deref().unwrap_or(ROOT_DOMAIN), &path)? {
                Some(step) => Ok(step),
                None => continue,
            },
        };
        planned.push(PlannedDeparture {
            name,
            known,
            server: leaving,
            successor: successor.clone(),
            step,
        });
    }
    Ok(planned)
}

/// The server of this name or id, or a member that is in no directory (`[X-28 memory-replaced]`), by its id or the beginning of it.
pub(super) fn leaving(
    server: &str,
    names: &Names,
    sequences: &[Sequence],
) -> Result<ServerId, InvalidChoice> {
    let unknown = match choice::member(server, names) {
        Ok(record) => return Ok(record.id),
        Err(error @ InvalidChoice::UnknownServer { .. }) => error,
        Err(error) => return Err(error),
    };
    let paths = sequences.iter().filter_map(|it| it.path.as_ref().ok());
    let mut members = paths.flatten().flat_map(|c| c.members().iter().copied());
    let is_meant = |id: &ServerId| names.name(*id) == server || id.to_string() == server;
    members.find(is_meant).ok_or(unknown)
}

/// A domain with its configurations.
pub(super) struct Sequence {
    /// `None`: the root domain.
    name: Option<String>,
    known: Arc<Configuration>,
    path: Result<Vec<Arc<Configuration>>, Error>,
}

/// The root domain, which has no name here, and these.
pub(super) fn with_root(
    context: &Context,
    domains: Vec<(String, Arc<Configuration>)>,
) -> impl Iterator<Item = (Option<String>, Arc<Configuration>)> {
    let root = (None, context.latest());
    let others = domains.into_iter().map(|(name, c)| (Some(name), c));
    [root].into_iter().chain(others)
}

/// The configurations of the root domain and of these, from the last final one on.
pub(super) async fn sequences(
    context: &Context,
    domains: Vec<(String, Arc<Configuration>)>,
) -> Vec<Sequence> {
    let look = with_root(context, domains).map(async |(name, known)| {
        let domain = KnownDomain::new(name.clone(), known.clone());
        let path = path(&context.on(Arc::new(domain))).await;
        Sequence { name, known, path }
    });
    gather::join(DOMAINS_AT_ONCE, look).await
}

/// The servers that serve, as far as is known.
pub(super) async fn serving(context: &Context, names: &Names) -> BTreeSet<ServerId> {
    let servers: Members = names.servers().map(|record| record.id).collect();
    let patience = context.timeout().min(STATUS_PATIENCE);
    let health = context.health(&servers, patience).await;
    let serves = |(server, health): (&ServerId, Health)| match health {
        Health::Answered(status) if status.serving => Some(*server),
        Health::Answered(_) | Health::Unreachable { .. } => None,
    };
    servers.iter().zip(health).filter_map(serves).collect()
}

/// The number of domains that each server is a member of.
fn count(sequences: &[Sequence]) -> BTreeMap<ServerId, usize> {
    let mut domains = BTreeMap::new();
    let last = |it: &Sequence| it.path.as_ref().ok().and_then(|path| path.last().cloned());
    for c in sequences.iter().filter_map(last) {
        for member in c.members().iter() {
            *domains.entry(*member).or_default() += 1;
        }
    }
    domains
}

/// The knowledge by which successors are chosen.
struct SuccessorChoice<'a> {
    names: &'a Names,
    serving: BTreeSet<ServerId>,
    domains: BTreeMap<ServerId, usize>,
    leaving: ServerId,
    successor: &'a Successor,
}

impl SuccessorChoice<'_> {
    /// The step in the domain with these configurations, if one of them names the server.
    fn step(
        &self,
        domain: &str,
        path: &[Arc<Configuration>],
    ) -> Result<Option<Step>, ReconfigError> {
        let last = path.last().expect("a sequence has an end");
        let Some(named) = path.iter().find(|c| is_member(c, self.leaving)) else {
            return Ok(None);
        };
        if last.dap().is_removal() {
            return Ok(None);
        }
        let (change, new) = if is_member(last, self.leaving) {
            let (change, new) = self.choose(domain, last)?;
            self.check(domain, &new)?;
            (Some(change), new)
        } else {
            (None, last.clone())
        };
        Ok(Some(Step {
            change,
            old: self.names.configuration(named),
            new: self.names.configuration(&new),
        }))
    }

    fn choose(
        &self,
        domain: &str,
        last: &Arc<Configuration>,
    ) -> Result<(Change, Arc<Configuration>), InvalidChoice> {
        let with = |add: Vec<String>, others: &[ServerId]| {
            let removed = others.iter().chain([&self.leaving]);
            let change = Change {
                add,
                remove: removed.map(ServerId::to_string).collect(),
                // Members that are away stay members; a quorum was seen to serve.
                force: true,
                ..Change::default()
            };
            let new = wanted(&change, last, self.names)?;
            assert!(!is_member(&new, self.leaving), "a server that leaves goes");
            Ok((change, new))
        };
        if let Successor::Server(name) = self.successor {
            return with(vec![name.clone()], &[]);
        }
        if let Successor::Preferred(server) = self.successor
            && !is_member(last, *server)
            && !self.names.is_leaving(*server)
        {
            return with(vec![server.to_string()], &[]);
        }
        let mut free: Vec<ServerInfo> = self.names.sorted();
        free.retain(|it| self.serving.contains(&it.id) && !it.leaving && !is_member(last, it.id));
        free.sort_by_key(|it| {
            let domains = self.domains.get(&it.id).copied().unwrap_or_default();
            (it.is_to_empty(), self.neighbours(last, it), domains)
        });
        let mut chosen = free.iter().map(|it| with(vec![it.id.to_string()], &[]));
        if let Some(found) = chosen.find_map(Result::ok) {
            return Ok(found);
        }
        // The root domain grows by itself: its task may have just added every free server, so that one of them may be dropped again.
        let grows = domain == ROOT_DOMAIN && !last.descriptor().fixed;
        let fewer = match self.successor {
            Successor::Server(_) => None,
            Successor::Free if !grows => None,
            Successor::Free | Successor::FreeOrNone | Successor::Preferred(_) => {
                match with(Vec::new(), &self.also_dropped(domain, last)) {
                    Ok(found) => return Ok(found),
                    Err(error) => Some(Box::new(error)),
                }
            }
        };
        Err(InvalidChoice::NoFreeServer {
            server: self.names.name(self.leaving),
            domain: domain.into(),
            fewer,
        })
    }

    /// Members of this configuration that stand in the zone of the server, and stay.
    fn neighbours(&self, last: &Configuration, server: &ServerInfo) -> usize {
        let Some(zone) = server.zone() else { return 0 };
        let zone_of = |id: &ServerId| self.names.records().get(id)?.labels.get(ZONE);
        let others = last.members().iter().filter(|id| **id != self.leaving);
        others.filter(|id| zone_of(id) == Some(zone)).count()
    }

    /// The root domain goes from five members to three: of four as many may crash as of three, and fewer of them hold it.
    fn also_dropped(&self, domain: &str, last: &Configuration) -> Vec<ServerId> {
        if domain != ROOT_DOMAIN || last.n() != 5 || last.descriptor().fixed {
            return Vec::new();
        }
        let others = last.members().iter().filter(|id| **id != self.leaving);
        // One that is to go, or does not serve, if there is one.
        let worth = |id: &&ServerId| (!self.names.is_leaving(**id), self.serving.contains(*id));
        others
            .rev()
            .min_by_key(worth)
            .copied()
            .into_iter()
            .collect()
    }

    /// Refuses a successor that does not serve, and a configuration of which no quorum serves.
    fn check(&self, domain: &str, new: &Configuration) -> Result<(), ReconfigError> {
        let is_away = |server: &&ServerId| !self.serving.contains(server);
        let away: Vec<ServerId> = new.members().iter().filter(is_away).copied().collect();
        let successor = match self.successor {
            Successor::Server(name) => Some(choice::member(name, self.names)?.id),
            Successor::Preferred(server) => Some(*server),
            Successor::Free | Successor::FreeOrNone => None,
        };
        let is_lacked = successor.is_some_and(|successor| away.contains(&successor));
        if !is_lacked && new.n() - away.len() >= new.quorums().quorum() {
            return Ok(());
        }
        let unreachable = |server: ServerId| UnreachableServer {
            server: self.names.name(server),
            reason: "does not serve".into(),
        };
        Err(ReconfigError::Unreachable {
            domain: domain.into(),
            servers: away.into_iter().map(unreachable).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
