//! The root domain grows by itself (decision record 0059, `[X-35 growing-root]`).
//!
//! A cluster that begins with one server has a root domain of one member, which tolerates no crash. Servers join, and the root
//! domain goes to three members as soon as three servers can be members, and to five as soon as five can. A member that is to go,
//! is forgotten or has been away for long gives its place to a server that serves ([`next_members`]).
//!
//! The task has no state that matters: what there is to do is the difference between the members and the servers that there are.
//! Each member looks; the first that serves, by id, proposes what two looks in a row have found. Members that see different
//! servers may both propose. Each change names all members, so that two of them are never merged: the second is
//! refused, and its proposer looks again.

use crate::config::{Configuration, ConfigurationId, Descriptor, Members, ServerId};
use crate::dsm::{Client, Domain};
use crate::env::Env;
use crate::gather;
use crate::instant::Instant;
use crate::message::{Reply, Request, ServerRecord};
use crate::reconfig::ReconfigError;
use crate::reconfig::change::Change;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Members of a root domain that has grown: of these sizes, each tolerates one crash more than the one before.
const SIZES: [usize; 2] = [5, 3];
/// The longest wait of a look for silent servers.
const PATIENCE: Duration = Duration::from_secs(2);

/// The state of a server, as far as a look can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// It says that it serves.
    Serving,
    /// It does not say so at present.
    Away,
    /// It has not said so for long, or is forgotten.
    Gone,
}

/// A server, as far as it concerns the members of the root domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The state of the server.
    pub liveness: Liveness,
    /// It is to go ([`ServerRecord::is_leaving`]).
    pub is_leaving: bool,
}

impl Standing {
    /// True if it can become a member.
    fn may_come(self) -> bool {
        self.liveness == Liveness::Serving && !self.is_leaving
    }

    /// True if it keeps its place even if another server could take that place.
    fn may_stay(self) -> bool {
        self.liveness != Liveness::Gone && !self.is_leaving
    }
}

/// The members that the root domain should have in place of these. `None`: it is as it should be, or nothing better can be had.
///
/// A server that is not in `servers` is gone. Each server that comes serves, a majority of the result does, and no member goes that
/// may stay. From an odd number of members the result is an odd number of members.
pub fn next_members(
    members: &[ServerId],
    servers: &BTreeMap<ServerId, Standing>,
) -> Option<Vec<ServerId>> {
    let stays = |id: &ServerId| servers.get(id).is_some_and(|it| it.may_stay());
    let serves = |id: &&ServerId| {
        let standing = servers.get(id);
        standing.is_some_and(|it| it.liveness == Liveness::Serving)
    };
    let mut free = servers
        .iter()
        .filter(|(id, it)| it.may_come() && !members.contains(id))
        .map(|(id, _)| *id);
    let staying = members.iter().filter(|id| stays(id)).count();
    let available = staying + free.clone().count();
    let place = |id: &ServerId| match stays(id) {
        true => *id,
        false => free.next().unwrap_or(*id),
    };
    let mut next: Vec<ServerId> = members.iter().map(place).collect();
    let size = SIZES.into_iter().find(|size| *size <= available);
    let lacking = size.unwrap_or(0).saturating_sub(next.len());
    next.extend(free.take(lacking));
    // Two that go, and whose places stay empty, stand in the way of a quorum of the others. Of five, not of four: that would be two.
    while next.len() >= 5 && next.len() % 2 == 1 && next.iter().filter(|id| !stays(id)).count() >= 2
    {
        for _ in 0..2 {
            let place = next.iter().rposition(|id| !stays(id));
            next.remove(place.expect("two were counted"));
        }
    }
    assert!(
        members
            .iter()
            .filter(|id| stays(id))
            .all(|id| next.contains(id)),
        "a member that may stay does"
    );
    assert!(
        next.len() == members.len() || next.len() % 2 == 1,
        "an even number of members tolerates no crash more"
    );
    let comes = |id: &&ServerId| !members.contains(*id);
    assert!(
        next.iter()
            .filter(comes)
            .all(|id| servers.get(id).is_some_and(|it| it.may_come())),
        "a server that comes serves and is not to go"
    );
    let serving = next.iter().filter(serves).count();
    (next != members && serving > next.len() / 2).then_some(next)
}

/// The root domain tolerates no crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSpare {
    /// Number of its members.
    pub members: usize,
    /// Servers of the cluster that are not to go.
    pub servers: usize,
    /// People alone change its members.
    pub fixed: bool,
}

