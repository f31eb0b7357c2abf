//! Tags order the writes of one object (`docs/spec` 0.2, `[C-4 unique-writers]`, `[X-7 writer-per-write]`).

use crate::limits;
use std::fmt;
use std::str::FromStr;

/// A client: one process start. Drawn at random when the process starts and never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClientId(pub u64);

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The writer of a version: a client and that client's own counter, so that it is unique per write, also between tasks of one process, without any
/// memory per object (`[X-7 writer-per-write]`, which replaces `[C-8 no-tag-reuse]`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Writer {
    pub client: ClientId,
    /// The client's count of writes when it made this one, from 1.
    pub counter: u64,
}

/// Set in the counters of writers that are uploads. The others never get there.
const UPLOAD: u64 = 1 << 63;

impl Writer {
    /// This writer, marked as the writer of a value in blocks. The mark is in the tag of the version, so that the
    /// next writer sees that the version has blocks to remove.
    #[must_use]
    pub fn as_upload(self) -> Writer {
        assert!(self.counter > 0, "writers count their writes from 1");
        Writer {
            counter: self.counter | UPLOAD,
            ..self
        }
    }

    /// True if its value is in blocks. Uploads of earlier programs do not show it.
    pub fn is_upload(self) -> bool {
        self.counter & UPLOAD != 0
    }
}

/// Numbers of one era, see [`Tag::era`].
const ERA: u64 = 1 << 32;
const _: () = assert!(
    limits::NUMBER / ERA == 1 << 30,
    "as many eras as are promised"
);

/// Numbers from which the first versions of one era of a domain are taken, see [`Tag::next_in`].
const DOMAIN_ERA: u64 = 1 << 48;
const _: () = assert!(
    limits::NUMBER / DOMAIN_ERA == limits::ERAS as u64,
    "each era has its numbers"
);

/// `(number, writer)`, compared in that order. Larger tags are newer writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tag {
    /// One more than the largest number that the writer saw.
    pub number: u64,
    /// Breaks ties between writers that saw the same number.
    pub writer: Writer,
}

impl Tag {
    /// `t0`: the tag of an object that was never written.
    pub const INITIAL: Tag = Tag {
        number: 0,
        writer: Writer {
            client: ClientId(0),
            counter: 0,
        },
    };

    /// The largest tag that there can be.
    pub const LARGEST: Tag = Tag {
        number: limits::NUMBER - 1,
        writer: Writer {
            client: ClientId(u64::MAX),
            counter: u64::MAX,
        },
    };

    /// The tag of the first version of an object that no other client knows, by `writer`.
    pub fn first(writer: Writer) -> Tag {
        assert!(writer.counter > 0, "writers count their writes from 1");
        Tag { number: 1, writer }
    }

    /// The tag of a write by `writer` whose query returned `self` as the maximum.
    ///
    /// # Errors
    /// [`NumbersUsedUp`], `[N-1 bounded-numbers]`.
    pub fn next(self, writer: Writer) -> Result<Tag, NumbersUsedUp> {
        assert!(writer.counter > 0, "writers count their writes from 1");
        let next = self.numbered(self.number.checked_add(1), writer)?;
        assert!(self < next, "a write comes after all that its query saw");
        Ok(next)
    }

    /// The era that the tag is of: removals of blocks end one and begin the next. Writes stay in theirs.
    pub fn era(self) -> u64 {
        self.number / ERA
    }

    /// The first tag of the next era, by `writer`. A write that is under way names a version of this era and comes right
    /// after it, so that it stays below, whatever its writer is: to get there, 2^32 writes would have to follow each other
    /// while one is under way.
    ///
    /// # Errors
    /// [`NumbersUsedUp`]: there are 2^30 eras.
    pub fn next_era(self, writer: Writer) -> Result<Tag, NumbersUsedUp> {
        let next = self.numbered((self.era() + 1).checked_mul(ERA), writer)?;
        assert_eq!(next.era(), self.era() + 1, "no era is left out");
        Ok(next)
    }

    /// The tag of a write by `writer` whose query returned `self` as the maximum, in a domain that has ceased to be
    /// conditional `era` times: the tag of a first write is above all tags that earlier eras may still bring
    /// (`[W-13 ceasing-to-be-conditional]`).
    ///
    /// # Errors
    /// As [`Tag::next`].
    pub fn next_in(self, era: u32, writer: Writer) -> Result<Tag, NumbersUsedUp> {
        match self.is_initial() && era > 0 {
            true => self.numbered(Some(u64::from(era) * DOMAIN_ERA), writer),
            false => self.next(writer),
        }
    }

    /// A tag by `writer` that is below all first versions of this era, and above what earlier ones may still bring
    /// ([`Tag::next_in`]).
    pub fn last_before(era: u32, writer: Writer) -> Tag {
        assert!(era > 0, "nothing comes before the first era");
        assert!(era < limits::ERAS, "a configuration has it");
        Tag {
            number: u64::from(era) * DOMAIN_ERA - 1,
            writer,
        }
    }

    /// The tag of the mark that this version is lost: above it and all that were written beside it, and below each version whose writer
    /// has seen it. The writer is no client's. `None`: it is such a mark itself.
    pub fn mark_of_loss(self) -> Option<Tag> {
        let mark = Tag {
            number: self.number,
            writer: Writer {
                client: ClientId(u64::MAX),
                counter: UPLOAD - 1,
            },
        };
        assert!(
            !self.is_initial(),
            "nothing is lost of what was never written"
        );
        (self < mark).then_some(mark)
    }

