//! Lists of uploads and of parts.

use super::{PAGE, UploadPlace};
use crate::gateway::failure;
use crate::gateway::read::shown_ms;
use crate::gateway::reply::Reply;
use crate::wire::xml::Owner;
use crate::wire::xml::list::ChecksumKind;
use crate::wire::xml::multipart::{PartEntry, PartsPage, UploadEntry, UploadsPage};
use crate::wire::{S3Error, xml};
use areo_client::{Domain, RecordName, RecordsAfter};

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

/// Answers a list of the uploads of a bucket that are under way.
///
/// # Errors
/// Those of the store.
pub(in crate::gateway) async fn uploads(
    domain: &Domain,
    wish: &UploadsWish<'_>,
    owner: &Owner,
) -> Result<Reply, S3Error> {
    let (mut uploads, mut prefixes) = (Vec::<UploadEntry>::new(), Vec::<String>::new());
    let mut next = None;
    let mut after = match (wish.key_marker, wish.upload_id_marker) {
        ("", _) => After::Nothing,
        (key, "") => After::Key(key.to_owned()),
        (key, upload) => After::Record(behind(key, upload)),
    };
    'pages: loop {
        let page = domain
            .list_records(wish.prefix, after.records(), PAGE)
            .await;
        let page = page.map_err(|error| failure::of(&error))?;
        let mut jump = None;
        for entry in page.entries {
            let RecordName { key, suffix } = entry.name;
            let is_behind = |common: &String| key.starts_with(common.as_str());
            if suffix.contains('/') || prefixes.last().is_some_and(is_behind) {
                continue;
            }
            if uploads.len() + prefixes.len() >= wish.max_uploads {
                next = uploads
                    .last()
                    .map(|it| (it.key.clone(), it.upload_id.clone()));
                break 'pages;
            }
            if let Some(common) = common(&key, wish) {
                prefixes.push(common);
                continue;
            }
            jump = Some(behind(&key, &suffix));
            uploads.push(UploadEntry {
                key,
                upload_id: suffix,
                initiated_ms: shown_ms(entry.written_at_ms),
                checksum: None,
            });
        }
        after = match (page.next, jump) {
            (None, _) => break,
            // The parts of the last upload of the page are passed over.
            (Some(next), Some(jump)) if jump > next => After::Record(jump),
            (Some(next), _) => After::Record(next),
        };
    }
    let next = next.as_ref();
    let page = UploadsPage {
        bucket: domain.name(),
        prefix: wish.prefix,
        delimiter: wish.delimiter,
        key_marker: wish.key_marker,
        upload_id_marker: wish.upload_id_marker,
        max_uploads: wish.max_uploads,
        url_encoding: wish.url_encoding,
        uploads: &uploads,
        common_prefixes: &prefixes,
        next: next.map(|(key, id)| (key.as_str(), id.as_str())),
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
    let rest = &key[wish.prefix.len()..];
    let end = rest.find(wish.delimiter)? + wish.delimiter.len();
    Some(key[..wish.prefix.len() + end].to_owned())
}
