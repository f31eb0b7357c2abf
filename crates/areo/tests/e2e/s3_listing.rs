//! Listings through a gateway, compared with a model: all pages together are the keys that there are, for both forms of a request, each length of a page and each
//! delimiter; also while keys come and go, and the bucket is changed.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::s3::{Served, served};
use crate::s3_client::{EndMark, Response, call};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
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
const KEYS: usize = 12;
/// Delimiters: none, of one character, of one character with several bytes, of several characters.
const DELIMITERS: [&str; 8] = ["", "/", " ", "%", "+", "\u{e4}", "\u{10ffff}", "//"];

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

fn key(numbers: &mut Numbers) -> String {
    let mut key = PIECES[numbers.below(2)].to_owned();
    for _ in 0..numbers.below(4) {
        key += PIECES[numbers.below(PIECES.len())];
    }
    key
}

fn keys(seed: u64) -> BTreeSet<String> {
    let (mut numbers, mut keys) = (Numbers(seed), BTreeSet::<String>::new());
    while keys.len() < KEYS {
        keys.insert(key(&mut numbers));
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

/// The form of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The next page is named by a marker.
    First,
    /// The next page is named by a token.
    Second,
}

/// A listing of a bucket.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    form: Form,
    prefix: &'a str,
    delimiter: &'a str,
    /// Only greater keys are listed.
    after: &'a str,
    /// Entries of a page at most.
    most: usize,
}

/// A key that is listed, or a common prefix, which has the mark `true`.
type Listed = (String, bool);

/// The keys and the common prefixes that a listing shows, in their order.
fn model(keys: &BTreeSet<String>, case: &Case<'_>) -> Vec<Listed> {
    let listed = |key: &String| {
        let rest = key.strip_prefix(case.prefix)?;
        let end = match case.delimiter {
            "" => None,
            delimiter => rest.find(delimiter).map(|at| at + delimiter.len()),
        };
        Some(match end {
            Some(end) => (key[..case.prefix.len() + end].to_owned(), true),
            None => (key.clone(), false),
        })
    };
    let is_behind = |key: &&String| {
        // A common prefix is in front of all keys that begin so, and goes with them.
        let is_below = listed(key) == Some((case.after.to_owned(), true));
        key.as_str() > case.after && !is_below
    };
    let shown: BTreeSet<Listed> = keys.iter().filter(is_behind).filter_map(listed).collect();
    shown.into_iter().collect()
}

fn texts<'a>(page: &'a Response, open: &str) -> impl Iterator<Item = &'a str> {
    let parts = page.text().split(open).skip(1).collect::<Vec<_>>();
    parts.into_iter().map(|it| it.split('<').next().unwrap())
}

/// Lists the bucket page by page. No entry comes twice, and no token.
fn list(served: &Served, case: &Case<'_>) -> Vec<Listed> {
    let (mut listed, mut nexts) = (Vec::<Listed>::new(), BTreeSet::new());
    let (prefix, delimiter) = (encoded(case.prefix), encoded(case.delimiter));
    let (after, most) = (encoded(case.after), case.most);
    let mut from = match case.form {
        Form::First => format!("marker={after}"),
        Form::Second => format!("list-type=2&start-after={after}"),
    };
    loop {
        let target = format!(
            "/names?encoding-type=url&prefix={prefix}&delimiter={delimiter}&max-keys={most}&{from}"
        );
        let page = call(&served.gateway, &served.caller, "GET", &target).send();
        assert_eq!(page.status, 200, "{case:?}: {page:?}");
        let keys = texts(&page, "<Key>").map(|key| (decoded(key), false));
        let prefixes = texts(&page, "<CommonPrefixes><Prefix>").map(|it| (decoded(it), true));
        let mut entries: Vec<_> = keys.chain(prefixes).collect();
        entries.sort();
        assert!(entries.len() <= most, "{case:?}: {}", page.text());
        if case.form == Form::Second {
            let count = entries.len().to_string();
            assert_eq!(page.element("KeyCount"), count, "{case:?}");
        }
        listed.extend(entries);
        if page.element("IsTruncated") == "false" {
            break;
        }
        let next = match case.form {
            Form::First => page.element("NextMarker").to_owned(),
            Form::Second => encoded(page.element("NextContinuationToken")),
        };
        from = match case.form {
            Form::First => format!("marker={next}"),
            // Programs send the first wish along.
            Form::Second => format!("list-type=2&start-after={after}&continuation-token={next}"),
        };
        assert!(nexts.insert(next), "{case:?}: a page comes again");
    }
    let ascends = listed.is_sorted_by(|one, next| one.0 < next.0);
    assert!(ascends, "{case:?}: an entry comes twice: {listed:?}");
    listed
}

