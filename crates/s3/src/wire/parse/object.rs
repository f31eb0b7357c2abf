//! Operations on an object.

use super::bucket::change;
use super::fields::Fields;
use super::{checksums, copy, invalid, listing, not_allowed, put};
use crate::body::checksum::{Algorithm, Expected};
use crate::wire::error::{Code, S3Error};
use crate::wire::etag::ETagList;
use crate::wire::range::ByteRange;
use crate::wire::request::{GetOptions, Operation, PutHeaders, ReadConditions, ResponseOverrides};
use http::{HeaderName, HeaderValue, Method};
use std::time::UNIX_EPOCH;

/// The last part of an upload.
pub(crate) const LAST_PART: u16 = 10_000;

/// The words that `x-amz-object-attributes` may have.
const ATTRIBUTES: &[&str] = &[
    "ETag",
    "Checksum",
    "ObjectParts",
    "StorageClass",
    "ObjectSize",
];

/// The parameters `response-*` that set a header of the response.
const OVERRIDES: &[&str] = &[
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
];

/// The operation of this method on an object.
pub(super) fn operation(
    method: &Method,
    bucket: &str,
    key: &str,
    fields: &mut Fields,
) -> Result<Operation, S3Error> {
    if let Some(change) = change(method)
        && fields.has("tagging")
    {
        fields.only("versionId", &["null"])?;
        return Ok(Operation::ObjectTagging(change));
    }
    match *method {
        Method::GET => get(fields),
        Method::HEAD => Ok(Operation::HeadObject(get_options(fields)?)),
        Method::PUT => write(method, bucket, key, fields),
        Method::DELETE if fields.shows("uploadId") => {
            let upload_id = upload_id(fields)?;
            Ok(Operation::AbortMultipartUpload { upload_id })
        }
        Method::DELETE => {
            fields.only("versionId", &["null"])?;
            let condition = put::condition(fields)?;
            Ok(Operation::DeleteObject { condition })
        }
        Method::POST if fields.has("uploads") => create_upload(fields),
        Method::POST if fields.shows("uploadId") => complete_upload(fields),
        _ => Err(not_allowed(method, "an object", fields)),
    }
}

fn get(fields: &mut Fields) -> Result<Operation, S3Error> {
    if fields.shows("uploadId") {
        let upload_id = upload_id(fields)?;
        return listing::parts(upload_id, fields);
    }
    if fields.has("attributes") {
        fields.only("versionId", &["null"])?;
        return attributes(fields);
    }
    if fields.has("acl") {
        fields.only("versionId", &["null"])?;
        return Ok(Operation::GetAcl);
    }
    Ok(Operation::GetObject(get_options(fields)?))
}

