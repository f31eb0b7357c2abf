//! Values whose bytes differ from those of all others.

use crate::random::Random;
use bytes::Bytes;

/// Number and length stand first.
pub(crate) const HEAD: usize = 16;
/// The position of the count in the number of a counter's value.
const COUNT_SHIFT: u32 = 40;

/// Mostly small; some above the limit for copies, so that they are coded; a few large ones, which travel apart.
pub(crate) fn length(random: &mut Random) -> usize {
    let most = match random.below(200) {
        0 => 400 << 10,
        1..20 => 24 << 10,
        _ => 200,
    };
    HEAD + random.index(most)
}

/// The value of this number.
pub(crate) fn content(number: u64, length: usize) -> Bytes {
    assert!(length >= HEAD);
    let mut bytes = Vec::with_capacity(length + 8);
    bytes.extend(number.to_le_bytes());
    bytes.extend((length as u64).to_le_bytes());
    let mut random = Random::new(number);
    while bytes.len() < length {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// The name of the value of this number in a history.
pub(crate) fn name(number: u64) -> String {
    format!("v{number}")
}

/// The number of a value that says how far a counter is. `unique`: of all values of the run.
pub(crate) fn counted(count: u64, unique: u64) -> u64 {
    assert!(unique < 1 << COUNT_SHIFT, "a run has fewer operations");
    count << COUNT_SHIFT | unique
}

/// The count of a counter whose value has this name in a history; 0: it has no value of ours.
pub(crate) fn count(name: &str) -> u64 {
    let number = name.strip_prefix('v').and_then(|it| it.parse::<u64>().ok());
    number.unwrap_or(0) >> COUNT_SHIFT
}

/// The name of these bytes in a history: as [`name`] does only if every one of them is right.
pub(crate) fn recognise(bytes: &[u8]) -> String {
    let Some((number, _)) = bytes.split_first_chunk::<8>() else {
        return format!("no value of ours, {} bytes", bytes.len());
    };
    let number = u64::from_le_bytes(*number);
    match bytes.len() >= HEAD && content(number, bytes.len()) == bytes {
        true => name(number),
        false => format!(
            "no value of ours, {} bytes, begins as v{number}",
            bytes.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_stands_in_the_value() {
        let number = counted(77, 5);
        let name = recognise(&content(number, 100));
        assert_eq!((name == super::name(number), count(&name)), (true, 77));
        assert_eq!([count("v5"), count("no value of ours")], [0, 0]);
    }

    #[test]
    fn values_are_recognised_only_if_every_byte_is_right() {
        for length in [16, 17, 200, 70_000] {
            let value = content(77, length);
            assert_eq!(value.len(), length);
            assert_eq!(recognise(&value), "v77");
            for at in [0, 8, length / 2, length - 1] {
                let mut wrong = value.to_vec();
                wrong[at] ^= 1;
                assert_ne!(recognise(&wrong), "v77", "byte {at} of {length}");
            }
            assert_ne!(recognise(&value[..length - 1]), "v77");
        }
        assert!(recognise(b"").starts_with("no value"));
        let (one, other) = (content(1, 30_000), content(2, 30_000));
        let mixed = [&one[..10_000], &other[10_000..]].concat();
        assert!(recognise(&mixed).starts_with("no value"));
    }
}
