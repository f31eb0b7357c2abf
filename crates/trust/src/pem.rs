//! Certificates as text (RFC 7468).

/// Bytes as PEM, in lines of 64 characters.
pub(crate) fn write(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = format!("-----BEGIN {label}-----");
    for (number, group) in der.chunks(3).enumerate() {
        if number % 16 == 0 {
            text.push('\n');
        }
        let mut bytes = [0; 4];
        bytes[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bytes);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            let is_there = place <= group.len();
            text.push(char::from(if is_there { digit } else { b'=' }));
        }
    }
    text + &format!("\n-----END {label}-----\n")
}
