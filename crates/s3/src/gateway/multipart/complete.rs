//! The completion of an upload: its parts are published as one object.
//!
//! No byte of the object is read or written: the `ETag` and the checksum are computed from those of the parts. The store decides which of several completions, and of completions
//! and abortions, comes first.

use super::part::KeptPart;
use super::{Begun, UploadPlace, is_of};
use crate::body::checksum::{
    Checksum, Expected, PartChecksum, composite, full_object, multipart_etag,
};
use crate::gateway::failure;
use crate::gateway::kept::{Kept, KeptChecksum, etag_of};
use crate::gateway::reply::Reply;
use crate::gateway::write::{self, Judged};
use crate::wire::xml::multipart::{Completed, CompletedChecksum, CompletedPart};
use crate::wire::{Code, S3Error, WriteCondition, xml};
use areo_client::{Condition, Error, Etag, Invalid, PutOptions, StoredPart, Version};
use ring::digest;
use std::collections::BTreeSet;

/// The request of a completion.
pub(in crate::gateway) struct Completion<'a> {
    pub(in crate::gateway) parts: Vec<CompletedPart>,
    pub(in crate::gateway) condition: Option<&'a WriteCondition>,
    pub(in crate::gateway) expected: &'a Expected,
    pub(in crate::gateway) length: Option<u64>,
    /// The shortest part but for the last one, in bytes.
    pub(in crate::gateway) part_bytes: u64,
}

impl Completion<'_> {
    /// The `ETag` of the object that these parts make, without quotation marks.
    ///
    /// # Errors
    /// [`Code::InvalidPart`]: the `ETag` of one is none of a part.
    fn etag(&self) -> Result<String, S3Error> {
        let md5 = |listed: &CompletedPart| {
            let is_md5 = listed.etag.len() == 32;
            let digits = u128::from_str_radix(&listed.etag, 16).ok();
            let digits = digits.filter(|_| is_md5).map(u128::to_be_bytes);
            digits.ok_or_else(|| no_part(listed.part))
        };
        let md5s: Result<Vec<[u8; 16]>, S3Error> = self.parts.iter().map(md5).collect();
        Ok(multipart_etag(&md5s?))
    }
}

/// Answers the completion of an upload.
///
/// # Errors
/// [`Code::NoSuchUpload`], [`Code::InvalidPart`], [`Code::EntityTooSmall`], [`Code::BadDigest`], those of the condition and of the store.
pub(in crate::gateway) async fn complete(
    place: UploadPlace<'_>,
    completion: Completion<'_>,
) -> Result<Reply, S3Error> {
    place.upload()?;
    let etag = completion.etag()?;
    // An earlier attempt may have come to its end.
    if let Some(done) = earlier(&place, &etag).await? {
        place.end(&BTreeSet::new()).await?;
        return Ok(done);
    }
    let error = match publish(&place, &completion, &etag).await {
        Ok(published) => {
            place.end(&published.records).await?;
            return Ok(response(&place, etag, published.checksum));
        }
        Err(error) => error,
    };
    // Another attempt may have been faster. An error of this question says less than the first one.
    if let Ok(Some(done)) = earlier(&place, &etag).await {
        place.end(&BTreeSet::new()).await?;
        return Ok(done);
    }
    let is_over = matches!(error.code, Code::NoSuchUpload | Code::InvalidPart);
    if is_over && was_published(&place, &etag).await {
        place.end(&BTreeSet::new()).await?;
        return Ok(response(&place, etag, None));
    }
    Err(error)
}

/// The answer, if the object is what these parts of the upload became.
async fn earlier(place: &UploadPlace<'_>, etag: &str) -> Result<Option<Reply>, S3Error> {
    match place.domain.stat(place.key).await {
        Ok(info)
            if is_of(&info.metadata, place.id) && etag_of(&info.metadata, info.version) == etag =>
        {
            let checksum = Kept::of(&info.metadata).checksum;
            Ok(Some(response(place, etag.to_owned(), checksum)))
        }
        // A caller that may only write learns it from the store, if an earlier attempt published.
        Ok(_) | Err(Error::NotFound { key: Some(_), .. } | Error::Unauthorised { .. }) => Ok(None),
        Err(error) => Err(failure::of(&error)),
    }
}

/// True if these parts of the upload became a version after which fewer than 16 were written. Only a bucket with one winner knows.
async fn was_published(place: &UploadPlace<'_>, etag: &str) -> bool {
    let (domain, request) = (place.domain, request_name(place.id, etag));
    let is_known = domain.has_one_winner();
    is_known && matches!(domain.written_by(place.key, request).await, Ok(Some(_)))
}

