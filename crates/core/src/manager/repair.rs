//! Repair: every server fetches the elements that it lacks, as a client of the others (`[X-26 self-repair]`). There is no leader, and
//! nothing is agreed on: a server goes over the objects of the domains that it is a member of, round after round, compares what
//! the members list, and completes those that it lacks itself ([`crate::dsm::redundancy`]).
//!
//! The work that is left is nowhere written down. It is the difference between what the members list: a server that was
//! interrupted finds there what it has done already, because the elements that it got are durable. What is kept in memory is
//! when an object that could not be repaired is tried again ([`Retries`]).

use crate::config::{Configuration, ConfigurationId, ServerId};
use crate::dap::CrossCheck;
use crate::dsm::redundancy::{
    Completion, Incomplete, MemberListing, ObjectRedundancy, RedundancyPage,
};
use crate::dsm::{Client, Domain};
use crate::env::Env;
use crate::gather;
use crate::instant::Instant;
use crate::limits::{REPAIR_FAILURES, REPAIR_WINDOW};
use crate::message::DomainStanding;
use crate::object::{DomainId, Kind, Name};
use crate::tag::Tag;
use crate::timing::{REPAIR_AGAIN, REPAIR_AGAIN_MOST};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Name of the root domain in lists of domains.
pub const ROOT_DOMAIN: &str = "@root";

/// Limits on the servers' time that repair takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairPace {
    /// Bytes of objects that are read for repair in a second, at most; not 0.
    pub bytes_per_s: u64,
    /// The pause after each page of objects.
    pub page: Duration,
}

/// Percentage of the rate that remains however busy a server is: repair makes progress under any load.
const LEAST_SHARE: u8 = 10;

impl RepairPace {
    /// The pause after `bytes` bytes were read. `busy`: the share of the time in which the server is at work, in
    /// percent; repair has the rest.
    pub fn pause(self, bytes: u64, busy: u8) -> Duration {
        let share = 100 - busy.min(100 - LEAST_SHARE);
        assert!(share >= LEAST_SHARE, "repair gets on");
        let bytes_per_s = self.bytes_per_s as f64 * f64::from(share) / 100.0;
        Duration::from_secs_f64(bytes as f64 / bytes_per_s)
    }
}

/// The findings of a round in one domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainRound {
    /// The name of the domain.
    pub domain: String,
    pub id: DomainId,
    /// Objects that were looked at, tombstones included.
    pub objects: u64,
    /// Objects that this server lacks, after the round.
    pub lacking: u64,
    /// Objects of which this is unknown, because the server did not answer itself.
    pub unknown: u64,
    /// Objects that this server got in the round.
    pub repaired: u64,
    /// Bytes that were read for that.
    pub bytes: u64,
    /// Objects whose elements were compared with each other.
    pub checks: Checks,
    /// Why the round ended before the last object, if it did.
    pub ended: Option<Incomplete>,
}

/// Results of comparing elements of one version (`[X-29 cross-check]`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// The server's element belongs to the others.
    pub sound: u64,
    /// It does not. It was taken for damaged, and made again where that was possible.
    pub differing: u64,
    /// The elements contradict each other, and it is not known which of them are wrong.
    pub contradicting: u64,
    /// Too few members answered, or had an element.
    pub too_few: u64,
}

impl Checks {
    fn count(&mut self, outcome: CrossCheck) {
        let count = match outcome {
            CrossCheck::Sound => &mut self.sound,
            CrossCheck::Differs => &mut self.differing,
            CrossCheck::Contradicting => &mut self.contradicting,
            CrossCheck::TooFew => &mut self.too_few,
        };
        *count += 1;
    }
}

/// The server that repairs itself, as its own process reaches it.
pub trait RepairHost {
    /// Percentage of time in which the server has been busy since the last call ([`RepairPace::pause`]).
    fn busy_percent(&self) -> u8;

    /// Its element of this version is not one of the version's value: it takes that for damaged from now on
    /// (`[X-11 damage-abstains]`).
    fn distrust(&self, key: ConfigurationId, name: &Name, tag: Tag);

    /// No member lists these blocks of uploads any more: it may drop their tombstones (`[X-30 dropped-tombstones]`).
    fn drop_tombstones(&self, key: ConfigurationId, blocks: &[Name]);
}

/// The findings of a round.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// One entry for each domain that the server is a member of.
    pub domains: Vec<DomainRound>,
    /// All of them were gone over to their last object.
    pub is_whole: bool,
}

impl Round {
    /// Objects that the server lacks.
    pub fn lacking(&self) -> u64 {
        self.domains.iter().map(|domain| domain.lacking).sum()
    }

    /// The round in the server's status. `proven_ms` is `None` for a domain whose round ended early, or in which the
    /// server did not answer itself for some object, so that its holdings are unknown.
    pub fn standings(&self) -> Vec<DomainStanding> {
        let standing = |it: &DomainRound| DomainStanding {
            domain: it.id,
            objects: it.objects,
            lacking: it.lacking,
            proven_ms: (it.ended.is_none() && it.unknown == 0).then_some(0),
        };
        self.domains.iter().map(standing).collect()
    }
}

