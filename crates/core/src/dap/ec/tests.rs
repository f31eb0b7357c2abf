//! The acceptance rule against the published one and against weaker ones, on lists that real servers can have; fragments
//! and copies.

use super::*;
use crate::config::Descriptor;
use crate::config::testing::coded;
use crate::element::Handle;
use crate::gather::{ConfiguredTally as _, Decision, Event};
use crate::limits;
use crate::message::{Answer, Reply};
use crate::tag::{ClientId, Writer};
use std::sync::Arc;

fn configuration(n: usize, k: u8, delta: u16) -> Arc<Configuration> {
    Configuration::new(Descriptor {
        delta,
        copy_bytes: 0,
        ..coded(n, k).descriptor().clone()
    })
    .unwrap()
}

fn tag(number: u64) -> Tag {
    Tag {
        number,
        writer: Writer {
            client: ClientId(1),
            counter: number,
        },
    }
}

/// The reply of the member at this position, which holds fragments of these versions.
fn held(
    c: &Configuration,
    position: usize,
    numbers: &[u64],
    floor: u64,
    stable: u64,
) -> HeldVersions {
    let form = fragment(c, position);
    let named = |number| {
        if number == 0 {
            Tag::INITIAL
        } else {
            tag(number)
        }
    };
    HeldVersions {
        stored: numbers.iter().map(|number| (tag(*number), form)).collect(),
        floor: named(floor),
        stable: named(stable),
        ..HeldVersions::default()
    }
}

fn fragment(c: &Configuration, position: usize) -> Form {
    Form::Fragment {
        n: c.n() as u8,
        k: c.dap().k(),
        index: position as u8,
    }
}

fn trim(versions: &mut Versions, delta: u16, quiet: bool) -> Vec<StoredVersion> {
    Ec::trim(versions, delta, quiet, || unreachable!("whole versions go"))
}

// ---- other rules ----------------------------------------------------------------------------------------------------

type Rule = dyn Fn(&Configuration, &[Option<HeldVersions>]) -> Option<Tag>;

fn ours(c: &Configuration, held: &[Option<HeldVersions>]) -> Option<Tag> {
    judge(c, held, Tag::INITIAL, &PassedVersions::default())
}

fn judge(
    c: &Configuration,
    held: &[Option<HeldVersions>],
    have: Tag,
    passed: &PassedVersions,
) -> Option<Tag> {
    let held: Vec<&HeldVersions> = held.iter().flatten().collect();
    Ec::accepted(c, &held, have, passed)
}

/// EC-DAP II: the largest tag in at least k lists, whatever was trimmed (2.5).
#[allow(clippy::unnecessary_wraps)] // the shape of a rule; this one cannot say no
fn published(c: &Configuration, held: &[Option<HeldVersions>]) -> Option<Tag> {
    let replies: Vec<&HeldVersions> = held.iter().flatten().collect();
    let tags = replies
        .iter()
        .flat_map(|held| &held.stored)
        .map(|(tag, _)| *tag);
    let in_k = |tag: &Tag| decodable(c, &replies, *tag);
    Some(tags.filter(in_k).max().unwrap_or(Tag::INITIAL))
}

/// [EC-11 acceptance-test] with another threshold, or blind for floors, and without the help of confirmations.
fn weakened(
    c: &Configuration,
    held: &[Option<HeldVersions>],
    threshold: usize,
    supports: fn(&HeldVersions, Tag) -> bool,
) -> Option<Tag> {
    let candidate = published(c, held)?;
    let replies = || held.iter().flatten();
    let mut above: Vec<Tag> = replies()
        .flat_map(|held| &held.stored)
        .map(|(tag, _)| *tag)
        .collect();
    above.retain(|tag| *tag > candidate);
    // "Just above the candidate".
    let writer = Writer {
        client: ClientId(0),
        counter: 1,
    };
    above.push(candidate.next(writer).expect("small numbers"));
    let support = |tag: Tag| replies().filter(|held| supports(held, tag)).count();
    above
        .iter()
        .all(|tag| support(*tag) < threshold)
        .then_some(candidate)
}

// ---- lists by hand --------------------------------------------------------------------------------------------------

