//! A signature as a request claims it, and its verification.

mod fields;
#[cfg(test)]
mod tests;

use http::request::Parts;
use ring::hmac;

use super::canonical::{self, Parameter, hex, parse_hex, sha256};
use super::chain::ChunkChain;
use super::key::SigningKey;
use super::payload::Payload;
use super::timestamp::Timestamp;
use super::{SERVICE, canonical::parameters};
use crate::wire::{Code, S3Error};
use fields::{Fields, single_header};

/// Largest difference between the clocks of a caller and a gateway.
pub const MAX_SKEW_SECONDS: u64 = 15 * 60;
/// A presigned URL is valid for at most seven days.
pub const MAX_EXPIRY_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The algorithm of Signature Version 4.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The query parameter with the signature.
const SIGNATURE_PARAMETER: &str = "X-Amz-Signature";

/// A signature that a request claims to have, read and not yet verified.
#[derive(Clone, Debug)]
pub struct Claim {
    key_id: String,
    region: String,
    timestamp: Timestamp,
    /// Names in small letters, in ascending order.
    signed_headers: Vec<String>,
    signature: [u8; 32],
    payload: Payload,
    /// The declared payload as it was sent.
    payload_text: String,
    place: Place,
}

/// The place of a signature in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the header `Authorization`.
    Header,
    /// The query: a presigned URL, with the seconds that it is valid for.
    Query { expiry_seconds: u64 },
}

/// A signature that is the one of its request.
#[derive(Clone, Debug)]
pub struct VerifiedSignature {
    /// The access key that signed.
    pub key_id: String,
    /// The declared form of the body. [`crate::body`] verifies it.
    pub payload: Payload,
    /// The state from which signatures of chunks go on.
    pub chain: ChunkChain,
}

impl Claim {
    /// Reads the signature of a request. `None`: the request has none.
    ///
    /// # Errors
    /// [`Code::AuthorizationHeaderMalformed`], [`Code::AuthorizationQueryParametersError`]: a field is missing or cannot be read;
    /// [`Code::InvalidRequest`]: there are two signatures, or it is one of Version 2 or 4A; [`Code::InvalidArgument`]: the kind of authorization or
    /// the declared payload does not exist; [`Code::AccessDenied`]: a header that must be signed is not, or there is no date.
    pub fn parse(parts: &Parts) -> Result<Option<Claim>, S3Error> {
        let query = parameters(parts)?;
        let authorization = single_header(parts, "authorization")?;
        let is_presigned = fields::is_presigned(&query)?;
        let fields = match (authorization, is_presigned) {
            (None, false) => return Ok(None),
            (Some(_), true) => {
                let sentence = "the request has a signature in the header Authorization and another in the query: send one of them";
                return Err(S3Error::new(Code::InvalidRequest, sentence));
            }
            (Some(text), false) => Fields::of_header(&text)?,
            (None, true) => Fields::of_query(&query)?,
        };
        if parts.headers.contains_key("x-amz-security-token") || fields.has_session_token {
            let sentence = "session tokens do not exist here: sign with an access key alone";
            return Err(S3Error::new(Code::InvalidRequest, sentence));
        }
        let claim = Claim::of_fields(parts, &fields)?;
        claim.check_signed_headers(parts)?;
        Ok(Some(claim))
    }

    /// Judges the fields one by one.
    fn of_fields(parts: &Parts, fields: &Fields) -> Result<Claim, S3Error> {
        let code = fields.refusal_code();
        let refused = |sentence: &str| S3Error::new(code, sentence);
        let scope = fields.scope()?;
        let timestamp = match &fields.date {
            Some(text) => Timestamp::parse_basic(text)
                .ok_or_else(|| refused("X-Amz-Date must be a date as 20130524T000000Z"))?,
            None => date_of_headers(parts)?,
        };
        if scope.day != timestamp.day() {
            return Err(refused(
                "the day of the credential scope is not that of the request's date: sign again",
            ));
        }
        let signature = parse_hex(fields.signature.as_bytes())
            .ok_or_else(|| refused("the signature must have 64 hexadecimal digits"))?;
        let names = fields.signed_headers.split(';').map(str::to_owned);
        let signed_headers: Vec<String> = names.collect();
        let is_name = |name: &String| {
            let is_small = !name.bytes().any(|byte| byte.is_ascii_uppercase());
            is_small && http::HeaderName::from_bytes(name.as_bytes()).is_ok()
        };
        let ascends = signed_headers.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends || !signed_headers.iter().all(is_name) {
            return Err(refused(
                "SignedHeaders must be names of headers in small letters and ascending order, with a semicolon between two",
            ));
        }
        let payload_text = fields.payload(parts)?;
        Ok(Claim {
            key_id: scope.key_id,
            region: scope.region,
            timestamp,
            signed_headers,
            signature,
            payload: Payload::parse(&payload_text)?,
            payload_text,
            place: match fields.expiry_seconds {
                None => Place::Header,
                Some(expiry_seconds) => Place::Query { expiry_seconds },
            },
        })
    }

