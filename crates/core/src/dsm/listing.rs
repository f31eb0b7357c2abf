//! Listing the objects of a domain: regular, not atomic. A listing contains every object whose write completed before it
//! began (`docs/spec` `[X-19 regular-listing]`). It goes along the sequence as a read does, and shows a key if the largest
//! version of it, wherever it was found, is no tombstone.

use super::Domain;
use crate::dap::listing::{self, Listing};
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::{self, Visit};
use crate::limits;
use crate::message::{ListEntry, ListRequest};
use crate::object::{Kind, Metadata, Name};
use crate::tag::Tag;
use std::collections::{BTreeMap, BTreeSet};

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The objects, in order of their keys; deleted ones are left out, and those with a common prefix.
    pub entries: Vec<ListEntry>,
    /// The common prefixes of which there is some object, in order.
    pub prefixes: Vec<String>,
    /// The place at which the next page begins: after this key, or common prefix. `None`: there is no next page.
    pub next: Option<String>,
}

impl<E: Env> Domain<E> {
    /// The objects that `request` asks for. A page may be shorter than the limit although there are more.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn list(&self, request: &ListRequest) -> Result<Page, Unavailable> {
        let (mut listings, mut is_ranked) = (Vec::new(), false);
        let list = async |at: &Visit| {
            is_ranked |= at.c().dap().is_conditional() && request.kind.is_register();
            listings.push(listing::list(&self.client.env, at, request).await?);
            Ok(())
        };
        self.walk().to_the_end(list).await?;
        let disputed = match is_ranked {
            true => disputed(&listings),
            false => BTreeSet::new(),
        };
        let (mut page, uncertain) = merge(listings, &disputed);
        let looks = uncertain.iter().map(async |prefix| {
            let any = self.has_any(request.kind, prefix).await?;
            Ok((!any).then_some(prefix))
        });
        let looks = gather::join(limits::SWEEP_WINDOW, looks).await;
        let empty = looks.into_iter().collect::<Result<Vec<_>, Unavailable>>()?;
        page.prefixes.retain(|it| !empty.contains(&Some(it)));
        let entries = page.entries.into_iter();
        let entries = entries.map(|entry| self.looked_up(request.kind, entry));
        let entries = gather::join(limits::SWEEP_WINDOW, entries).await;
        let entries = entries
            .into_iter()
            .collect::<Result<Vec<_>, Unavailable>>()?;
        page.entries = entries.into_iter().flatten().collect();
        self.client.env.progressed();
        Ok(cut(page, request.limit))
    }

    /// The entry. Where no server that answered has an element of its version, the object is asked for alone
    /// (`[CAS-8 finalized-listing]`); so is a register that servers do not list alike. `None`: it is deleted. One that cannot be read because
    /// it is damaged, or because a member is away that may have its last element, is listed all the same: it keeps no other object out.
    async fn looked_up(
        &self,
        kind: Kind,
        entry: ListEntry,
    ) -> Result<Option<ListEntry>, Unavailable> {
        if !entry.absent && !entry.damaged {
            return Ok(Some(entry));
        }
        let name = Name::new(kind, &entry.key).expect("a server listed it");
        let found = match Box::pin(self.stat(&name)).await {
            Ok(found) => found,
            Err(failed) if failed.is_damage() || failed.answered() >= failed.needed => {
                return Ok(Some(ListEntry {
                    absent: false,
                    damaged: true,
                    ..entry
                }));
            }
            Err(failed) => return Err(failed),
        };
        let value = found.value.filter(|value| !value.deleted);
        assert!(
            value.is_none() || !found.tag.is_initial(),
            "a value was written"
        );
        Ok(value.map(|value| {
            let (etag, written_at_ms) = Metadata::listed(&value.metadata);
            ListEntry {
                tag: found.tag,
                length: found.length,
                etag,
                written_at_ms,
                absent: false,
                deleted: false,
                damaged: false,
                ..entry
            }
        }))
    }

    /// True if there is an object whose key begins so.
    async fn has_any(&self, kind: Kind, prefix: &str) -> Result<bool, Unavailable> {
        let mut next = Some(String::new());
        while let Some(after) = next {
            let request = ListRequest {
                after,
                ..ListRequest::new(kind, prefix)
            };
            // It has no delimiter, and so asks no further.
            let page = Box::pin(self.list(&request)).await?;
            if !page.entries.is_empty() {
                return Ok(true);
            }
            next = page.next;
        }
        Ok(false)
    }
}

