//! Writing. Each message is written twice by the same code: once into a counter, once into a buffer of exactly that
//! size, so that there is one allocation and no second place that has to know the layout.

/// A sink of bytes.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.put(&value.to_le_bytes());
    }

    /// A length or a count that a type or a limit of `core` keeps below 2^16.
    fn short(&mut self, length: usize) {
        self.u16(u16::try_from(length).expect("bounded by core's limits"));
    }

    /// A length or a count.
    fn long(&mut self, length: usize) {
        self.u32(u32::try_from(length).expect("nothing in a body has 4 GiB"));
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts the written bytes.
struct Counter {
    bytes: usize,
}

impl Sink for Counter {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
    }
}

/// A type with a layout.
pub(crate) trait Encode {
    /// Writes it; the same bytes each time.
    fn write<S: Sink>(&self, out: &mut S);

    /// Its bytes, in a buffer without spare capacity.
    fn to_vec(&self) -> Vec<u8> {
        let mut counter = Counter { bytes: 0 };
        self.write(&mut counter);
        let mut out = Vec::with_capacity(counter.bytes);
        self.write(&mut out);
        assert_eq!(out.len(), counter.bytes, "both passes write the same");
        out
    }
}