    fn numbered(self, number: Option<u64>, writer: Writer) -> Result<Tag, NumbersUsedUp> {
        let tag = number.map(|number| Tag { number, writer });
        tag.filter(Tag::is_possible)
            .ok_or(NumbersUsedUp { largest: self })
    }

    /// True if an execution can produce the tag: its number is below [`limits::NUMBER`] (`[N-1 bounded-numbers]`). No server takes another one, and a
    /// record or a reply that says one is damaged.
    pub fn is_possible(&self) -> bool {
        self.number < limits::NUMBER
    }

    /// True if this is the tag of an object that was never written.
    pub fn is_initial(self) -> bool {
        self == Tag::INITIAL
    }
}

/// `number-writer` in hexadecimal: what people see as the *version* of an object.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Writer { client, counter } = self.writer;
        write!(f, "{:x}-{:016x}{counter:x}", self.number, client.0)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object has a version after which none can come (`[N-1 bounded-numbers]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumbersUsedUp {
    pub largest: Tag,
}

impl fmt::Display for NumbersUsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = self.largest;
        write!(
            f,
            "no version can come after {largest}: numbers end at 2^62"
        )
    }
}

impl std::error::Error for NumbersUsedUp {}

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidVersion {
    /// The text that was given.
    pub text: String,
}

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a version: versions look like 2-00c0ffee00c0ffee1, as `areo stat` prints them",
            self.text
        )
    }
}

impl std::error::Error for InvalidVersion {}

impl FromStr for Tag {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (number, writer) = text.split_once('-')?;
            let (client, counter) = writer.split_at_checked(16)?;
            let hex = |digits: &str| match digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                true => u64::from_str_radix(digits, 16).ok(),
                false => None,
            };
            Some(Tag {
                number: hex(number)?,
                writer: Writer {
                    client: ClientId(hex(client)?),
                    counter: hex(counter)?,
                },
            })
        };
        let possible = parse().filter(Tag::is_possible);
        possible.ok_or_else(|| InvalidVersion { text: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_write_of_an_era_comes_past_the_next_one() {
        let writer = |client| Writer {
            client: ClientId(client),
            counter: 1,
        };
        let next = |tag: Tag, client| tag.next(writer(client)).unwrap();
        let next_era = |tag: Tag| tag.next_era(writer(1)).unwrap();
        let read = Tag::first(writer(1));
        let (removal, late) = (next_era(read), next(read, 9));
        assert!(next(read, 1) < late && late < removal);
        assert_eq!((read.era(), late.era(), removal.era()), (0, 0, 1));
        // What is made anew stays in the new era, until that is removed.
        assert_eq!(next(removal, 1).era(), 1);
        assert_eq!(next_era(next(removal, 1)).era(), 2);
    }

    #[test]
    fn numbers_end_without_a_panic() {
        let writer = Writer {
            client: ClientId(7),
            counter: 1,
        };
        let tag = |number| Tag { number, writer };
        let last = limits::NUMBER - 1;
        assert_eq!(tag(last - 1).next(writer), Ok(tag(last)));
        for number in [last, limits::NUMBER, u64::MAX - 1, u64::MAX] {
            let used_up = NumbersUsedUp {
                largest: tag(number),
            };
            assert_eq!(tag(number).next(writer), Err(used_up));
            assert_eq!(tag(number).next_era(writer), Err(used_up));
            assert_eq!(tag(number).is_possible(), number == last);
        }
        let eras = 1 << 30;
        assert_eq!(tag(last).era(), eras - 1);
        let before = tag((eras - 1) * ERA - 1);
        assert_eq!(before.next_era(writer), Ok(tag((eras - 1) * ERA)));
        assert!(Tag::LARGEST.is_possible() && Tag::LARGEST.next(writer).is_err());
        assert_eq!(Tag::LARGEST.to_string().parse(), Ok(Tag::LARGEST));
        assert!(tag(limits::NUMBER).to_string().parse::<Tag>().is_err());
    }

    #[test]
    fn tags_are_ordered_by_number_then_client_then_counter() {
        let tag = |number, client, counter| Tag {
            number,
            writer: Writer {
                client: ClientId(client),
                counter,
            },
        };
        let ascending = [
            Tag::INITIAL,
            tag(1, 1, 9),
            tag(1, 2, 1),
            tag(1, 2, 2),
            tag(2, 1, 1),
        ];
        assert!(ascending.is_sorted());
        let next = ascending[4].next(Writer {
            client: ClientId(0),
            counter: 1,
        });
        assert!(next.unwrap() > ascending[4]);
    }

    #[test]
    fn versions_survive_text() {
        let tag = Tag {
            number: 0x1f,
            writer: Writer {
                client: ClientId(0xabc),
                counter: 0x12,
            },
        };
        assert_eq!(tag.to_string(), "1f-0000000000000abc12");
        assert_eq!(tag.to_string().parse(), Ok(tag));
        for wrong in [
            "",
            "-",
            "1",
            "1-2",
            "x-0000000000000abc1",
            "1-0000000000000abc",
            "1-+000000000000abc1",
        ] {
            assert!(wrong.parse::<Tag>().is_err(), "{wrong}");
        }
    }
}
