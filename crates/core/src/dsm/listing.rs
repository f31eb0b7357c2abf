//! Listing the objects of a domain: regular, not atomic. A listing contains every object whose write completed before it
//! began (`docs/spec` `[X-19 regular-listing]`). It goes along the sequence as a read does, and shows a key if the largest
//! version of it, wherever it was found, is no tombstone.

use super::Domain;
use crate::dap::listing::{self, Listing};
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather::Visit;
use crate::limits;
use crate::message::{ListEntry, ListRequest};

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The objects, in order of their keys; deleted ones are left out.
    pub entries: Vec<ListEntry>,
    /// Where the next page begins: after this key. `None`: there is no next page.
    pub next: Option<String>,
}

impl<E: Env> Domain<E> {
    /// The objects that `request` asks for. A page may be shorter than the limit although there are more.
    ///
    /// # Errors
    /// [`Unavailable`] without a quorum in time.
    pub async fn list(&self, request: &ListRequest) -> Result<Page, Unavailable> {
        let mut listings = Vec::new();
        let list = async |at: &Visit| {
            listings.push(listing::list(&self.client.env, at, request).await?);
            Ok(())
        };
        self.walk().to_the_end(list).await?;
        Ok(page(listings, request.limit))
    }
}

/// A page out of what several configurations list: it ends where the first of them does.
fn page(listings: Vec<Listing>, limit: u16) -> Page {
    let horizons = listings
        .iter()
        .filter_map(|listing| listing.horizon.clone());
    let horizon = horizons.min();
    let entries = listings.into_iter().flat_map(|listing| listing.entries);
    let within = |entry: &ListEntry| horizon.as_ref().is_none_or(|horizon| entry.key <= *horizon);
    let newest = listing::newest(entries.filter(within));
    let shown = newest.into_iter().filter(|entry| !entry.deleted);
    // Servers may list different keys, so that together there are more than each was asked for.
    let limit = usize::from(limit).clamp(1, limits::PAGE_ENTRIES);
    let mut entries: Vec<ListEntry> = shown.take(limit + 1).collect();
    if entries.len() <= limit {
        let next = horizon;
        return Page { entries, next };
    }
    entries.truncate(limit);
    let next = entries.last().map(|entry| entry.key.clone());
    Page { entries, next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::{Tag, Writer};

    fn entry(key: &str, number: u64, deleted: bool) -> ListEntry {
        let writer = Writer::default();
        ListEntry {
            key: key.into(),
            tag: Tag { number, writer },
            length: 0,
            age_s: 0,
            deleted,
            damaged: false,
        }
    }

    fn listing(entries: Vec<ListEntry>, horizon: Option<&str>) -> Listing {
        let horizon = horizon.map(Into::into);
        Listing { entries, horizon }
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