/// Schedule T3 of `[EC-6 stale-trim]`: t1 is complete, t2 and t3 are under way; the published rule returns an older
/// version.
#[test]
fn the_published_rule_returns_a_stale_version_and_ours_asks_again() {
    let c = configuration(5, 3, 1);
    // t0 is a version here, so that lists name it.
    let [t0, t1, t2, t3] = [1, 2, 3, 4];
    let lists = [
        Some(held(&c, 0, &[t0, t1], 0, 0)),
        Some(held(&c, 1, &[t0, t1], 0, 0)),
        Some(held(&c, 2, &[t2, t3], t1, 0)),
        Some(held(&c, 3, &[t0], 0, 0)),
        None,
    ];
    assert_eq!(
        published(&c, &lists),
        Some(tag(t0)),
        "t1 is complete: stale"
    );
    assert_eq!(ours(&c, &lists), None);
    // The fifth member makes it readable.
    let mut five = lists;
    five[4] = Some(held(&c, 4, &[t0, t1], 0, 0));
    assert_eq!(ours(&c, &five), Some(tag(t1)));
}

/// `[X-1 support-threshold]`: two quorums of [4,2] share two members; both speak for t1, one by its floor only.
#[test]
fn a_threshold_of_one_more_than_the_intersection_is_unsafe() {
    let c = configuration(4, 2, 0);
    assert_eq!(c.quorums().intersection(), 2);
    // t1 completed at members 0, 1, 2; member 2 has trimmed it.
    let lists = [
        None,
        Some(held(&c, 1, &[1], 0, 0)),
        Some(held(&c, 2, &[2], 1, 0)),
        Some(held(&c, 3, &[], 0, 0)),
    ];
    let stale = weakened(&c, &lists, 3, HeldVersions::supports);
    assert_eq!(stale, Some(Tag::INITIAL), "t1 is complete: stale");
    assert_eq!(ours(&c, &lists), None);
}

/// `[X-1 support-threshold]`: forms do not matter for support, and one copy is enough to read.
#[test]
fn copies_and_fragments_support_a_tag_alike() {
    let c = configuration(5, 3, 1);
    let mut lists = vec![
        Some(held(&c, 0, &[1], 0, 0)),
        Some(held(&c, 1, &[1], 0, 0)),
        Some(held(&c, 2, &[1], 0, 0)),
        Some(held(&c, 3, &[1, 2], 0, 0)),
        None,
    ];
    assert_eq!(
        ours(&c, &lists),
        Some(tag(1)),
        "one fragment of t2 is no value"
    );
    let list = lists[3].as_mut().unwrap();
    list.stored[1].1 = Form::Copy;
    assert_eq!(ours(&c, &lists), Some(tag(2)));
    // Fragments of another code, or the same fragment twice, do not count.
    for (position, form) in [
        (0, fragment(&c, 1)),
        (
            0,
            Form::Fragment {
                n: 5,
                k: 2,
                index: 0,
            },
        ),
    ] {
        let mut lists = vec![
            Some(held(&c, 0, &[1], 0, 0)),
            Some(held(&c, 1, &[1], 0, 0)),
            Some(held(&c, 2, &[1], 0, 0)),
            Some(held(&c, 3, &[], 0, 0)),
            None,
        ];
        lists[position].as_mut().unwrap().stored[0].1 = form;
        assert_eq!(ours(&c, &lists), None, "{form:?}");
    }
}

/// `[X-1 support-threshold]`: a put that completed left its tag at q members, of which those that did not answer are at most
/// n - r. With every member's answer an incomplete version is known to be one, so that an older one may be returned in its
/// place.
#[test]
fn more_answers_than_a_quorum_show_that_a_version_is_not_complete() {
    let c = configuration(5, 3, 1);
    let (old, new) = (tag(1), tag(2));
    let passed = PassedVersions {
        unplaced: vec![new],
        ..PassedVersions::default()
    };
    let at_three = |position| {
        held(
            &c,
            position,
            if position < 3 { &[1, 2] } else { &[1] },
            0,
            0,
        )
    };
    let mut lists: Vec<Option<HeldVersions>> =
        (0..5).map(|position| Some(at_three(position))).collect();
    let judge = |lists: &[Option<HeldVersions>], passed: &PassedVersions| {
        judge(&c, lists, Tag::INITIAL, passed)
    };
    assert_eq!(
        judge(&lists, &PassedVersions::default()),
        Some(new),
        "it is readable"
    );
    assert_eq!(judge(&lists, &passed), Some(old));
    // The fourth holder may be the member that is silent.
    let silent = lists[4].take();
    assert_eq!(judge(&lists, &passed), None);
    lists[4] = silent;
    lists[3] = Some(held(&c, 3, &[1], 2, 0));
    assert_eq!(judge(&lists, &passed), None, "or one that has trimmed it");
    lists[3] = Some(held(&c, 3, &[1], 0, 2));
    assert_eq!(judge(&lists, &passed), None, "a member knows that it is");
}

