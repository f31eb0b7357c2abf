//! Reading: every access is checked, and nothing is allocated that the bytes at hand do not pay for. What is read of a
//! long message shares one copy of it; what is read of a short one, or of a record, is a copy of its own.

use super::error::DecodeError;
use bytes::Bytes;
use std::ops::Range;

/// A place in a body, and the payload segments that came with it.
pub(crate) struct Reader<'a> {
    body: &'a [u8],
    /// True if the parts that are read share a copy of the whole body.
    shares: bool,
    /// That copy of the body, once a part shares it.
    shared: Option<Bytes>,
    at: usize,
    segments: std::vec::IntoIter<(Bytes, u32)>,
}

impl<'a> Reader<'a> {
    /// A reader of a whole body. If that is longer than `short_bytes`, all parts share one copy of it.
    pub(crate) fn new(
        body: &'a [u8],
        payload: Vec<(Bytes, u32)>,
        short_bytes: usize,
    ) -> Reader<'a> {
        Reader {
            body,
            shares: body.len() > short_bytes,
            shared: None,
            at: 0,
            segments: payload.into_iter(),
        }
    }

    /// Reads bytes that another owner keeps.
    pub(crate) fn copying(body: &'a [u8]) -> Reader<'a> {
        Reader {
            body,
            shares: false,
            shared: None,
            at: 0,
            segments: Vec::new().into_iter(),
        }
    }

    fn part(&mut self, range: Range<usize>) -> Bytes {
        if !self.shares {
            return Bytes::copy_from_slice(&self.body[range]);
        }
        let copy = || Bytes::copy_from_slice(self.body);
        self.shared.get_or_insert_with(copy).slice(range)
    }

    fn left(&self) -> usize {
        self.body.len() - self.at
    }

    /// Fails unless `bytes` are left.
    fn need(&self, bytes: usize) -> Result<(), DecodeError> {
        match bytes <= self.left() {
            true => Ok(()),
            false => Err(DecodeError::CutShort {
                offset: self.at,
                needed_bytes: bytes,
                left_bytes: self.left(),
            }),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.body[self.at..].first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => self.need(N).map(|()| unreachable!("a chunk is there")),
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, DecodeError> {
        self.array().map(u128::from_le_bytes)
    }

    /// A length or a count of two bytes.
    pub(crate) fn short(&mut self) -> Result<usize, DecodeError> {
        self.u16().map(usize::from)
    }

    /// A length or a count of four bytes.
    pub(crate) fn long(&mut self) -> Result<usize, DecodeError> {
        self.u32().map(|length| length as usize)
    }

    /// The flags byte of `what`, of which only the `known` bits may be set.
    pub(crate) fn flags(&mut self, what: &'static str, known: u8) -> Result<u8, DecodeError> {
        match self.u8()? {
            flags if flags & !known == 0 => Ok(flags),
            flags => Err(DecodeError::UnknownFlags { what, flags }),
        }
    }

    /// The next `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        self.need(length)?;
        let from = self.at;
        self.at += length;
        Ok(self.part(from..self.at))
    }

    /// The next `length` bytes, of which `what` may have `limit_bytes`.
    pub(crate) fn limited(
        &mut self,
        what: &'static str,
        length: usize,
        limit_bytes: usize,
    ) -> Result<Bytes, DecodeError> {
        match length <= limit_bytes {
            true => self.bytes(length),
            false => Err(DecodeError::TooLong {
                what,
                bytes: length,
                limit_bytes,
            }),
        }
    }

    /// Text, read as by [`Reader::limited`].
    pub(crate) fn text(
        &mut self,
        what: &'static str,
        length: usize,
        limit_bytes: usize,
    ) -> Result<String, DecodeError> {
        let bytes = self.limited(what, length, limit_bytes)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(DecodeError::NotUtf8 { what }),
        }
    }

    /// All bytes that are left.
    pub(crate) fn rest(&mut self) -> Bytes {
        let from = std::mem::replace(&mut self.at, self.body.len());
        self.part(from..self.at)
    }

    /// `count` items of at least `least_bytes` each. The only place that sets memory aside by a number that was sent:
    /// never for more items than the limit, nor for more than the bytes that are left can hold.
    pub(crate) fn list<T>(
        &mut self,
        what: &'static str,
        count: usize,
        limit: usize,
        least_bytes: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        assert!(least_bytes > 0, "an item without bytes would cost nothing");
        if count > limit {
            return Err(DecodeError::TooMany { what, count, limit });
        }
        self.need(count.saturating_mul(least_bytes))?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// The next payload segment and its checksum.
    pub(crate) fn segment(&mut self) -> Result<(Bytes, u32), DecodeError> {
        match self.segments.next() {
            None => Err(DecodeError::MissingSegment),
            Some((bytes, _)) if bytes.is_empty() => Err(DecodeError::EmptySegment),
            Some(segment) => Ok(segment),
        }
    }

    /// True after the last byte.
    pub(crate) fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    /// Ends the reading after the last field: every byte and every segment must have been read.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        if self.left() > 0 {
            return Err(DecodeError::TrailingBytes { bytes: self.left() });
        }
        match self.segments.len() {
            0 => Ok(()),
            segments => Err(DecodeError::UnusedSegments { segments }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_sets_nothing_aside_that_its_bytes_do_not_pay_for() {
        let body = Bytes::from(vec![0; 10]);
        let read = |count, limit| {
            let mut reader = Reader::new(&body, Vec::new(), 0);
            reader.list("things", count, limit, 2, |reader| {
                assert!(count <= 5, "no item is read of a list that cannot be there");
                reader.u16()
            })
        };
        assert_eq!(read(5, 5).map(|items| items.capacity()), Ok(5));
        let (what, limit) = ("things", 4);
        let too_many = DecodeError::TooMany {
            what,
            count: 5,
            limit,
        };
        assert_eq!(read(5, 4), Err(too_many));
        for count in [6, 1 << 16, usize::MAX] {
            let short = read(count, usize::MAX);
            assert!(matches!(short, Err(DecodeError::CutShort { .. })));
        }
    }

    /// Parts of a long body are parts of one copy; each part of a short one is a copy.
    #[test]
    fn only_long_bodies_are_kept_by_what_is_read_of_them() {
        let body: Vec<u8> = (0..100).collect();
        for (short_bytes, shares) in [(100, false), (99, true)] {
            let mut reader = Reader::new(&body, Vec::new(), short_bytes);
            let parts = [(); 2].map(|()| reader.bytes(8).expect("it is there"));
            assert_eq!(parts.concat(), body[..16]);
            let follows = parts[0].as_ptr().wrapping_add(8) == parts[1].as_ptr();
            assert_eq!(reader.shared.is_some() && follows, shares, "{short_bytes}");
        }
    }

    #[test]
    fn whatever_is_left_over_is_an_error() {
        let body = Bytes::from_static(b"ab");
        let mut reader = Reader::new(&body, vec![(Bytes::from_static(b"c"), 1)], 0);
        assert_eq!(reader.u8(), Ok(b'a'));
        let left = Reader::new(&body, Vec::new(), 0).finish();
        assert_eq!(left, Err(DecodeError::TrailingBytes { bytes: 2 }));
        assert_eq!(reader.rest(), "b");
        let unused = DecodeError::UnusedSegments { segments: 1 };
        assert_eq!(reader.finish(), Err(unused));
    }
}
