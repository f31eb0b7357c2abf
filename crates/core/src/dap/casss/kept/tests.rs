use super::*;
use crate::config::Dap;
use crate::config::testing::configuration;
use crate::element::Form;
use crate::limits::NUMBER;
use crate::object::Name;
use crate::tag::{ClientId, Writer};

/// No tag with this number is possible.
const HUGE: u64 = NUMBER + 7;

fn tag(number: u64) -> Tag {
    let client = ClientId(number % 5);
    let counter = 1;
    Tag {
        number,
        writer: Writer { client, counter },
    }
}

/// The report of the member in this place of five: fragments, of which three make a value, and a mark.
fn told(place: usize, numbers: &[u64], mark: u64) -> ObjectReport {
    let index = u8::try_from(place).unwrap();
    let form = Form::Fragment { n: 5, k: 3, index };
    ObjectReport {
        name: Name::user("k").unwrap(),
        abstains: false,
        held: HeldVersions {
            stored: numbers.iter().map(|number| (tag(*number), form)).collect(),
            stable: if mark == 0 { Tag::INITIAL } else { tag(mark) },
            ..HeldVersions::default()
        },
    }
}

/// The version that stays if these members hold each version, the first member has this mark, and the last
/// `abstaining` members abstain.
fn kept_of(versions: &[(u64, &[usize])], mark: u64, abstaining: usize) -> Option<(u64, u64)> {
    let of = |place: usize| {
        let holds = versions.iter().filter(|(_, at)| at.contains(&place));
        let numbers: Vec<u64> = holds.map(|(number, _)| *number).collect();
        ObjectReport {
            abstains: place >= 5 - abstaining,
            ..told(place, &numbers, if place == 0 { mark } else { 0 })
        }
    };
    let all: Vec<ObjectReport> = (0..5).map(of).collect();
    let c = configuration(5, Dap::CasSs { k: 3 });
    let kept = kept(&c, &all.iter().collect::<Vec<_>>())?;
    assert_eq!(kept.from.writer, kept.to.writer, "it is of the same write");
    Some((kept.from.number, kept.to.number))
}

/// T17, as corrected: a huge mark, or a huge version, of which too few elements are there is not kept, although it claims to be newer.
#[test]
fn the_largest_version_that_can_be_read_stays() {
    let whole: &[usize] = &[0, 1, 2, 3];
    let few: &[usize] = &[3, 4];
    assert_eq!(kept_of(&[(5, whole), (9, few)], 5, 0), Some((5, 5)));
    assert_eq!(kept_of(&[(5, whole), (9, few)], 9, 0), Some((5, 5)));
    assert_eq!(kept_of(&[(5, whole), (HUGE, few)], HUGE, 0), Some((5, 5)));
    assert_eq!(kept_of(&[(4, whole), (5, &[0, 1, 2])], 9, 0), Some((5, 5)));
    assert_eq!(kept_of(&[(9, few)], 9, 0), None);
    assert_eq!(kept_of(&[], 0, 5), None);
}

/// A version that no round can have finalized stays only if no other version can be read.
#[test]
fn a_version_that_may_be_finalized_goes_before_one_that_cannot() {
    let (whole, three): (&[usize], &[usize]) = (&[0, 1, 2, 3], &[1, 2, 3]);
    assert_eq!(kept_of(&[(5, whole), (6, three)], 5, 0), Some((5, 5)));
    // A quorum is four: the member that abstains may have had it.
    assert_eq!(kept_of(&[(5, whole), (6, three)], 5, 1), Some((6, 6)));
    assert_eq!(kept_of(&[(6, three)], 0, 0), Some((6, 6)));
    // It abstains, and has it.
    assert_eq!(kept_of(&[(5, whole), (6, &[2, 3, 4])], 5, 1), Some((5, 5)));
}

/// `[CASSS-5 impossible-renamed]`: only where nothing else can be read, and to the number after all that are known.
#[test]
fn an_impossible_version_is_renamed_if_it_is_all_that_can_be_read() {
    let whole: &[usize] = &[0, 1, 2, 4];
    let huge = (HUGE, whole);
    assert_eq!(kept_of(&[(3, &[1]), huge], 0, 0), Some((HUGE, 4)));
    assert_eq!(kept_of(&[(3, &[1]), huge], 8, 0), Some((HUGE, 9)));
    assert_eq!(
        kept_of(&[huge, (HUGE + 1, whole)], 0, 0),
        Some((HUGE + 1, 1))
    );
    assert_eq!(kept_of(&[(3, &[0, 1, 2]), huge], 0, 0), Some((3, 3)));
    let last = NUMBER - 1;
    assert_eq!(kept_of(&[(last, &[1]), huge], 0, 0), None, "none is left");
}

/// A copy is a value by itself.
#[test]
fn one_copy_is_enough() {
    let c = configuration(5, Dap::CasSs { k: 3 });
    let mut all: Vec<ObjectReport> = (0..5).map(|place| told(place, &[], 0)).collect();
    all[4].held.stored = vec![(tag(7), Form::Copy)];
    let kept = kept(&c, &all.iter().collect::<Vec<_>>());
    assert_eq!(kept.map(|kept| kept.to), Some(tag(7)));
}
