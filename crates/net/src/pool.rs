//! Receive buffers that are used again.
//!
//! A payload is received straight into a buffer of its own, which then becomes the element that the store or
//! the decoder holds. Fresh memory for each would be zeroed by the kernel page by page: up to half of the CPU time of
//! servers that receive large values. So a buffer goes back on its shelf when the last [`Bytes`] over it is
//! dropped, on whichever thread that happens. It is zeroed once, when it is made; later users see only the bytes that they
//! have received themselves, because a payload is shared when all of it has arrived.
//!
//! Shelves are 8 to the doubling (8, 9, 10, ..., 16, 18 KiB, ...), so at most a ninth of a buffer above 8 KiB is unused.
//!
//! Idle memory has two bounds: in bytes ([`Pool::new`]), and in time. What a shelf did not need for a whole
//! [`KEEP_PERIOD`] goes back to the system, so that of a burst nothing is left after two of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// The largest buffer that is kept, in bytes; larger ones are allocated and freed each time.
pub const MAX_POOLED_BYTES: usize = 64 << 20;
/// Bytes that a process keeps for reuse at most. A server at `[5,3]` that is sent values of 64 MiB, one after the other,
/// frees and needs half of it within a second.
pub const IDLE_BYTES: usize = 256 << 20;
/// The least time for which an unneeded buffer is kept. It is freed after twice this time at the latest.
pub const KEEP_PERIOD: Duration = Duration::from_secs(5);
/// The unit in which shelves are counted, in bytes.
const UNIT_BYTES: usize = 1024;
/// The smallest shelf, in units, and the number of shelves to a doubling.
const SHELVES_PER_DOUBLING: usize = 8;

/// The pool of receive buffers. Clones share the shelves.
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

#[derive(Debug)]
struct Shelves {
    by_class: Vec<Shelf>,
    idle_bytes: usize,
    /// The time at which [`Pool::give_back`] last freed buffers that were not needed.
    trimmed_at: Instant,
}

/// Buffers of one size; the last one that came goes first, because the processor may still have it in a cache.
#[derive(Debug, Default)]
struct Shelf {
    buffers: Vec<Vec<u8>>,
    /// The number of buffers that have lain here since the last trim.
    unused: usize,
}

