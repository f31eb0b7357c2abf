//! Cuts local files into chunks, and names the chunks.

use areo_core::fragment::Digest;
use areo_core::fragment::divide::{Divide, InvalidSizes, Rabin, Sizes};
use areo_core::fragment::update::Chunk;
use bytes::Bytes;
use fastcdc::v2020::{AVERAGE_MAX, FastCDC, MAXIMUM_MAX, MINIMUM_MAX};
use std::io::{self, Read};

/// The rule by which content is cut. All clients of a file should cut it in the same way: other cuts are other blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chunking {
    method: Method,
    sizes: Sizes,
}

/// A way to find cuts in content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// `FastCDC` (Xia et al., 2020), fast. Its blocks have at most 16 MiB.
    #[default]
    FastCdc,
    /// Rabin fingerprints, the papers' choice.
    Rabin,
}

/// Chunking that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidChunking {
    /// The sizes cannot be.
    #[error("{0}")]
    Sizes(InvalidSizes),
    /// `FastCDC` cannot cut so large blocks.
    #[error(
        "fastcdc cuts blocks of at least 1 MiB, about 4 MiB and at most 16 MiB, not larger: take smaller ones, or --chunking rabin"
    )]
    FastCdc,
}

impl Chunking {
    /// A rule for blocks of at least, about and at most this count of bytes.
    ///
    /// # Errors
    /// [`InvalidChunking`].
    pub fn new(
        method: Method,
        min: usize,
        avg: usize,
        max: usize,
    ) -> Result<Chunking, InvalidChunking> {
        let sizes = Sizes::new(min, avg, max).map_err(InvalidChunking::Sizes)?;
        // Beyond these its implementation stops the process.
        let limits = [(min, MINIMUM_MAX), (avg, AVERAGE_MAX), (max, MAXIMUM_MAX)];
        let fits = limits.iter().all(|(size, most)| *size <= *most as usize);
        if method == Method::Rabin || fits {
            Ok(Chunking { method, sizes })
        } else {
            Err(InvalidChunking::FastCdc)
        }
    }

    /// The algorithm that divides content.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Bytes of blocks: at least, about, at most.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.sizes.min(), self.sizes.avg(), self.sizes.max())
    }

    fn divider(&self) -> Divider {
        match self.method {
            Method::FastCdc => Divider::FastCdc(self.sizes),
            Method::Rabin => Divider::Rabin(Rabin::new(self.sizes)),
        }
    }
}

enum Divider {
    FastCdc(Sizes),
    Rabin(Rabin),
}

impl Divide for Divider {
    fn sizes(&self) -> Sizes {
        match self {
            Divider::FastCdc(sizes) => *sizes,
            Divider::Rabin(rabin) => rabin.sizes(),
        }
    }

    fn first(&self, content: &[u8]) -> usize {
        let sizes = match self {
            Divider::FastCdc(sizes) => *sizes,
            Divider::Rabin(rabin) => return rabin.first(content),
        };
        let window = &content[..content.len().min(sizes.max())];
        let [min, avg, max] = [sizes.min(), sizes.avg(), sizes.max()]
            .map(|size| u32::try_from(size).expect("checked when it was made"));
        let mut chunks = FastCDC::new(window, min, avg, max);
        chunks.next().map_or(0, |chunk| chunk.length)
    }
}

/// The digest of content.
pub(super) fn digest(content: &[Bytes]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for piece in content {
        hasher.update(piece);
    }
    Digest(*hasher.finalize().as_bytes())
}

