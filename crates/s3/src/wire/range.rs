//! `Range` of a read, and `x-amz-copy-source-range`.

use std::ops::Range;

/// One range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// `a-b`: from `a` to `b` inclusive.
    Between(u64, u64),
    /// `a-`: from `a` on.
    From(u64),
    /// `-n`: the last `n`.
    Last(u64),
}

impl ByteRange {
    /// Reads a header. `None`: it is of another unit, of several ranges, or no range: such a header counts for nothing (RFC 9110, 14.2).
    pub fn parse(text: &str) -> Option<ByteRange> {
        let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
        let number = |digits: &str| -> Option<u64> {
            let is_digits = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
            // A number that is too large lies behind every object.
            is_digits.then(|| digits.parse().unwrap_or(u64::MAX))
        };
        match (first.trim(), last.trim()) {
            ("", last) => Some(ByteRange::Last(number(last)?)),
            (first, "") => Some(ByteRange::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(ByteRange::Between(first, last))
            }
        }
    }

    /// The bytes of an object of this length that are meant. `None`: none of them exists (416).
    pub fn within(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            ByteRange::Between(first, last) => first..last.saturating_add(1).min(length),
            ByteRange::From(first) => first..length,
            ByteRange::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_http_says() {
        let range = |text| ByteRange::parse(text);
        assert_eq!(range("bytes=0-9"), Some(ByteRange::Between(0, 9)));
        assert_eq!(range("bytes=5-"), Some(ByteRange::From(5)));
        assert_eq!(range("bytes=-5"), Some(ByteRange::Last(5)));
        let nothing = [
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=0-1,3-4",
            "items=0-1",
            "bytes=+1-2",
        ];
        for text in nothing {
            assert_eq!(range(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_is_cut_to_the_object() {
        let within = |text, length| ByteRange::parse(text).expect(text).within(length);
        assert_eq!(within("bytes=0-9", 5), Some(0..5));
        assert_eq!(within("bytes=4-", 5), Some(4..5));
        assert_eq!(within("bytes=5-", 5), None);
        assert_eq!(within("bytes=-9", 5), Some(0..5));
        assert_eq!(within("bytes=-0", 5), None);
        assert_eq!(within("bytes=0-", 0), None);
        assert_eq!(within("bytes=0-99999999999999999999", 5), Some(0..5));
    }
}