/// A server that repairs itself. `F` makes the world of one operation, with its deadline.
pub struct Repairer<E, F> {
    client: Client<E>,
    env: F,
    server: ServerId,
    /// Any final configuration of the root domain.
    root: Arc<Configuration>,
    pace: RepairPace,
    retries: Retries,
}

impl<E: Env + Clone, F: Fn() -> E> Repairer<E, F> {
    /// A server that goes over its objects with this client.
    pub fn new(
        client: Client<E>,
        env: F,
        server: ServerId,
        root: &Arc<Configuration>,
        pace: RepairPace,
    ) -> Repairer<E, F> {
        assert!(pace.bytes_per_s > 0, "repair gets on");
        Repairer {
            client,
            env,
            server,
            root: root.clone(),
            pace,
            retries: Retries::default(),
        }
    }

    /// Goes over all objects of all domains of the server once, and fetches the elements that it lacks. Never fails: an object that
    /// could not be repaired is left to a later round. Of each page of objects that all members hold it compares the elements of one.
    pub async fn round(&mut self, host: &dyn RepairHost) -> Round {
        let domains = self.operation().root(&self.root).domains().await;
        let mut round = Round {
            is_whole: domains.is_ok(),
            ..Round::default()
        };
        let root = (ROOT_DOMAIN.to_owned(), self.root.clone());
        for (name, known) in [root].into_iter().chain(domains.unwrap_or_default()) {
            if let Some(domain) = self.go_over(name, &known, host).await {
                round.is_whole &= domain.ended.is_none();
                round.domains.push(domain);
            }
        }
        round
    }

    /// The client, for one operation.
    fn operation(&self) -> Client<E> {
        self.client.with((self.env)())
    }

    fn domain(&self, known: &Arc<Configuration>) -> Domain<E> {
        self.operation().domain(known)
    }

    /// Goes over one domain. `None`: the server is no member of it.
    async fn go_over(
        &mut self,
        name: String,
        known: &Arc<Configuration>,
        host: &dyn RepairHost,
    ) -> Option<DomainRound> {
        let mut found = DomainRound {
            domain: name,
            id: known.descriptor().domain,
            objects: 0,
            lacking: 0,
            unknown: 0,
            repaired: 0,
            bytes: 0,
            checks: Checks::default(),
            ended: None,
        };
        let path = match self.domain(known).path().await {
            Ok(path) => path,
            Err(unavailable) => {
                // Perhaps it is a member no more; until that is known it counts as one.
                let is_member = known.position(self.server).is_some();
                found.ended = Some(unavailable.into());
                return is_member.then_some(found);
            }
        };
        let c = &path[0];
        c.position(self.server)?;
        found.ended = match path.len() {
            1 => self.go_over_all(c, host, &mut found).await.err(),
            _ => Some(Incomplete::Moving),
        };
        Some(found)
    }

    async fn go_over_all(
        &mut self,
        c: &Arc<Configuration>,
        host: &dyn RepairHost,
        found: &mut DomainRound,
    ) -> Result<(), Incomplete> {
        let position = c.position(self.server).expect("it is a member");
        for kind in Kind::ALL {
            let mut next = Some(String::new());
            while let Some(after) = next {
                let page = self.domain(c).redundancy(c, kind, &after).await?;
                let RedundancyPage {
                    objects,
                    next: more,
                } = page;
                found.objects += objects.len() as u64;
                let is_unknown =
                    |it: &&ObjectRedundancy| it.listed[position] == MemberListing::Unknown;
                found.unknown += objects.iter().filter(is_unknown).count() as u64;
                let is_lacked = |it: &&ObjectRedundancy| it.lacking()[position];
                let (lacked, held): (Vec<_>, Vec<_>) = objects.iter().partition(is_lacked);
                let domain = c.descriptor().domain;
                for object in held {
                    self.retries.forget(domain, &object.name);
                }
                self.repair(c, host, lacked, found).await;
                self.cross_check(c, host, &objects, found).await;
                drop_tombstones(c, host, &objects);
                next = more;
                self.operation().env.sleep(self.pace.page).await;
            }
        }
        Ok(())
    }

    /// Fetches the server's elements of these objects, a few at a time and no faster than the pace.
    async fn repair(
        &mut self,
        c: &Arc<Configuration>,
        host: &dyn RepairHost,
        mut lacked: Vec<&ObjectRedundancy>,
        found: &mut DomainRound,
    ) {
        let position = c.position(self.server).expect("it is a member");
        let domain = c.descriptor().domain;
        let now = (self.env)().now();
        lacked.retain(|it| !self.retries.is_unfinished(domain, it, now));
        found.lacking += lacked.len() as u64;
        assert!(found.lacking <= found.objects, "it lacks what was listed");
        lacked.retain(|it| self.retries.is_due(domain, &it.name, now));
        let own: Vec<bool> = (0..c.n()).map(|member| member == position).collect();
        for several in lacked.chunks(REPAIR_WINDOW) {
            let complete = several.iter().map(async |object| {
                let completed = self.domain(c).complete(c, object, &own).await;
                (*object, completed)
            });
            let mut bytes = 0;
            for (object, completed) in gather::join(REPAIR_WINDOW, complete).await {
                bytes += completed.as_ref().map_or(0, |completion| completion.bytes);
                self.note(domain, object, &completed, found);
            }
            found.bytes += bytes;
            let pause = self.pace.pause(bytes, host.busy_percent());
            self.operation().env.sleep(pause).await;
        }
    }

