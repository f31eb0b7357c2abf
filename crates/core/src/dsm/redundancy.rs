//! Full redundancy. A write is complete at a quorum; a member that was away then lacks its element. Reads are right all the
//! same, and each such member costs one of the failures that the object tolerates (`[X-25 full-redundancy]`).
//!
//! | | rounds |
//! |---|---|
//! | [`Domain::redundancy`] | 1 for a page of objects: every member lists what it holds |
//! | [`Domain::complete`] | a read, 1 for the elements, 1 to see that they are there |
//!
//! What members list decides only which objects are looked at. Which version a member gets is decided by an atomic read: it is
//! at a quorum of the last configuration, and every rule of a write-back holds for it (closed configurations, fences, damage, the
//! cap).

use super::Domain;
use super::atomic::SettledVersion;
use super::holdings::MemberHolding;
use crate::config::{Configuration, Members};
use crate::dap;
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

/// What a member lists of an object.
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

/// An object, and what each member lists of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectRedundancy {
    /// The object.
    pub name: Name,
    /// The newest version that a member lists. It need not be at a quorum.
    pub tag: Tag,
    /// By position.
    pub listed: Vec<MemberListing>,
}

/// Objects of one kind, in order of their keys, tombstones included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedundancyPage {
    /// The objects.
    pub objects: Vec<ObjectRedundancy>,
    /// Where the next page begins. `None`: there is none.
    pub next: Option<String>,
}

/// How an object was left by [`Domain::complete`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Its version.
    pub tag: Tag,
    /// Bytes that were read: of a large value's manifest none.
    pub bytes: u64,
    /// What each of the members holds of the version that were to get it, in the order of their positions.
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
    /// Of each member whether it is known to need its element, by position.
    pub fn lacking(&self) -> Vec<bool> {
        let lacks = |listed: &MemberListing| {
            matches!(listed, MemberListing::Older | MemberListing::Damaged)
        };
        self.listed.iter().map(lacks).collect()
    }

    /// Every member lists the newest version.
    pub fn is_full(&self) -> bool {
        self.listed.iter().all(|it| *it == MemberListing::Newest)
    }
}

impl Completion {
    /// Of each of the members whether it holds the version. One that has taken a later version has got it, too.
    pub fn has_it(&self) -> impl Iterator<Item = bool> {
        self.holdings.iter().map(|holding| match holding {
            MemberHolding::Version => true,
            MemberHolding::Other(tag) => *tag > self.tag,
            _ => false,
        })
    }

