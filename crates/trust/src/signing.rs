//! Signing keys of S3 (*AWS Signature Version 4*): a client signs each of its requests with one, and a gateway verifies the signature with the
//! same one.
//!
//! A signing key is derived from the secret access key, which is the text of a key's secret, for one day, one region and the service `s3`. The
//! secret does not follow from it. So a gateway that has signing keys, and no secret, can pose as a client of S3 for these days and regions alone.
//! A server derives none for a day that is far from its own ([`SigningScope::demand_near`]): otherwise a gateway could collect keys for
//! years, which would serve after its own key was revoked.

use ring::hmac::{HMAC_SHA256, Key, sign};
use zeroize::Zeroizing;

use crate::secret::Secret;

/// Bytes of a region, at most.
pub const REGION_BYTES: usize = 63;
/// Days before the server's own one for which signing keys are derived: a presigned request counts for seven days, and clocks differ.
pub const DAYS_BEFORE: u64 = 8;
/// Days after the server's own one for which signing keys are derived: clocks differ.
pub const DAYS_AFTER: u64 = 1;

/// The service that is a part of each signing key.
const SERVICE: &str = "s3";
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The day and the region that a signing key is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningScope {
    day: u32,
    region: String,
}

/// A day or a region for which no signing key is derived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The number is no day.
    #[error("{day} is no day of a signing key: write it as yyyymmdd, from 19700101 on")]
    Day {
        /// The number that was given.
        day: u32,
    },
    /// The text is no region.
    #[error(
        "'{}' is no region of a signing key: regions have 1 to {REGION_BYTES} visible ASCII characters, and no '/'",
        .region.escape_debug()
    )]
    Region {
        /// The text, or its beginning.
        region: String,
    },
    /// The day is far from the server's own.
    #[error(
        "no signing key is derived for {day}, because it is more than {DAYS_BEFORE} days before or {DAYS_AFTER} after the day of this server's clock: compare the clocks of gateway, client and server"
    )]
    FarDay {
        /// The day, as yyyymmdd.
        day: u32,
    },
}

impl SigningScope {
    /// A day in UTC, as the decimal number yyyymmdd, and a region.
    ///
    /// # Errors
    /// [`ScopeError::Day`], [`ScopeError::Region`].
    pub fn new(day: u32, region: &str) -> Result<SigningScope, ScopeError> {
        if days_since_1970(day).is_none() {
            return Err(ScopeError::Day { day });
        }
        let is_visible = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if region.is_empty() || region.len() > REGION_BYTES || !region.bytes().all(is_visible) {
            let region = region.chars().take(REGION_BYTES + 1).collect();
            return Err(ScopeError::Region { region });
        }
        let region = region.to_owned();
        Ok(SigningScope { day, region })
    }

    /// The day in UTC, as the decimal number yyyymmdd.
    pub fn day(&self) -> u32 {
        self.day
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    /// Demands that the day is about that of a clock, in seconds since 1970.
    ///
    /// # Errors
    /// [`ScopeError::FarDay`].
    pub fn demand_near(&self, now_seconds: u64) -> Result<(), ScopeError> {
        let day = days_since_1970(self.day).expect("`new` has read the day");
        let today = now_seconds / DAY_SECONDS;
        let nearest = today.saturating_sub(DAYS_BEFORE)..=today.saturating_add(DAYS_AFTER);
        match nearest.contains(&day) {
            true => Ok(()),
            false => Err(ScopeError::FarDay { day: self.day }),
        }
    }

    /// The signing key of a secret: 32 bytes.
    pub fn derive(&self, secret: &Secret) -> Secret {
        let day = format!("{:08}", self.day);
        derived(&secret.expose_text(), &[&day, &self.region, SERVICE])
    }
}

/// The chain of HMACs from a secret access key over these parts to a signing key.
fn derived(secret_access_key: &str, parts: &[&str]) -> Secret {
    let begin = Zeroizing::new(["AWS4", secret_access_key].concat().into_bytes());
    let next = |key: Secret, part: &&str| {
        let tag = sign(&Key::new(HMAC_SHA256, key.expose()), part.as_bytes());
        Secret::new(tag.as_ref().to_vec())
    };
    let parts = parts.iter().chain(&["aws4_request"]);
    parts.fold(Secret::new(begin.to_vec()), next)
}

/// The number of a day in the calendar, from 1970 on; none if the number is no day.
fn days_since_1970(day: u32) -> Option<u64> {
    let (year, month, of_month) = (day / 10_000, day / 100 % 100, day % 100);
    let is_leap = |year: u32| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = 28 + u32::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month).ok()?.checked_sub(1)?;
    let length = *months.get(index)?;
    if !(1970..=9999).contains(&year) || of_month == 0 || of_month > length {
        return None;
    }
    let years = 1970..year;
    let of_years: u32 = years.map(|year| 365 + u32::from(is_leap(year))).sum();
    let of_months: u32 = months[..index].iter().sum();
    Some(u64::from(of_years + of_months + of_month - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexadecimal(secret: &Secret) -> String {
        secret.expose_text().to_string()
    }

    /// The example of Amazon's documentation, and one that Python's `hmac` has computed.
    #[test]
    fn signing_keys_are_those_of_the_published_algorithm() {
        let example = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        assert_eq!(
            hexadecimal(&derived(example, &["20150830", "us-east-1", "iam"])),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
        );
        let scope = SigningScope::new(20_270_115, "eu-1").unwrap();
        assert_eq!(
            hexadecimal(&scope.derive(&Secret::new(vec![8; 32]))),
            "79a1469c1bd37b6c59f2d378293d729d5d818d28b4ad0793829d1ddf780608b1"
        );
        assert_eq!((scope.day(), scope.region()), (20_270_115, "eu-1"));
    }

    #[test]
    fn a_day_is_one_of_the_calendar() {
        for (day, number) in [
            (19_700_101, 0),
            (19_700_301, 59),
            (19_720_229, 789),
            (20_000_229, 11_016),
            (20_270_115, 20_833),
            (99_991_231, 2_932_896),
        ] {
            assert_eq!(days_since_1970(day), Some(number), "{day}");
        }
        for day in [
            0,
            1,
            19_691_231,
            20_270_001,
            20_271_301,
            20_270_100,
            20_270_132,
            20_270_229,
            21_000_229,
            100_000_101,
            u32::MAX,
        ] {
            let refused = SigningScope::new(day, "eu-1");
            assert_eq!(refused, Err(ScopeError::Day { day }), "{day}");
        }
    }

    #[test]
    fn a_region_is_bounded_and_visible() {
        let of = |region: &str| SigningScope::new(20_270_115, region).is_ok();
        assert!(of("auto") && of(&"a".repeat(REGION_BYTES)));
        let long = "a".repeat(REGION_BYTES + 1);
        for region in ["", "a b", "a/b", "a\n", "\u{e9}", &long] {
            assert!(!of(region), "{region:?}");
        }
    }

    #[test]
    fn no_key_is_derived_for_a_day_that_is_far_away() {
        // 2027-01-15, 08:00.
        let now = 1_800_000_000;
        for (day, is_near) in [
            (20_270_106, false),
            (20_270_107, true),
            (20_270_115, true),
            (20_270_116, true),
            (20_270_117, false),
            (20_260_115, false),
        ] {
            let scope = SigningScope::new(day, "eu-1").unwrap();
            assert_eq!(scope.demand_near(now).is_ok(), is_near, "{day}");
        }
        let first = SigningScope::new(19_700_101, "eu-1").unwrap();
        assert_eq!(first.demand_near(0), Ok(()));
        assert!(first.demand_near(u64::MAX).is_err());
    }
}
