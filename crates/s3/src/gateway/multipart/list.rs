//! Lists of uploads and of parts.

use super::{PAGE, UploadPlace};
use crate::gateway::failure;
use crate::gateway::read::shown_ms;
use crate::gateway::reply::Reply;
use crate::wire::xml::Owner;
use crate::wire::xml::list::ChecksumKind;
use crate::wire::xml::multipart::{PartEntry, PartsPage, UploadEntry, UploadsPage};
use crate::wire::{S3Error, xml};
use areo_client::{Domain, RecordEntry, RecordName, RecordsAfter};

/// Answers a list of the parts of an upload.
///
/// # Errors
/// [`Code::NoSuchUpload`](crate::wire::Code::NoSuchUpload), and those of the store.
pub(in crate::gateway) async fn parts(
    place: UploadPlace<'_>,
    (marker, max_parts, url_encoding): (u16, usize, bool),
    owner: &Owner,
) -> Result<Reply, S3Error> {
    place.upload()?;
    let begun = place.begun().await?;
    let begin = place.id.len() + 1;
    let mut after = RecordName {
        key: place.key.to_owned(),
        suffix: place.part(marker),
    };
    let (mut numbers, mut is_truncated) = (Vec::new(), false);
    while !is_truncated && max_parts > 0 {
        let (entries, next) = place.parts_after(Some(&after)).await?;
        let listed = entries.iter();
        let listed = listed.filter_map(|entry| entry.name.suffix[begin..].parse::<u16>().ok());
        numbers.extend(listed);
        is_truncated = numbers.len() > max_parts;
        match next {
            Some(next) => after = next,
            None => break,
        }
    }
    numbers.truncate(max_parts);
    let parts = entries(&place, numbers).await?;
    let page = PartsPage {
        bucket: place.domain.name(),
        key: place.key,
        upload_id: place.id,
        marker,
        max_parts,
        is_truncated,
        parts: &parts,
        checksum: begun.algorithm.map(|algorithm| ChecksumKind {
            algorithm,
            is_full_object: begun.full_object,
        }),
        url_encoding,
        owner,
    };
    Ok(Reply::document(xml::multipart::parts(&page)))
}

/// The parts of these numbers; those that have gone meanwhile are left out.
async fn entries(place: &UploadPlace<'_>, numbers: Vec<u16>) -> Result<Vec<PartEntry>, S3Error> {
    let kept = place.kept_parts(numbers.clone()).await?;
    let parts = numbers.into_iter().zip(kept);
    let parts = parts.filter_map(|(part, kept)| {
        let kept = kept?;
        Some(PartEntry {
            part,
            etag: kept.etag,
            modified_ms: kept.modified_ms,
            size: kept.stored.length(),
            checksum: kept.checksum,
        })
    });
    Ok(parts.collect())
}

/// The wish of a caller that lists uploads.
pub(in crate::gateway) struct UploadsWish<'a> {
    pub(in crate::gateway) prefix: &'a str,
    pub(in crate::gateway) delimiter: &'a str,
    pub(in crate::gateway) key_marker: &'a str,
    pub(in crate::gateway) upload_id_marker: &'a str,
    pub(in crate::gateway) max_uploads: usize,
    pub(in crate::gateway) url_encoding: bool,
}

/// The end of all names of records that begin with an upload.
fn behind(key: &str, upload: &str) -> RecordName {
    // The parts have a `/` behind the upload, and `0` follows it.
    RecordName {
        key: key.to_owned(),
        suffix: format!("{upload}0"),
    }
}

/// A page of uploads on its way.
struct Gathered<'a> {
    wish: &'a UploadsWish<'a>,
    uploads: Vec<UploadEntry>,
    prefixes: Vec<String>,
    /// The common prefix that was listed last, on this page or as the end of the one before.
    prefix: Option<String>,
    /// The end of the page: key and upload, or a common prefix and no upload.
    end: Option<(String, String)>,
}

impl<'a> Gathered<'a> {
    fn new(wish: &'a UploadsWish<'a>) -> Gathered<'a> {
        let (key, upload) = (wish.key_marker, wish.upload_id_marker);
        let prefix = common(key, wish).filter(|common| common == key && upload.is_empty());
        Gathered {
            wish,
            uploads: Vec::new(),
            prefixes: Vec::new(),
            prefix,
            end: None,
        }
    }

    /// Adds the upload of a record, or the common prefix that stands for it. False: the page is full.
    fn add(&mut self, entry: RecordEntry) -> bool {
        let RecordName { key, suffix } = entry.name;
        let is_behind = |common: &String| key.starts_with(common.as_str());
        if suffix.contains('/') || self.prefix.as_ref().is_some_and(is_behind) {
            return true;
        }
        if self.uploads.len() + self.prefixes.len() >= self.wish.max_uploads {
            return false;
        }
        if let Some(common) = common(&key, self.wish) {
            self.prefixes.push(common.clone());
            self.end = Some((common.clone(), String::new()));
            self.prefix = Some(common);
            return true;
        }
        self.end = Some((key.clone(), suffix.clone()));
        self.uploads.push(UploadEntry {
            key,
            upload_id: suffix,
            initiated_ms: shown_ms(entry.written_at_ms),
            checksum: None,
        });
        true
    }
}

