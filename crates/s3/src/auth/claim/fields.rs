//! The fields of a signature as they stand in a header or a query.

use http::request::Parts;

use super::super::SERVICE;
use super::super::canonical::Parameter;
use super::{ALGORITHM, MAX_EXPIRY_SECONDS, SIGNATURE_PARAMETER};
use crate::wire::{Code, S3Error};

/// Maximum length of the id of an access key.
const MAX_KEY_ID_BYTES: usize = 128;
/// Maximum length of the name of a region.
const MAX_REGION_BYTES: usize = 64;

/// Parameters of a presigned URL without which it is none.
const PRESIGNED: [&str; 6] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    SIGNATURE_PARAMETER,
];
/// The header and the parameter that declare the payload.
const PAYLOAD: &str = "x-amz-content-sha256";

/// The fields of a signature, as text.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) credential: String,
    pub(super) signed_headers: String,
    pub(super) signature: String,
    /// The date, if the query has it.
    pub(super) date: Option<String>,
    /// The time that a presigned URL is valid for; `None`: the signature stands in a header.
    pub(super) expiry_seconds: Option<u64>,
    /// The declared payload, if the query has it.
    pub(super) query_payload: Option<String>,
    /// True if the query has the token of a session.
    pub(super) has_session_token: bool,
}

/// A credential, taken apart.
pub(super) struct Scope {
    pub(super) key_id: String,
    pub(super) day: u32,
    pub(super) region: String,
}

/// True if a query has a signature.
///
/// # Errors
/// [`Code::InvalidRequest`]: it is one of Version 2.
pub(super) fn is_presigned(query: &[Parameter]) -> Result<bool, S3Error> {
    let has = |name: &str| query.iter().any(|one| is_named(one, name));
    match has("AWSAccessKeyId") || has("Signature") {
        true => Err(old_version()),
        false => Ok(PRESIGNED.iter().any(|name| has(name))),
    }
}

/// True if a parameter has this name. Letters count alike in both sizes: a parameter of a signature must not hide behind another size.
pub(super) fn is_named(parameter: &Parameter, name: &str) -> bool {
    parameter.name.eq_ignore_ascii_case(name.as_bytes())
}

/// A header that may be there once.
pub(super) fn single_header(parts: &Parts, name: &str) -> Result<Option<String>, S3Error> {
    let mut values = parts.headers.get_all(name).iter();
    let text = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => one.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let Some(text) = text else {
        let sentence = format!("the header '{name}' must be there once, in ASCII");
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    };
    Ok(Some(text.trim().to_owned()))
}

