//! The headers of S3 that are kept with an object, as metadata of the store.
//!
//! A name of `x-amz-meta-*` is a name of the store's user metadata, so that both interfaces show it as one. Names with a colon in front are the gateway's:
//!
//! | name | value |
//! |---|---|
//! | `:cache-control` and others | a header of the content |
//! | `:tag:NAME` | a tag |
//! | `:upload` | the multipart upload that the object was |
//! | `:checksum` | `ALGORITHM FULL_OBJECT BASE64`, or `COMPOSITE` of an object in parts |

use crate::body::checksum::{Algorithm, Checksum};
use crate::wire::{ContentHeaders, PutHeaders};
use areo_client::{Entry, Metadata, Version};

const TAG: &str = ":tag:";
const CHECKSUM: &str = ":checksum";
const UPLOAD: &str = ":upload";
const COMPOSITE: &str = "COMPOSITE";
const FULL_OBJECT: &str = "FULL_OBJECT";

/// A checksum as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptChecksum {
    pub(super) checksum: Checksum,
    /// Number of parts, if it is a checksum of the parts' checksums.
    pub(super) parts: Option<u16>,
}

impl KeptChecksum {
    /// The word of `x-amz-checksum-type`.
    pub(super) fn kind(&self) -> &'static str {
        match self.parts {
            Some(_) => COMPOSITE,
            None => FULL_OBJECT,
        }
    }

    /// The text of the header: Base64, and the number of parts of a composite one.
    pub(super) fn text(&self) -> String {
        let text = self.checksum.text();
        match self.parts {
            Some(parts) => format!("{text}-{parts}"),
            None => text,
        }
    }
}

/// Everything of S3 that is kept with an object beside its bytes and its `ETag`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Kept {
    /// Headers of the content.
    pub(super) content: ContentHeaders,
    /// Names behind `x-amz-meta-`, and their values.
    pub(super) user: Vec<(String, String)>,
    /// Tags: pairs of name and value.
    pub(super) tags: Vec<(String, String)>,
    /// The checksum that the writer asked for.
    pub(super) checksum: Option<KeptChecksum>,
    /// The multipart upload that the object was.
    pub(super) upload: Option<String>,
}

impl Kept {
    /// The headers of a request that writes an object.
    pub(super) fn of_request(headers: &PutHeaders) -> Kept {
        Kept {
            content: headers.content.clone(),
            user: headers.user.clone(),
            tags: headers.tags.clone(),
            checksum: None,
            upload: None,
        }
    }

    /// Everything that is kept with an object.
    pub(super) fn of(metadata: &Metadata) -> Kept {
        let mut kept = Kept::default();
        kept.content.content_type.clone_from(&metadata.content_type);
        for (name, value) in &metadata.user {
            let pair = |name: &str| (name.to_owned(), value.clone());
            if let Some(tag) = name.strip_prefix(TAG) {
                kept.tags.push(pair(tag));
            } else if name == CHECKSUM {
                kept.checksum = checksum_of(value);
            } else if name == UPLOAD {
                kept.upload = Some(value.clone());
            } else if let Some(header) = name.strip_prefix(':') {
                kept.content.others.push(pair(header));
            } else {
                kept.user.push(pair(name));
            }
        }
        kept
    }

    /// The pairs of the store's user metadata.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let headers = self.content.others.iter();
        let headers = headers.map(|(name, value)| (format!(":{name}"), value.clone()));
        let tags = self.tags.iter();
        let tags = tags.map(|(name, value)| (format!("{TAG}{name}"), value.clone()));
        let checksum = self.checksum.iter().map(|kept| {
            let algorithm = kept.checksum.algorithm.word();
            let value = format!("{algorithm} {} {}", kept.kind(), kept.text());
            (CHECKSUM.to_owned(), value)
        });
        let upload = self.upload.iter();
        let upload = upload.map(|upload| (UPLOAD.to_owned(), upload.clone()));
        let user = self.user.iter().cloned();
        let all = user.chain(headers).chain(tags).chain(checksum);
        all.chain(upload).collect()
    }
}

/// The pairs of the store's user metadata with these tags in place of those that are there.
pub(super) fn with_tags(
    user: &[(String, String)],
    tags: &[(String, String)],
) -> Vec<(String, String)> {
    let others = user.iter().filter(|(name, _)| !name.starts_with(TAG));
    let tags = tags.iter();
    let tags = tags.map(|(name, value)| (format!("{TAG}{name}"), value.clone()));
    others.cloned().chain(tags).collect()
}

fn checksum_of(value: &str) -> Option<KeptChecksum> {
    let mut words = value.split(' ');
    let algorithm = Algorithm::of_word(words.next()?)?;
    let kind = words.next()?;
    let text = words.next()?;
    let (text, parts) = match kind {
        FULL_OBJECT => (text, None),
        COMPOSITE => {
            let (text, parts) = text.rsplit_once('-')?;
            (text, Some(parts.parse().ok()?))
        }
        _ => return None,
    };
    let checksum = Checksum::parse(algorithm, text).ok()?;
    Some(KeptChecksum { checksum, parts })
}

/// The `ETag` of an object, without quotation marks: the one that its writer gave it, or its version, of an object that was written by another
/// interface.
pub(super) fn etag_of(metadata: &Metadata, version: Version) -> String {
    let given = metadata.etag.as_ref().map(|etag| etag.as_str().to_owned());
    given.unwrap_or_else(|| version.to_string())
}

/// The `ETag` of an object in a listing, without quotation marks.
pub(super) fn etag_of_entry(entry: &Entry) -> String {
    let given = entry.etag.clone();
    given.unwrap_or_else(|| entry.version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn what_is_kept_comes_back() {
        let composite = KeptChecksum {
            checksum: Checksum {
                algorithm: Algorithm::Crc32c,
                bytes: vec![1, 2, 3, 4],
            },
            parts: Some(3),
        };
        let kept = Kept {
            content: ContentHeaders {
                content_type: Some("text/plain".into()),
                others: vec![pair("cache-control", "no-cache")],
            },
            user: vec![pair("colour", "blue: yes")],
            tags: vec![pair("a:b", "c d")],
            checksum: Some(composite),
            upload: Some("6f1f8a4e".into()),
        };
        let metadata = Metadata {
            content_type: kept.content.content_type.clone(),
            user: kept.pairs(),
            ..Metadata::default()
        };
        assert_eq!(Kept::of(&metadata), kept);
        let (_, checksum) = &kept.pairs()[3];
        assert_eq!(checksum, "CRC32C COMPOSITE AQIDBA==-3");
        let tags = vec![pair("tag", "new"), pair(":", "")];
        let changed = Metadata {
            content_type: kept.content.content_type.clone(),
            user: with_tags(&metadata.user, &tags),
            ..Metadata::default()
        };
        assert_eq!(Kept::of(&changed), Kept { tags, ..kept });
    }
}
