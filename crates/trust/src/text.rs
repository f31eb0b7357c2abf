//! Secrets as text of one word: a mark with a version, and parts in hexadecimal digits, with full stops between.
//!
//! What is wrong with such a text is said without any of it, because it may be most of a secret.

/// The longest text that is looked at, in bytes; a right one is shorter.
const MAX_BYTES: usize = 256;

/// A text that is none of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// There is no text.
    #[error("there is no {what}: the text is empty")]
    Empty {
        /// The kind that was expected.
        what: &'static str,
    },
    /// It is too long.
    #[error("this is no {what}: it has {bytes} bytes, and none has more than 256")]
    TooLong {
        /// The kind that was expected.
        what: &'static str,
        /// Length of the text.
        bytes: usize,
    },
    /// It begins as something else.
    #[error("this is no {what}: one begins with '{mark}1.'")]
    Mark {
        /// The kind that was expected.
        what: &'static str,
        /// The beginning of each text of that kind.
        mark: &'static str,
    },
    /// It is of another version.
    #[error("this {what} is of a later version of areo: use that version")]
    LaterVersion {
        /// The kind that was expected.
        what: &'static str,
    },
    /// Parts are missing, or there are more.
    #[error(
        "this {what} is incomplete or has something behind it: it has {found} parts and not {expected}; copy it as a whole"
    )]
    Parts {
        /// The kind that was expected.
        what: &'static str,
        /// Parts that it has, with its mark.
        found: usize,
        /// Parts that there should be.
        expected: usize,
    },
    /// A part is damaged.
    #[error(
        "the {part} of this {what} is damaged: {digits} digits out of 0-9 and a-f are expected; copy it as a whole"
    )]
    Part {
        /// The kind that was expected.
        what: &'static str,
        /// The name of the part.
        part: &'static str,
        /// The length that it should have.
        digits: usize,
    },
}

/// The form of a kind of text.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// Its name in sentences.
    pub(crate) what: &'static str,
    /// Its beginning, before its version.
    pub(crate) mark: &'static str,
}

impl Form {
    /// The parts behind the mark.
    pub(crate) fn split<'a, const N: usize>(
        &self,
        text: &'a str,
    ) -> Result<[&'a str; N], TextError> {
        let Form { what, mark } = *self;
        let text = text.trim();
        if text.is_empty() {
            return Err(TextError::Empty { what });
        }
        if text.len() > MAX_BYTES {
            let bytes = text.len();
            return Err(TextError::TooLong { what, bytes });
        }
        let mut parts = text.split('.');
        let version = parts.next().and_then(|first| first.strip_prefix(mark));
        match version {
            Some("1") => {}
            Some(version) if version.parse::<u32>().is_ok_and(|version| version > 1) => {
                return Err(TextError::LaterVersion { what });
            }
            _ => return Err(TextError::Mark { what, mark }),
        }
        let parts: Vec<&str> = parts.collect();
        let found = parts.len() + 1;
        parts.try_into().map_err(|_| TextError::Parts {
            what,
            found,
            expected: N + 1,
        })
    }

    /// The error for a part that cannot be read.
    pub(crate) fn damaged(&self, part: &'static str, bytes: usize) -> TextError {
        TextError::Part {
            what: self.what,
            part,
            digits: 2 * bytes,
        }
    }
}
