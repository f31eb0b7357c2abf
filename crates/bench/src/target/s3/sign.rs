//! AWS' signature, version 4, of requests without a query: as much as S3 needs over plain HTTP.

use sha2::{Digest, Sha256};
use std::env;
use std::fmt::Write;

/// Said instead of the hash of a content that is not signed: hashing would be measured as well.
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// Bytes that the hash takes at once.
const BLOCK: usize = 64;

/// Who asks, and where.
#[derive(Clone)]
pub(super) struct Signer {
    key: String,
    secret: String,
    token: Option<String>,
    region: String,
}

impl Signer {
    /// From the standard `AWS_*` variables.
    pub(super) fn from_environment() -> Result<Signer, String> {
        Signer::from_variables(|name| env::var(name).ok())
    }

    pub(super) fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Signer, String> {
        let some = |name: &str| variable(name).filter(|value| !value.is_empty());
        let needed = |name: &str| some(name).ok_or(format!("{name} is not set"));
        let region = some("AWS_REGION").or_else(|| some("AWS_DEFAULT_REGION"));
        Ok(Signer {
            key: needed("AWS_ACCESS_KEY_ID")?,
            secret: needed("AWS_SECRET_ACCESS_KEY")?,
            token: some("AWS_SESSION_TOKEN"),
            region: region.unwrap_or_else(|| "us-east-1".into()),
        })
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The header of a request to a path of letters that need no escape. The headers are sorted by their names, which are in
    /// small letters; `x-amz-date` is among them.
    pub(super) fn authorization(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        content: &str,
    ) -> String {
        assert!(headers.is_sorted_by_key(|(name, _)| *name));
        let (mut listed, mut names) = (String::new(), Vec::new());
        for (name, value) in headers {
            let written = writeln!(listed, "{name}:{}", value.trim());
            written.expect("a string takes everything");
            names.push(*name);
        }
        let names = names.join(";");
        let at = headers.iter().find(|(name, _)| *name == "x-amz-date");
        let (_, at) = at.expect("the time is signed");
        let scope = format!("{}/{}/s3/aws4_request", &at[..8], self.region);
        let canonical = format!("{method}\n{path}\n\n{listed}\n{names}\n{content}");
        let canonical = hex(&Sha256::digest(canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{canonical}");
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in scope.split('/') {
            key = keyed(&key, part.as_bytes()).to_vec();
        }
        let signature = hex(&keyed(&key, to_sign.as_bytes()));
        let who = &self.key;
        format!(
            "AWS4-HMAC-SHA256 Credential={who}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
    }
}

/// HMAC (RFC 2104) with SHA-256.
fn keyed(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    match key.len() > BLOCK {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let padded = |pad: u8| block.map(|byte| byte ^ pad);
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(message);
    let outer = Sha256::new().chain_update(padded(0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// Seconds since 1970 as `20130524T000000Z`.
pub(super) fn time(seconds: u64) -> String {
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let (month, day) = (month + 1, days + 1);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that AWS gives for a GET of an object, with the hash of an empty content.
    #[test]
    fn signatures_are_those_of_aws() {
        let signer = Signer::from_variables(|name| match name {
            "AWS_ACCESS_KEY_ID" => Some("AKIAIOSFODNN7EXAMPLE".into()),
            "AWS_SECRET_ACCESS_KEY" => Some("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into()),
            _ => None,
        });
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&Sha256::digest(b"")), empty);
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", empty),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let signed = signer
            .unwrap()
            .authorization("GET", "/test.txt", &headers, empty);
        assert_eq!(
            signed,
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    #[test]
    fn keyed_hashes_are_those_of_the_rfc() {
        // RFC 4231, cases 2 and 6: a short key, and one that is longer than a block.
        assert_eq!(
            hex(&keyed(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let long = keyed(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
        );
        assert_eq!(
            hex(&long),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (1_735_689_599, "20241231T235959Z"),
        ] {
            assert_eq!(time(seconds), expected);
        }
    }

    #[test]
    fn credentials_that_are_not_there_are_named() {
        let error = Signer::from_variables(|_| None).map(drop).unwrap_err();
        assert_eq!(error, "AWS_ACCESS_KEY_ID is not set");
        let only = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "a".to_owned());
        let error = Signer::from_variables(only).map(drop).unwrap_err();
        assert_eq!(error, "AWS_SECRET_ACCESS_KEY is not set");
    }
}