/// A version that the reader has is readable, and is judged like any other.
#[test]
fn a_known_version_needs_no_elements_but_may_be_outdated() {
    let c = configuration(5, 3, 1);
    let lists = [
        Some(held(&c, 0, &[2], 1, 0)),
        Some(held(&c, 1, &[], 0, 0)),
        Some(held(&c, 2, &[1], 0, 0)),
        Some(held(&c, 3, &[1], 0, 0)),
        None,
    ];
    let returned = |have| judge(&c, &lists, have, &PassedVersions::default());
    assert_eq!(returned(Tag::INITIAL), None, "t1 may be complete");
    assert_eq!(returned(tag(1)), Some(tag(1)));
    assert_eq!(returned(tag(9)), Some(tag(9)));
}

/// The versions that a tombstone covers are evicted in its quiet time, even if the confirmation of the removal was
/// lost. Versions above the tombstone stay.
#[test]
fn a_tombstone_that_nobody_confirmed_buries_what_is_below_it() {
    let c = configuration(5, 3, 5);
    let mut versions = Versions::default();
    for number in 1..=3 {
        let deleted = number == 2;
        let _ = versions.insert(StoredVersion {
            tag: tag(number),
            form: match deleted {
                true => Form::Copy,
                false => fragment(&c, 0),
            },
            deleted,
            length: 9,
            bytes: 3,
            handle: Handle(number as u32),
            etag: None,
            written_at_ms: 0,
        });
    }
    assert_eq!(trim(&mut versions, 5, false), []);
    let gone: Vec<Tag> = trim(&mut versions, 5, true).iter().map(|v| v.tag).collect();
    assert_eq!((gone, versions.floor()), (vec![tag(1)], tag(1)));
    assert_eq!(versions.stored().len(), 2);
}

// ---- lists of real servers ------------------------------------------------------------------------------------------

/// A pseudo-random source (splitmix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

/// Versions that writers bring to members one by one, in any order, while a reader collects answers.
struct Model {
    c: Arc<Configuration>,
    members: Vec<Versions>,
    /// Members that acknowledged a version.
    acknowledged: Vec<Vec<bool>>,
    handles: u32,
}

const WRITES: u64 = 4;

impl Model {
    fn new(c: &Arc<Configuration>) -> Model {
        Model {
            c: c.clone(),
            members: vec![Versions::default(); c.n()],
            acknowledged: vec![vec![false; c.n()]; WRITES as usize + 1],
            handles: 0,
        }
    }

    fn complete(&self, number: u64) -> bool {
        let count = self.acknowledged[number as usize]
            .iter()
            .filter(|yes| **yes)
            .count();
        count >= self.c.quorums().quorum()
    }

    /// The largest complete version.
    fn newest(&self) -> Tag {
        let newest = (1..=WRITES).rev().find(|number| self.complete(*number));
        newest.map_or(Tag::INITIAL, tag)
    }

    fn put(&mut self, position: usize, number: u64) {
        let (delta, versions) = (self.c.descriptor().delta, &mut self.members[position]);
        let bounds = Bounds {
            delta,
            unconfirmed: limits::UNCONFIRMED_ELEMENTS,
        };
        match Ec::admit(versions, tag(number), Arrival::New, bounds) {
            Admission::Store => {
                self.handles += 1;
                // Every other version is a tombstone.
                let deleted = number.is_multiple_of(2);
                let _ = versions.insert(StoredVersion {
                    tag: tag(number),
                    form: match deleted {
                        true => Form::Copy,
                        false => fragment(&self.c, position),
                    },
                    deleted,
                    length: 9,
                    bytes: 3,
                    handle: Handle(self.handles),
                    etag: None,
                    written_at_ms: 0,
                });
                trim(versions, delta, false);
            }
            Admission::RaiseFloor => versions.raise_floor(tag(number)),
            Admission::Acknowledge if versions.damaged().is_some() => return,
            Admission::Acknowledge => {}
            _ => return,
        }
        self.acknowledged[number as usize][position] = true;
    }

