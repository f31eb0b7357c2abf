//! Reconfigurations: of the two domains and of the root domain, by clients, as operations of the history.

use super::operation::One;
use super::{DOMAINS, End, MOVING, Workload, conditional, configuration, options_of};
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::history::{self, Operation, OperationEnd};
use crate::world::server_of;
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dap;
use areo_core::reconfig::change::Change;
use areo_core::reconfig::transfer::Progress;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A configuration that is final, if it is not the one that the domain had already; or why there is none.
type InstallResult = Result<Option<Arc<Configuration>>, ReconfigError>;

/// The root domain's number in histories.
pub(super) const ROOT: usize = DOMAINS.len();
/// Share of reconfigurations that are of the root domain.
const ROOT_PER_MILLE: u64 = 200;
/// More reconfigurations for as long as another one is under way.
const BESIDE_OTHERS_PER_MILLE: u64 = 80;
/// Attempts to draw a configuration that tolerates the losses of the run.
const DRAWS: usize = 10;
/// Beside reconfigurations, as many attempts to forget a server.
const FORGETTING_PER_MILLE: u64 = 400;

impl One<'_> {
    /// Changes the domain's configuration, or finishes what another one began.
    pub(super) async fn reconfigure(mut self) -> End {
        // Objects are many, and rounds as well.
        self.client = self.client.with(self.work.env(self.process, MOVING));
        if self.work.world.random().chance(FORGETTING_PER_MILLE) {
            return self.forget().await;
        }
        if self.work.world.random().chance(ROOT_PER_MILLE) {
            (self.c, self.object) = (self.work.root.clone(), (ROOT, String::new()));
        }
        match self.work.world.random().chance(200) {
            true => self.resume().await,
            false => self.change().await,
        }
    }

    pub(super) async fn change(&self) -> End {
        self.client.env.goes_over_many();
        let (domain, root) = (self.domain(), &self.work.root);
        let Ok(path) = domain.path().await else {
            return End::TimedOut;
        };
        let last = path.last().expect("a sequence has an end");
        let wanted = match (self.work.world.random().chance(500), self.is_of_root()) {
            (true, _) if last.descriptor().lattice.is_none() => self.work.any_step(last),
            (_, true) => self.work.any_root(),
            (_, false) => self.work.any_configuration(last),
        };
        let Ok(change) = Change::new(last, &wanted) else {
            return End::TimedOut;
        };
        self.work.merging.begin(&change);
        let operation = self.begin_change(Some(change.made().descriptor()));
        let finalized = Cell::new(false);
        let progress = |step| finalized.set(finalized.get() || step == Progress::Collecting);
        let approves = async |joined: &Change| self.work.approves(joined);
        let moved = domain.reconfigure(root, &change, &approves, &progress);
        let changing = Changing::begin(&self.work.changing);
        let moved = moved.await;
        drop(changing);
        if let Ok(ReconfigOutcome::Installed(c)) = &moved {
            self.work.merging.end(&self.work.world, &change, c);
            match (last.dap().is_conditional(), c.dap().is_conditional()) {
                (false, true) => self.work.world.plan().note(Fault::BecomesConditional),
                (true, false) => self.work.world.plan().note(Fault::CeasesToBeConditional),
                _ => {}
            }
        }
        let installed = moved.map(|moved| match moved {
            ReconfigOutcome::Unchanged(_) => None,
            moved => Some(moved.into_configuration()),
        });
        self.end_change(&operation, &installed, finalized.get())
    }

    /// Finishes the pending configurations of others.
    pub(super) async fn resume(&self) -> End {
        self.client.env.goes_over_many();
        let operation = self.begin_change(None);
        let finalized = Cell::new(false);
        let progress = |step| finalized.set(finalized.get() || step == Progress::Collecting);
        let (domain, root) = (self.domain(), &self.work.root);
        let installed = domain.resume(root, &progress).await;
        self.end_change(&operation, &installed, finalized.get())
    }

    fn is_of_root(&self) -> bool {
        self.object.0 == ROOT
    }

    fn begin_change(&self, wanted: Option<&Descriptor>) -> Operation {
        let work = self.work;
        let after = self.client.sequences().start(&self.c).id().index;
        let about = (self.object.0, after);
        let mut history = work.history.borrow_mut();
        let operation = history.begin_change(work.world.now(), self.who, about, wanted);
        work.running.borrow_mut()[self.task] = Some(operation.clone());
        operation
    }

    /// `finalized`: this client itself has made a quorum know that the configuration is final. Otherwise it heard of it
    /// from somebody, and there may be quorums that have not, as yet (decision record 0007).
    fn end_change(&self, operation: &Operation, installed: &InstallResult, finalized: bool) -> End {
        let work = self.work;
        let (ended, change) = match installed {
            Ok(Some(c)) if finalized => (self.ended(), history::Change::Decided(c)),
            Ok(Some(_)) => (self.ended(), history::Change::Unknown),
            Ok(None) => (self.ended(), history::Change::Nothing),
            // Members know a change that leaves too few, and others may make it.
            Err(
                ReconfigError::Pending(_)
                | ReconfigError::Decided(_)
                | ReconfigError::TooFew { .. },
            ) => (
                OperationEnd::from(work.world.now()),
                history::Change::Unknown,
            ),
            Err(_) => (
                OperationEnd::from(work.world.now()),
                history::Change::Nothing,
            ),
        };
        self.end(None, |history| {
            history.end_change(&ended, operation, &change);
        });
        match installed {
            Ok(Some(_)) => {
                if self.is_of_root() {
                    work.world.plan().note(Fault::RootMoved);
                }
                let count = &work.reconfigurations;
                count.set(count.get() + 1);
                End::Done
            }
            Ok(None) => End::Done,
            Err(_) => End::TimedOut,
        }
    }
}

