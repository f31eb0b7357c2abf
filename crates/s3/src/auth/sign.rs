//! Requests signed as a client does it, for tests and for a probe of other gateways.

use http::HeaderValue;
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;

use super::key::SigningKey;
use super::timestamp::Timestamp;
use super::{Claim, SERVICE, canonical};
use crate::wire::S3Error;

const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// The value of the header `x-amz-content-sha256` for a body.
pub fn payload_hash(body: &[u8]) -> HeaderValue {
    let hash = canonical::hex(&canonical::sha256(body));
    HeaderValue::from_str(&hash).expect("hexadecimal digits")
}

/// Signs the head of a request in its header: all headers that are there, among which `host` must be. A body that the head says nothing of is unsigned.
///
/// # Errors
/// The head cannot be signed: its target is not encoded as a URI.
pub fn sign(
    parts: &mut Parts,
    (key_id, key): (&str, &SigningKey),
    region: &str,
    now: Timestamp,
) -> Result<(), S3Error> {
    let date = HeaderValue::from_str(&now.text()).expect("digits and letters");
    parts.headers.insert(DATE, date);
    let unsigned = HeaderValue::from_static("UNSIGNED-PAYLOAD");
    parts.headers.entry(CONTENT).or_insert(unsigned);
    parts.headers.remove(AUTHORIZATION);
    let mut names: Vec<&str> = parts.headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let (names, day) = (names.join(";"), now.day());
    let with = |signature: &str| {
        let scope = format!("{day:08}/{region}/{SERVICE}/aws4_request");
        let text = format!(
            "AWS4-HMAC-SHA256 Credential={key_id}/{scope},SignedHeaders={names},Signature={signature}"
        );
        HeaderValue::from_str(&text)
    };
    let unreadable = |_| {
        S3Error::new(
            crate::wire::Code::AuthorizationHeaderMalformed,
            "the id of the key is none",
        )
    };
    let nothing = with(&"0".repeat(64)).map_err(unreadable)?;
    parts.headers.insert(AUTHORIZATION, nothing);
    let claim = Claim::parse(parts)?.expect("the head has a signature");
    let signature = canonical::hex(&claim.signature_with(parts, key)?);
    let signed = with(&signature).map_err(unreadable)?;
    parts.headers.insert(AUTHORIZATION, signed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::derive_signing_key;
    use crate::auth::vectors::{DAY, KEY_ID, NOW_SECONDS, REGION, SECRET, head};

    #[test]
    fn what_is_signed_is_verified() {
        let key = derive_signing_key(SECRET, DAY, REGION, SERVICE);
        let now = Timestamp::parse_basic("20130524T000000Z").unwrap();
        let headers = [("host", "localhost:7480"), ("x-amz-meta-a", "b  c")];
        let mut parts = head("PUT", "/bucket/a%20b?x-id=PutObject", &headers);
        sign(&mut parts, (KEY_ID, &key), REGION, now).unwrap();
        let claim = Claim::parse(&parts).unwrap().unwrap();
        let keys = [key];
        assert!(claim.verify(&parts, &keys, NOW_SECONDS).is_ok());
        parts.method = http::Method::DELETE;
        assert!(claim.verify(&parts, &keys, NOW_SECONDS).is_err());
    }
}
