//! Listing the objects of one configuration: a quorum answers, and it meets every quorum that a put left its tag at, so
//! that the page contains every object whose put completed before (`docs/spec` `[X-19 regular-listing]`).

use crate::config::Configuration;
use crate::env::Env;
use crate::error::CallError;
use crate::gather::{self, ConfiguredTally, Decision, Event, Visit};
use crate::message::{Body, ListEntry, ListPage, ListRequest, Reply};
use crate::tag::Tag;
use crate::timing;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A page of the objects that a quorum lists, tombstones included (`[X-18 tombstone-versions]`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The largest version of each object, in order of the keys; not of those with a common prefix.
    pub entries: Vec<ListEntry>,
    /// The common prefixes of which a server lists some key.
    pub prefixes: BTreeMap<String, Option<Witness>>,
    /// Keys that the replies list differently: only a read shows the current version of a register.
    pub disputed: BTreeSet<String>,
    /// The last key, or common prefix, that the page speaks for; `None`: there are no more.
    pub horizon: Option<String>,
}

/// Shows that some object has a key with the prefix: this version is the first that each server of the quorum lists, and the
/// object's newest. Without one the servers differ, and only a listing of these keys can tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    pub key: String,
    pub tag: Tag,
}

/// The objects that `request` asks for. A page may be shorter or longer than the limit.
///
/// # Errors
/// [`CallError`].
pub async fn list<E: Env>(
    env: &E,
    at: &Visit,
    request: &ListRequest,
) -> Result<Listing, CallError> {
    gather::gather(env, at, Collect::new(at.c(), request)).await
}

struct Collect {
    request: ListRequest,
    quorum: usize,
    replies: Vec<Option<ListPage>>,
    refused: Vec<bool>,
    /// No more members are waited for that could speak for objects of which too many find their record damaged.
    late: bool,
}

impl Collect {
    fn new(c: &Configuration, request: &ListRequest) -> Collect {
        Collect {
            request: request.clone(),
            quorum: c.quorums().quorum(),
            replies: vec![None; c.n()],
            refused: vec![false; c.n()],
            late: false,
        }
    }

    fn has_quorum(&self) -> bool {
        self.replies.iter().flatten().count() >= self.quorum
    }

    /// The merged page, if a quorum speaks for every key of it, or nothing more is waited for. An object for which no quorum speaks is
    /// listed as damaged: it does not keep the others from being listed (`[X-19 regular-listing]`).
    fn merge(&self) -> Option<Listing> {
        let replies: Vec<&ListPage> = self.replies.iter().flatten().collect();
        if !self.has_quorum() {
            return None;
        }
        // Beyond the last key of a page that was cut, its server has not spoken.
        let cut = replies
            .iter()
            .filter(|listed| listed.truncated)
            .filter_map(|listed| listed.entries.last());
        let listed_as = |entry: &ListEntry| self.request.listed_as(&entry.key).to_owned();
        let horizon = cut.map(listed_as).min();
        let entries = replies.iter().flat_map(|listed| &listed.entries);
        let within = |entry: &&ListEntry| {
            let horizon = horizon.as_deref();
            horizon.is_none_or(|horizon| self.request.listed_as(&entry.key) <= horizon)
        };
        let is_apart = |entry: &&ListEntry| self.request.common_prefix(&entry.key).is_none();
        let (entries, together): (Vec<_>, Vec<_>) = entries.filter(within).partition(is_apart);
        let (damaged, sound): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.damaged);
        let mut silent: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &damaged {
            *silent.entry(&entry.key).or_default() += 1;
        }
        silent.retain(|_, silent| replies.len() < self.quorum + *silent);
        if !silent.is_empty() && !self.late {
            return None;
        }
        assert!(
            silent.values().all(|silent| *silent <= replies.len()),
            "each lists it once"
        );
        let disputed = disputed(&sound, replies.len());
        let unspoken = damaged.iter().filter(|it| silent.contains_key(&*it.key));
        let listed = sound.iter().chain(unspoken);
        let mut entries = newest(listed.map(|entry| (*entry).clone()));
        for entry in &mut entries {
            entry.damaged = silent.contains_key(&*entry.key);
        }
        let prefixes = self.prefixes(&together, replies.len());
        Some(Listing {
            entries,
            prefixes,
            disputed,
            horizon,
        })
    }

    /// The common prefixes of the entries of `replies` replies, each with the entry that all of them list first.
    fn prefixes(
        &self,
        entries: &[&ListEntry],
        replies: usize,
    ) -> BTreeMap<String, Option<Witness>> {
        let mut prefixes: BTreeMap<&str, Vec<&ListEntry>> = BTreeMap::new();
        for entry in entries {
            let common = self.request.common_prefix(&entry.key);
            let same = prefixes.entry(common.expect("those that have one"));
            same.or_default().push(entry);
        }
        let witness = |listed: Vec<&ListEntry>| {
            let first = listed[0];
            let is_same = |it: &&ListEntry| (&it.key, it.tag) == (&first.key, first.tag);
            let agree = listed.len() == replies && listed.iter().all(is_same);
            let is_there = listed
                .iter()
                .all(|it| !it.deleted && !it.damaged && !it.absent);
            (agree && is_there).then(|| Witness {
                key: first.key.clone(),
                tag: first.tag,
            })
        };
        let judged = prefixes
            .into_iter()
            .map(|(prefix, listed)| (prefix.to_owned(), witness(listed)));
        judged.collect()
    }
}