/// Answers a list of the uploads of a bucket that are under way.
///
/// # Errors
/// Those of the store.
pub(in crate::gateway) async fn uploads(
    domain: &Domain,
    wish: &UploadsWish<'_>,
    owner: &Owner,
) -> Result<Reply, S3Error> {
    let (mut gathered, mut after) = (Gathered::new(wish), After::of(wish));
    let is_full = loop {
        let page = domain
            .list_records(wish.prefix, after.records(), PAGE)
            .await;
        let page = page.map_err(|error| failure::of(&error))?;
        if !page.entries.into_iter().all(|entry| gathered.add(entry)) {
            break true;
        }
        let last = gathered.uploads.last();
        let jump = last.map(|it| behind(&it.key, &it.upload_id));
        after = match (page.next, jump) {
            (None, _) => break false,
            // The parts of the last upload of the page are passed over.
            (Some(next), Some(jump)) if jump > next => After::Record(jump),
            (Some(next), _) => After::Record(next),
        };
    };
    let end = gathered.end.as_ref().filter(|_| is_full);
    let page = UploadsPage {
        bucket: domain.name(),
        prefix: wish.prefix,
        delimiter: wish.delimiter,
        key_marker: wish.key_marker,
        upload_id_marker: wish.upload_id_marker,
        max_uploads: wish.max_uploads,
        url_encoding: wish.url_encoding,
        uploads: &gathered.uploads,
        common_prefixes: &gathered.prefixes,
        next: end.map(|(key, id)| (key.as_str(), id.as_str())),
        owner,
    };
    Ok(Reply::document(xml::multipart::uploads(&page)))
}

/// The place behind which a page begins.
enum After {
    Nothing,
    Key(String),
    Record(RecordName),
}

impl After {
    fn of(wish: &UploadsWish<'_>) -> After {
        match (wish.key_marker, wish.upload_id_marker) {
            ("", _) => After::Nothing,
            (key, "") => After::Key(key.to_owned()),
            (key, upload) => After::Record(behind(key, upload)),
        }
    }

    fn records(&self) -> RecordsAfter<'_> {
        match self {
            After::Nothing => RecordsAfter::Nothing,
            After::Key(key) => RecordsAfter::Key(key),
            After::Record(name) => RecordsAfter::Record(name),
        }
    }
}

/// The common prefix that stands for a key, if one does.
fn common(key: &str, wish: &UploadsWish<'_>) -> Option<String> {
    if wish.delimiter.is_empty() {
        return None;
    }
    let rest = key.strip_prefix(wish.prefix)?;
    let end = rest.find(wish.delimiter)? + wish.delimiter.len();
    Some(key[..wish.prefix.len() + end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_client::Version;

    /// Keys, each with an upload `u` that has a part, and `a` with a second upload.
    const KEYS: [&str; 8] = ["a", "b/1", "b/2", "c", "d/1", "d/e/1", "f/1", "g"];

    fn records() -> Vec<RecordName> {
        let of_key = |key: &str| {
            let suffixes = if key == "a" {
                &["u", "u/00001", "v"][..]
            } else {
                &["u", "u/00001"]
            };
            let name = |suffix: &&str| RecordName {
                key: key.to_owned(),
                suffix: (*suffix).to_owned(),
            };
            suffixes.iter().map(name).collect::<Vec<_>>()
        };
        KEYS.into_iter().flat_map(of_key).collect()
    }

    /// Lists pages of this length. Returns uploads and common prefixes.
    fn listed((prefix, delimiter): (&str, &str), max_uploads: usize) -> Vec<String> {
        let mut listed = Vec::new();
        let mut marker = (String::new(), String::new());
        loop {
            let wish = UploadsWish {
                prefix,
                delimiter,
                key_marker: &marker.0,
                upload_id_marker: &marker.1,
                max_uploads,
                url_encoding: false,
            };
            let after = After::of(&wish);
            let mut gathered = Gathered::new(&wish);
            let is_full = !records().into_iter().all(|name| {
                let is_after = match &after {
                    After::Nothing => true,
                    After::Key(key) => name.key > *key,
                    After::Record(record) => name > *record,
                };
                let entry = RecordEntry {
                    name,
                    version: Version::INITIAL,
                    length: 0,
                    etag: None,
                    written_at_ms: None,
                    damaged: false,
                };
                !is_after || !entry.name.key.starts_with(prefix) || gathered.add(entry)
            });
            let uploads = gathered.uploads.iter();
            listed.extend(uploads.map(|it| format!("{} {}", it.key, it.upload_id)));
            listed.extend(gathered.prefixes);
            let Some(end) = gathered.end.filter(|_| is_full) else {
                listed.sort();
                return listed;
            };
            marker = end;
        }
    }

    /// A page that ended with a common prefix was the last one, or the prefix came again.
    #[test]
    fn pages_of_any_length_have_each_upload_and_common_prefix_once() {
        for (wish, expected) in [
            (
                ("", "/"),
                &["a u", "a v", "b/", "c u", "d/", "f/", "g u"][..],
            ),
            (("d/", "/"), &["d/1 u", "d/e/"]),
            (
                ("", ""),
                &[
                    "a u", "a v", "b/1 u", "b/2 u", "c u", "d/1 u", "d/e/1 u", "f/1 u", "g u",
                ],
            ),
        ] {
            for length in 1..10 {
                assert_eq!(listed(wish, length), expected, "{wish:?} {length}");
            }
        }
    }
}
