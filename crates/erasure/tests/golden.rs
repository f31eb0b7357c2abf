//! Fragments of fixed values. They are a format on disk: **if a test here fails, the code is wrong, not the test.**
//!
//! The expected bytes come from neither this crate nor its oracle, but from matrices multiplied and inverted step by
//! step: rows `r^0, r^1, ..., r^(k-1)` for r in `0..n`, times the inverse of the first k rows.

use crate::common::{fragments_of, on_every_kernel};

const PARITY_3: &str = "\
    97c2f7e0a33350877267b168218e9d518ac5b48593b673647fb76c2b1e0b4d2cede2f9d5f6b9b089ef4a8f087bdba86f\
    6a4fa91059d67559024dcc2dab7e4bcc575f0453d673a514656a71fdae8108918752a7b0530380d7e2f76138111e0da1\
    7a556415c346a3b4afc71cfb8e1bbd7c5d7269e5ea1f40f32a5af3400fdaa67340f72e669fc013aeea3740b3fa3a7340\
    f7aa6e13c09f266eb7c033665a0fc0b35a6ab3c01faa6613c0f7de268f4033defa1740936a2ab3c0f7dabe13408f263e";

const PARITY_4: &str = "\
    2d099c9c689827abde582feb057b4068f2cdf0ace5891820c4f98b07d63ecdcb11ba669cc9becc989c6157a920532b43\
    b6ddfe34d000d2609a45827e59889376a142a442f44c82409942a36985515d1029997f38b14850c64ef5914f3522d0f6\
    7860d43c2f8d7b04143ad2648fce8eb29c2af636f1478fe9efac325d481811469dc7c1f733cdebc59dae73caef3a204e\
    229106aff053020c45ae05eaca22c90b7099d01b5dfd5ab39c58176f268b632a55fb3be58e886b98bde4bd0d61e1976e";

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn value(length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| ((i * i + 7 * i + 3) / 5) as u8)
        .collect()
}

#[test]
fn fragments_of_a_fixed_value_never_change() {
    for code in on_every_kernel(5, 3) {
        let value = value(500);
        let fragments = fragments_of(&code, &value);
        assert_eq!(fragments[0], value[..192]);
        assert_eq!(fragments[1], value[192..384]);
        assert_eq!(fragments[2], value[384..]);
        assert_eq!(fragments[3], bytes_of(PARITY_3), "{code:?}");
        assert_eq!(fragments[4], bytes_of(PARITY_4), "{code:?}");
    }
}

#[test]
fn fragments_of_other_codes_never_change() {
    // Digests (64-bit FNV-1a) of all parity fragments, one after the other, of 1 000 bytes.
    let golden = [
        ((2, 1), 0x3e30_0958_5b0d_99dd),
        ((3, 2), 0x23d2_72c7_ae72_5b27),
        ((4, 2), 0x9d34_0b20_fa11_ffd9),
        ((5, 3), 0xa1d8_287c_364f_af7f),
        ((9, 5), 0x3b34_4789_e230_f986),
        ((11, 6), 0x8157_9239_12d7_0f71),
        ((14, 10), 0x6d30_3fcf_f303_da87),
        ((60, 40), 0x3c82_fcab_f1fc_7a0e),
    ];
    for ((n, k), expected) in golden {
        for code in on_every_kernel(n, k) {
            let parity = fragments_of(&code, &value(1_000)).split_off(k.into());
            let digest = (parity.iter().flatten())
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
            assert_eq!(digest, expected, "{code:?}");
        }
    }
}