impl NoSpare {
    /// The lack of a spare member of a root domain with this configuration. `None`: the domain tolerates a crash.
    pub fn of<'a>(
        c: &Configuration,
        servers: impl IntoIterator<Item = &'a ServerRecord>,
    ) -> Option<NoSpare> {
        let stays = |it: &&ServerRecord| !it.is_forgotten() && !it.is_leaving();
        let no_spare = NoSpare {
            members: c.n(),
            servers: servers.into_iter().filter(stays).count(),
            fixed: !grows(c),
        };
        (c.n() == c.quorums().quorum()).then_some(no_spare)
    }
}

/// One sentence for people, with the remedy.
impl fmt::Display for NoSpare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.members {
            1 => f.write_str("the root domain is on one server and tolerates no crash: ")?,
            n => write!(
                f,
                "the root domain is on {n} servers and tolerates no crash: "
            )?,
        }
        let more = 3_usize.saturating_sub(self.servers);
        match (self.fixed, more) {
            (true, _) => f.write_str(
                "add servers to it (`areo reconfig start @root --add NAME,NAME`), it was made with --root fixed",
            ),
            (false, 0) => f.write_str("it grows to 3 by itself as soon as 3 servers serve"),
            (false, 1) => f.write_str(
                "start one more server (`areo server --join`), and it grows to 3 by itself",
            ),
            (false, more) => write!(
                f,
                "start {more} more servers (`areo server --join`), and it grows to 3 by itself"
            ),
        }
    }
}

/// True if servers may change the members of this root domain. People alone change an erasure-coded root domain, or a lattice.
pub fn grows(c: &Configuration) -> bool {
    let descriptor = c.descriptor();
    !descriptor.fixed && descriptor.dap.is_replicated() && descriptor.lattice.is_none()
}

/// The result of a round.
#[derive(Debug)]
pub enum Growth {
    /// Another member, or a person, decides about this.
    Left,
    /// Nothing is to be changed.
    Settled,
    /// Something is to be changed, if the next look finds the same.
    Due,
    /// The root domain has another configuration.
    Changed(Arc<Configuration>),
    /// It was not changed, or not to the end; the next round sees.
    Failed(ReconfigError),
}

/// The change that a look found necessary.
#[derive(PartialEq, Eq)]
enum Due {
    /// This change is pending: its proposer may have ended.
    Finish(ConfigurationId),
    /// After this configuration these are to be the members.
    Change(ConfigurationId, Vec<ServerId>),
}

/// A member of the root domain that looks after its members. `F` makes the world of one operation, with its deadline.
pub struct Grower<E, F> {
    client: Client<E>,
    env: F,
    server: ServerId,
    /// Any final configuration of the root domain.
    root: Arc<Configuration>,
    /// The time for which a member is away before another server gets its place.
    gone_after: Duration,
    /// Since when servers are away.
    away: BTreeMap<ServerId, Instant>,
    due: Option<Due>,
    no_spare: Option<NoSpare>,
}

impl<E: Env, F: Fn() -> E> Grower<E, F> {
    /// The task of this server, with this client.
    pub fn new(
        client: Client<E>,
        env: F,
        server: ServerId,
        root: &Arc<Configuration>,
        gone_after: Duration,
    ) -> Grower<E, F> {
        Grower {
            client,
            env,
            server,
            root: root.clone(),
            gone_after,
            away: BTreeMap::new(),
            due: None,
            no_spare: None,
        }
    }

    /// The members that the last round found should be, after this configuration, and that the next one proposes if it finds them, too.
    pub fn due(&self) -> Option<(ConfigurationId, &[ServerId])> {
        match &self.due {
            Some(Due::Change(base, members)) => Some((*base, members)),
            Some(Due::Finish(_)) | None => None,
        }
    }

    /// Forgets the change that the last round found: two more rounds have to find it.
    pub fn put_off(&mut self) {
        self.due = None;
    }

    /// The lack of a spare member of the root domain, as the last round saw it. A server that is no member has `None`.
    pub fn no_spare(&self) -> Option<NoSpare> {
        self.no_spare
    }

    /// Looks at the root domain once, and changes its members if that is this server's part.
    pub async fn round(&mut self) -> Growth {
        match self.look().await {
            Ok(growth) => growth,
            Err(error) => {
                self.due = None;
                Growth::Failed(error)
            }
        }
    }