/// A change under way.
struct Changing<'a>(&'a Cell<u64>);

impl<'a> Changing<'a> {
    fn begin(count: &'a Cell<u64>) -> Changing<'a> {
        count.set(count.get() + 1);
        Changing(count)
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Workload {
    /// Probability that an operation is a reconfiguration. More begin while one is under way, as several operators
    /// react to one problem.
    pub(super) fn moves_per_mille(&self) -> u64 {
        match (self.shape.moves_per_mille, self.changing.get()) {
            (0, _) => 0,
            (usual, 0) => usual,
            (usual, _) => usual + BESIDE_OTHERS_PER_MILLE,
        }
    }

    /// Any configuration of the root domain that tolerates what may fail.
    fn any_root(&self) -> Descriptor {
        let (random, cluster) = (self.world.random(), self.world.cluster());
        self.wanted(self.root.descriptor(), || {
            let candidates: Vec<usize> = (0..cluster.servers).collect();
            let is_coded = random.index(3) == 0;
            let (n, dap) = cluster.shape(random, candidates.len(), is_coded);
            // Where all servers are drawn again, their places change.
            let servers = Cluster::members(random, candidates, n, &[]);
            Descriptor {
                members: self.world.ids(&servers),
                dap,
                ..self.root.descriptor().clone()
            }
        })
    }

    /// Any configuration that tolerates what may fail, of the servers that there are.
    pub(super) fn any_configuration(&self, like: &Configuration) -> Descriptor {
        if let Some(membership) = &like.descriptor().lattice {
            return self.any_membership(like, membership);
        }
        let (random, cluster) = (self.world.random(), self.world.cluster());
        self.wanted(like.descriptor(), || {
            let (n, dap) = cluster.shape(random, cluster.servers, random.chance(500));
            let all: Vec<usize> = (0..cluster.servers).collect();
            let ids = self.world.ids(&all);
            let is_in_use = |server: &usize| like.position(ids[*server]).is_some();
            let in_use: Vec<usize> = all.iter().copied().filter(is_in_use).collect();
            let servers = Cluster::members(random, all, n, &in_use);
            let may_become = matches!(like.dap(), Dap::Abd | Dap::Ec { .. });
            let becomes = may_become && random.chance(self.shape.becoming_per_mille);
            // As often as not where the domains change their kinds at all.
            let changes = self.shape.becoming_per_mille > 0 && like.dap().is_conditional();
            let ceases = changes && random.chance(500);
            let dap = match (like.dap().is_conditional() && !ceases) || becomes {
                true => conditional(dap),
                false => dap,
            };
            let members = servers.into_iter().map(|server| ids[server]).collect();
            let plain = configuration(like.id().domain, members, dap, self.shape.copy_bytes);
            Descriptor {
                members: plain.members().to_vec(),
                dap,
                copy_bytes: self.shape.copy_bytes,
                options: options_of(&plain, self.shape.options),
                ..like.descriptor().clone()
            }
        })
    }

    /// A descriptor with one server more or less, or with another one in the place of one of them, or with another slack of lists: a
    /// change that goes together with those of others.
    fn any_step(&self, like: &Configuration) -> Descriptor {
        let random = self.world.random();
        let all: Vec<usize> = (0..self.world.cluster().servers).collect();
        let mut free = self.world.ids(&all);
        free.retain(|server| like.position(*server).is_none());
        self.wanted(like.descriptor(), || {
            let mut wanted = like.descriptor().clone();
            let place = random.index(wanted.members.len());
            let coming = (!free.is_empty()).then(|| free[random.index(free.len())]);
            match (random.index(4), coming) {
                (0, _) => wanted.delta = [0, 1, 5][random.index(3)],
                (1, _) => drop(wanted.members.remove(place)),
                (2, Some(coming)) => wanted.members.push(coming),
                (_, Some(coming)) => wanted.members[place] = coming,
                (_, None) => {}
            }
            match Configuration::new(wanted.clone()) {
                Ok(c) if self.is_safe(&c) => wanted,
                _ => like.descriptor().clone(),
            }
        })
    }

    /// True if the configuration tolerates the crashes of the run and names no machine twice: of two servers of one
    /// machine only the later one exists.
    fn is_safe(&self, c: &Configuration) -> bool {
        let machines: BTreeSet<usize> = c.members().iter().map(|it| server_of(*it)).collect();
        let has_quorum = c.n() - c.quorums().quorum() >= self.world.cluster().tolerated();
        has_quorum && machines.len() == c.n() && (c.options().piggyback || !dap::needs_piggyback(c))
    }

    /// True if a client accepts the result of merged changes.
    pub(super) fn approves(&self, change: &Change) -> bool {
        let (c, members) = (change.made(), change.made().members());
        self.is_safe(c) && !self.world.is_any_leaving(members) && self.world.want(members)
    }

    /// The first of a few configurations that tolerates the losses; or one that was wanted before.
    pub(super) fn wanted(
        &self,
        before: &Descriptor,
        draw: impl FnMut() -> Descriptor,
    ) -> Descriptor {
        let mut drawn = std::iter::repeat_with(draw).take(DRAWS);
        let admitted = drawn.find(|drawn| {
            !self.world.is_any_leaving(&drawn.members)
                && self.world.want(&drawn.members)
                && (drawn.lattice.is_none()
                    || self.world.want_joined(&before.members, &drawn.members))
        });
        admitted.unwrap_or_else(|| before.clone())
    }
}