    /// A header that changes the meaning of a request must be signed.
    fn check_signed_headers(&self, parts: &Parts) -> Result<(), S3Error> {
        let is_signed = |name: &str| self.signed_headers.iter().any(|signed| signed == name);
        let mut names = parts.headers.keys().map(http::HeaderName::as_str);
        let unsigned = match is_signed("host") {
            true => names.find(|name| name.starts_with("x-amz-") && !is_signed(name)),
            false => Some("host"),
        };
        let Some(name) = unsigned else {
            return check_host(parts);
        };
        let sentence = format!(
            "the header '{name}' is not signed: name it in SignedHeaders, or do not send it"
        );
        Err(S3Error::new(Code::AccessDenied, sentence))
    }

    /// The id of the access key.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The day of the signing key as a number: 20130524.
    pub fn day(&self) -> u32 {
        self.timestamp.day()
    }

    /// The region of the signing key.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The declared form of the body.
    pub fn payload(&self) -> Payload {
        self.payload
    }

    /// Compares the claimed region with the gateway's. Clients read the expected one from the sentence, and follow it.
    ///
    /// # Errors
    /// [`Code::AuthorizationHeaderMalformed`], [`Code::AuthorizationQueryParametersError`]
    pub fn check_region(&self, expected: &str) -> Result<(), S3Error> {
        let region = &self.region;
        if region == expected {
            return Ok(());
        }
        let (code, subject) = match self.place {
            Place::Header => (
                Code::AuthorizationHeaderMalformed,
                "The authorization header is malformed",
            ),
            Place::Query { .. } => (
                Code::AuthorizationQueryParametersError,
                "Error parsing the X-Amz-Credential parameter",
            ),
        };
        let region = region.escape_debug();
        let sentence = format!("{subject}; the region '{region}' is wrong; expecting '{expected}'");
        Err(S3Error::new(code, sentence))
    }

    /// Compares the date with a clock, in seconds since 1970.
    ///
    /// # Errors
    /// [`Code::RequestTimeTooSkewed`]: the date of a signed header is more than [`MAX_SKEW_SECONDS`] away; [`Code::AccessDenied`]: a presigned URL is not
    /// yet valid, or no longer.
    pub fn check_time(&self, now_seconds: u64) -> Result<(), S3Error> {
        let signed = i128::from(self.timestamp.unix_seconds());
        let now = i128::from(now_seconds);
        let skew = i128::from(MAX_SKEW_SECONDS);
        match self.place {
            Place::Header if (now - signed).abs() > skew => Err(S3Error::new(
                Code::RequestTimeTooSkewed,
                format!(
                    "the date of the request, {}, is more than {} minutes from the gateway's clock: set the clock",
                    self.timestamp.text(),
                    MAX_SKEW_SECONDS / 60
                ),
            )),
            Place::Query { .. } if signed - now > skew => Err(S3Error::new(
                Code::AccessDenied,
                format!(
                    "Request is not valid yet: its date is {}",
                    self.timestamp.text()
                ),
            )),
            Place::Query { expiry_seconds } if now > signed + i128::from(expiry_seconds) => {
                let signed = self.timestamp.text();
                let sentence = format!(
                    "Request has expired: it was signed at {signed} for {expiry_seconds} seconds"
                );
                Err(S3Error::new(Code::AccessDenied, sentence))
            }
            Place::Header | Place::Query { .. } => Ok(()),
        }
    }