    async fn look(&mut self) -> Result<Growth, ReconfigError> {
        let domain = self.operation().root(&self.root).domain;
        let path = domain.path().await.map_err(ReconfigError::NotBegun)?;
        let (c, last) = (&path[0], path.last().expect("a sequence has an end"));
        if c.position(self.server).is_none() {
            self.no_spare = None;
            return Ok(self.left());
        }
        let servers = self.operation().root(c).servers().await;
        let servers = servers.map_err(ReconfigError::NotBegun)?;
        self.no_spare = NoSpare::of(c, servers.values());
        let members = self.standings(c.members(), &servers).await;
        let is_serving = |id: &&ServerId| members[*id].liveness == Liveness::Serving;
        let first = c.members().iter().filter(is_serving).min();
        if !grows(c) || first != Some(&self.server) {
            return Ok(self.left());
        }
        assert!(last == c || c.precedes(last), "a sequence goes on");
        let due = match last == c {
            true => self.change_due(c, &servers, members).await,
            false => Some(Due::Finish(last.id())),
        };
        let is_seen_again = due.is_some() && due == self.due;
        match (due, is_seen_again) {
            (None, _) => {
                self.due = None;
                Ok(Growth::Settled)
            }
            (due, false) => {
                self.due = due;
                Ok(Growth::Due)
            }
            (due, true) => {
                self.due = None;
                let made = self
                    .make(&domain, c, due.expect("it was seen again"))
                    .await?;
                Ok(made.map_or(Growth::Settled, Growth::Changed))
            }
        }
    }

    /// The change that is due after this configuration, which is the last. `members`: the standing of its members.
    async fn change_due(
        &mut self,
        c: &Configuration,
        servers: &BTreeMap<ServerId, ServerRecord>,
        members: BTreeMap<ServerId, Standing>,
    ) -> Option<Due> {
        let is_other = |it: &&ServerRecord| !it.is_forgotten() && c.position(it.id).is_none();
        let others: Members = servers.values().filter(is_other).map(|it| it.id).collect();
        let mut all = self.standings(&others, servers).await;
        all.extend(members);
        self.away.retain(|id, _| all.contains_key(id));
        let next = next_members(c.members(), &all)?;
        Some(Due::Change(c.id(), next))
    }

    async fn make(
        &self,
        domain: &Domain<E>,
        c: &Arc<Configuration>,
        due: Due,
    ) -> Result<Option<Arc<Configuration>>, ReconfigError> {
        let Due::Change(base, members) = due else {
            return domain.resume(&self.root, &|_| {}).await;
        };
        assert_eq!(base, c.id(), "what was seen twice is of one configuration");
        let wanted = Descriptor {
            members: members.clone(),
            ..c.descriptor().clone()
        };
        let change = Change::new(c, &wanted).map_err(ReconfigError::Invalid)?;
        let approves = async |joined: &Change| joined.made().members()[..] == members[..];
        let change = change.naming_all();
        let done = domain.reconfigure(&self.root, &change, &approves, &|_| {});
        Ok(Some(done.await?.into_configuration()))
    }

    /// The standing of these servers. This server itself serves, or it would not ask.
    async fn standings(
        &mut self,
        servers: &Members,
        records: &BTreeMap<ServerId, ServerRecord>,
    ) -> BTreeMap<ServerId, Standing> {
        if servers.is_empty() {
            return BTreeMap::new();
        }
        let client = self.operation();
        let replies = gather::survey_for(&client.env, servers, Request::Status, Some(PATIENCE));
        let replies = replies.await;
        let now = client.env.now();
        let standing = |(id, reply): (&ServerId, Option<Reply>)| {
            let serves = matches!(reply, Some(Reply::Status(status)) if status.serving);
            let record = records.get(id);
            let liveness = match (*id == self.server || serves, record) {
                (_, Some(record)) if record.is_forgotten() => Liveness::Gone,
                (true, _) => {
                    self.away.remove(id);
                    Liveness::Serving
                }
                (false, _) => {
                    let since = *self.away.entry(*id).or_insert(now);
                    match now.since(since) >= self.gone_after {
                        true => Liveness::Gone,
                        false => Liveness::Away,
                    }
                }
            };
            let is_leaving = record.is_some_and(ServerRecord::is_leaving);
            let standing = Standing {
                liveness,
                is_leaving,
            };
            (*id, standing)
        };
        let standings: BTreeMap<_, _> = servers.iter().zip(replies).map(standing).collect();
        assert_eq!(standings.len(), servers.len(), "each was asked once");
        standings
    }

    /// The task of another one.
    fn left(&mut self) -> Growth {
        self.due = None;
        Growth::Left
    }

    /// The client, for one operation.
    fn operation(&self) -> Client<E> {
        self.client.with((self.env)())
    }
}

#[cfg(test)]
mod tests;
