use super::*;
use crate::blocking::wait;
use Bound::{Excluded, Included, Unbounded};

#[test]
fn ranges_are_within_the_value() {
    let within = |range: (Bound<u64>, Bound<u64>), length| {
        WantedRange::new(&range).and_then(|wanted| wanted.within(length))
    };
    assert_eq!(within((Unbounded, Unbounded), 0), Ok(0..0));
    assert_eq!(within((Included(3), Unbounded), 10), Ok(3..10));
    assert_eq!(within((Included(3), Included(9)), 10), Ok(3..10));
    assert_eq!(within((Excluded(3), Excluded(9)), 10), Ok(4..9));
    assert_eq!(within((Included(10), Unbounded), 10), Ok(10..10));
    for (range, sentence) in [
        (
            (Included(11), Unbounded),
            "the range from byte 11 is not within the value, which has 10 bytes",
        ),
        (
            (Included(1), Included(10)),
            "the range from byte 1 to before byte 11 is not within the value, which has 10 bytes",
        ),
        (
            (Included(5), Excluded(4)),
            "a range from byte 5 to before byte 4 is empty",
        ),
        (
            (Included(0), Included(u64::MAX)),
            "the range from byte 0 to before byte 18446744073709551615 is not within the value, which has 10 bytes",
        ),
    ] {
        assert_eq!(within(range, 10).unwrap_err().to_string(), sentence);
    }
}

/// A reader that gives this number of bytes at a time.
struct Slowly<'a>(&'a [u8], usize);

impl AsyncRead for Slowly<'_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        out: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let count = self.1.min(self.0.len()).min(out.remaining());
        let (now, later) = self.0.split_at(count);
        out.put_slice(now);
        self.0 = later;
        std::task::Poll::Ready(Ok(()))
    }
}

#[test]
fn a_source_is_cut_into_blocks_however_it_comes() {
    let value: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for step in [1000, 70_000, 1 << 20] {
        for block_bytes in [4096, 100_000, 300_000, 300_001] {
            let mut source = Slowly(&value, step);
            let mut blocks = Vec::new();
            loop {
                let block = wait(read_block(&mut source, block_bytes)).unwrap();
                if block.is_empty() {
                    break;
                }
                blocks.push(block);
            }
            let expected: Vec<&[u8]> = value.chunks(block_bytes).collect();
            assert_eq!(blocks, expected, "{block_bytes} of {step}");
        }
    }
}

/// A reader that ends after each of these parts, and goes on when it is asked again.
struct Growing<'a>(&'a [&'a [u8]]);

impl AsyncRead for Growing<'_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        out: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        if let Some((part, later)) = self.0.split_first() {
            out.put_slice(part);
            self.0 = later;
        }
        std::task::Poll::Ready(Ok(()))
    }
}

/// A file that grows while it is read: a short block in the middle would shift all that follow.
#[test]
fn a_source_that_goes_on_after_its_end_is_cut_there() {
    let parts: [&[u8]; 5] = [b"abcd", b"ef", b"", b"gh", b""];
    let mut blocks = BlockSource::new(Growing(&parts), 4);
    let mut next = || wait(blocks.next()).unwrap();
    assert_eq!([next(), next()], ["abcd", "ef"]);
    assert_eq!([next(), next()], ["", ""]);
}