impl Fields {
    /// The fields of `AWS4-HMAC-SHA256 Credential=..., SignedHeaders=..., Signature=...`.
    pub(super) fn of_header(text: &str) -> Result<Fields, S3Error> {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        check_algorithm(kind)?;
        let refused = |sentence| S3Error::new(Code::AuthorizationHeaderMalformed, sentence);
        let mut found = [None, None, None];
        for field in rest.split(',').map(str::trim) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            let names = ["Credential", "SignedHeaders", "Signature"];
            let at = names.iter().position(|known| *known == name);
            let Some(at) = at else {
                let name = name.escape_debug();
                let sentence = format!("the header Authorization has an unknown field '{name}'");
                return Err(refused(sentence));
            };
            if found[at].replace(value.to_owned()).is_some() {
                let sentence = format!("the header Authorization has '{name}' twice");
                return Err(refused(sentence));
            }
        }
        let [Some(credential), Some(signed_headers), Some(signature)] = found else {
            return Err(refused(
                "the header Authorization needs Credential, SignedHeaders and Signature".into(),
            ));
        };
        Ok(Fields {
            credential,
            signed_headers,
            signature,
            date: None,
            expiry_seconds: None,
            query_payload: None,
            has_session_token: false,
        })
    }

    /// The fields of `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=...`.
    pub(super) fn of_query(query: &[Parameter]) -> Result<Fields, S3Error> {
        let refused = |sentence| S3Error::new(Code::AuthorizationQueryParametersError, sentence);
        let optional = |name: &str| {
            let mut values = query.iter().filter(|one| is_named(one, name));
            let text = match (values.next(), values.next()) {
                (None, _) => return Ok(None),
                (Some(one), None) => String::from_utf8(one.value.clone()).ok(),
                (Some(_), Some(_)) => None,
            };
            let sentence = || refused(format!("{name} must be in the query once, in UTF-8"));
            Ok(Some(text.ok_or_else(sentence)?))
        };
        let needed = |name: &str| {
            let sentence = || {
                let all = PRESIGNED.join(", ");
                refused(format!(
                    "the query has no {name}: a presigned URL needs {all}"
                ))
            };
            optional(name)?.ok_or_else(sentence)
        };
        check_algorithm(&needed(PRESIGNED[0])?)?;
        let expiry = needed("X-Amz-Expires")?;
        let is_number = !expiry.is_empty() && expiry.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = expiry.parse().ok().filter(|_| is_number);
        let seconds = seconds.filter(|seconds| (1..=MAX_EXPIRY_SECONDS).contains(seconds));
        let Some(seconds) = seconds else {
            return Err(refused(format!(
                "X-Amz-Expires must be a number of seconds from 1 to {MAX_EXPIRY_SECONDS}"
            )));
        };
        Ok(Fields {
            credential: needed("X-Amz-Credential")?,
            signed_headers: needed("X-Amz-SignedHeaders")?,
            signature: needed(SIGNATURE_PARAMETER)?,
            date: Some(needed("X-Amz-Date")?),
            expiry_seconds: Some(seconds),
            query_payload: optional(PAYLOAD)?,
            has_session_token: optional("X-Amz-Security-Token")?.is_some(),
        })
    }

    /// The code of an error in one of the fields.
    pub(super) fn refusal_code(&self) -> Code {
        match self.expiry_seconds {
            None => Code::AuthorizationHeaderMalformed,
            Some(_) => Code::AuthorizationQueryParametersError,
        }
    }

    /// The credential: `ID/DAY/REGION/s3/aws4_request`. An id may have slashes.
    pub(super) fn scope(&self) -> Result<Scope, S3Error> {
        let refused = |sentence: &str| S3Error::new(self.refusal_code(), sentence);
        let mut fields = self.credential.rsplitn(5, '/');
        let mut next = || fields.next().unwrap_or_default();
        let (end, service, region, day, key_id) = (next(), next(), next(), next(), next());
        if end != "aws4_request" || service != SERVICE {
            return Err(refused(
                "the credential must be KEY/DAY/REGION/s3/aws4_request",
            ));
        }
        let is_word = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !is_word(region, MAX_REGION_BYTES) || !is_word(key_id, MAX_KEY_ID_BYTES) {
            return Err(refused(
                "the credential has no access key or no region: it must be KEY/DAY/REGION/s3/aws4_request",
            ));
        }
        let is_day = day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit());
        let number = day.parse().ok().filter(|_| is_day);
        let day = number.ok_or_else(|| refused("the day of the credential must be YYYYMMDD"))?;
        let (key_id, region) = (key_id.to_owned(), region.to_owned());
        Ok(Scope {
            key_id,
            day,
            region,
        })
    }

    /// The declared payload. A signed header must have one; a presigned URL has none unless it says one.
    pub(super) fn payload(&self, parts: &Parts) -> Result<String, S3Error> {
        let refused = |sentence| Err(S3Error::new(Code::InvalidRequest, sentence));
        let header = single_header(parts, PAYLOAD)?;
        match (header, &self.query_payload, self.expiry_seconds) {
            (Some(header), Some(query), Some(_)) if header != *query => refused(
                "x-amz-content-sha256 is one in the headers and another in the query: send one",
            ),
            (Some(header), _, _) => Ok(header),
            (None, Some(query), _) => Ok(query.clone()),
            (None, None, Some(_)) => Ok("UNSIGNED-PAYLOAD".to_owned()),
            (None, None, None) => refused("a signed request needs the header x-amz-content-sha256"),
        }
    }
}

/// Refuses every algorithm but that of Version 4.
fn check_algorithm(word: &str) -> Result<(), S3Error> {
    match word {
        ALGORITHM => Ok(()),
        "AWS" => Err(old_version()),
        "AWS4-ECDSA-P256-SHA256" => Err(S3Error::new(
            Code::InvalidRequest,
            "Signature Version 4A is not verified here: sign with AWS4-HMAC-SHA256",
        )),
        _ => Err(S3Error::new(
            Code::InvalidArgument,
            "the kind of authorization is unknown: sign with AWS4-HMAC-SHA256",
        )),
    }
}

/// The refusal of Signature Version 2.
fn old_version() -> S3Error {
    S3Error::new(
        Code::InvalidRequest,
        "only Signature Version 4 is verified here: sign with AWS4-HMAC-SHA256",
    )
}