    /// Compares the signature with that of each key. `parts` must be the head that the claim was read from.
    ///
    /// # Errors
    /// [`Code::InvalidAccessKeyId`]: there are no keys; those of [`Claim::check_time`]; [`Code::SignatureDoesNotMatch`].
    pub fn verify(
        &self,
        parts: &Parts,
        keys: &[SigningKey],
        now_seconds: u64,
    ) -> Result<VerifiedSignature, S3Error> {
        if keys.is_empty() {
            let sentence = format!("there is no access key '{}'", self.key_id.escape_debug());
            return Err(S3Error::new(Code::InvalidAccessKeyId, sentence));
        }
        self.check_time(now_seconds)?;
        let text = self.string_to_sign(parts)?;
        let keys = keys.iter().map(SigningKey::hmac);
        // Each key is tried, so that the time does not show which one matches.
        let matching: Vec<hmac::Key> = keys
            .filter(|key| hmac::verify(key, text.as_bytes(), &self.signature).is_ok())
            .collect();
        let Some(key) = matching.into_iter().next() else {
            let sentence = "the signature is not the one that the gateway computes: check the secret, and that the request was not changed on its way";
            return Err(S3Error::new(Code::SignatureDoesNotMatch, sentence));
        };
        Ok(VerifiedSignature {
            key_id: self.key_id.clone(),
            payload: self.payload,
            chain: ChunkChain {
                key,
                timestamp: self.timestamp.text(),
                scope: self.scope(),
                previous: self.signature,
            },
        })
    }

    /// The signature that `key` gives.
    pub(super) fn signature_with(
        &self,
        parts: &Parts,
        key: &SigningKey,
    ) -> Result<[u8; 32], S3Error> {
        let text = self.string_to_sign(parts)?;
        let tag = hmac::sign(&key.hmac(), text.as_bytes());
        let signature = tag.as_ref().try_into();
        Ok(signature.expect("an HMAC-SHA-256 has 32 bytes"))
    }

    /// The claim with the signature that `key` gives.
    pub(crate) fn signed_with(&self, parts: &Parts, key: &SigningKey) -> Result<Claim, S3Error> {
        let signature = self.signature_with(parts, key)?;
        let claim = self.clone();
        Ok(Claim { signature, ..claim })
    }

    /// The scope of the signing key: `DAY/REGION/s3/aws4_request`.
    fn scope(&self) -> String {
        let (day, region) = (self.day(), &self.region);
        format!("{day:08}/{region}/{SERVICE}/aws4_request")
    }

    fn string_to_sign(&self, parts: &Parts) -> Result<String, S3Error> {
        let is_left_out = |one: &Parameter| match self.place {
            Place::Header => false,
            Place::Query { .. } => fields::is_named(one, SIGNATURE_PARAMETER),
        };
        let payload = &self.payload_text;
        let request = canonical::request(parts, &self.signed_headers, payload, is_left_out)?;
        let (timestamp, scope) = (self.timestamp.text(), self.scope());
        let hash = hex(&sha256(&request));
        Ok(format!("{ALGORITHM}\n{timestamp}\n{scope}\n{hash}"))
    }
}

/// A target with a host must name the signed one: the bucket may be a label of it.
fn check_host(parts: &Parts) -> Result<(), S3Error> {
    let Some(authority) = parts.uri.authority() else {
        return Ok(());
    };
    let host = single_header(parts, "host")?.unwrap_or_default();
    match authority.as_str().eq_ignore_ascii_case(&host) {
        true => Ok(()),
        false => Err(S3Error::new(
            Code::AccessDenied,
            "the target of the request names another host than the header 'host', which is the signed one",
        )),
    }
}

/// The date of a request that is signed in a header: `x-amz-date`, or `Date`.
fn date_of_headers(parts: &Parts) -> Result<Timestamp, S3Error> {
    let refused = |sentence: &str| S3Error::new(Code::AccessDenied, sentence);
    if let Some(text) = single_header(parts, "x-amz-date")? {
        return Timestamp::parse_basic(&text)
            .ok_or_else(|| refused("x-amz-date must be a date as 20130524T000000Z"));
    }
    let text = single_header(parts, "date")?
        .ok_or_else(|| refused("a signed request needs the header x-amz-date"))?;
    Timestamp::parse_basic(&text)
        .or_else(|| Timestamp::parse_http(&text))
        .ok_or_else(|| refused("the header Date cannot be read: send x-amz-date"))
}
