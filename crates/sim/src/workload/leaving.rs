//! Servers that are taken out of all domains that name them, and forgotten then (`[X-27 forgotten-server]`).

use super::operation::One;
use super::{DOMAINS, End, MOVING, moving};
use areo_core::config::{Configuration, ServerId};
use areo_core::manager::repair::ROOT_DOMAIN;
use areo_core::reconfig::change::Change;
use std::sync::Arc;

/// Number of times that a client looks for domains that name the server, and changes them.
const LOOKS: usize = 4;

/// A domain that names the server, by its name.
type NamingDomain = (String, Arc<Configuration>);

impl One<'_> {
    /// Replaces a server and forgets it, as `areo server replace` and `areo server forget` do: if no domain names it any more, and
    /// it does not serve.
    pub(super) async fn forget(mut self) -> End {
        let (world, since) = (&self.work.world, self.work.world.now());
        let root = self.client.root(&self.work.root);
        let Ok(registered) = root.servers().await else {
            return End::TimedOut;
        };
        let Some(leaving) = world.departing(&registered) else {
            return End::Done;
        };
        let record = &leaving.record;
        if world.cluster().grows() && root.mark_leaving(record, true).await.is_err() {
            return End::TimedOut;
        }
        let marked = record.with_leaving(true);
        for _ in 0..LOOKS {
            self.client = self.client.with(self.work.env(self.process, MOVING));
            self.client.env.goes_over_many();
            let used = world.uses(record.id);
            let Some(naming) = self.naming(record.id).await else {
                return End::TimedOut;
            };
            if !naming.is_empty() {
                for domain in naming {
                    self.leave(domain, record.id).await;
                }
                continue;
            }
            world.found_unneeded(record.id, &used);
            if !world.take_away(record.id) {
                // It stays. A person may take the mark back.
                if world.cluster().grows() && world.random().chance(500) {
                    let root = self.client.root(&self.work.root);
                    let _ = root.mark_leaving(&marked, false).await;
                }
                return End::Done;
            }
            let root = self.client.root(&self.work.root);
            if root.forget(record).await.is_err() {
                return End::TimedOut;
            }
            world.forgotten(record.id, since);
            return End::Done;
        }
        End::Done
    }

    /// The domains that name the server; `None` without a quorum of one of them.
    async fn naming(&self, server: ServerId) -> Option<Vec<NamingDomain>> {
        let root = (ROOT_DOMAIN.to_owned(), self.work.root.clone());
        let others = self.client.root(&root.1).domains().await.ok()?;
        let mut naming = Vec::new();
        for (name, known) in [root].into_iter().chain(others) {
            if self.client.domain(&known).names(server).await.ok()? {
                naming.push((name, known));
            }
        }
        Some(naming)
    }

    /// Changes a domain; the next look shows whether it names the server still. Histories have those of which they have objects.
    async fn leave(&self, (name, known): NamingDomain, server: ServerId) {
        let place = DOMAINS.iter().position(|it| *it == name);
        let place = place.or((name == ROOT_DOMAIN).then_some(moving::ROOT));
        let one = One {
            work: self.work,
            client: self.client.with(self.work.env(self.process, MOVING)),
            c: known,
            object: (place.unwrap_or_default(), String::new()),
            process: self.process,
            who: self.who,
            task: self.task,
        };
        if place.is_some() {
            one.change().await;
            return;
        }
        one.client.env.goes_over_many();
        let Ok(path) = one.domain().path().await else {
            return;
        };
        let last = path.last().expect("a sequence has an end");
        let wanted = self.work.any_configuration(last);
        if !wanted.members.contains(&server) {
            let Ok(change) = Change::new(last, &wanted) else {
                return;
            };
            self.work.merging.begin(&change);
            let (root, domain) = (&self.work.root, one.domain());
            let approves = async |joined: &Change| self.work.approves(joined);
            let _ = domain.reconfigure(root, &change, &approves, &|_| {}).await;
        }
    }
}
