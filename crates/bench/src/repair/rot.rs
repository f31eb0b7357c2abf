//! Rot: bits of elements that flip on a disk.

use crate::load::KEY_PREFIX;
use crate::random::Random;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Around a flipped bit, on each side, there are so many bytes of the element. The header of a record, which names its object, is
/// shorter: of a record whose name is lost nothing can be mended.
const AROUND: u64 = 1024;

/// Flips bits in elements of a server that does not run.
pub(super) fn flip(data: &Path, flips: u64, seed: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(data.join("log"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let length = file.metadata()?.len();
            files.push((file, length));
        }
    }
    files.retain(|(_, length)| *length > 4 * AROUND);
    if files.is_empty() {
        return Err(io::Error::other("the server holds nothing"));
    }
    let mut random = Random::new(seed);
    let mut flipped = 0;
    while flipped < flips {
        let (file, length) = &files[random.index(files.len())];
        let at = AROUND + random.below(length - 2 * AROUND);
        flipped += u64::from(flip_at(file, at, 1 << random.below(8))?);
    }
    Ok(())
}

/// `false`: there is no element.
fn flip_at(file: &File, at: u64, mask: u8) -> io::Result<bool> {
    let mut around = [0; 2 * AROUND as usize];
    file.read_exact_at(&mut around, at - AROUND)?;
    let has_key = around
        .windows(KEY_PREFIX.len())
        .any(|window| window == KEY_PREFIX.as_bytes());
    // Values are random, so that many zeros are of no value.
    let has_zeros = around.windows(16).any(|window| window == [0; 16]);
    if has_key || has_zeros {
        return Ok(false);
    }
    let middle = around[AROUND as usize] ^ mask;
    file.write_all_at(&[middle], at)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::value;

    #[test]
    fn bits_flip_in_elements_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::create_dir(&log).unwrap();
        let element = value::content(1, 20_000);
        let head = [&[0; 400][..], b"object-20000-00000001", &[7; 100]].concat();
        let before = [&head[..], &element, &[0; 5000]].concat();
        std::fs::write(log.join("segment.log"), &before).unwrap();
        std::fs::write(log.join("segment.hint"), [1; 10_000]).unwrap();
        flip(folder.path(), 50, 3).unwrap();
        let after = std::fs::read(log.join("segment.log")).unwrap();
        let flipped = before.iter().zip(&after).map(|(a, b)| (a ^ b).count_ones());
        let flipped: u32 = flipped.sum();
        // Two may hit the same bit.
        assert!((40..=50).contains(&flipped), "{flipped}");
        assert!(after[..head.len()] == before[..head.len()]);
        assert!(after[head.len() + 20_000..].iter().all(|byte| *byte == 0));
        assert_eq!(
            std::fs::read(log.join("segment.hint")).unwrap(),
            [1; 10_000]
        );
    }
}
