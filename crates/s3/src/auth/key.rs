//! Keys that sign.

use std::fmt;

use ring::hmac;
use zeroize::Zeroizing;

/// The key of an access key for one day, one region and one service: 32 bytes, wiped when dropped.
#[derive(Clone)]
pub struct SigningKey(Zeroizing<[u8; 32]>);

impl SigningKey {
    /// A key of these bytes.
    pub fn new(bytes: [u8; 32]) -> SigningKey {
        SigningKey(Zeroizing::new(bytes))
    }

    /// The key as HMAC-SHA-256 takes it.
    pub(super) fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0[..])
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

/// The signing key of a secret for a day (`YYYYMMDD` as a number), a region and a service.
pub fn derive_signing_key(secret: &str, day: u32, region: &str, service: &str) -> SigningKey {
    let first = Zeroizing::new(format!("AWS4{secret}"));
    let day = format!("{day:08}");
    let mut key = digest(first.as_bytes(), day.as_bytes());
    for part in [region, service, "aws4_request"] {
        key = digest(&key[..], part.as_bytes());
    }
    SigningKey(key)
}

/// The HMAC-SHA-256 of the message.
fn digest(key: &[u8], message: &[u8]) -> Zeroizing<[u8; 32]> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let bytes = tag.as_ref().try_into();
    Zeroizing::new(bytes.expect("an HMAC-SHA-256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::vectors::{REGION, SECRET};

    #[test]
    fn a_key_is_not_shown() {
        let key = derive_signing_key(SECRET, 20_130_524, REGION, "s3");
        assert_eq!(format!("{key:?}"), "SigningKey(..)");
    }

    #[test]
    fn the_key_of_amazons_example() {
        // "Examples of how to derive a signing key": the service is IAM.
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let key = derive_signing_key(secret, 20_150_830, "us-east-1", "iam");
        let text = crate::auth::canonical::hex(&key.0[..]);
        let known = "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9";
        assert_eq!(text, known);
    }
}
