//! Full redundancy. A write is complete at a quorum; a member that was away then lacks its element. Reads are right all the
//! same, and each such member costs one of the failures that the object tolerates (`[X-25 full-redundancy]`).
//!
//! | | rounds |
//! |---|---|
//! | [`Domain::redundancy`] | 1 for a page of objects: every member lists what it holds |
//! | [`Domain::complete`] | a read, 1 for the elements, 1 to see that they are there; where a round finalizes versions, 2 before that |
//!
//! What members list decides only which objects are looked at. Which version a member gets is decided by an atomic read: it is
//! at a quorum of the last configuration, and every rule of a write-back holds for it (closed configurations, fences, damage, the
//! cap).

use super::Domain;
use super::holdings::MemberHolding;
use super::interruption::Interruption;
use super::newest::SettledVersion;
use crate::config::{Configuration, Members, ServerId};
use crate::dap::{self, PassedVersions};
use crate::element::Value;
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::{self, ConfiguredTally, Decision, Event, Visit};
use crate::message::{Body, ListEntry, ListPage, ListRequest, Reply};
use crate::object::{Kind, Name};
use crate::tag::Tag;
use crate::timing::HOLDINGS_PATIENCE;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The entry of an object in a member's listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberListing {
    /// The newest version that any member lists, or one above it.
    Newest,
    /// An older version, or none.
    Older,
    /// Its newest version is damaged: it abstains (`[X-11 damage-abstains]`).
    Damaged,
    /// It did not answer in time.
    Unknown,
}

/// An object, with the versions that each member lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectRedundancy {
    pub name: Name,
    /// The newest version that a member lists. It need not be at a quorum.
    pub tag: Tag,
    /// The entries of members, by position.
    pub listed: Vec<MemberListing>,
    /// The newest version that each member lists, damaged or not, by position.
    pub versions: Vec<Option<Tag>>,
    /// It is a block of an upload that is removed, and every member answered and lists a tombstone, or nothing: none of them has the block
    /// (`[X-30 dropped-tombstones]`).
    pub is_gone: bool,
}

/// Objects of one kind, in order of their keys, tombstones included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedundancyPage {
    pub objects: Vec<ObjectRedundancy>,
    /// The place at which the next page begins. `None`: there is none.
    pub next: Option<String>,
}

/// The state in which an object was left by [`Domain::complete`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    pub tag: Tag,
    /// Bytes that were read: of a large value's manifest none.
    pub bytes: u64,
    /// The state of the version at each of the members that were to get it, in the order of their positions.
    pub holdings: Vec<MemberHolding>,
}

/// Why objects could not be looked at, or not be completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incomplete {
    /// No quorum in time, or not enough elements to read the object.
    Unavailable(Unavailable),
    /// The domain is being reconfigured: its transfer brings objects to the new members.
    Moving,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incomplete::Unavailable(unavailable) => unavailable.fmt(f),
            Incomplete::Moving => f.write_str("the domain is being reconfigured"),
        }
    }
}

impl From<Unavailable> for Incomplete {
    fn from(unavailable: Unavailable) -> Self {
        Incomplete::Unavailable(unavailable)
    }
}

impl From<CallError> for Incomplete {
    fn from(failed: CallError) -> Self {
        match failed {
            CallError::Unavailable(unavailable) => Incomplete::Unavailable(unavailable),
            CallError::Moved => Incomplete::Moving,
        }
    }
}

impl ObjectRedundancy {
    /// A flag for each member, by position: true if it is known to need its element.
    pub fn lacking(&self) -> Vec<bool> {
        let lacks = |listed: &MemberListing| {
            matches!(listed, MemberListing::Older | MemberListing::Damaged)
        };
        self.listed.iter().map(lacks).collect()
    }

    /// The members that a read hears so that it finds the newest version.
    fn hearing(&self, c: &Configuration) -> PassedVersions {
        assert_eq!(self.listed.len(), c.n(), "a place for each member");
        let members = c.members().iter().zip(&self.listed);
        let list_it = members.filter(|(_, listed)| **listed == MemberListing::Newest);
        PassedVersions {
            awaited: list_it.map(|(member, _)| *member).collect(),
            ..PassedVersions::default()
        }
    }

