//! The field GF(2^8) with the polynomial 0x11d and the generator 2, and the tables that the kernels multiply with.
//!
//! Everything is computed at compile time from [`multiply`], so that there is one definition of the field.

/// `x^8 + x^4 + x^3 + x^2 + 1` without its highest bit.
const POLYNOMIAL: u8 = 0x1d;

/// The order of the multiplicative group: exponents count modulo this.
pub(crate) const GROUP_ORDER: u32 = 255;

/// `EXP[e]` is `2^e`, for e below [`GROUP_ORDER`].
pub(crate) static EXP: [u8; 255] = exp_table();

/// `LOG[a]` is the e with `2^e = a`; `LOG[0]` means nothing and is never read.
pub(crate) static LOG: [u8; 256] = log_table();

/// `AFFINE[c]` is multiplication by c as the 8x8 bit matrix that the GFNI instructions take. Their own multiplication
/// instruction is of no use: its polynomial is 0x11b.
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) static AFFINE: [u64; 256] = affine_table();

/// `NIBBLES[c]` is multiplication by c as two tables of 16 bytes, for processors that can look up 16 bytes at once.
pub(crate) static NIBBLES: [Nibbles; 256] = nibble_table();

/// The products of one constant with every low and with every high half of a byte.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub(crate) struct Nibbles {
    /// `low[x]` is c times x.
    pub(crate) low: [u8; 16],
    /// `high[x]` is c times 16 x.
    pub(crate) high: [u8; 16],
}

const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { POLYNOMIAL };
        b >>= 1;
    }
    product
}

const fn exp_table() -> [u8; 255] {
    let mut table = [0; 255];
    let mut power = 1;
    let mut exponent = 0;
    while exponent < 255 {
        table[exponent] = power;
        power = multiply(power, 2);
        exponent += 1;
    }
    assert!(power == 1, "2 generates the whole group");
    table
}

const fn log_table() -> [u8; 256] {
    let powers = exp_table();
    let mut table = [0; 256];
    let mut exponent = 0;
    while exponent < 255 {
        table[powers[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    table
}

#[cfg(any(test, target_arch = "x86_64"))]
const fn affine_table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut input_bit = 0;
        while input_bit < 8 {
            let product = multiply(constant as u8, 1 << input_bit);
            let mut output_bit = 0;
            while output_bit < 8 {
                // The instruction takes the row of output bit i from byte 7 - i of the matrix.
                let row = 8 * (7 - output_bit);
                table[constant] |= ((product as u64 >> output_bit) & 1) << (row + input_bit);
                output_bit += 1;
            }
            input_bit += 1;
        }
        constant += 1;
    }
    table
}

const fn nibble_table() -> [Nibbles; 256] {
    let mut table = [Nibbles {
        low: [0; 16],
        high: [0; 16],
    }; 256];
    let mut constant = 0;
    while constant < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[constant].low[nibble] = multiply(constant as u8, nibble as u8);
            table[constant].high[nibble] = multiply(constant as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        constant += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long multiplication of polynomials, then long division: shares no step with `multiply`.
    fn by_definition(a: u8, b: u8) -> u8 {
        let mut product = (0..8)
            .filter(|bit| b >> bit & 1 == 1)
            .fold(0u16, |sum, bit| sum ^ u16::from(a) << bit);
        for bit in (8..16).rev() {
            if product >> bit & 1 == 1 {
                product ^= 0x11d << (bit - 8);
            }
        }
        product as u8
    }

    fn affine(matrix: u64, x: u8) -> u8 {
        (0..8).fold(0, |byte, bit| {
            let row = matrix.to_le_bytes()[7 - bit];
            byte | ((row & x).count_ones() as u8 & 1) << bit
        })
    }

    #[test]
    fn every_table_multiplies_as_the_definition_does() {
        for a in 0..=255u8 {
            let nibbles = &NIBBLES[usize::from(a)];
            for b in 0..=255u8 {
                let expected = by_definition(a, b);
                assert_eq!(multiply(a, b), expected, "{a} * {b}");
                assert_eq!(affine(AFFINE[usize::from(a)], b), expected, "{a} * {b}");
                let split = nibbles.low[usize::from(b & 15)] ^ nibbles.high[usize::from(b >> 4)];
                assert_eq!(split, expected, "{a} * {b}");
            }
        }
    }

    #[test]
    fn logarithms_invert_powers_and_turn_products_into_sums() {
        for a in 1..=255u8 {
            assert_eq!(EXP[usize::from(LOG[usize::from(a)])], a);
            for b in 1..=255u8 {
                let sum = u32::from(LOG[usize::from(a)]) + u32::from(LOG[usize::from(b)]);
                assert_eq!(
                    EXP[(sum % GROUP_ORDER) as usize],
                    by_definition(a, b),
                    "{a} * {b}"
                );
            }
        }
    }
}