/// The keys whose entries are not equal in all `replies` replies.
fn disputed(entries: &[&ListEntry], replies: usize) -> BTreeSet<String> {
    let mut listed: BTreeMap<&str, (Tag, usize)> = BTreeMap::new();
    for entry in entries {
        let (tag, alike) = listed.entry(&entry.key).or_insert((entry.tag, 0));
        *alike += usize::from(*tag == entry.tag);
    }
    let disputed = listed.iter().filter(|(_, (_, alike))| *alike < replies);
    disputed.map(|(key, _)| (*key).to_owned()).collect()
}

/// The entry with the largest tag of each key, in order of the keys; of a server that has the element, if one does. Of several that list it, the one
/// that has it for the shortest time says its age: so a clock that is fast makes nothing older than others say that it is.
pub fn newest(entries: impl IntoIterator<Item = ListEntry>) -> Vec<ListEntry> {
    let mut newest: BTreeMap<String, ListEntry> = BTreeMap::new();
    for entry in entries {
        match newest.get_mut(&entry.key) {
            Some(best) if best.tag > entry.tag => {}
            Some(best) if best.tag == entry.tag => {
                let age_s = best.age_s.min(entry.age_s);
                if best.absent {
                    *best = entry;
                }
                best.age_s = age_s;
            }
            Some(best) => *best = entry,
            None => drop(newest.insert(entry.key.clone(), entry)),
        }
    }
    newest.into_values().collect()
}

impl ConfiguredTally for Collect {
    type Output = Listing;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        self.replies[position]
            .is_none()
            .then(|| Body::List(self.request.clone()))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Listing> {
        match event {
            Event::Reply(Reply::Listed(listed)) if self.request.may_list(&listed) => {
                self.replies[from] = Some(listed);
            }
            Event::Unreachable => return Decision::Pending,
            Event::Reply(_) | Event::Refused(_) => self.refused[from] = true,
        }
        if let Some(page) = self.merge() {
            return Decision::Done(page);
        }
        let may_come = |from: &usize| self.replies[*from].is_none() && !self.refused[*from];
        let to_come = (0..self.replies.len()).filter(may_come).count();
        let came = self.replies.iter().flatten().count();
        if to_come == 0 && self.has_quorum() {
            return self.tick();
        }
        match came + to_come < self.quorum {
            true => Decision::Impossible,
            false => Decision::Pending,
        }
    }