    /// Every member lists the newest version.
    pub fn is_full(&self) -> bool {
        self.listed.iter().all(|it| *it == MemberListing::Newest)
    }
}

impl Completion {
    /// A flag for each of the members, true if it holds the version. One that has taken a later version has got it, too.
    pub fn has_it(&self) -> impl Iterator<Item = bool> {
        self.holdings.iter().map(|holding| match holding {
            MemberHolding::Version => true,
            MemberHolding::Other(tag) => *tag > self.tag,
            _ => false,
        })
    }

    /// The number of them that do.
    pub fn reached(&self) -> usize {
        self.has_it().filter(|has_it| *has_it).count()
    }

    /// All of them do.
    pub fn is_done(&self) -> bool {
        self.reached() == self.holdings.len()
    }
}

impl<E: Env> Domain<E> {
    /// A page of the objects of this kind whose keys come after `after`, and which members of `c` list their newest version.
    /// Waits a short while for silent members.
    ///
    /// # Errors
    /// [`Incomplete`] if no quorum answers, or a member knows a configuration after `c`.
    pub async fn redundancy(
        &self,
        c: &Arc<Configuration>,
        kind: Kind,
        after: &str,
    ) -> Result<RedundancyPage, Incomplete> {
        let request = ListRequest {
            after: after.into(),
            ..ListRequest::new(kind, "")
        };
        self.compared(c, request).await
    }

    /// The redundancy of one object. `None`: no member has heard of it.
    ///
    /// # Errors
    /// As [`Domain::redundancy`].
    pub async fn redundancy_of(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
    ) -> Result<Option<ObjectRedundancy>, Incomplete> {
        let page = self.compared(c, only(name)).await?;
        Ok(page.objects.into_iter().find(|it| it.name == *name))
    }

    /// Brings the object to all members of `c` that answer. True if its version is this one or a larger one, so that every later read
    /// returns no smaller one.
    ///
    /// # Errors
    /// As [`Domain::complete`].
    pub async fn complete_version(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
        tag: Tag,
    ) -> Result<bool, Incomplete> {
        let Some(object) = self.redundancy_of(c, name).await? else {
            return Ok(tag.is_initial());
        };
        assert_eq!(object.name, *name, "it was asked for");
        let completed = self.complete(c, &object, &object.lacking()).await?;
        Ok(completed.tag >= tag)
    }

