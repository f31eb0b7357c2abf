//! Listing the objects of a configuration: regular, not atomic. A listing contains every object whose write completed
//! before it began (`algorithms.md` `[X-19]`): a quorum answers, and it meets every quorum that a write left its tag at.

use super::Client;
use crate::config::Configuration;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{self, ConfiguredTally, Decision, Event};
use crate::limits;
use crate::message::{Body, ListEntry, ListRequest, Listed, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The objects, in order of their keys; deleted ones are left out.
    pub entries: Vec<ListEntry>,
    /// Where the next page begins: after this key. `None`: there is no next page.
    pub next: Option<String>,
}

/// The objects that `request` asks for. A page may be shorter than the limit although there are more.
///
/// # Errors
/// [`Unavailable`] without a quorum in time.
pub async fn list<E: Env>(
    client: &Client<E>,
    c: &Arc<Configuration>,
    request: &ListRequest,
) -> Result<Page, Unavailable> {
    let tally = Listing {
        request: request.clone(),
        quorum: c.quorums().quorum(),
        replies: vec![None; c.n()],
        refused: vec![false; c.n()],
    };
    gather::gather(&client.env, c, tally).await
}

struct Listing {
    request: ListRequest,
    quorum: usize,
    replies: Vec<Option<Listed>>,
    refused: Vec<bool>,
}

impl Listing {
    /// The merged page, if a quorum speaks for every key of it.
    fn merge(&self) -> Option<Page> {
        let replies: Vec<&Listed> = self.replies.iter().flatten().collect();
        if replies.len() < self.quorum {
            return None;
        }
        // Beyond the last key of a page that was cut, its server has not spoken.
        let cut = replies
            .iter()
            .filter(|listed| listed.truncated)
            .filter_map(|listed| listed.entries.last());
        let horizon = cut.map(|entry| entry.key.clone()).min();
        let within =
            |entry: &&ListEntry| horizon.as_ref().is_none_or(|horizon| entry.key <= *horizon);
        let mut newest: BTreeMap<&str, &ListEntry> = BTreeMap::new();
        let mut silent: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in replies
            .iter()
            .flat_map(|listed| &listed.entries)
            .filter(within)
        {
            if entry.damaged {
                *silent.entry(&entry.key).or_default() += 1;
                continue;
            }
            let best = newest.entry(&entry.key).or_insert(entry);
            if entry.tag > best.tag {
                *best = entry;
            }
        }
        if silent
            .values()
            .any(|silent| replies.len() - silent < self.quorum)
        {
            return None;
        }
        let shown = newest.into_values().filter(|entry| !entry.deleted);
        // Servers may list different keys, so that together there are more than each was asked for.
        let limit = usize::from(self.request.limit).clamp(1, limits::PAGE_ENTRIES);
        let mut entries: Vec<ListEntry> = shown.take(limit + 1).cloned().collect();
        if entries.len() <= limit {
            let next = horizon;
            return Some(Page { entries, next });
        }
        entries.truncate(limit);
        let next = entries.last().map(|entry| entry.key.clone());
        Some(Page { entries, next })
    }
}

impl ConfiguredTally for Listing {
    type Output = Page;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        self.replies[position]
            .is_none()
            .then(|| Body::List(self.request.clone()))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Page> {
        match event {
            Event::Reply(Reply::Listed(listed)) => self.replies[from] = Some(listed),
            Event::Unreachable => return Decision::Pending,
            Event::Reply(_) | Event::Refused(_) => self.refused[from] = true,
        }
        if let Some(page) = self.merge() {
            return Decision::Done(page);
        }
        let may_come = |from: &usize| self.replies[*from].is_none() && !self.refused[*from];
        let to_come = (0..self.replies.len()).filter(may_come).count();
        let came = self.replies.iter().flatten().count();
        match to_come == 0 || came + to_come < self.quorum {
            true => Decision::Impossible,
            false => Decision::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Refusal;
    use crate::object::Kind;
    use crate::tag::{Tag, Writer};

    fn entry(key: &str, number: u64) -> ListEntry {
        let tag = Tag {
            number,
            writer: Writer::default(),
        };
        ListEntry {
            key: key.into(),
            tag,
            length: 0,
            deleted: false,
            damaged: false,
        }
    }

    fn listing() -> Listing {
        let request = ListRequest {
            kind: Kind::User,
            prefix: String::new(),
            after: String::new(),
            limit: 10,
        };
        Listing {
            request,
            quorum: 2,
            replies: vec![None; 3],
            refused: vec![false; 3],
        }
    }

    fn reply(entries: Vec<ListEntry>, truncated: bool) -> Event {
        Event::Reply(Reply::Listed(Listed { entries, truncated }))
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
            Decision::Done(Page {
                entries,
                next: Some("b".into())
            })
        );
    }

    #[test]
    fn a_newer_tombstone_hides_a_key() {
        let mut tally = listing();
        let _ = tally.add(0, reply(vec![entry("a", 1)], false));
        let gone = ListEntry {
            deleted: true,
            ..entry("a", 2)
        };
        assert_eq!(
            tally.add(2, reply(vec![gone], false)),
            Decision::Done(Page::default())
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
        let page = Page {
            entries: vec![entry("a", 2)],
            next: None,
        };
        assert_eq!(
            tally.add(2, reply(vec![entry("a", 2)], false)),
            Decision::Done(page)
        );
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
