//! Listings through a gateway, compared with a model: all pages together are the keys that there are, for each length of a page and each delimiter.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::s3::{Served, served};
use crate::s3_client::{Response, call};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::thread;

/// Parts of keys: prefixes of other parts, characters that URLs and XML write in another way, and the last character of all.
const PIECES: [&str; 12] = [
    "a",
    "ab",
    "/",
    "//",
    " ",
    "+",
    "%",
    "%2F",
    "&",
    "\u{10ffff}",
    "\u{e4}",
    "0",
];
/// Keys of a bucket.
const KEYS: usize = 14;

/// Numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        // Knuth's linear congruential generator, of whose bits the upper ones are random.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

fn keys(seed: u64) -> BTreeSet<String> {
    let (mut numbers, mut keys) = (Numbers(seed), BTreeSet::<String>::new());
    while keys.len() < KEYS {
        let mut key = PIECES[numbers.below(2)].to_owned();
        for _ in 0..numbers.below(4) {
            key += PIECES[numbers.below(PIECES.len())];
        }
        keys.insert(key);
    }
    keys
}

/// Percent-encoded, but for letters and digits.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte.is_ascii_alphanumeric() {
            true => out.push(byte.into()),
            false => write!(out, "%{byte:02X}").unwrap(),
        }
        out
    })
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect(text));
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

/// The keys and the common prefixes that a listing shows, in their order. Those of prefixes have the mark `true`.
fn model(keys: &BTreeSet<String>, prefix: &str, delimiter: &str) -> Vec<(String, bool)> {
    let mut shown = BTreeSet::new();
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        let rest = &key[prefix.len()..];
        let end = rest.find(delimiter).filter(|_| !delimiter.is_empty());
        shown.insert(match end {
            Some(at) => (key[..prefix.len() + at + delimiter.len()].to_owned(), true),
            None => (key.clone(), false),
        });
    }
    shown.into_iter().collect()
}

fn texts<'a>(page: &'a Response, open: &str) -> impl Iterator<Item = &'a str> {
    let parts = page.text().split(open).skip(1).collect::<Vec<_>>();
    parts.into_iter().map(|it| it.split('<').next().unwrap())
}

/// Lists a bucket, page by page, and compares all of it with the model.
fn check(served: &Served, keys: &BTreeSet<String>, (prefix, delimiter, most): (&str, &str, usize)) {
    let case = format!("prefix {prefix:?}, delimiter {delimiter:?}, max-keys {most}");
    let (mut listed, mut tokens) = (Vec::new(), BTreeSet::new());
    let mut next = String::new();
    loop {
        let (prefix, delimiter) = (encoded(prefix), encoded(delimiter));
        let target = format!(
            "/names?list-type=2&encoding-type=url&prefix={prefix}&delimiter={delimiter}&max-keys={most}{next}"
        );
        let page = call(&served.gateway, &served.caller, "GET", &target).send();
        assert_eq!(page.status, 200, "{case}: {page:?}");
        let keys = texts(&page, "<Key>").map(|key| (decoded(key), false));
        let prefixes = texts(&page, "<CommonPrefixes><Prefix>").map(|it| (decoded(it), true));
        let mut entries: Vec<_> = keys.chain(prefixes).collect();
        entries.sort();
        assert!(entries.len() <= most, "{case}: {}", page.text());
        assert_eq!(
            page.element("KeyCount"),
            entries.len().to_string(),
            "{case}"
        );
        listed.extend(entries);
        if page.element("IsTruncated") == "false" {
            break;
        }
        let token = page.element("NextContinuationToken").to_owned();
        next = format!("&continuation-token={}", encoded(&token));
        assert!(tokens.insert(token), "{case}: a token comes again");
    }
    assert_eq!(listed, model(keys, prefix, delimiter), "{case}");
}

/// All lengths of a page, and all delimiters.
fn check_all(served: &Served, keys: &BTreeSet<String>) {
    for prefix in ["", "a"] {
        for delimiter in ["", "/", " ", "%", "+", "b", "\u{10ffff}", "//"] {
            for most in [1, 2, 5, KEYS] {
                check(served, keys, (prefix, delimiter, most));
            }
        }
    }
    for most in 1..=KEYS {
        check(served, keys, ("", "/", most));
    }
}

#[test]
fn all_pages_together_are_the_keys_that_there_are() {
    let served = served(&["--durability", "memory"]);
    for seed in 0..2 {
        let keys = keys(seed);
        served.status("PUT", "/names", 200);
        for key in &keys {
            served.status("PUT", &format!("/names/{}", encoded(key)), 200);
        }
        check_all(&served, &keys);
        if seed == 0 {
            thread::scope(|scope| {
                let checking = scope.spawn(|| check_all(&served, &keys));
                for k in ["1", "3"].into_iter().cycle() {
                    let change = ["reconfig", "start", "names", "--k", k];
                    served.cluster.run(&change).done();
                    if checking.is_finished() {
                        return;
                    }
                }
            });
        }
        for key in &keys {
            served.status("DELETE", &format!("/names/{}", encoded(key)), 204);
        }
        served.status("DELETE", "/names", 204);
    }
}