impl Pool {
    /// A pool that keeps at most `max_idle_bytes` of unused memory.
    pub fn new(max_idle_bytes: usize) -> Pool {
        let shelves = Shelves {
            by_class: Vec::new(),
            idle_bytes: 0,
            trimmed_at: Instant::now(),
        };
        Pool {
            shared: Arc::new(Shared {
                shelves: Mutex::new(shelves),
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

    /// Frees buffers that were not needed for a [`KEEP_PERIOD`]. To be called about once a second, also when nothing else
    /// happens.
    pub fn give_back(&self, now: Instant) {
        // Freed when the shelves are unlocked again: that takes system calls.
        let unused = self.shared.lock().trim(now);
        drop(unused);
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
        let shelf = self.by_class.get_mut(class)?;
        let bytes = shelf.buffers.pop()?;
        shelf.unused = shelf.unused.min(shelf.buffers.len());
        self.idle_bytes -= bytes.len();
        Some(bytes)
    }

    fn put(&mut self, class: usize, bytes: Vec<u8>) {
        if self.by_class.len() <= class {
            self.by_class.resize_with(class + 1, Shelf::default);
        }
        self.idle_bytes += bytes.len();
        self.by_class[class].buffers.push(bytes);
    }

    /// Takes out the buffers that were not needed since the last trim, if that is long ago.
    fn trim(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if now.saturating_duration_since(self.trimmed_at) < KEEP_PERIOD {
            return Vec::new();
        }
        self.trimmed_at = now;
        let mut gone = Vec::new();
        for shelf in &mut self.by_class {
            // Those at the bottom.
            gone.extend(shelf.buffers.drain(..shelf.unused));
            shelf.unused = shelf.buffers.len();
        }
        self.idle_bytes -= gone.iter().map(Vec::len).sum::<usize>();
        gone
    }
}

/// The shelf for a buffer of `length` bytes, and the size of the buffers on it.
fn class_of(length: usize) -> (usize, usize) {
    let units = length.div_ceil(UNIT_BYTES).max(SHELVES_PER_DOUBLING);
    let doublings = (units / SHELVES_PER_DOUBLING).ilog2() as usize;
    let parts = units.div_ceil(1 << doublings);
    assert!((SHELVES_PER_DOUBLING..=2 * SHELVES_PER_DOUBLING).contains(&parts));
    let class = doublings * SHELVES_PER_DOUBLING + parts - SHELVES_PER_DOUBLING;
    (class, (parts << doublings) * UNIT_BYTES)
}

/// A buffer on loan from a [`Pool`].
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    home: Arc<Shared>,
}

impl Buffer {
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if the length is 0.
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
    fn shelves_grow_and_waste_at_most_a_ninth() {
        let mut last = (0, 0);
        for length in (0..200_000).chain([(1 << 20) - 1, 1 << 20, (1 << 20) + 1, MAX_POOLED_BYTES])
        {
            let (class, bytes) = class_of(length);
            assert!(bytes >= length);
            // Beside the rounding to whole units.
            assert!(
                length <= 8192 || (bytes - length) * 9 <= bytes + 9 * UNIT_BYTES,
                "{length} in {bytes}"
            );
            assert!(
                class == last.0 || bytes > last.1,
                "one size to a shelf, growing"
            );
            assert_eq!(class_of(bytes), (class, bytes));
            last = (class, bytes);
        }
        assert_eq!(class_of(8192).1, 8192);
        assert_eq!(class_of(1 << 20).1, 1 << 20);
        assert_eq!(class_of(349_526).1, 352 << 10);
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

    /// Buffers of odd sizes are used again: the elements of a block of 4 MiB by [n,k].
    #[test]
    fn odd_sizes_are_taken_from_their_shelves_again() {
        let pool = Pool::new(IDLE_BYTES);
        let of_block = (1..=12usize).map(|k| (4_usize << 20).div_ceil(k));
        for length in of_block.chain([4097, 65_537, 1_398_102, 3_000_001, MAX_POOLED_BYTES - 1]) {
            let first: Vec<Buffer> = (0..3).map(|_| pool.take(length)).collect();
            let addresses = |buffers: &[Buffer]| {
                let mut addresses: Vec<_> = buffers.iter().map(|b| b.as_ref().as_ptr()).collect();
                addresses.sort();
                addresses
            };
            let before = addresses(&first);
            drop(first);
            let idle = pool.idle_bytes();
            let again: Vec<Buffer> = (0..3).map(|_| pool.take(length)).collect();
            assert_eq!(addresses(&again), before, "{length}");
            assert_eq!(idle - pool.idle_bytes(), 3 * class_of(length).1, "{length}");
            drop(again);
            pool.shared.lock().by_class.clear();
            pool.shared.lock().idle_bytes = 0;
        }
    }

    #[test]
    fn idle_memory_is_bounded() {
        let pool = Pool::new(20 << 10);
        let buffers = [pool.take(8 << 10), pool.take(8 << 10), pool.take(8 << 10)];
        drop(buffers);
        assert_eq!((pool.lent(), pool.idle_bytes()), (0, 16 << 10));
        drop(pool.take(MAX_POOLED_BYTES + 1));
        assert_eq!(pool.idle_bytes(), 16 << 10);
        // Of all sizes together.
        drop([pool.take(9 << 10), pool.take(30 << 10)]);
        assert_eq!(pool.idle_bytes(), 16 << 10);
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        let pool = Pool::new(IDLE_BYTES);
        let mut now = Instant::now();
        let mut period_passes = |pool: &Pool| {
            now += KEEP_PERIOD;
            pool.give_back(now);
            pool.idle_bytes() >> 10
        };
        let burst: Vec<Buffer> = (0..10).map(|_| pool.take(64 << 10)).collect();
        drop(burst);
        assert_eq!(period_passes(&pool), 640, "it came within the period");
        pool.give_back(Instant::now());
        let few = [pool.take(64 << 10), pool.take(64 << 10)];
        let needed = few.each_ref().map(|buffer| buffer.as_ref().as_ptr());
        drop(few);
        assert_eq!(period_passes(&pool), 128, "two at a time were needed");
        let again = pool.take(64 << 10);
        assert!(needed.contains(&again.as_ref().as_ptr()), "these stayed");
        drop(again);
        assert_eq!(period_passes(&pool), 64);
        assert_eq!(period_passes(&pool), 0, "nothing happens, nothing stays");
        assert_eq!(pool.take(1).len(), 1, "and all goes on");
    }
}
