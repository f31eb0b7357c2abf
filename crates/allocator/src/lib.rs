//! The allocator of the programs: mimalloc, called in its short way.
//!
//! The system's allocator took a third of the CPU time of small operations (decision record 0005). The crate `mimalloc` asks for an alignment with
//! every allocation, which takes mimalloc's slow way for the sizes whose blocks are not aligned to their own length (decision record 0091). An
//! alignment of up to 16 bytes needs no asking: mimalloc gives it to each block that is at least that large.

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// The alignment in bytes of every block of mimalloc that is at least that large (`MI_MAX_ALIGN_SIZE`).
const ALIGNED: usize = 16;

/// The allocator of a program: `#[global_allocator] static ALLOCATOR: Allocator = Allocator;`.
pub struct Allocator;

/// True if mimalloc aligns a block of `size` bytes so without being asked.
const fn is_plain(size: usize, align: usize) -> bool {
    align <= ALIGNED && align <= size
}

// SAFETY: mimalloc gives blocks of at least the size, aligned as its documentation promises or as it is asked, and does not unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size is allowed, and the alignment is a power of two.
        let block = unsafe {
            match is_plain(size, align) {
                true => mi_malloc(size),
                false => mi_malloc_aligned(size, align),
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size is allowed, and the alignment is a power of two.
        let block = unsafe {
            match is_plain(size, align) {
                true => mi_zalloc(size),
                false => mi_zalloc_aligned(size, align),
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller got the block from this allocator, and frees it once.
        unsafe { mi_free(block.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the caller got the block from this allocator; mimalloc itself knows how it made it.
        let moved = unsafe {
            match is_plain(new_size, align) {
                true => mi_realloc(block.cast(), new_size),
                false => mi_realloc_aligned(block.cast(), new_size, align),
            }
        };
        moved.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program of the tests has it, too.
    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// Checks where the block lies, and fills it.
    ///
    /// # Safety
    /// The block has `size` bytes.
    unsafe fn fill(block: *mut u8, (size, align): (usize, usize), byte: u8) {
        assert!(!block.is_null());
        assert_eq!(block.addr() % align, 0, "{size} bytes aligned to {align}");
        // SAFETY: promised by the caller.
        unsafe { block.write_bytes(byte, size) };
    }

    /// True if the block begins with `size` such bytes.
    ///
    /// # Safety
    /// The block has as many, and all were written.
    unsafe fn has(block: *const u8, size: usize, byte: u8) -> bool {
        // SAFETY: promised by the caller.
        let bytes = unsafe { std::slice::from_raw_parts(block, size) };
        bytes.iter().all(|it| *it == byte)
    }

    #[test]
    fn blocks_of_every_size_are_aligned_and_keep_their_bytes() {
        let sizes = (1..300).chain([1000, 1024, 4095, 4096, 70_000, 1 << 20]);
        for (size, shift) in sizes.flat_map(|size| (0..=12).map(move |shift| (size, shift))) {
            let align = 1 << shift;
            let layout = Layout::from_size_align(size, align).expect("it is small");
            // Several at a time, since the first block of a page is aligned by chance.
            let blocks = [(); 4].map(|()| {
                // SAFETY: the size is not 0; the block has so many bytes, which are zeroed.
                unsafe {
                    let block = Allocator.alloc_zeroed(layout);
                    assert!(has(block, size, 0), "{size} bytes aligned to {align}");
                    fill(block, (size, align), 1);
                    block
                }
            });
            for block in blocks {
                // SAFETY: each block is moved twice and freed once, with the layout that it has then.
                unsafe {
                    let larger = Allocator.realloc(block, layout, 2 * size + 1);
                    assert!(has(larger, size, 1), "{size} bytes aligned to {align}");
                    fill(larger, (2 * size + 1, align), 2);
                    let large = Layout::from_size_align(2 * size + 1, align);
                    let smaller = Allocator.realloc(larger, large.expect("it is small"), size);
                    assert!(has(smaller, size, 2), "{size} bytes aligned to {align}");
                    Allocator.dealloc(smaller, layout);
                    let plain = Allocator.alloc(layout);
                    fill(plain, (size, align), 3);
                    Allocator.dealloc(plain, layout);
                }
            }
        }
    }
}