/// The name by which the store knows the publication of these parts of an upload.
fn request_name(upload: &str, etag: &str) -> u128 {
    let hash = digest::digest(&digest::SHA256, format!("{upload} {etag}").as_bytes());
    let bytes: [u8; 16] = hash.as_ref()[..16]
        .try_into()
        .expect("SHA-256 has 32 bytes");
    u128::from_le_bytes(bytes).max(1)
}

fn response(place: &UploadPlace<'_>, etag: String, checksum: Option<KeptChecksum>) -> Reply {
    let (bucket, key) = (place.domain.name(), place.key);
    let completed = Completed {
        location: format!("/{bucket}/{key}"),
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        etag,
        checksum: checksum.map(|kept| CompletedChecksum {
            checksum: kept.checksum,
            parts: kept.parts.map(u32::from),
        }),
    };
    Reply::document(xml::multipart::completed(&completed))
}

/// An object that was published.
struct Published {
    checksum: Option<KeptChecksum>,
    /// The versions of the records of its parts.
    records: BTreeSet<Version>,
}

/// Publishes the parts that the caller lists.
async fn publish(
    place: &UploadPlace<'_>,
    completion: &Completion<'_>,
    etag: &str,
) -> Result<Published, S3Error> {
    let upload = place.upload()?;
    let begun = place.begun().await?;
    let parts = chosen(place, completion).await?;
    let checksum = checksum(&begun, &parts, completion.expected)?;
    let request = request_name(place.id, etag);
    let condition = completion.condition;
    let published = Published {
        checksum: checksum.clone(),
        records: parts.iter().map(|part| part.version).collect(),
    };
    let on = match write::judge(place.domain, place.key, condition, request).await? {
        Judged::On(on) => on.unwrap_or(Condition::Always),
        Judged::Done(_) => return Ok(published),
    };
    let content_type = begun.kept.content.content_type.clone();
    let object = Kept {
        upload: Some(place.id.to_owned()),
        checksum,
        ..begun.kept
    };
    let options = PutOptions {
        content_type,
        user_metadata: object.pairs(),
        etag: Some(Etag::new(etag).expect("digits, and a number of parts")),
        request,
        ..PutOptions::default()
    };
    let stored: Vec<StoredPart> = parts.iter().map(|part| part.stored).collect();
    let publication = place
        .domain
        .publish_parts(place.key, upload, &stored, options, on);
    match publication.await {
        Ok(_) => Ok(published),
        // It was aborted, or completed with other parts.
        Err(
            Error::Swept { .. }
            | Error::Invalid {
                reason: Invalid::OtherParts { .. },
            },
        ) => Err(place.none()),
        Err(error) => Err(write::refused(place.domain, condition, &error)),
    }
}

fn no_part(number: u16) -> S3Error {
    let sentence = format!("there is no part {number} with that ETag and that checksum");
    S3Error::new(Code::InvalidPart, sentence)
}