fn write(
    method: &Method,
    bucket: &str,
    key: &str,
    fields: &mut Fields,
) -> Result<Operation, S3Error> {
    if fields.shows("uploadId") || fields.shows("partNumber") {
        return write_part(fields);
    }
    // A subresource that is not known must not replace the object.
    fields.refuse_parameters(method)?;
    if !copy::is_copy(fields) {
        return Ok(Operation::PutObject(put::headers_of_body(fields)?));
    }
    let source = copy::source(fields)?;
    let replaces_metadata = copy::replaces(fields, "x-amz-metadata-directive")?;
    let replaces_tags = copy::replaces(fields, "x-amz-tagging-directive")?;
    if source.bucket == bucket && source.key == key && !replaces_metadata {
        let sentence = "a copy of an object to itself changes nothing: send x-amz-metadata-directive: REPLACE with new metadata";
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    let headers = PutHeaders {
        condition: put::condition(fields)?,
        algorithm: checksums::algorithm(fields, &Expected::default())?,
        ..put::headers(fields)?
    };
    Ok(Operation::CopyObject {
        source,
        replaces_metadata,
        replaces_tags,
        headers,
    })
}

fn write_part(fields: &mut Fields) -> Result<Operation, S3Error> {
    let upload_id = upload_id(fields)?;
    let Some(part) = part_number(fields)? else {
        let sentence = "a part of an upload needs a partNumber";
        return Err(S3Error::new(Code::InvalidArgument, sentence));
    };
    if copy::is_copy(fields) {
        return Ok(Operation::UploadPartCopy {
            upload_id,
            part,
            source: copy::source(fields)?,
            range: copy::range(fields)?,
        });
    }
    let expected = checksums::expected(fields)?;
    // The upload says which checksum is kept; here it can only name the one that the part has.
    checksums::algorithm(fields, &expected)?;
    Ok(Operation::UploadPart {
        upload_id,
        part,
        expected,
    })
}

fn create_upload(fields: &mut Fields) -> Result<Operation, S3Error> {
    let algorithm = checksums::algorithm(fields, &Expected::default())?;
    let wished = checksums::is_full_object(fields)?;
    let full_object_checksum = match (algorithm, wished) {
        (None, None) => false,
        (None, Some(_)) => {
            let sentence = "x-amz-checksum-type needs x-amz-checksum-algorithm";
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        (Some(Algorithm::Crc64Nvme), Some(false))
        | (Some(Algorithm::Sha1 | Algorithm::Sha256), Some(true)) => {
            let sentence = "that checksum has not the wished x-amz-checksum-type: CRC64NVME is FULL_OBJECT, SHA1 and SHA256 are COMPOSITE";
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        (Some(algorithm), wished) => wished.unwrap_or(algorithm == Algorithm::Crc64Nvme),
    };
    let headers = PutHeaders {
        algorithm,
        ..put::headers(fields)?
    };
    Ok(Operation::CreateMultipartUpload {
        headers,
        full_object_checksum,
    })
}

fn complete_upload(fields: &mut Fields) -> Result<Operation, S3Error> {
    let upload_id = upload_id(fields)?;
    let name = "x-amz-mp-object-size";
    let length = match fields.header(name)? {
        None => None,
        Some(text) => match text.parse() {
            Ok(length) => Some(length),
            Err(_) => return Err(invalid(name, &text, "it is a number of bytes")),
        },
    };
    let full_object_checksum = checksums::is_full_object(fields)?;
    let checksum = checksums::of_object(fields)?;
    Ok(Operation::CompleteMultipartUpload {
        upload_id,
        condition: put::condition(fields)?,
        expected: Expected {
            checksum,
            ..Expected::default()
        },
        full_object_checksum,
        length,
    })
}

fn attributes(fields: &mut Fields) -> Result<Operation, S3Error> {
    let name = "x-amz-object-attributes";
    let attributes = fields.list(name);
    let unknown = attributes
        .iter()
        .find(|word| !ATTRIBUTES.contains(&word.as_str()));
    if attributes.is_empty() || unknown.is_some() {
        let word = unknown.map_or("", String::as_str);
        return Err(invalid(name, word, &ATTRIBUTES.join(", ")));
    }
    let max_parts = fields.header("x-amz-max-parts")?;
    let marker = fields.header("x-amz-part-number-marker")?;
    Ok(Operation::GetObjectAttributes {
        attributes,
        max_parts: listing::page_length("x-amz-max-parts", max_parts)?,
        part_marker: listing::part_marker(marker)?,
    })
}

fn get_options(fields: &mut Fields) -> Result<GetOptions, S3Error> {
    fields.only("versionId", &["null"])?;
    let range = fields.header("range")?;
    let range = range.and_then(|text| ByteRange::parse(&text));
    let part = part_number(fields)?;
    if range.is_some() && part.is_some() {
        let sentence = "a range and a partNumber cannot both be asked for";
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    let name = "x-amz-checksum-mode";
    let shows_checksums = match fields.header(name)?.as_deref() {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("enabled") => true,
        Some(text) => return Err(invalid(name, text, "it is ENABLED")),
    };
    Ok(GetOptions {
        // A reader of `If-Range` takes the whole object as well, and a server may always send that (RFC 9110, 13.1.5).
        range: range.filter(|_| !fields.shows_header("if-range")),
        conditions: read_conditions(fields, "")?,
        overrides: overrides(fields)?,
        part,
        shows_checksums,
    })
}

/// Takes the conditions of a read, whose names begin so.
///
/// # Errors
/// [`Code::InvalidArgument`]: one cannot be read.
pub(super) fn read_conditions(fields: &mut Fields, start: &str) -> Result<ReadConditions, S3Error> {
    let mut etags = |name: &str| {
        let text = fields.header(&format!("{start}{name}"))?;
        text.as_deref().map(ETagList::parse).transpose()
    };
    let (if_match, if_none_match) = (etags("if-match")?, etags("if-none-match")?);
    let mut time = |name: &str| {
        let name = format!("{start}{name}");
        let text = fields.header(&name)?;
        text.map(|text| seconds(&name, &text)).transpose()
    };
    Ok(ReadConditions {
        if_match,
        if_none_match,
        if_modified_since: time("if-modified-since")?,
        if_unmodified_since: time("if-unmodified-since")?,
    })
}

/// Seconds since 1970 of a date of HTTP.
fn seconds(name: &str, text: &str) -> Result<i64, S3Error> {
    let date = httpdate::parse_http_date(text.trim()).ok();
    let since = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    let seconds = since.and_then(|since| i64::try_from(since.as_secs()).ok());
    seconds.ok_or_else(|| {
        invalid(
            name,
            text,
            "it is a date like Fri, 27 Nov 2026 21:48:00 GMT",
        )
    })
}

fn overrides(fields: &mut Fields) -> Result<ResponseOverrides, S3Error> {
    let mut headers = Vec::new();
    for name in OVERRIDES {
        let parameter = format!("response-{name}");
        let Some(value) = fields.parameter(&parameter) else {
            continue;
        };
        if HeaderValue::from_bytes(value.as_bytes()).is_err() {
            return Err(invalid(&parameter, &value, "it stands for a header"));
        }
        headers.push((HeaderName::from_static(name), value));
    }
    Ok(ResponseOverrides { headers })
}

fn upload_id(fields: &mut Fields) -> Result<String, S3Error> {
    match fields.parameter("uploadId") {
        None => {
            let sentence = "a part of an upload needs an uploadId";
            Err(S3Error::new(Code::InvalidArgument, sentence))
        }
        Some(text) if text.is_empty() => {
            let sentence = "the uploadId is empty: send the one that began the upload";
            Err(S3Error::new(Code::NoSuchUpload, sentence))
        }
        Some(text) => Ok(text),
    }
}

fn part_number(fields: &mut Fields) -> Result<Option<u16>, S3Error> {
    let Some(text) = fields.parameter("partNumber") else {
        return Ok(None);
    };
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(part) if is_digits && (1..=LAST_PART).contains(&part) => Ok(Some(part)),
        _ => Err(invalid(
            "partNumber",
            &text,
            "it is a number from 1 to 10000",
        )),
    }
}
