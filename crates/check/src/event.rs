//! One line of a history.

use crate::Version;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

/// A text that is borrowed from the line it was read from where possible. In JSON an integer is taken too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(pub Cow<'a, str>);

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text(Cow::Owned(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or an integer")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Text<'de>, E> {
                Ok(Text::from(number.to_string()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text::from(text.to_owned()))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text::from(text))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// The event in the life of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The client called the operation.
    Invoke,
    /// The operation succeeded.
    Ok,
    /// It did not take effect and never will. A coverable or conditional write that lost also ends so, and with the
    /// version (and value) that it found it counts as a read of them.
    Fail,
    /// Unknown: a write may take effect at any later time, or never.
    Unknown,
}

/// The kind of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Returns the value; no value means absent.
    Read,
    /// Reads a value, and need not agree with other reads about the order of concurrent writes.
    RegularRead,
    /// A write of a value.
    Write,
    /// Writes a value if the version is still `based_on`, weakly: concurrent ones may both succeed
    /// (`[V-1 weak-coverability]`).
    CvrWrite,
    /// Writes a value if the version is `based_on` (none: if the object is absent), with at most one winner. Without a value it makes the
    /// object absent if the version is `based_on`.
    ConditionalWrite,
    /// Makes the object absent.
    Delete,
    /// Installs a configuration in the domain: `value` names it, the `version` of `ok` is the index it was decided at,
    /// `based_on` the index of a final configuration it follows. One that finishes what others left begins with any value;
    /// that of `ok` says what was decided. It is `ok` when a quorum knows that the configuration is final.
    Reconfig,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Read => "read",
            Kind::RegularRead => "regular_read",
            Kind::Write => "write",
            Kind::CvrWrite => "cvr_write",
            Kind::ConditionalWrite => "conditional_write",
            Kind::Delete => "delete",
            Kind::Reconfig => "reconfig",
        })
    }
}

/// One entry of the configuration sequence that a client holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration<'a> {
    /// Its place in the domain's sequence.
    pub index: u64,
    /// Identity of the configuration, for example its digest.
    #[serde(borrow)]
    pub configuration: Text<'a>,
    /// True if the client knows it as final.
    #[serde(default)]
    pub r#final: bool,
}

/// One event: the invocation or the end of an operation. Fields that a reader does not know are skipped.
///
/// ```
/// use areo_check::{Event, EventKind, Kind};
/// let event = Event {
///     value: Some("5d41402a".into()),
///     ..Event::new(1_000, "c1", 7, EventKind::Invoke, Kind::Write, "default", "greeting")
/// };
/// let mut line = Vec::new();
/// event.write(&mut line)?;
/// assert!(line.starts_with(br#"{"t":1000,"client":"c1","op":7,"event":"invoke","kind":"write","domain":"#));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<'a> {
    /// Time of the event, in nanoseconds of one clock for all clients. Events of one instant happened in the order of
    /// lines.
    pub t: u64,
    /// Name of the client.
    #[serde(borrow)]
    pub client: Text<'a>,
    /// The operation, unique per client.
    pub op: u64,
    pub event: EventKind,
    pub kind: Kind,
    /// The domain of the object.
    #[serde(borrow, default)]
    pub domain: Text<'a>,
    /// The object; nothing for a reconfiguration.
    #[serde(borrow, default, deserialize_with = "null_is_empty")]
    pub key: Text<'a>,
    /// A hash of the value, unique per write. Of an invocation: to be written. Of `ok`: returned, none for absent.
    #[serde(borrow, default)]
    pub value: Option<Text<'a>>,
    /// The version that was written or returned, if known.
    #[serde(default)]
    pub version: Option<Version>,
    /// The version that a coverable or conditional write is for.
    #[serde(default)]
    pub based_on: Option<Version>,
    /// The file that this block belongs to; the block whose key equals it is the first.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Text<'a>>,
    /// For a block of a file the key of the next block, in the value written or returned; none at the end of the
    /// file.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Text<'a>>,
    /// The configurations of the domain that the client knew when the operation ended, ascending.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Vec<Configuration<'a>>>,
}

fn null_is_empty<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
    Ok(Option::<Text<'a>>::deserialize(deserializer)?.unwrap_or_default())
}

impl<'a> Event<'a> {
    /// An event without value, versions and extras.
    #[must_use]
    pub fn new(
        t: u64,
        client: impl Into<Text<'a>>,
        op: u64,
        event: EventKind,
        kind: Kind,
        domain: impl Into<Text<'a>>,
        key: impl Into<Text<'a>>,
    ) -> Event<'a> {
        Event {
            t,
            client: client.into(),
            op,
            event,
            kind,
            domain: domain.into(),
            key: key.into(),
            value: None,
            version: None,
            based_on: None,
            file: None,
            next: None,
            sequence: None,
        }
    }

    /// Writes the event as one line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}