/// The keys of registers that servers, or configurations, do not list alike.
fn disputed(listings: &[Listing]) -> BTreeSet<String> {
    let mut disputed: BTreeSet<String> = BTreeSet::new();
    let mut listed: BTreeMap<&str, (Tag, usize)> = BTreeMap::new();
    for listing in listings {
        disputed.extend(listing.disputed.iter().cloned());
        for entry in &listing.entries {
            let (tag, alike) = listed.entry(&entry.key).or_insert((entry.tag, 0));
            *alike += usize::from(*tag == entry.tag);
        }
    }
    let differ = listed
        .iter()
        .filter(|(_, (_, alike))| *alike < listings.len());
    disputed.extend(differ.map(|(key, _)| (*key).to_owned()));
    disputed
}

/// A page out of what several configurations list: it ends where the first of them does. Beside it the common prefixes for
/// which no version speaks in all of them.
fn merge(listings: Vec<Listing>, disputed: &BTreeSet<String>) -> (Page, Vec<String>) {
    let horizons = listings.iter().filter_map(|it| it.horizon.clone());
    let next = horizons.min();
    let within = |name: &str| next.as_deref().is_none_or(|horizon| name <= horizon);
    let all = listings.iter().flat_map(|it| it.prefixes.keys());
    let prefixes: BTreeSet<String> = all.filter(|it| within(it)).cloned().collect();
    let is_certain = |prefix: &&String| {
        let mut witnesses = listings.iter().map(|it| it.prefixes.get(*prefix));
        let first = witnesses.next().flatten();
        first.is_some_and(Option::is_some) && witnesses.all(|witness| witness == first)
    };
    let uncertain = prefixes.iter().filter(|prefix| !is_certain(prefix));
    let uncertain = uncertain.cloned().collect();
    let entries = listings.into_iter().flat_map(|it| it.entries);
    let mut newest = listing::newest(entries.filter(|entry| within(&entry.key)));
    for entry in &mut newest {
        entry.absent |= disputed.contains(&entry.key);
    }
    let is_shown = |entry: &ListEntry| entry.absent || entry.damaged || !entry.deleted;
    let shown = newest.into_iter().filter(is_shown);
    let page = Page {
        entries: shown.collect(),
        prefixes: prefixes.into_iter().collect(),
        next,
    };
    (page, uncertain)
}

/// The page within its limit. Servers may list different keys, so that together there are more than each was asked for.
fn cut(mut page: Page, limit: u16) -> Page {
    let limit = usize::from(limit).clamp(1, limits::PAGE_ENTRIES);
    let keys = page.entries.iter().map(|entry| &entry.key);
    let mut names: Vec<&String> = keys.chain(&page.prefixes).collect();
    names.sort_unstable();
    if names.len() > limit {
        let last = names[limit - 1].clone();
        page.entries.retain(|entry| entry.key <= last);
        page.prefixes.retain(|prefix| *prefix <= last);
        page.next = Some(last);
    }
    let listed = page.entries.len() + page.prefixes.len();
    assert!(listed <= limit, "no more than was asked for");
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Writer;

    fn entry(key: &str, number: u64, deleted: bool) -> ListEntry {
        let writer = Writer::default();
        ListEntry {
            key: key.into(),
            tag: Tag { number, writer },
            length: 0,
            etag: None,
            written_at_ms: None,
            age_s: 0,
            deleted,
            damaged: false,
            absent: false,
        }
    }

    fn listing(entries: Vec<ListEntry>, horizon: Option<&str>) -> Listing {
        Listing {
            entries,
            horizon: horizon.map(Into::into),
            ..Listing::default()
        }
    }

    fn page(listings: Vec<Listing>, limit: u16) -> Page {
        cut(merge(listings, &BTreeSet::new()).0, limit)
    }

    fn keys(page: &Page) -> Vec<&str> {
        page.entries
            .iter()
            .map(|entry| entry.key.as_str())
            .collect()
    }

    #[test]
    fn a_newer_tombstone_hides_a_key_wherever_it_is_found() {
        let old = listing(vec![entry("a", 1, false), entry("b", 2, true)], None);
        let new = listing(vec![entry("a", 2, true), entry("b", 1, false)], None);
        assert_eq!(page(vec![old, new], 10), Page::default());
    }

    #[test]
    fn a_page_ends_where_the_first_configuration_s_does() {
        let old = listing(vec![entry("a", 1, false), entry("c", 1, false)], None);
        let new = listing(vec![entry("b", 1, false)], Some("b"));
        let page = page(vec![old, new], 10);
        assert_eq!(
            (keys(&page), page.next.as_deref()),
            (vec!["a", "b"], Some("b"))
        );
    }

    #[test]
    fn a_page_is_within_its_limit() {
        let entries = vec![
            entry("a", 1, false),
            entry("b", 1, false),
            entry("c", 1, false),
        ];
        let page = page(vec![listing(entries, None)], 2);
        assert_eq!(
            (keys(&page), page.next.as_deref()),
            (vec!["a", "b"], Some("b"))
        );
    }
}
