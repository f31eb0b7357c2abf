//! A span that has ended.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A trace: one operation, in all processes that it went through. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TraceId(pub u128);

/// A span of a trace. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpanId(pub u64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Text that is no identity of a trace or a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidId {
    /// Digits that it must have.
    pub digits: usize,
}

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not {} hexadecimal digits", self.digits)
    }
}

impl std::error::Error for InvalidId {}

fn hexadecimal(text: &str, digits: usize) -> Result<u128, InvalidId> {
    let is_hexadecimal = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok();
    number
        .filter(|_| is_hexadecimal)
        .ok_or(InvalidId { digits })
}

impl FromStr for TraceId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<TraceId, InvalidId> {
        hexadecimal(text, 32).map(TraceId)
    }
}

impl FromStr for SpanId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<SpanId, InvalidId> {
        hexadecimal(text, 16).map(|id| SpanId(id as u64))
    }
}

macro_rules! as_text {
    ($id:ty) => {
        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(from)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

as_text!(TraceId);
as_text!(SpanId);

/// The value of an attribute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number: bytes, a count, an index.
    Number(u64),
    /// A boolean value.
    Bool(bool),
    /// Any other value, as text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Bool(bool) => bool.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

/// An attribute of a span, by name.
pub(crate) type Attributes = BTreeMap<Cow<'static, str>, Value>;

/// A span that has ended. As JSON, one object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpanRecord {
    /// The trace that it is of.
    pub trace: TraceId,
    /// Identity of the span.
    pub span: SpanId,
    /// The span that it is a part of, in this process or in the one that asked; none for the operation as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
    /// The parent is in another process, or there is none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub local_root: bool,
    /// Its name, from the closed list.
    pub name: Cow<'static, str>,
    /// The process: the name of a server, or `client`.
    pub process: Cow<'static, str>,
    /// Its beginning, in nanoseconds since 1970 by the clock of its process.
    pub start_ns: u64,
    /// The time that it took, in nanoseconds.
    pub duration_ns: u64,
    /// Attributes without a field of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<Cow<'static, str>, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl SpanRecord {
    /// Its end, in nanoseconds since 1970.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_json_object() {
        let record = SpanRecord {
            trace: TraceId(0xabc),
            span: SpanId(7),
            parent: Some(SpanId(6)),
            local_root: false,
            name: "phase1".into(),
            process: "s1".into(),
            start_ns: 5,
            duration_ns: 10,
            attributes: [
                ("n".into(), Value::Number(5)),
                ("dap".into(), Value::Text("ec".into())),
            ]
            .into(),
        };
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(
            json,
            r#"{"trace":"00000000000000000000000000000abc","span":"0000000000000007","parent":"0000000000000006","name":"phase1","process":"s1","start_ns":5,"duration_ns":10,"attributes":{"dap":"ec","n":5}}"#
        );
        assert_eq!(serde_json::from_str::<SpanRecord>(&json).unwrap(), record);
        assert_eq!(record.end_ns(), 15);
    }

    #[test]
    fn identities_are_hexadecimal_digits_and_nothing_else() {
        let id = TraceId(u128::MAX - 1);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "1",
            "+0000000000000000000000000000abc",
            "0000000000000000000000000000xabc",
        ] {
            assert_eq!(
                wrong.parse::<TraceId>(),
                Err(InvalidId { digits: 32 }),
                "{wrong}"
            );
        }
        assert_eq!("00000000000000ff".parse(), Ok(SpanId(255)));
    }
}
