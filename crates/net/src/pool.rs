//! Receive buffers that are used again.
//!
//! A payload is received straight into a buffer of its own, which then becomes the element that the store or
//! the decoder holds. Fresh memory for each would be zeroed by the kernel page by page: measured 0.59
//! against 0.34 ns per byte. So a buffer goes back on its shelf when the last [`Bytes`] over it is
//! dropped, on whichever thread that happens.
//!
//! Shelves are 4 to the doubling (4, 5, 6, 7, 8, 10, 12 KiB, ...), so at most a fifth of a buffer is unused.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

/// The largest buffer that is kept, in bytes; larger ones are allocated and freed each time.
pub const MAX_POOLED_BYTES: usize = 64 << 20;
/// What shelves are counted in, in bytes.
const UNIT_BYTES: usize = 1024;
/// The smallest shelf, in units, and the number of shelves to a doubling.
const SHELVES_PER_DOUBLING: usize = 4;

/// Where receive buffers come from. Clones share the shelves.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Locked once for a payload, never for a small call; contended only if another thread drops buffers.
    shelves: Mutex<Shelves>,
    max_idle_bytes: usize,
    lent: AtomicUsize,
}

#[derive(Debug, Default)]
struct Shelves {
    by_class: Vec<Vec<Vec<u8>>>,
    idle_bytes: usize,
}

impl Pool {
    /// A pool that keeps at most `max_idle_bytes` of memory that nobody uses.
    pub fn new(max_idle_bytes: usize) -> Pool {
        Pool {
            shared: Arc::new(Shared {
                shelves: Mutex::default(),
                max_idle_bytes,
                lent: AtomicUsize::new(0),
            }),
        }
    }

    /// A buffer of exactly `length` bytes. Its content is left over from earlier use.
    pub fn take(&self, length: usize) -> Buffer {
        let (class, class_bytes) = class_of(length);
        let used = self.shared.lock().take(class);
        let bytes = used.unwrap_or_else(|| vec![0; class_bytes]);
        assert!(bytes.len() == class_bytes && length <= class_bytes);
        self.shared.lent.fetch_add(1, Ordering::Relaxed);
        Buffer {
            bytes,
            length,
            home: Arc::clone(&self.shared),
        }
    }

    /// Bytes on the shelves.
    pub fn idle_bytes(&self) -> usize {
        self.shared.lock().idle_bytes
    }

    /// Buffers that have been taken and not yet dropped.
    pub fn lent(&self) -> usize {
        self.shared.lent.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves
            .lock()
            .expect("nothing panics while the shelves are locked")
    }
}

impl Shelves {
    fn take(&mut self, class: usize) -> Option<Vec<u8>> {
        let bytes = self.by_class.get_mut(class)?.pop()?;
        self.idle_bytes -= bytes.len();
        Some(bytes)
    }

    fn put(&mut self, class: usize, bytes: Vec<u8>) {
        if self.by_class.len() <= class {
            self.by_class.resize_with(class + 1, Vec::new);
        }
        self.idle_bytes += bytes.len();
        self.by_class[class].push(bytes);
    }
}

/// The shelf for a buffer of `length` bytes, and the size of the buffers on it.
fn class_of(length: usize) -> (usize, usize) {
    let units = length.div_ceil(UNIT_BYTES).max(SHELVES_PER_DOUBLING);
    let doublings = (units / SHELVES_PER_DOUBLING).ilog2() as usize;
    let quarters = units.div_ceil(1 << doublings);
    assert!((SHELVES_PER_DOUBLING..=2 * SHELVES_PER_DOUBLING).contains(&quarters));
    let class = doublings * SHELVES_PER_DOUBLING + quarters - SHELVES_PER_DOUBLING;
    (class, (quarters << doublings) * UNIT_BYTES)
}

/// A buffer on loan from a [`Pool`].
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    home: Arc<Shared>,
}

impl Buffer {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes, to be filled.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    /// Shares the buffer; it goes back to its pool when the last clone or slice is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.lent.fetch_sub(1, Ordering::Relaxed);
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.len() > MAX_POOLED_BYTES {
            return;
        }
        let (class, class_bytes) = class_of(bytes.len());
        assert_eq!(bytes.len(), class_bytes);
        let mut shelves = self.home.lock();
        if shelves.idle_bytes + bytes.len() <= self.home.max_idle_bytes {
            shelves.put(class, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shelves_grow_and_waste_at_most_a_fifth() {
        let mut last = (0, 0);
        for length in (0..200_000).chain([(1 << 20) - 1, 1 << 20, (1 << 20) + 1, MAX_POOLED_BYTES])
        {
            let (class, bytes) = class_of(length);
            assert!(bytes >= length);
            assert!(
                length <= 4096 || (bytes - length) * 5 <= bytes,
                "{length} in {bytes}"
            );
            assert!(
                class == last.0 || bytes > last.1,
                "one size to a shelf, growing"
            );
            assert_eq!(class_of(bytes), (class, bytes));
            last = (class, bytes);
        }
        assert_eq!(class_of(4096).1, 4096);
        assert_eq!(class_of(1 << 20).1, 1 << 20);
        assert_eq!(class_of(349_526).1, 384 << 10);
    }

    #[test]
    fn a_buffer_comes_back_with_its_last_slice_from_any_thread() {
        let pool = Pool::new(1 << 20);
        let mut buffer = pool.take(10_000);
        assert_eq!(buffer.len(), 10_000);
        buffer.as_mut_slice().fill(7);
        let whole = buffer.freeze();
        let address = whole.as_ptr();
        let part = whole.slice(100..200);
        drop(whole);
        assert_eq!((pool.lent(), pool.idle_bytes()), (1, 0));
        std::thread::spawn(move || assert_eq!(part[0], 7))
            .join()
            .unwrap();
        assert_eq!((pool.lent(), pool.idle_bytes()), (0, 10 << 10));
        let again = pool.take(9_500);
        assert_eq!(again.as_ref().as_ptr(), address);
        assert_eq!((pool.lent(), pool.idle_bytes()), (1, 0));
    }

    #[test]
    fn idle_memory_is_bounded() {
        let pool = Pool::new(20 << 10);
        let buffers = [pool.take(8 << 10), pool.take(8 << 10), pool.take(8 << 10)];
        drop(buffers);
        assert_eq!((pool.lent(), pool.idle_bytes()), (0, 16 << 10));
        drop(pool.take(MAX_POOLED_BYTES + 1));
        assert_eq!(pool.idle_bytes(), 16 << 10);
    }
}
