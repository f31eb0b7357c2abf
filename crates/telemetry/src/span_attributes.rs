//! Attributes of spans, as they are kept until they are read: numbers as numbers, all text in one buffer, so that
//! remembering a span allocates nothing.

use crate::record::{Attributes, Value};
use std::fmt::{self, Write};

/// The name and the value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    name: &'static str,
    held: StoredValue,
}

#[derive(Clone, Copy, Debug)]
enum StoredValue {
    Number(u64),
    Bool(bool),
    /// 16 bytes of the buffer from here on, shown as 32 hexadecimal digits.
    Identity(u32),
    /// Text from the first offset to the second one in the buffer.
    Text(u32, u32),
}

/// Attributes of one span, or of several, one after the other.
#[derive(Default, Debug)]
pub(crate) struct SpanAttributes {
    attributes: Vec<Attribute>,
    bytes: Vec<u8>,
}

/// A place in a [`SpanAttributes`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    attributes: u32,
    bytes: u32,
}

impl SpanAttributes {
    pub(crate) fn number(&mut self, name: &'static str, number: u64) {
        self.set(name, StoredValue::Number(number));
    }

    pub(crate) fn bool(&mut self, name: &'static str, bool: bool) {
        self.set(name, StoredValue::Bool(bool));
    }

    pub(crate) fn identity(&mut self, name: &'static str, identity: u128) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&identity.to_be_bytes());
        self.set(name, StoredValue::Identity(start));
    }

    pub(crate) fn text(&mut self, name: &'static str, text: &str) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(text.as_bytes());
        self.set(name, StoredValue::Text(start, self.bytes.len() as u32));
    }

    pub(crate) fn debug(&mut self, name: &'static str, value: &dyn fmt::Debug) {
        let start = self.bytes.len() as u32;
        write!(Utf8(&mut self.bytes), "{value:?}").expect("memory takes what is written");
        self.set(name, StoredValue::Text(start, self.bytes.len() as u32));
    }

    /// Sets an attribute: its last value counts.
    fn set(&mut self, name: &'static str, held: StoredValue) {
        let attribute = Attribute { name, held };
        match self.attributes.iter_mut().find(|said| said.name == name) {
            Some(said) => *said = attribute,
            None => self.attributes.push(attribute),
        }
    }

    /// Removes all attributes, and keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.attributes.clear();
        self.bytes.clear();
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            attributes: self.attributes.len() as u32,
            bytes: self.bytes.len() as u32,
        }
    }

    /// Adds what another one says.
    pub(crate) fn append(&mut self, other: &SpanAttributes) {
        self.attributes.extend_from_slice(&other.attributes);
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// The attributes between two marks, as people read them.
    pub(crate) fn read(&self, from: Mark, to: Mark) -> Attributes {
        let bytes = &self.bytes[from.bytes as usize..to.bytes as usize];
        let attributes = &self.attributes[from.attributes as usize..to.attributes as usize];
        let of = |said: &Attribute| (said.name.into(), said.held.value(bytes));
        attributes.iter().map(of).collect()
    }

    /// All that was said.
    pub(crate) fn all(&self) -> Attributes {
        self.read(Mark::default(), self.mark())
    }
}

impl StoredValue {
    fn value(self, bytes: &[u8]) -> Value {
        let slice = |start, end| &bytes[start as usize..end as usize];
        match self {
            StoredValue::Number(number) => Value::Number(number),
            StoredValue::Bool(bool) => Value::Bool(bool),
            StoredValue::Identity(start) => {
                let bytes = slice(start, start + 16).try_into();
                let identity = u128::from_be_bytes(bytes.expect("it has 16 bytes"));
                Value::Text(format!("{identity:032x}"))
            }
            StoredValue::Text(start, end) => {
                Value::Text(String::from_utf8_lossy(slice(start, end)).into_owned())
            }
        }
    }
}

/// Text at the end of bytes.
struct Utf8<'a>(&'a mut Vec<u8>);

impl Write for Utf8<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_spans_say_is_read_apart() {
        let mut all = SpanAttributes::default();
        let mut one = SpanAttributes::default();
        one.number("n", 5);
        one.text("dap", "ec");
        one.debug("tag", &format_args!("7-{}", 1));
        all.append(&one);
        let first = all.mark();
        one.clear();
        one.identity("domain", 0xabc);
        one.bool("aside", true);
        one.text("tag", "1");
        one.text("tag", "2-3");
        all.append(&one);
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(
            all.read(Mark::default(), first),
            [
                ("n".into(), Value::Number(5)),
                ("dap".into(), text("ec")),
                ("tag".into(), text("7-1"))
            ]
            .into()
        );
        let second = [
            ("domain".into(), text("00000000000000000000000000000abc")),
            ("aside".into(), Value::Bool(true)),
            ("tag".into(), text("2-3")),
        ];
        assert_eq!(all.read(first, all.mark()), second.clone().into());
        assert_eq!(one.all(), second.into(), "what was said last counts");
    }
}