    /// Members of the configurations on the way that list this version of the object, or a larger one.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub(super) async fn members_that_list(
        &self,
        name: &Name,
        tag: Tag,
    ) -> Result<Vec<ServerId>, Unavailable> {
        let mut listing: Vec<ServerId> = Vec::new();
        let ask = async |at: &Visit| {
            let pages = gather::gather(&self.client.env, at, Census::new(at.c(), only(name)));
            let pages = pages.await?;
            assert_eq!(pages.len(), at.c().n(), "a place for each member");
            let page = compare(at.c(), name.kind(), &pages);
            let Some(object) = page.objects.into_iter().find(|it| it.name == *name) else {
                return Ok(());
            };
            let listed = at.c().members().iter().zip(&object.versions);
            let lists = listed.filter(|(_, listed)| listed.is_some_and(|listed| listed >= tag));
            listing.extend(lists.map(|(member, _)| *member));
            Ok(())
        };
        self.walk().to_the_end(ask).await?;
        listing.sort_unstable();
        listing.dedup();
        Ok(listing)
    }

    async fn compared(
        &self,
        c: &Arc<Configuration>,
        request: ListRequest,
    ) -> Result<RedundancyPage, Incomplete> {
        let (at, kind) = (Visit::new(c), request.kind);
        let census = Census::new(c, request);
        let pages = gather::gather(&self.client.env, &at, census).await?;
        assert_eq!(pages.len(), c.n(), "a place for each member");
        self.client.env.progressed();
        match at.is_last() {
            true => Ok(compare(c, kind, &pages)),
            false => Err(Incomplete::Moving),
        }
    }

    /// Reads the object, and brings its newest version to the members of `c` that are said to lack it, by position. The members that
    /// list the newest version are heard, so that one that a writer left at few of them is completed if it can be.
    ///
    /// # Errors
    /// [`Incomplete`] if it cannot be read, or the domain has gone on from `c`.
    pub async fn complete(
        &self,
        c: &Arc<Configuration>,
        object: &ObjectRedundancy,
        lacking: &[bool],
    ) -> Result<Completion, Incomplete> {
        assert_eq!(lacking.len(), c.n(), "known of each member, or not");
        let name = &object.name;
        let is_ranked = c.is_ranked(name);
        if is_ranked {
            self.check_register(name).await?;
        }
        let SettledVersion { found, last } = match is_ranked {
            // Choosing it again brings it to all members that answer.
            true => match Box::pin(self.choose_again(name)).await? {
                Some(chosen) => chosen,
                None => return Err(Incomplete::Moving),
            },
            false => match self.read_settled(name, None, object.hearing(c)).await {
                Ok(settled) => settled,
                Err(Interruption::Ranked) => return Err(Incomplete::Moving),
                Err(Interruption::Unavailable(unavailable)) => return Err(unavailable.into()),
            },
        };
        if last.c() != c {
            return Err(Incomplete::Moving);
        }
        let to: Members = c
            .members()
            .iter()
            .zip(lacking)
            .filter_map(|(member, lacks)| lacks.then_some(*member))
            .collect();
        if let Some(value) = found.value.as_ref().filter(|_| !is_ranked) {
            // A member that refuses goes on lacking it: the look afterwards shows that. A call that asks no member would wait for an answer.
            let version = (found.tag, value);
            if !to.is_empty() {
                let _ = dap::complete(&self.client.env, &last, name, version, lacking).await;
            }
            // The read saw it at a quorum; the members that took it now may trim what is older ([X-4 confirm-write-backs]).
            if last.is_last() {
                dap::confirm(&self.client.env, &last, name, found.tag);
            }
        }
        let holdings = self.holdings_at(c, &to, name, found.tag).await;
        assert_eq!(holdings.len(), to.len(), "one for each that was to get it");
        Ok(Completion {
            tag: found.tag,
            bytes: found.value.as_ref().map_or(0, Value::content_bytes),
            holdings,
        })
    }
}

/// The request for the entry of one object: of the keys that begin so it is the first.
fn only(name: &Name) -> ListRequest {
    ListRequest {
        limit: 1,
        ..ListRequest::new(name.kind(), name.key())
    }
}

/// The tally of [`Domain::redundancy`]: a page of each member's list. It is decided when all have answered, or a
/// quorum has and the others are out of reach or late.
struct Census {
    request: ListRequest,
    quorum: usize,
    pages: Vec<Option<ListPage>>,
    heard: Vec<bool>,
    refused: Vec<bool>,
}

impl Census {
    fn new(c: &Configuration, request: ListRequest) -> Census {
        Census {
            request,
            quorum: c.quorums().quorum(),
            pages: vec![None; c.n()],
            heard: vec![false; c.n()],
            refused: vec![false; c.n()],
        }
    }

    fn has_quorum(&self) -> bool {
        self.pages.iter().flatten().count() >= self.quorum
    }

    fn done(&mut self) -> Decision<Vec<Option<ListPage>>> {
        assert!(self.has_quorum(), "fewer may miss a write that is complete");
        Decision::Done(std::mem::take(&mut self.pages))
    }
}

impl ConfiguredTally for Census {
    type Output = Vec<Option<ListPage>>;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        self.pages[position]
            .is_none()
            .then(|| Body::List(self.request.clone()))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        self.heard[from] = true;
        match event {
            Event::Reply(Reply::Listed(page)) if self.request.may_list(&page) => {
                self.pages[from] = Some(page);
            }
            Event::Unreachable => {}
            Event::Reply(_) | Event::Refused(_) => self.refused[from] = self.pages[from].is_none(),
        }
        let refused = self.refused.iter().filter(|refused| **refused).count();
        match self.heard.iter().all(|heard| *heard) && self.has_quorum() {
            true => self.done(),
            false if self.refused.len() - refused < self.quorum => Decision::Impossible,
            false => Decision::Pending,
        }
    }

    fn tick(&mut self) -> Decision<Self::Output> {
        match self.has_quorum() {
            true => self.done(),
            false => Decision::Pending,
        }
    }

    fn patience(&self) -> Option<Duration> {
        self.has_quorum().then_some(HOLDINGS_PATIENCE)
    }
}

