//! A stable hash: part of what is stored and sent, so it may never change.

/// 64 bits over `bytes`: FNV-1a, finished by the mixer of `splitmix64` so that its low bits may be used as a remainder.
/// Not for adversarial input. Used for the digest of a configuration and for the rotation of element indices
/// (`[X-6 rotating-index]`).
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_pinned() {
        assert_eq!(stable_hash(b""), PINNED_EMPTY);
        assert_eq!(stable_hash(b"areo"), PINNED_AREO);
    }

    const PINNED_EMPTY: u64 = 17_665_956_581_633_026_203;
    const PINNED_AREO: u64 = 4_724_818_870_670_544_804;

    #[test]
    fn remainders_are_spread() {
        let mut counts = [0u32; 5];
        for i in 0..5000u32 {
            counts[(stable_hash(format!("key-{i}").as_bytes()) % 5) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
    }
}