/// The parts that the caller lists, as they are kept.
async fn chosen(
    place: &UploadPlace<'_>,
    completion: &Completion<'_>,
) -> Result<Vec<KeptPart>, S3Error> {
    let numbers = completion.parts.iter().map(|listed| listed.part).collect();
    let kept = place.kept_parts(numbers).await?;
    let parts = completion.parts.iter().zip(kept).map(|(listed, kept)| {
        let is_meant = |part: &KeptPart| {
            let has_checksum = listed.checksum.is_none() || listed.checksum == part.checksum;
            part.etag == listed.etag && has_checksum
        };
        kept.filter(is_meant).ok_or_else(|| no_part(listed.part))
    });
    let parts = parts.collect::<Result<Vec<KeptPart>, S3Error>>()?;
    let but_last = &parts[..parts.len().saturating_sub(1)];
    let shortest = completion.part_bytes;
    let is_short = |part: &KeptPart| part.stored.length() < shortest;
    if let Some(place) = but_last.iter().position(is_short) {
        let number = completion.parts[place].part;
        let sentence =
            format!("part {number} has less than {shortest} bytes, and is not the last one");
        return Err(S3Error::new(Code::EntityTooSmall, sentence));
    }
    let length: u64 = parts.iter().map(|part| part.stored.length()).sum();
    if completion.length.is_some_and(|said| said != length) {
        let sentence =
            format!("the parts have {length} bytes, and x-amz-mp-object-size says another number");
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    Ok(parts)
}

/// The checksum that the object will have, computed from those of its parts.
///
/// # Errors
/// The caller says another one: [`Code::BadDigest`]; or one that the parts' checksums do not give: [`Code::InvalidRequest`].
fn checksum(
    begun: &Begun,
    parts: &[KeptPart],
    expected: &Expected,
) -> Result<Option<KeptChecksum>, S3Error> {
    let rows = parts.iter().map(|part| {
        let length = part.stored.length();
        let checksum = part.checksum.clone()?;
        Some(PartChecksum { length, checksum })
    });
    let rows: Vec<PartChecksum> = rows.collect::<Option<_>>().unwrap_or_default();
    let of_bytes = |algorithm| {
        let parts = None;
        full_object(algorithm, &rows).map(|checksum| KeptChecksum { checksum, parts })
    };
    let of_checksums = |algorithm| {
        let text = composite(algorithm, &rows)?;
        let (text, count) = text.rsplit_once('-')?;
        Some(KeptChecksum {
            checksum: Checksum::parse(algorithm, text).ok()?,
            parts: Some(count.parse().ok()?),
        })
    };
    if let Some(said) = &expected.checksum {
        let possible = [of_bytes(said.algorithm), of_checksums(said.algorithm)];
        let mut possible = possible.into_iter().flatten().peekable();
        let header = said.algorithm.header();
        if possible.peek().is_none() {
            let sentence = format!(
                "the parts were sent without the checksum of which {header} is one: begin the upload with x-amz-checksum-algorithm"
            );
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        if !possible.any(|it| it.checksum == *said) {
            let sentence = format!("the parts do not make an object with the checksum in {header}");
            return Err(S3Error::new(Code::BadDigest, sentence));
        }
    }
    Ok(begun
        .algorithm
        .and_then(|algorithm| match begun.full_object {
            true => of_bytes(algorithm),
            false => of_checksums(algorithm),
        }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::checksum::Algorithm;

    fn part(content: &[u8], algorithm: Option<Algorithm>) -> KeptPart {
        let length = content.len();
        let text = format!("{:032x}{length:016x}{:08x}{:08x}", 1, 4096, 0);
        KeptPart {
            version: Version::INITIAL,
            etag: String::new(),
            checksum: algorithm.map(|algorithm| algorithm.checksum(content)),
            stored: text.parse().unwrap(),
            modified_ms: 0,
        }
    }

    fn begun(algorithm: Option<Algorithm>, full_object: bool) -> Begun {
        Begun {
            kept: Kept::default(),
            algorithm,
            full_object,
        }
    }

    fn expecting(checksum: Option<Checksum>) -> Expected {
        Expected {
            checksum,
            ..Expected::default()
        }
    }

    #[test]
    fn the_checksum_of_the_object_is_computed_from_those_of_its_parts() {
        let (one, two) = (&[7_u8; 5000][..], &b"the end"[..]);
        let whole = [one, two].concat();
        for algorithm in Algorithm::ALL {
            let parts = [one, two].map(|content| part(content, Some(algorithm)));
            let sums = [one, two].map(|content| algorithm.checksum(content).bytes);
            let of_sums = algorithm.checksum(&sums.concat());
            let composite = checksum(&begun(Some(algorithm), false), &parts, &expecting(None));
            let is_composite = algorithm != Algorithm::Crc64Nvme;
            let expected = is_composite.then_some(KeptChecksum {
                checksum: of_sums.clone(),
                parts: Some(2),
            });
            assert_eq!(composite, Ok(expected), "{algorithm:?}");
            let is_crc = !matches!(algorithm, Algorithm::Sha1 | Algorithm::Sha256);
            let expected = is_crc.then_some(KeptChecksum {
                checksum: algorithm.checksum(&whole),
                parts: None,
            });
            let full = checksum(&begun(Some(algorithm), true), &parts, &expecting(None));
            assert_eq!(full, Ok(expected), "{algorithm:?}");

            let right = if is_crc {
                algorithm.checksum(&whole)
            } else {
                of_sums
            };
            let said = checksum(&begun(None, false), &parts, &expecting(Some(right)));
            assert_eq!(said, Ok(None), "it is compared, and not kept");
            let wrong = expecting(Some(algorithm.checksum(b"another object")));
            let refused = checksum(&begun(Some(algorithm), is_crc), &parts, &wrong);
            assert_eq!(refused.unwrap_err().code, Code::BadDigest, "{algorithm:?}");
        }
    }

    #[test]
    fn a_checksum_that_parts_do_not_give_is_refused() {
        let said = expecting(Some(Algorithm::Crc32.checksum(b"ab")));
        for algorithm in [None, Some(Algorithm::Crc32c)] {
            let parts = [part(b"ab", algorithm)];
            let refused = checksum(&begun(algorithm, true), &parts, &said).unwrap_err();
            assert_eq!(refused.code, Code::InvalidRequest, "{algorithm:?}");
        }
        let parts = [part(b"a", Some(Algorithm::Crc32)), part(b"b", None)];
        let none = checksum(&begun(None, false), &parts, &expecting(None));
        assert_eq!(none, Ok(None));
    }
}
