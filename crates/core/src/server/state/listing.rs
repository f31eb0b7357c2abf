//! Listings of a server's objects, page by page (`docs/spec` `[X-19 regular-listing]`).

use super::{ADMITTED, ConfigurationState};
use crate::dap::kind::of_kind;
use crate::dap::versions::{StoredVersion, Versions};
use crate::limits;
use crate::message::{ListEntry, ListPage, ListRequest};
use crate::object::Kind;
use crate::tag::Tag;
use bytes::Bytes;
use std::ops::Bound;

/// A listed version, and the stored part of it.
type ShownVersion<'a> = (Tag, Option<&'a StoredVersion>);

/// Keys that are looked at for one that shows that a common prefix is not empty. A client looks further itself.
const LOOKED_AT: usize = limits::PAGE_ENTRIES;

impl ConfigurationState {
    /// A page of objects. `age_s`: how long ago a second of this server's clock was.
    pub(in crate::server) fn list(
        &self,
        request: &ListRequest,
        age_s: impl Fn(u32) -> u32,
    ) -> ListPage {
        let limit = usize::from(request.limit).clamp(1, limits::PAGE_ENTRIES);
        let mut entries: Vec<ListEntry> = Vec::new();
        let mut objects = self.objects_from(&start(request), request);
        while let Some((name, versions)) = objects.next() {
            if entries.len() == limit {
                return ListPage {
                    entries,
                    truncated: true,
                };
            }
            let (mut listed, common) = ((name, versions), request.common_prefix(key_of(name)));
            if let Some(common) = common {
                listed = self.witness(listed, request, common);
                let next = Bound::Included(beyond(request, common));
                objects = self.objects_from(&next, request);
            }
            let (key, versions) = (key_of(listed.0), listed.1);
            let last = entries.last().map(|last| request.listed_as(&last.key));
            assert!(last < Some(request.listed_as(key)), "a page ascends");
            let shown = self.shown(request.kind, listed);
            entries.push(entry(key, (versions, shown), age_s(versions.taken_in_s)));
        }
        ListPage {
            entries,
            truncated: false,
        }
    }

    /// The objects from here on whose names begin as the request says.
    fn objects_from<'a>(
        &'a self,
        start: &Bound<Vec<u8>>,
        request: &ListRequest,
    ) -> impl Iterator<Item = (&'a Bytes, &'a Versions)> + use<'a> {
        let prefix = name(request, &request.prefix);
        let start = start.as_ref().map(Vec::as_slice);
        let range = self.objects.range::<[u8], _>((start, Bound::Unbounded));
        let begins_so = move |(name, _): &(&Bytes, &Versions)| name.starts_with(&prefix);
        let (listed, kind) = (range.take_while(begins_so), request.kind);
        listed.filter(move |it| it.1.damaged().is_some() || self.shown(kind, *it).is_some())
    }

    /// The version of an object that a listing shows; of a register
    /// [`Register::listed`](crate::dap::conditional::register::Register::listed). An object with nothing but a floor
    /// is in no listing.
    fn shown<'a>(
        &self,
        kind: Kind,
        (name, versions): (&Bytes, &'a Versions),
    ) -> Option<ShownVersion<'a>> {
        if let Some(kept) = self.registers.get(name) {
            let tag = kept.register.listed()?;
            return Some((tag, versions.with_element(tag)));
        }
        let c = self.configuration().expect(ADMITTED);
        let listed = of_kind!(c, K => K::listed(versions));
        // A sweep has to find a block that its writer left half way, although its removal was left half way, too.
        let mut blocks = versions.stored().iter().filter(|_| kind == Kind::Block);
        let left = blocks.rfind(|block| !block.deleted);
        listed.or_else(|| left.map(|block| (block.tag, Some(block))))
    }

    /// The object that represents all keys with this common prefix in a listing: the first existing one among the
    /// first [`LOOKED_AT`]; otherwise `first`, the object of the first key with the prefix.
    fn witness<'a>(
        &'a self,
        first: (&'a Bytes, &'a Versions),
        request: &ListRequest,
        common: &str,
    ) -> (&'a Bytes, &'a Versions) {
        let common = name(request, common);
        let start = Bound::Included(first.0.to_vec());
        let under = self.objects_from(&start, request);
        let under = under.take_while(|(name, _)| name.starts_with(&common));
        let mut under = under.take(LOOKED_AT);
        let is_there = |object: &(&'a Bytes, &'a Versions)| {
            let shown = self
                .shown(request.kind, *object)
                .and_then(|(_, stored)| stored);
            object.1.damaged().is_none() && shown.is_some_and(|stored| !stored.deleted)
        };
        under.find(is_there).unwrap_or(first)
    }
}

/// The name of the object of the request's kind that has this key.
fn name(request: &ListRequest, key: &str) -> Vec<u8> {
    [&[request.kind as u8], key.as_bytes()].concat()
}

fn key_of(name: &Bytes) -> &str {
    std::str::from_utf8(&name[1..]).expect("checked when the name was made")
}

/// The least name behind all that begin so.
fn beyond(request: &ListRequest, common: &str) -> Vec<u8> {
    let mut name = name(request, common);
    // UTF-8 has no byte 255.
    *name.last_mut().expect("the kind is there") += 1;
    name
}

/// The bound at which the page begins.
fn start(request: &ListRequest) -> Bound<Vec<u8>> {
    let after = request.after.as_str();
    if request.common_prefix(after) == Some(after) {
        Bound::Included(beyond(request, after))
    } else if after >= request.prefix.as_str() {
        Bound::Excluded(name(request, after))
    } else {
        Bound::Included(name(request, &request.prefix))
    }
}

fn entry(
    key: &str,
    (versions, shown): (&Versions, Option<ShownVersion<'_>>),
    age_s: u32,
) -> ListEntry {
    let newest = shown.and_then(|(_, stored)| stored);
    let tag = versions.damaged().max(shown.map(|(tag, _)| tag));
    ListEntry {
        key: key.into(),
        tag: tag.expect("of an object that is listed"),
        length: newest.map_or(0, |newest| newest.length),
        etag: newest.and_then(|newest| newest.etag.clone()),
        written_at_ms: newest.and_then(StoredVersion::written_at_ms),
        age_s,
        deleted: newest.is_some_and(|newest| newest.deleted),
        damaged: versions.damaged().is_some(),
        absent: shown.is_some() && newest.is_none(),
    }
}
