//! The search for two bytes in a row, here because this crate is optimised in tests too: others search all files of all clusters.

/// The first place from `from` on at which two bytes in a row are among those that are wanted. `wanted` has a bit for each pair, as a number of 16 bits with the first
/// byte first, from the lowest bit of the first of its 1024 words on.
///
/// # Panics
/// If `wanted` has another length.
pub fn next_pair(bytes: &[u8], from: usize, wanted: &[u64]) -> Option<usize> {
    let wanted: &[u64; 1024] = wanted.try_into().expect("a bit for each pair");
    let found = bytes.get(from..)?.windows(2).position(|two| {
        let pair = u16::from_be_bytes([two[0], two[1]]);
        wanted[usize::from(pair >> 6)] >> (pair & 63) & 1 == 1
    });
    Some(from + found?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_one_after_another() {
        let mut wanted = vec![0; 1024];
        for pair in [*b"ab", [0xff, 0xff]] {
            let pair = u16::from_be_bytes(pair);
            wanted[usize::from(pair >> 6)] |= 1 << (pair & 63);
        }
        let bytes = b"xabab\xff\xff\xff";
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = next_pair(bytes, from, &wanted) {
            found.push(at);
            from = at + 1;
        }
        assert_eq!(found, [1, 3, 5, 6]);
        assert_eq!(next_pair(b"a", 0, &wanted), None);
        assert_eq!(next_pair(b"ab", 3, &wanted), None);
    }
}
