//! Secrets that the tests of this process have made, and the search for them in everything that programs print.
//!
//! A text is searched before the secrets in it are learnt. So the output that makes a secret may show it, and no later one.
#![allow(dead_code, reason = "tests of the laboratory use a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The beginnings of access keys and join tokens as text; the last part of each is its secret.
const MARKS: [&str; 2] = ["areokey1.", "areo1."];
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// The first bytes of a needle, by which the search skips almost everything.
const PREFIX_BYTES: usize = 2;

/// A search has its own state of them: it may take long, and other tests learn meanwhile.
static KNOWN: LazyLock<RwLock<Arc<Needles>>> = LazyLock::new(RwLock::default);

/// Byte strings that are looked for all at once.
#[derive(Clone, Default)]
pub(crate) struct Needles {
    /// Each needle with the kind of its secret, by its first bytes.
    by_prefix: BTreeMap<u16, BTreeSet<(Vec<u8>, &'static str)>>,
    /// A bit for each prefix that a needle has.
    prefixes: Vec<u64>,
}

fn prefix(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

impl Needles {
    /// Looks for this from now on.
    pub(crate) fn add(&mut self, needle: &[u8], kind: &'static str) {
        assert!(needle.len() > PREFIX_BYTES, "it would be found by chance");
        let prefix = prefix(needle);
        self.prefixes.resize(1 << 10, 0);
        self.prefixes[usize::from(prefix >> 6)] |= 1 << (prefix & 63);
        let needles = self.by_prefix.entry(prefix).or_default();
        needles.insert((needle.to_owned(), kind));
    }

    /// Looks for a secret as bytes and as hexadecimal digits.
    pub(crate) fn add_secret(&mut self, secret: &[u8], kind: &'static str) {
        let digit = |four_bits: u8| char::from_digit(four_bits.into(), 16).expect("below 16");
        let digits = secret
            .iter()
            .flat_map(|it| [digit(it >> 4), digit(it & 15)]);
        let digits: String = digits.collect();
        self.add(secret, kind);
        self.add(digits.as_bytes(), kind);
    }

    /// The kind of a secret that these bytes contain.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Option<&'static str> {
        if self.prefixes.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(at) = areo_fuzzing::next_pair(bytes, from, &self.prefixes) {
            let needles = &self.by_prefix[&prefix(&bytes[at..])];
            let found = needles.iter().find(|(it, _)| bytes[at..].starts_with(it));
            if let Some((_, kind)) = found {
                return Some(kind);
            }
            from = at + 1;
        }
        None
    }
}

/// The secrets in a text: those of the access keys and the join tokens that it has.
pub(crate) fn secrets_in(text: &str) -> Vec<[u8; SECRET_BYTES]> {
    let begin_at = |mark| text.match_indices(mark).map(|(at, _)| &text[at..]);
    let words = MARKS.into_iter().flat_map(begin_at).map(|rest| {
        let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '.');
        &rest[..end.unwrap_or(rest.len())]
    });
    words
        .filter_map(|word| word.rsplit('.').next().and_then(bytes_of))
        .collect()
}

/// The bytes that these hexadecimal digits are; none if they are no secret.
fn bytes_of(digits: &str) -> Option<[u8; SECRET_BYTES]> {
    let mut bytes = [0; SECRET_BYTES];
    let pairs = digits.as_bytes().chunks_exact(2);
    if digits.len() != 2 * SECRET_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// All secrets of this process.
pub(crate) fn known() -> Arc<Needles> {
    Arc::clone(&KNOWN.read().unwrap_or_else(PoisonError::into_inner))
}

/// Looks for more from now on.
pub(crate) fn learn_by(add: impl FnOnce(&mut Needles)) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    add(Arc::make_mut(&mut known));
}

/// Learns the secrets of the access keys and join tokens in a text.
pub(crate) fn learn(text: &[u8]) {
    let secrets = secrets_in(&String::from_utf8_lossy(text));
    let kind = "an access key or a join token";
    learn_by(|known| secrets.iter().for_each(|it| known.add_secret(it, kind)));
}

/// Fails if something that was printed has a secret that was made before.
#[track_caller]
pub(crate) fn check_printed(printed: &[u8]) {
    let found = known().found_in(printed);
    if let Some(kind) = found {
        panic!("a program printed {kind}");
    }
}

/// Checks what a command printed, and learns the secrets that it made, which are on standard output.
#[track_caller]
pub(crate) fn check_command(stdout: &[u8], stderr: &[u8]) {
    check_printed(stdout);
    learn(stdout);
    check_printed(stderr);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_secret_is_found_wherever_it_is() {
        let digits = "0123456789abcdef".repeat(4);
        let secret = secrets_in(&format!("key = \"areokey1.0000000000000007.{digits}\"\n"));
        let token = format!(
            "areo1.{}.0000000000000009.{}",
            "a".repeat(64),
            "5e".repeat(32)
        );
        assert_eq!(secrets_in(&token), [[0x5e; SECRET_BYTES]]);
        let [secret] = secret[..] else {
            panic!("one secret: {secret:?}");
        };
        let mut needles = Needles::default();
        assert_eq!(needles.found_in(&secret), None);
        needles.add_secret(&secret, "planted");
        needles.add_secret(&[0x5e; SECRET_BYTES], "another");
        let text = digits.as_bytes();
        for planted in [&secret[..], text] {
            for (before, after) in [(0, 0), (0, 5), (5, 0), (70_000, 70_000)] {
                let hidden = [&vec![1; before][..], planted, &vec![0x23; after]].concat();
                assert_eq!(needles.found_in(&hidden), Some("planted"));
                let mut changed = hidden;
                changed[before + planted.len() - 1] ^= 1;
                assert_eq!(needles.found_in(&changed), None);
            }
        }
        assert_eq!(needles.found_in(&[0x5e; 40]), Some("another"));
        assert_eq!(needles.found_in(b""), None);
    }

    #[test]
    fn the_output_that_makes_a_secret_may_show_it_and_no_later_one() {
        let token = format!(
            "areo1.{}.0000000000000009.{}",
            "a".repeat(64),
            "6d".repeat(32)
        );
        let log = format!("the token {token} is shown\n");
        check_command(token.as_bytes(), b"it is not shown again");
        for (stdout, stderr) in [(&log[..], ""), ("", &log)] {
            let checked = || check_command(stdout.as_bytes(), stderr.as_bytes());
            assert!(std::panic::catch_unwind(checked).is_err());
        }
    }
}
