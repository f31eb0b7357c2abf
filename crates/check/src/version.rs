//! Versions as histories write them.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The version of an object, or the index of a configuration: a number and, for versions, the writer that breaks ties.
///
/// As text it is `number-writer` in hexadecimal, with the writer as 16 digits of client and the rest counter, which is
/// how Areo prints versions. A shorter writer such as `2-a` is a client without counter, for histories made by hand.
/// A JSON integer, or its decimal digits as text, is a number without writer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version {
    /// The major part: versions are compared by number first.
    pub number: u64,
    /// The client that wrote it.
    pub client: u64,
    /// That client's count of writes.
    pub counter: u64,
}

impl Version {
    /// The version of an object that was never written: `t0`.
    pub const INITIAL: Version = Version::plain(0);

    /// A number without writer.
    #[must_use]
    pub const fn plain(number: u64) -> Version {
        Version {
            number,
            client: 0,
            counter: 0,
        }
    }

    fn is_plain(self) -> bool {
        self.client == 0 && self.counter == 0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plain() {
            write!(f, "{}", self.number)
        } else if self.counter == 0 {
            write!(f, "{:x}-{:x}", self.number, self.client)
        } else {
            write!(
                f,
                "{:x}-{:016x}{:x}",
                self.number, self.client, self.counter
            )
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a version such as 2-00c0ffee00c0ffee1")]
pub struct InvalidVersion {
    /// The text that was given.
    pub text: String,
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Version, InvalidVersion> {
        parse(text).ok_or_else(|| InvalidVersion {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<Version> {
    // `from_str_radix` and `parse` would take a sign.
    if !text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return None;
    }
    let Some((number, writer)) = text.split_once('-') else {
        return Some(Version::plain(text.parse().ok()?));
    };
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let number = hexadecimal(number)?;
    match writer.split_at_checked(16) {
        Some((client, counter)) if !counter.is_empty() => Some(Version {
            number,
            client: hexadecimal(client)?,
            counter: hexadecimal(counter)?,
        }),
        _ => Some(Version {
            number,
            client: hexadecimal(writer)?,
            counter: 0,
        }),
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_plain() {
            true => serializer.serialize_u64(self.number),
            false => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Version;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a version such as \"2-00c0ffee00c0ffee1\" or an integer")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Version, E> {
                Ok(Version::plain(number))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Version, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_back() {
        for text in [
            "0",
            "17",
            "2-a",
            "1f-00c0ffee00c0ffee1",
            "1-00000000000000012",
        ] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), text);
        }
        assert_eq!("0-00000000000000000".parse(), Ok(Version::INITIAL));
        for text in ["", "-", "x", "1-", "-1", "1-g", "+1", "a", "1-1-1", "1-ü"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_number_orders_first_then_the_client_then_its_counter() {
        let order = [
            "0",
            "1-a",
            "1-b",
            "2-1",
            "a-00c0ffee00c0ffee1",
            "a-00c0ffee00c0ffeea",
            "a-00c0ffee00c0ffee10",
        ];
        let versions: Vec<Version> = order.iter().map(|text| text.parse().unwrap()).collect();
        assert!(versions.is_sorted());
    }

    #[test]
    fn json_takes_integers_and_texts() {
        let read: Vec<Version> = serde_json::from_str(r#"[3, "3", "2-a"]"#).unwrap();
        assert_eq!(read[0], read[1]);
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"[3,3,"2-a"]"#);
    }
}
