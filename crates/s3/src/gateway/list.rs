//! Pages of the objects of a bucket.
//!
//! The store gives a page that may have fewer entries than asked for, because it passed over deleted objects. The gateway asks on until the page is full, a bounded number
//! of times: then it gives what it has. The token of a page says where the next one begins, so that it always advances.

use super::failure;
use super::kept::etag_of_entry;
use super::read::shown_ms;
use super::reply::Reply;
use crate::wire::xml::Owner;
use crate::wire::xml::list::{ObjectEntry, Page};
use crate::wire::{Code, ListObjects, ListStyle, S3Error, xml};
use areo_client::{Domain, Entry, ListOptions};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Rounds of one page at most: each passes over as many deleted objects as a page of the store does.
const ROUNDS: usize = 50;
/// The mark of a token's form, so that a later form can be distinguished.
const FORM: char = '1';

/// A page of a listing, as far as it is gathered.
#[derive(Debug, Default)]
struct Gathered {
    entries: Vec<Entry>,
    prefixes: Vec<String>,
    /// The key or common prefix after which the next page begins.
    next: Option<String>,
}

/// Answers both forms of a listing.
///
/// # Errors
/// Those of the store, and of a token that is none.
pub(super) async fn objects(
    domain: &Domain,
    list: &ListObjects,
    owner: &Owner,
) -> Result<Reply, S3Error> {
    let after = match &list.token {
        None => list.after.clone(),
        Some(token) => cursor(token)?,
    };
    let page = gather(domain, list, after).await?;
    let next = match list.style {
        ListStyle::V1 => page.next.clone(),
        ListStyle::V2 => page.next.as_deref().map(token),
    };
    let entries = rows(&page);
    let page = shown((domain, list, owner), &entries, &page, next.as_deref());
    Ok(Reply::document(xml::list::objects(&page)))
}

/// Answers a listing of versions: of each object there is one.
///
/// # Errors
/// As [`objects`].
pub(super) async fn versions(
    domain: &Domain,
    list: &ListObjects,
    owner: &Owner,
) -> Result<Reply, S3Error> {
    let page = gather(domain, list, list.after.clone()).await?;
    let entries = rows(&page);
    let page = shown((domain, list, owner), &entries, &page, page.next.as_deref());
    Ok(Reply::document(xml::list::versions(&page)))
}

/// Gathers a page from the domain's listings, behind `after`.
async fn gather(domain: &Domain, list: &ListObjects, after: String) -> Result<Gathered, S3Error> {
    let mut gathered = Gathered::default();
    if list.max_keys == 0 {
        return Ok(gathered);
    }
    let mut after = after;
    for _ in 0..ROUNDS {
        let found = gathered.entries.len() + gathered.prefixes.len();
        let options = ListOptions {
            prefix: list.prefix.clone(),
            after: after.clone(),
            delimiter: list.delimiter.clone(),
            limit: list.max_keys - found,
        };
        let page = domain.list_with(options).await;
        let page = page.map_err(|error| failure::of(&error))?;
        gathered.entries.extend(page.entries);
        gathered.prefixes.extend(page.prefixes);
        let Some(next) = page.next else {
            return Ok(gathered);
        };
        assert!(next > after, "a page ends behind its beginning");
        after = next;
        if gathered.entries.len() + gathered.prefixes.len() >= list.max_keys {
            break;
        }
    }
    gathered.next = Some(after);
    Ok(gathered)
}

fn rows(page: &Gathered) -> Vec<ObjectEntry> {
    let row = |entry: &Entry| ObjectEntry {
        key: entry.key.clone(),
        modified_ms: shown_ms(entry.written_at_ms),
        etag: etag_of_entry(entry),
        size: entry.length,
        checksum: None,
    };
    page.entries.iter().map(row).collect()
}

fn shown<'a>(
    (domain, request, owner): (&'a Domain, &'a ListObjects, &'a Owner),
    entries: &'a [ObjectEntry],
    page: &'a Gathered,
    next: Option<&'a str>,
) -> Page<'a> {
    Page {
        bucket: domain.name(),
        request,
        entries,
        common_prefixes: &page.prefixes,
        next,
        owner,
    }
}

/// The token of a page that begins after this key.
fn token(after: &str) -> String {
    format!("{FORM}{}", URL_SAFE_NO_PAD.encode(after))
}

/// The key after which the page of a token begins.
fn cursor(token: &str) -> Result<String, S3Error> {
    let bytes = token.strip_prefix(FORM);
    let bytes = bytes.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| {
        let sentence = "the continuation-token is not one that this gateway gave";
        S3Error::new(Code::InvalidArgument, sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_where_the_next_page_begins() {
        for key in ["a", "ä/ \u{10ffff}", "a/b//"] {
            assert_eq!(cursor(&token(key)), Ok(key.to_owned()));
        }
        for wrong in ["", "1*", "2YQ", "1_w"] {
            assert_eq!(
                cursor(wrong).unwrap_err().code,
                Code::InvalidArgument,
                "{wrong}"
            );
        }
    }
}
