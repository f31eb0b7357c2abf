//! Bytes as hexadecimal digits, the one text form of ids, digests and secrets.

use std::fmt::Write;

/// Two lower-case digits per byte.
pub(crate) fn write(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

/// Exactly `N` bytes from lower-case digits, so that one value has one text; none if the text is anything else.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_text() {
        let bytes = [0x00, 0x9a, 0xff];
        assert_eq!(write(&bytes), "009aff");
        assert_eq!(read("009aff"), Some(bytes));
        for text in [
            "009AFF", "009af", "009aff0", "+09aff", "009ag0", "", "é9aff",
        ] {
            assert_eq!(read::<3>(text), None, "{text}");
        }
    }
}
