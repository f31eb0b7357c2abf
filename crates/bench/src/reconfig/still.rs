//! The measurements without other clients: time per object, bytes, reading after many configurations.

use super::ring::Ring;
use super::{
    Behind, Change, Domain, Latencies, MovedBytes, PerObject, ReadCost, RunError, Scene, Stage,
    reconfigure,
};
use crate::error::failed;
use crate::load;
use crate::target::AreoCaller;
use areo_client::{Client, Counts};
use std::time::{Duration, Instant};

/// Times that every domain changes: to erasure coding and back.
const CHANGES: u64 = 2;
/// Configurations that one domain gets behind it.
const CONFIGURATIONS: u64 = 100;
/// Maximum number of its objects: reading is measured, not moving.
const BEHIND_OBJECTS: u64 = 100;
/// Reads of each of the two domains.
const READS: u64 = 2_000;
/// The number of reports of an unfinished part.
const TOLD: u64 = 10;

impl Scene {
    /// All objects in one domain: time per object, and bytes by kind of change.
    pub(super) async fn batched(&mut self) -> Result<(PerObject, Vec<MovedBytes>), RunError> {
        let (mut time, mut bytes) = (Duration::ZERO, Vec::new());
        for _ in 0..CHANGES {
            time += self.moved(Ring::turn, &mut bytes).await?;
        }
        // Of the same shape, one server for another: of either algorithm.
        self.moved(Ring::replace, &mut bytes).await?;
        reconfigure(&self.domain, &self.ring.turn()).await?;
        self.moved(Ring::replace, &mut bytes).await?;
        let objects = self.options.setup.objects;
        let batched = PerObject {
            domains: 1,
            objects,
            changes: CHANGES,
            us_per_object: time.as_secs_f64() * 1e6 / (CHANGES * objects) as f64,
        };
        Ok((batched, bytes))
    }

    /// Makes a change and records the moved bytes.
    async fn moved(
        &mut self,
        change: impl FnOnce(&mut Ring) -> Change,
        bytes: &mut Vec<MovedBytes>,
    ) -> Result<Duration, RunError> {
        let before = self.ring.clone();
        let change = change(&mut self.ring);
        let (domain, cost) = self.domain.measured();
        let time = reconfigure(&domain, &change).await?;
        let Counts {
            sent_bytes,
            received_bytes,
            ..
        } = cost.counts();
        let moved_bytes = sent_bytes + received_bytes;
        let each = before.needed_bytes(&self.ring, self.options.setup.size as u64);
        let needed_bytes = self.options.setup.objects * each;
        bytes.push(MovedBytes {
            change: format!("{} to {}", before.shape(), self.ring.shape()),
            moved_bytes,
            needed_bytes,
            ratio: moved_bytes as f64 / needed_bytes as f64,
        });
        Ok(time)
    }

    /// Every object in a domain of its own, one after the other; as many as there is time for.
    pub(super) async fn single(&self, observe: &impl Fn(Stage)) -> Result<PerObject, RunError> {
        let begun = Instant::now();
        let (mut time, mut domains) = (Duration::ZERO, 0);
        while domains < self.options.setup.objects
            && (domains == 0 || begun.elapsed() < self.options.time)
        {
            let mut ring = Ring::new(self.started.servers.clone());
            let name = format!("single-{domains}");
            let objects = (self.options.setup.size, 1);
            let domain = self
                .started
                .domain(&name, ring.options(), objects, None)
                .await?;
            for _ in 0..CHANGES {
                time += reconfigure(&domain, &ring.turn()).await?;
            }
            domains += 1;
            if domains % TOLD == 0 {
                observe(Stage::Single(domains));
            }
        }
        Ok(PerObject {
            domains,
            objects: 1,
            changes: CHANGES,
            us_per_object: time.as_secs_f64() * 1e6 / (CHANGES * domains) as f64,
        })
    }

    /// Reads a domain after many changes, and a new one beside it; as many changes as there is time for.
    pub(super) async fn behind(&self, observe: &impl Fn(Stage)) -> Result<Behind, RunError> {
        let objects = BEHIND_OBJECTS.min(self.options.setup.objects);
        let mut ring = Ring::new(self.started.servers.clone());
        let filled = (self.options.setup.size, objects);
        let old = self
            .started
            .domain("old", ring.options(), filled, None)
            .await?;
        let stranger = self.domains(["old"]).await?;
        let (begun, mut configurations) = (Instant::now(), 0);
        // An even number, so that it ends as it began.
        while configurations < CONFIGURATIONS
            && (configurations % 2 != 0
                || configurations == 0
                || begun.elapsed() < self.options.time)
        {
            reconfigure(&old, &ring.turn()).await?;
            configurations += 1;
            if configurations % TOLD == 0 {
                observe(Stage::Behind(configurations));
            }
        }
        let new = self.started.domain("new", ring.options(), filled, None);
        new.await?;
        let [stranger] = &stranger;
        let first_read = self.read_in_turn([stranger], objects, 1).await?;
        let [old, new] = &self.domains(["old", "new"]).await?;
        // Not measured: connections are made.
        self.read_in_turn([old, new], objects, objects).await?;
        let [old, new] = self.read_in_turn([old, new], objects, READS).await?;
        let [first_read] = first_read;
        Ok(Behind {
            configurations,
            reads: READS,
            ratio: old.latency.p50_us / new.latency.p50_us,
            old,
            new,
            first_read,
        })
    }

    /// Domains as a client finds them that has just connected.
    async fn domains<const N: usize>(&self, names: [&str; N]) -> Result<[Domain; N], RunError> {
        let client = Client::connect(self.started.connect.clone()).await;
        let client = client.map_err(failed("connect a client"))?;
        let mut domains = Vec::new();
        for name in names {
            let domain = client.domain(name).await;
            domains.push(domain.map_err(failed("find a domain"))?);
        }
        Ok(domains.try_into().expect("there is one for every name"))
    }

    /// Reads each of the domains this number of times, in turn.
    async fn read_in_turn<const N: usize>(
        &self,
        domains: [&Domain; N],
        objects: u64,
        reads: u64,
    ) -> Result<[ReadCost; N], RunError> {
        let size = self.options.setup.size;
        let mut callers = domains.map(AreoCaller::of);
        let mut times: [Latencies; N] = std::array::from_fn(|_| Latencies::default());
        let mut costs = [Counts::default(); N];
        for number in 0..reads {
            for (place, caller) in callers.iter_mut().enumerate() {
                let key = load::key(size, number % objects);
                let begun = Instant::now();
                let read = load::get(caller, &key, size).await;
                let cost = read.map_err(failed("read an object"))?;
                times[place].record(begun.elapsed());
                costs[place].rounds += cost.counts.rounds;
                costs[place].configurations += cost.counts.configurations;
            }
        }
        let each = |all: u64| all as f64 / reads as f64;
        Ok(std::array::from_fn(|place| ReadCost {
            latency: times[place].times().unwrap_or_default(),
            rounds: each(costs[place].rounds),
            configurations: each(costs[place].configurations),
        }))
    }
}