/// The listings of the members side by side, up to where the first page that was cut ends.
fn compare(c: &Configuration, kind: Kind, pages: &[Option<ListPage>]) -> RedundancyPage {
    let cut = pages.iter().flatten().filter(|page| page.truncated);
    let ends = cut.filter_map(|page| page.entries.last());
    let next = ends.map(|last| last.key.clone()).min();
    let is_within = |key: &str| next.as_deref().is_none_or(|next| key <= next);
    let mut rows: BTreeMap<&str, Vec<Option<&ListEntry>>> = BTreeMap::new();
    for (position, page) in pages.iter().enumerate() {
        for entry in page.iter().flat_map(|page| &page.entries) {
            if is_within(&entry.key) {
                let row = rows.entry(&entry.key);
                row.or_insert_with(|| vec![None; pages.len()])[position] = Some(entry);
            }
        }
    }
    let objects = rows.iter().map(|(key, row)| {
        let name = Name::new(kind, key).expect("a server listed it");
        compare_one(c, name, row, pages)
    });
    let objects = objects.collect();
    RedundancyPage { objects, next }
}

/// The listings of one object by the members.
fn compare_one(
    c: &Configuration,
    name: Name,
    row: &[Option<&ListEntry>],
    pages: &[Option<ListPage>],
) -> ObjectRedundancy {
    assert_eq!(row.len(), pages.len(), "a place for each member");
    // The largest tag of a register may be of a version that was never chosen; what a quorum lists is not.
    let sound = || row.iter().flatten().filter(|it| !it.damaged && !it.absent);
    let at_quorum = |tag: &Tag| {
        let alike = sound().filter(|it| it.tag == *tag).count();
        alike >= c.quorums().quorum()
    };
    let is_ranked = c.is_ranked(&name);
    let agreed = sound().map(|it| it.tag).find(at_quorum);
    let agreed = agreed.filter(|_| is_ranked);
    let tag = agreed.unwrap_or_else(|| newest(row));
    let is_newest = |it: &ListEntry| match is_ranked {
        true => agreed == Some(it.tag),
        false => it.tag >= tag,
    };
    let is_removed = name.is_upload_block() && !dap::keeps_tombstones(c) && {
        let mut of_tag = row.iter().flatten().filter(|it| it.tag == tag);
        of_tag.any(|it| it.deleted && !it.damaged)
    };
    let listed = row.iter().zip(pages).map(|(entry, page)| match entry {
        _ if page.is_none() => MemberListing::Unknown,
        Some(entry) if entry.damaged => MemberListing::Damaged,
        // It may have dropped the tombstone, and needs none.
        None if is_removed => MemberListing::Newest,
        Some(entry) if is_newest(entry) && !entry.absent => MemberListing::Newest,
        _ => MemberListing::Older,
    });
    let listed: Vec<MemberListing> = listed.collect();
    let is_tombstone = |it: &ListEntry| it.deleted && !it.damaged && !it.absent;
    let is_gone = is_removed
        && pages.iter().all(Option::is_some)
        && row.iter().flatten().all(|it| is_tombstone(it));
    let versions = row.iter().map(|entry| entry.map(|entry| entry.tag));
    ObjectRedundancy {
        name,
        tag,
        listed,
        versions: versions.collect(),
        is_gone,
    }
}

/// The newest version of an object: the list of a damaged member counts only if no other member lists the object.
fn newest(row: &[Option<&ListEntry>]) -> Tag {
    let of = |damaged: bool| {
        let entries = row.iter().flatten().filter(|it| it.damaged == damaged);
        entries.map(|entry| entry.tag).max()
    };
    of(false).or(of(true)).expect("a member lists it")
}

#[cfg(test)]
mod tests;