    /// How many of them do.
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
        let at = Visit::new(c);
        let census = Census::new(c, request);
        let pages = gather::gather(&self.client.env, &at, census).await?;
        assert_eq!(pages.len(), c.n(), "a place for each member");
        match at.is_last() {
            true => Ok(compare(c, kind, &pages)),
            false => Err(Incomplete::Moving),
        }
    }

    /// Reads the object, and brings its newest version to the members of `c` that are said to lack it, by position.
    ///
    /// # Errors
    /// [`Incomplete`] if it cannot be read, or the domain has gone on from `c`.
    pub async fn complete(
        &self,
        c: &Arc<Configuration>,
        name: &Name,
        lacking: &[bool],
    ) -> Result<Completion, Incomplete> {
        assert_eq!(lacking.len(), c.n(), "known of each member, or not");
        let is_ranked = c.is_ranked(name);
        let SettledVersion { found, last } = match is_ranked {
            // Choosing it again brings it to all members that answer.
            true => Box::pin(self.choose_again(name)).await?,
            false => self.read_settled(name, None).await?,
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
            // A member that refuses goes on lacking it: the look afterwards shows that.
            let version = (found.tag, value);
            let _ = dap::complete(&self.client.env, &last, name, version, lacking).await;
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

/// The tally of [`Domain::redundancy`]: a page of what each member lists. It is decided when all have answered, or a quorum has and
/// the others are out of reach or late.
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
            Event::Reply(Reply::Listed(page)) => self.pages[from] = Some(page),
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

/// What the members list side by side, up to where the first page that was cut ends.
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

/// What the members list of one object.
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
    let listed = row.iter().zip(pages).map(|(entry, page)| match entry {
        _ if page.is_none() => MemberListing::Unknown,
        Some(entry) if entry.damaged => MemberListing::Damaged,
        Some(entry) if is_newest(entry) && !entry.absent => MemberListing::Newest,
        _ => MemberListing::Older,
    });
    let listed = listed.collect();
    ObjectRedundancy { name, tag, listed }
}

/// The newest version of an object: what a damaged member lists counts only where no other lists anything.
fn newest(row: &[Option<&ListEntry>]) -> Tag {
    let of = |damaged: bool| {
        let entries = row.iter().flatten().filter(|it| it.damaged == damaged);
        entries.map(|entry| entry.tag).max()
    };
    of(false).or(of(true)).expect("a member lists it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::{conditional, replicated};
    use crate::message::Refusal;
    use crate::tag::Writer;
    use MemberListing::{Damaged, Newest, Older, Unknown};

    fn entry(key: &str, number: u64) -> ListEntry {
        let writer = Writer::default();
        ListEntry {
            key: key.into(),
            tag: Tag { number, writer },
            length: 0,
            etag: None,
            written_at_ms: None,
            age_s: 0,
            deleted: false,
            damaged: false,
            absent: false,
        }
    }

    fn page(entries: Vec<ListEntry>, truncated: bool) -> ListPage {
        ListPage { entries, truncated }
    }

    fn rows(pages: &[Option<ListPage>]) -> Vec<(String, u64, Vec<MemberListing>)> {
        let page = compare(&replicated(pages.len()), Kind::User, pages);
        let row = |it: ObjectRedundancy| (it.name.key().to_owned(), it.tag.number, it.listed);
        page.objects.into_iter().map(row).collect()
    }

    /// It knows that the version is complete, and that is all (`[CAS-8 finalized-listing]`).
    #[test]
    fn a_member_without_an_element_of_the_newest_version_lacks_it() {
        let absent = ListEntry {
            absent: true,
            ..entry("a", 2)
        };
        let pages = [entry("a", 2), absent].map(|entry| Some(page(vec![entry], false)));
        let expected = vec![MemberListing::Newest, MemberListing::Older];
        assert_eq!(rows(&pages), [("a".to_owned(), 2, expected)]);
    }

    #[test]
    fn members_are_compared_key_by_key() {
        let damaged = ListEntry {
            damaged: true,
            ..entry("a", 9)
        };
        let pages = [
            Some(page(vec![entry("a", 2), entry("b", 1)], false)),
            Some(page(vec![entry("a", 1)], false)),
            Some(page(vec![damaged, entry("b", 1)], false)),
            None,
        ];
        assert_eq!(
            rows(&pages),
            [
                ("a".into(), 2, vec![Newest, Older, Damaged, Unknown]),
                ("b".into(), 1, vec![Newest, Older, Newest, Unknown]),
            ]
        );
    }

    /// A proposal that failed may have the larger tag, and is lacked by none.
    #[test]
    fn of_a_register_the_version_counts_that_a_quorum_lists() {
        let c = conditional(3);
        let listed = |numbers: [u64; 3]| {
            let pages = numbers.map(|number| Some(page(vec![entry("a", number)], false)));
            compare(&c, Kind::User, &pages).objects[0].clone()
        };
        let failed = listed([2, 3, 2]);
        assert_eq!(failed.tag.number, 2);
        assert_eq!(failed.listed, [Newest, Older, Newest]);
        assert_eq!(listed([1, 3, 2]).listed, [Older; 3], "a read decides it");
    }

    #[test]
    fn what_only_damaged_members_list_is_looked_at() {
        let damaged = ListEntry {
            damaged: true,
            ..entry("a", 2)
        };
        let pages = [Some(page(vec![damaged], false)), Some(page(vec![], false))];
        let listed = vec![Damaged, Older];
        assert_eq!(rows(&pages), [("a".into(), 2, listed)]);
    }

    /// Behind the end of a page that was cut its member has not spoken: it does not lack what it was not asked for.
    #[test]
    fn a_page_ends_where_the_first_member_s_does() {
        let pages = [
            Some(page(vec![entry("a", 1), entry("b", 1)], true)),
            Some(page(vec![entry("a", 1), entry("c", 1)], true)),
        ];
        let c = replicated(2);
        assert_eq!(compare(&c, Kind::User, &pages).next.as_deref(), Some("b"));
        let keys: Vec<String> = rows(&pages).into_iter().map(|row| row.0).collect();
        assert_eq!(keys, ["a", "b"]);
    }

    fn tally(members: usize) -> Census {
        Census {
            request: ListRequest::new(Kind::User, ""),
            quorum: 2,
            pages: vec![None; members],
            heard: vec![false; members],
            refused: vec![false; members],
        }
    }

    #[test]
    fn a_quorum_waits_for_the_others_for_a_while_and_no_longer() {
        let mut tally = tally(3);
        let reply = || Event::Reply(Reply::Listed(ListPage::default()));
        assert_eq!(tally.add(0, reply()), Decision::Pending);
        assert_eq!((tally.patience(), tally.tick()), (None, Decision::Pending));
        assert_eq!(tally.add(1, reply()), Decision::Pending);
        assert_eq!(tally.patience(), Some(HOLDINGS_PATIENCE));
        let pages = vec![Some(ListPage::default()), Some(ListPage::default()), None];
        assert_eq!(tally.tick(), Decision::Done(pages));
    }

    #[test]
    fn members_out_of_reach_are_not_waited_for() {
        let mut tally = tally(3);
        let reply = || Event::Reply(Reply::Listed(ListPage::default()));
        assert_eq!(tally.add(2, Event::Unreachable), Decision::Pending);
        assert_eq!(tally.add(0, reply()), Decision::Pending);
        let pages = vec![Some(ListPage::default()), Some(ListPage::default()), None];
        assert_eq!(tally.add(1, reply()), Decision::Done(pages));
    }

    #[test]
    fn refusals_that_leave_no_quorum_end_it() {
        let mut tally = tally(3);
        let refused = || Event::Refused(Refusal::Damaged);
        assert_eq!(tally.add(0, refused()), Decision::Pending);
        assert_eq!(tally.add(1, refused()), Decision::Impossible);
    }
}