    fn step(&mut self, draw: &mut Draw) {
        let (position, number) = (
            draw.below(self.c.n()),
            1 + draw.below(WRITES as usize) as u64,
        );
        let (delta, complete) = (self.c.descriptor().delta, self.complete(number));
        let versions = &mut self.members[position];
        match draw.below(12) {
            0..=6 => self.put(position, number),
            7..=8 if complete => {
                versions.confirm(tag(number));
                trim(versions, delta, false);
            }
            9 => drop(trim(versions, delta, true)),
            // A restart: what is not durable is forgotten.
            10 => {
                let mut again = Versions::default();
                again.raise_floor(versions.floor());
                for stored in versions.stored().to_vec() {
                    let _ = again.insert(stored);
                }
                if versions.damaged().is_none() {
                    *versions = again;
                }
            }
            // Rot.
            11 if versions.find(tag(number)).is_some() && draw.below(3) == 0 => {
                let _ = versions.damage(tag(number));
            }
            _ => {}
        }
    }

    /// Runs a read during a random run. Returns true if `rule` accepted a version older than one that was complete
    /// before.
    fn is_stale(&mut self, rule: &Rule, draw: &mut Draw) -> bool {
        for _ in 0..draw.below(24) {
            self.step(draw);
        }
        let newest = self.newest();
        let mut answers: Vec<Option<HeldVersions>> = vec![None; self.c.n()];
        for _ in 0..24 {
            let position = draw.below(self.c.n());
            let versions = &self.members[position];
            if draw.below(2) == 0 && versions.damaged().is_none() && answers[position].is_none() {
                answers[position] = Some(versions.held(Want::Tags, Tag::INITIAL));
                let enough = answers.iter().flatten().count() >= self.c.quorums().quorum();
                if enough && rule(&self.c, &answers).is_some_and(|accepted| accepted < newest) {
                    return true;
                }
            }
            self.step(draw);
        }
        false
    }
}

/// Runs until `rule` returns a stale version: after how many runs, if at all.
fn stale_after(c: &Arc<Configuration>, rule: &Rule, runs: u64) -> Option<u64> {
    (0..runs).find(|seed| Model::new(c).is_stale(rule, &mut Draw(*seed)))
}

fn small_configurations() -> Vec<Arc<Configuration>> {
    let mut all = Vec::new();
    for n in 1..=5 {
        for k in 1..=n as u8 {
            for delta in [0, 1] {
                all.push(configuration(n, k, delta));
            }
        }
    }
    all
}

/// `[EC-11 acceptance-test]`: whatever writers, confirmations, trimming, restarts and rot do to lists, a version accepted is
/// at least as large as every one that was complete before the read.
#[test]
fn an_accepted_version_is_never_older_than_a_complete_one() {
    for c in small_configurations() {
        let stale = stale_after(&c, &ours, 4000);
        assert_eq!(stale, None, "seed, for {:?}", c.descriptor());
    }
}

/// The controls: the same runs convict rules that are too weak.
#[test]
fn weaker_rules_are_convicted_by_the_same_runs() {
    let caught = |rule: &Rule| {
        let convicts = |c: &Arc<Configuration>| stale_after(c, rule, 4000).is_some();
        small_configurations().iter().any(convicts)
    };
    assert!(caught(&published));
    assert!(caught(&|c, held| {
        let threshold = c.quorums().intersection() + 1;
        weakened(c, held, threshold, HeldVersions::supports)
    }));
    assert!(caught(&|c, held| {
        weakened(c, held, c.quorums().intersection(), HeldVersions::stores)
    }));
    // Without its help by confirmations our rule is still a sound one.
    assert!(!caught(&|c, held| {
        weakened(c, held, c.quorums().intersection(), HeldVersions::supports)
    }));
}