    fn tick(&mut self) -> Decision<Listing> {
        self.late = self.has_quorum();
        self.merge().map_or(Decision::Pending, Decision::Done)
    }

    fn patience(&self) -> Option<Duration> {
        self.has_quorum().then_some(timing::HOLDINGS_PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Refusal;
    use crate::object::Kind;
    use crate::tag::Writer;

    fn entry(key: &str, number: u64) -> ListEntry {
        let tag = Tag {
            number,
            writer: Writer::default(),
        };
        ListEntry {
            key: key.into(),
            tag,
            length: 0,
            etag: None,
            written_at_ms: None,
            age_s: 0,
            deleted: false,
            damaged: false,
            absent: false,
        }
    }

    fn listing() -> Collect {
        let request = ListRequest::new(Kind::User, "");
        Collect {
            request,
            quorum: 2,
            replies: vec![None; 3],
            late: false,
            refused: vec![false; 3],
        }
    }

    fn reply(entries: Vec<ListEntry>, truncated: bool) -> Event {
        Event::Reply(Reply::Listed(ListPage { entries, truncated }))
    }

    #[test]
    fn a_merged_page_ends_where_the_first_cut_page_does() {
        let mut tally = listing();
        assert_eq!(
            tally.add(0, reply(vec![entry("a", 1), entry("b", 1)], true)),
            Decision::Pending
        );
        let decision = tally.add(1, reply(vec![entry("a", 2), entry("c", 1)], false));
        let entries = vec![entry("a", 2), entry("b", 1)];
        assert_eq!(
            decision,
            Decision::Done(Listing {
                entries,
                prefixes: BTreeMap::new(),
                disputed: ["a", "b"].map(str::to_owned).into(),
                horizon: Some("b".into())
            })
        );
    }

    #[test]
    fn a_newer_tombstone_takes_the_place_of_its_key() {
        let mut tally = listing();
        let _ = tally.add(0, reply(vec![entry("a", 1)], false));
        let gone = ListEntry {
            deleted: true,
            ..entry("a", 2)
        };
        assert_eq!(
            tally.add(2, reply(vec![gone.clone()], false)),
            Decision::Done(Listing {
                entries: vec![gone],
                prefixes: BTreeMap::new(),
                disputed: ["a".to_owned()].into(),
                horizon: None
            })
        );
    }

    #[test]
    fn a_damaged_object_needs_another_server_to_speak_for_it() {
        let mut tally = listing();
        let damaged = ListEntry {
            damaged: true,
            ..entry("a", 1)
        };
        let _ = tally.add(0, reply(vec![damaged], false));
        assert_eq!(tally.add(1, reply(vec![], false)), Decision::Pending);
        let page = Listing {
            entries: vec![entry("a", 2)],
            prefixes: BTreeMap::new(),
            disputed: ["a".to_owned()].into(),
            horizon: None,
        };
        assert_eq!(
            tally.add(2, reply(vec![entry("a", 2)], false)),
            Decision::Done(page)
        );
    }

    #[test]
    fn a_server_that_says_of_an_object_twice_that_it_is_damaged_speaks_for_one() {
        let mut tally = listing();
        let damaged = ListEntry {
            damaged: true,
            ..entry("a", 1)
        };
        let _ = tally.add(0, reply(vec![damaged; 3], false));
        assert_eq!(tally.add(1, reply(vec![], false)), Decision::Pending);
    }

    #[test]
    fn refusals_that_leave_no_quorum_end_it() {
        let mut tally = listing();
        assert_eq!(
            tally.add(0, Event::Refused(Refusal::Damaged)),
            Decision::Pending
        );
        assert_eq!(
            tally.add(1, Event::Refused(Refusal::Damaged)),
            Decision::Impossible
        );
    }
}
