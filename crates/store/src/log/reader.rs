//! Reading a segment from front to back in large pieces.

use std::io;

use crate::checksum::Crc32c;
use crate::disk::File;
use crate::format::PAGE;

const ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];

pub(crate) struct Reader<'a, F> {
    file: &'a F,
    /// The length of the file.
    pub(crate) length: u64,
    /// Read into and never cleared, so that opening many small segments does not clear memory for each.
    window: Vec<u8>,
    /// The number of bytes of it that were read.
    filled: usize,
    window_at: u64,
    window_bytes: usize,
    pub(crate) bytes_read: u64,
}

impl<'a, F: File> Reader<'a, F> {
    /// Reads at least `window_bytes` at a time. `window` is that of the reader before, or empty.
    pub(crate) fn new(file: &'a F, length: u64, window_bytes: usize, window: Vec<u8>) -> Self {
        assert!(window_bytes > 0, "a walk gets on");
        Self {
            file,
            length,
            window,
            filled: 0,
            window_at: 0,
            window_bytes,
            bytes_read: 0,
        }
    }

    /// `length` bytes at `at`, or `None` if the file ends before that.
    pub(crate) fn slice(&mut self, at: u64, length: usize) -> io::Result<Option<&[u8]>> {
        if at
            .checked_add(length as u64)
            .is_none_or(|end| end > self.length)
        {
            return Ok(None);
        }
        let window_end = self.window_at + self.filled as u64;
        if at < self.window_at || at + length as u64 > window_end {
            self.load(at, length)?;
        }
        let start = usize::try_from(at - self.window_at).expect("within the window");
        Ok(self.window[..self.filled].get(start..start + length))
    }

    /// The CRC-32C of a range, or `None` if the file ends before its end.
    pub(crate) fn checksum(&mut self, at: u64, length: u64) -> io::Result<Option<u32>> {
        let mut digest = Crc32c::default();
        let is_whole = self.walk(at, length, |bytes| {
            digest.update(bytes);
            true
        })?;
        Ok(is_whole.then(|| digest.finish()))
    }

    /// True if a range that is within the file is all zero.
    pub(crate) fn is_zero(&mut self, from: u64, to: u64) -> io::Result<bool> {
        let length = to.saturating_sub(from);
        self.walk(from, length, |bytes| {
            let mut chunks = bytes.chunks(ZEROS.len());
            chunks.all(|chunk| chunk == &ZEROS[..chunk.len()])
        })
    }

    /// Hands out a range piece by piece until `accept` says no; whether it came to the end.
    fn walk(
        &mut self,
        at: u64,
        length: u64,
        mut accept: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let end = at.saturating_add(length);
        let mut position = at;
        while position < end {
            let chunk = (end - position).min(self.window_bytes as u64);
            let chunk_bytes = usize::try_from(chunk).expect("at most a window");
            match self.slice(position, chunk_bytes)? {
                Some(bytes) if accept(bytes) => position += chunk,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn load(&mut self, at: u64, length: usize) -> io::Result<()> {
        let left = usize::try_from(self.length - at).unwrap_or(usize::MAX);
        let wanted = length.max(self.window_bytes).min(left);
        if self.window.len() < wanted {
            self.window.resize(wanted, 0);
        }
        self.filled = 0;
        self.filled = self.file.read_at(&mut self.window[..wanted], at)?;
        assert!(
            self.filled <= wanted,
            "a file fills no more than the buffer"
        );
        self.window_at = at;
        self.bytes_read += self.filled as u64;
        Ok(())
    }

    /// The memory that was read into, for the next reader.
    pub(crate) fn into_window(self) -> Vec<u8> {
        self.window
    }
}