/// A member that answers for fewer versions than it was asked to drop has not dropped them.
#[test]
fn a_drop_counts_with_an_answer_for_each_version() {
    let c = configuration(4, 2, 0);
    let name = Name::user("k").unwrap();
    let reply = |answers: usize| Event::Reply(Reply::Access(vec![Answer::Dropped; answers]));
    for answers in [0, 1, 3] {
        let mut tally = fence::drops(&c, &name, &[tag(1), tag(2)]);
        assert_eq!(tally.add(0, reply(2)), Decision::Pending);
        assert_eq!(tally.add(1, reply(2)), Decision::Pending);
        let short = tally.add(2, reply(answers));
        assert_eq!(short, Decision::Pending, "{answers} answers");
        assert_eq!(tally.add(3, reply(2)), Decision::Done(()));
    }
}

// ---- values ---------------------------------------------------------------------------------------------------------

/// Every k of n fragments give the value; data fragments are taken as they are.
#[test]
fn any_k_fragments_make_the_value_and_data_fragments_are_not_copied() {
    let name = Name::user("k").unwrap();
    for (n, k) in [(3, 2), (4, 2), (5, 3), (5, 1), (3, 3)] {
        let c = configuration(n, k, 0);
        for length in [1, 63, 64, 65, 1000] {
            let content: Bytes = (0..length)
                .map(|i| u8::try_from(i % 251).unwrap())
                .collect::<Vec<u8>>()
                .into();
            let value = Value::new(Bytes::from_static(b"meta"), content.clone());
            let all = Ec::elements(&c, &name, &value);
            for set in (0u32..1 << n).filter(|set| set.count_ones() == u32::from(k)) {
                let some: Vec<Element> = (0..n)
                    .filter(|i| set & (1 << i) != 0)
                    .map(|i| all[i].clone())
                    .collect();
                let decoded = joined(&c, &some);
                assert_eq!(
                    decoded.contiguous(),
                    content,
                    "[{n},{k}], {length} bytes, {set:b}"
                );
                assert_eq!(decoded.metadata, value.metadata);
                for piece in &decoded.content {
                    let is_data = |e: &&Element| e.payload.as_ptr() == piece.as_ptr();
                    let index =
                        |e: &Element| matches!(e.form, Form::Fragment { index, .. } if index < k);
                    let kept = some.iter().filter(is_data).count();
                    assert!(kept == 1 || some.iter().filter(|e| index(e)).count() < k.into());
                }
            }
        }
    }
}

/// `[X-6 rotating-index]`: element indices, and with them the data positions, rotate over the objects.
#[test]
fn data_positions_rotate_over_the_objects() {
    let c = configuration(5, 3, 0);
    let mut first = [0; 5];
    for number in 0..500 {
        let name = Name::user(&format!("object-{number}")).unwrap();
        let all = Ec::elements(
            &c,
            &name,
            &Value::new(Bytes::new(), Bytes::from(vec![1; 100])),
        );
        let index = |e: &Element| match e.form {
            Form::Fragment { index, .. } => index,
            _ => unreachable!("the value is larger than a copy may be"),
        };
        let mut indices: Vec<u8> = all.iter().map(index).collect();
        first[indices.iter().position(|index| *index == 0).unwrap()] += 1;
        indices.sort_unstable();
        assert_eq!(indices, [0, 1, 2, 3, 4], "each exactly once");
    }
    assert!(
        first.iter().all(|count| (60..140).contains(count)),
        "{first:?}"
    );
}

/// A tombstone and a value of up to `copy_bytes` bytes are copies, one byte more makes fragments (`[X-1 support-threshold]`,
/// `[X-18 tombstone-versions]`).
#[test]
fn small_values_and_tombstones_are_copies() {
    let descriptor = configuration(5, 3, 0).descriptor().clone();
    let c = Configuration::new(Descriptor {
        copy_bytes: limits::DEFAULT_COPY_BYTES,
        ..descriptor
    })
    .unwrap();
    let name = Name::user("k").unwrap();
    let forms = |value: &Value| {
        let all = Ec::elements(&c, &name, value);
        assert!(
            all.iter()
                .all(|e| e.length == value.length() && e.deleted == value.deleted)
        );
        all.iter()
            .filter(|element| element.form == Form::Copy)
            .count()
    };
    let of = |bytes: usize| Value::new(Bytes::new(), Bytes::from(vec![1; bytes]));
    assert_eq!(forms(&of(0)), 5);
    assert_eq!(forms(&of(16 << 10)), 5);
    assert_eq!(forms(&of((16 << 10) + 1)), 0);
    assert_eq!(forms(&Value::tombstone(Bytes::new())), 5);
}