fn put(served: &Served, keys: &BTreeSet<String>) {
    for key in keys {
        served.status("PUT", &format!("/names/{}", encoded(key)), 200);
    }
}

/// Each form, each delimiter, each length of a page, with beginnings of keys and places between keys by turns.
#[test]
fn all_pages_together_are_the_keys_that_there_are() {
    let served = served(&["--durability", "memory"]);
    for seed in 0..4 {
        let keys = keys(seed);
        served.status("PUT", "/names", 200);
        put(&served, &keys);
        let mut numbers = Numbers(seed);
        for delimiter in DELIMITERS {
            for most in 1..=keys.len() {
                for form in [Form::First, Form::Second] {
                    let after = match numbers.below(3) {
                        0 => key(&mut numbers),
                        _ => String::new(),
                    };
                    let prefix = ["", "", "a", "ab", "a/"][numbers.below(5)];
                    let case = Case {
                        form,
                        prefix,
                        delimiter,
                        after: &after,
                        most,
                    };
                    assert_eq!(list(&served, &case), model(&keys, &case), "{case:?}");
                }
            }
        }
        for key in &keys {
            served.status("DELETE", &format!("/names/{}", encoded(key)), 204);
        }
        served.status("DELETE", "/names", 204);
    }
}

/// Puts and deletes keys, until the mark is set.
fn come_and_go(served: &Served, passing: &BTreeSet<String>, is_done: &AtomicBool) {
    while !is_done.load(Ordering::Relaxed) {
        put(served, passing);
        for key in passing {
            served.status("DELETE", &format!("/names/{}", encoded(key)), 204);
        }
    }
}

#[test]
fn keys_that_stay_are_listed_once_while_others_come_and_go_and_the_bucket_changes() {
    let served = served(&["--durability", "memory"]);
    let staying = keys(7);
    let passing: BTreeSet<String> = keys(8).difference(&staying).cloned().collect();
    assert!(passing.len() > KEYS / 2, "they differ: {passing:?}");
    let all = staying.union(&passing).cloned().collect();
    served.status("PUT", "/names", 200);
    put(&served, &staying);
    let (is_done, mut numbers) = (AtomicBool::new(false), Numbers(7));
    thread::scope(|scope| {
        let end = EndMark(&is_done);
        let others = scope.spawn(|| come_and_go(&served, &passing, &is_done));
        let changes = scope.spawn(|| {
            let kinds = [["--k", "1"], ["--k", "3"]].into_iter().cycle();
            let mut changes = 0;
            for kind in kinds.take_while(|_| !is_done.load(Ordering::Relaxed)) {
                let change = [&["reconfig", "start", "names"][..], &kind].concat();
                served.cluster.run(&change).done();
                changes += 1;
            }
            changes
        });
        for _ in 0..120 {
            let case = Case {
                form: [Form::First, Form::Second][numbers.below(2)],
                prefix: ["", "a"][numbers.below(2)],
                delimiter: DELIMITERS[numbers.below(DELIMITERS.len())],
                after: "",
                most: 1 + numbers.below(KEYS),
            };
            let listed = list(&served, &case);
            let (least, most) = (model(&staying, &case), model(&all, &case));
            let is_listed = |entry: &Listed| listed.contains(entry);
            assert!(least.iter().all(is_listed), "{case:?}: {listed:?}");
            assert!(
                listed.iter().all(|it| most.contains(it)),
                "{case:?}: {listed:?}"
            );
        }
        drop(end);
        assert!(changes.join().unwrap() >= 2, "the bucket changes meanwhile");
        others.join().unwrap();
    });
}