    /// Compares the elements of one of these objects, by chance, and makes the server's own one again if it is of another value.
    async fn cross_check(
        &mut self,
        c: &Arc<Configuration>,
        host: &dyn RepairHost,
        objects: &[ObjectRedundancy],
        found: &mut DomainRound,
    ) {
        let position = c.position(self.server).expect("it is a member");
        let is_comparable = |it: &&ObjectRedundancy| {
            it.is_full() && !it.is_gone && !it.tag.is_initial() && !c.is_ranked(&it.name)
        };
        let comparable: Vec<_> = objects.iter().filter(is_comparable).collect();
        if comparable.is_empty() {
            return;
        }
        let chosen = (self.env)().random() % comparable.len() as u64;
        let object = comparable[usize::try_from(chosen).expect("it is below a length")];
        let (name, tag) = (&object.name, object.tag);
        let checked = self.domain(c).cross_check(c, name, tag, position).await;
        found.checks.count(checked.outcome);
        if checked.outcome == CrossCheck::Differs {
            host.distrust(c.id(), name, tag);
            self.repair(c, host, vec![object], found).await;
        }
        let pause = self.pace.pause(checked.bytes, host.busy_percent());
        self.operation().env.sleep(pause).await;
    }

    /// Takes note of what became of an object.
    fn note(
        &mut self,
        domain: DomainId,
        object: &ObjectRedundancy,
        completed: &Result<Completion, Incomplete>,
        found: &mut DomainRound,
    ) {
        assert!(found.lacking > 0, "the object was counted");
        let now = (self.env)().now();
        match completed {
            Ok(completion) if completion.is_done() && completion.tag >= object.tag => {
                self.retries.forget(domain, &object.name);
                found.lacking -= 1;
                found.repaired += 1;
            }
            // The server has what a read returns; what was listed is left of a write that did not end, or has not yet.
            Ok(completion) if completion.is_done() => {
                self.retries.failed(domain, object, Some(object.tag), now);
                found.lacking -= 1;
            }
            Ok(_) | Err(_) => self.retries.failed(domain, object, None, now),
        }
    }
}

/// Lets the server drop tombstones of blocks that no member has any more.
fn drop_tombstones(c: &Configuration, host: &dyn RepairHost, objects: &[ObjectRedundancy]) {
    let gone = objects.iter().filter(|it| it.is_gone);
    let gone: Vec<Name> = gone.map(|it| it.name.clone()).collect();
    assert!(
        gone.iter().all(Name::is_upload_block),
        "the tombstones of other objects stay"
    );
    if !gone.is_empty() {
        host.drop_tombstones(c.id(), &gone);
    }
}

/// Times for the next attempt at objects that could not be repaired: one for each object, so that none delays
/// another.
#[derive(Debug, Default)]
struct Retries {
    failures: BTreeMap<(DomainId, Name), Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    attempts: u32,
    again: Instant,
    /// A version that no read returned.
    unfinished: Option<Tag>,
}

impl Retries {
    fn is_due(&self, domain: DomainId, name: &Name, now: Instant) -> bool {
        let failure = self.failures.get(&(domain, name.clone()));
        failure.is_none_or(|failure| failure.again <= now)
    }

    /// True if a read has shown that the listed version is not complete, and the next read is not due yet. Others may
    /// complete the version later.
    fn is_unfinished(&self, domain: DomainId, object: &ObjectRedundancy, now: Instant) -> bool {
        let failure = self.failures.get(&(domain, object.name.clone()));
        failure.is_some_and(|it| it.unfinished == Some(object.tag) && it.again > now)
    }

    fn forget(&mut self, domain: DomainId, name: &Name) {
        if !self.failures.is_empty() {
            self.failures.remove(&(domain, name.clone()));
        }
    }

    fn failed(
        &mut self,
        domain: DomainId,
        object: &ObjectRedundancy,
        unfinished: Option<Tag>,
        now: Instant,
    ) {
        let key = (domain, object.name.clone());
        if self.failures.len() >= REPAIR_FAILURES && !self.failures.contains_key(&key) {
            // Those that are not remembered are tried in every round.
            return;
        }
        let attempts = self.failures.get(&key).map_or(0, |it| it.attempts) + 1;
        let doubled = REPAIR_AGAIN.saturating_mul(1 << (attempts - 1).min(16));
        let failure = Failure {
            attempts,
            again: now.plus(doubled.min(REPAIR_AGAIN_MOST)),
            unfinished,
        };
        self.failures.insert(key, failure);
        assert!(self.failures.len() <= REPAIR_FAILURES, "it is bounded");
    }
}

#[cfg(test)]
mod tests;