/// Cuts what `source` gives, in the memory of a few chunks; `told` gets the number of bytes that were read.
///
/// # Errors
/// Those of the source.
pub(super) fn scan(
    mut source: impl Read,
    chunking: &Chunking,
    mut told: impl FnMut(u64),
) -> io::Result<Vec<Chunk>> {
    let divider = chunking.divider();
    let longest = divider.sizes().max();
    let (mut chunks, mut buffer, mut start) = (Vec::new(), Vec::new(), 0);
    loop {
        if buffer.len() - start < longest {
            buffer.drain(..start);
            start = 0;
            let room = (4 * longest).max(1 << 20) - buffer.len();
            let read = source.by_ref().take(room as u64).read_to_end(&mut buffer)?;
            told(read as u64);
        }
        let rest = &buffer[start..];
        if rest.is_empty() {
            return Ok(chunks);
        }
        let length = divider.first(rest);
        assert!(
            0 < length && length <= longest,
            "a chunk is within its bounds"
        );
        chunks.push(Chunk {
            digest: Digest(*blake3::hash(&rest[..length]).as_bytes()),
            length: length as u64,
        });
        start += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::fragment::identify;

    fn content(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(next).collect()
    }

    fn lengths(chunks: &[Chunk]) -> Vec<u64> {
        chunks.iter().map(|chunk| chunk.length).collect()
    }

    #[test]
    fn fastcdc_cuts_are_golden() {
        let chunking = Chunking::new(Method::FastCdc, 4 << 10, 8 << 10, 16 << 10).unwrap();
        let chunks = scan(&content(100_000)[..], &chunking, |_| {}).unwrap();
        assert_eq!(lengths(&chunks), GOLDEN);
    }

    const GOLDEN: [u64; 9] = [9295, 7780, 16384, 16384, 9536, 10912, 16384, 8689, 4636];

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(1000);
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn cuts_do_not_depend_on_how_content_is_read() {
        let content = content(500_000);
        for method in [Method::FastCdc, Method::Rabin] {
            let chunking = Chunking::new(method, 4 << 10, 8 << 10, 16 << 10).unwrap();
            let mut read = 0;
            let chunks = scan(Slow(&content), &chunking, |bytes| read += bytes).unwrap();
            assert_eq!(read, 500_000);
            let mut rest = &content[..];
            for chunk in &chunks {
                let (piece, after) = rest.split_at(chunk.length as usize);
                assert_eq!(chunk.digest, digest(&[Bytes::copy_from_slice(piece)]));
                rest = after;
            }
            assert!(rest.is_empty());
            assert_eq!(
                lengths(&chunks),
                chunking
                    .divider()
                    .divide(&content)
                    .iter()
                    .map(|l| *l as u64)
                    .collect::<Vec<_>>()
            );
            assert_eq!(scan(&b""[..], &chunking, |_| {}).unwrap(), []);
        }
    }

    #[test]
    fn an_insertion_in_front_leaves_all_but_two_chunks() {
        let old = content(4 << 20);
        for method in [Method::FastCdc, Method::Rabin] {
            let chunking = Chunking::new(method, 32 << 10, 64 << 10, 128 << 10).unwrap();
            let before = scan(&old[..], &chunking, |_| {}).unwrap();
            let new = [b"x".as_slice(), &old].concat();
            let after = scan(&new[..], &chunking, |_| {}).unwrap();
            let unknown = after.iter().filter(|chunk| !before.contains(chunk)).count();
            assert!(unknown <= 2, "{method:?}: {unknown} of {}", after.len());
        }
    }

    #[test]
    fn what_fastcdc_cannot_do_is_refused_and_not_attempted() {
        let mib = |method, min: usize, avg: usize, max: usize| {
            Chunking::new(method, min << 20, avg << 20, max << 20)
        };
        assert_eq!(mib(Method::FastCdc, 2, 4, 8), Err(InvalidChunking::FastCdc));
        assert_eq!(mib(Method::FastCdc, 1, 8, 8), Err(InvalidChunking::FastCdc));
        let largest = mib(Method::FastCdc, 1, 4, 16).unwrap();
        assert_eq!(
            lengths(&scan(&[0; 100][..], &largest, |_| {}).unwrap()),
            [100]
        );
        let rabin = mib(Method::Rabin, 2, 4, 64).unwrap();
        assert_eq!(
            lengths(&scan(&[0; 100][..], &rabin, |_| {}).unwrap()),
            [100]
        );
        assert!(matches!(
            mib(Method::Rabin, 4, 2, 8),
            Err(InvalidChunking::Sizes(_))
        ));
    }

    /// All sources below a folder, one after the other with their paths: as a tar would have them.
    fn tree(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files.extend(tree(&path));
            } else {
                files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
        files.sort();
        files
    }

    /// Real inputs: the sources of the algorithms, and what becomes of them in an edit.
    #[test]
    fn of_an_edited_source_tree_little_is_sent() {
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/src");
        let old = tree(std::path::Path::new(sources));
        let archive = |files: &[(String, Vec<u8>)]| {
            let parts = files
                .iter()
                .map(|(path, text)| [path.as_bytes(), b"\0", text].concat());
            parts.collect::<Vec<_>>().concat()
        };
        let mut new = old.clone();
        let moved = new.remove(3);
        new.push(moved);
        new.remove(10);
        let text = String::from_utf8(new[20].1.clone()).unwrap();
        new[20].1 = text.replace("the ", "this ").into_bytes();
        let half = new[30].1.len() / 2;
        let paragraph = new[30].1.split_off(half);
        new[30].1.splice(0..0, paragraph);
        let (before, after) = (archive(&old), archive(&new));
        for method in [Method::FastCdc, Method::Rabin] {
            let chunking = Chunking::new(method, 4 << 10, 8 << 10, 16 << 10).unwrap();
            let before = scan(&before[..], &chunking, |_| {}).unwrap();
            let after = scan(&after[..], &chunking, |_| {}).unwrap();
            let blocks: Vec<_> = before.iter().map(|chunk| Some(chunk.digest)).collect();
            let digests: Vec<_> = after.iter().map(|chunk| chunk.digest).collect();
            let updates = identify::updates(&blocks, &digests);
            let mut list: Vec<Vec<usize>> = vec![Vec::new()];
            let place = |block: usize| {
                after
                    .iter()
                    .position(|chunk| Some(chunk.digest) == blocks[block])
            };
            list.extend((0..blocks.len()).map(|block| place(block).into_iter().collect()));
            let mut sent = 0;
            for update in &updates {
                let own = update.chunk.into_iter().chain(update.after.iter().copied());
                let own: Vec<usize> = own.collect();
                sent += own.iter().map(|chunk| after[*chunk].length).sum::<u64>();
                list[update.block.map_or(0, |block| block + 1)] = own;
            }
            let made: Vec<Digest> = list.concat().iter().map(|chunk| digests[*chunk]).collect();
            assert_eq!(made, digests, "{method:?}: the file is the new tree");
            let total: u64 = after.iter().map(|chunk| chunk.length).sum();
            assert!(sent < total / 2, "{method:?}: {sent} of {total} bytes");
        }
    }
}
