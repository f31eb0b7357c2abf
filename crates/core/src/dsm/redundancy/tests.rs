use super::*;
use crate::config::testing::{conditional, replicated};
use crate::message::Refusal;
use crate::tag::Writer;
use MemberListing::{Damaged, Newest, Older, Unknown};

fn entry(key: &str, number: u64) -> ListEntry {
    let writer = Writer::default();
    ListEntry {
        key: key.into(),
        tag: Tag { number, writer },
        length: 0,
        etag: None,
        written_at_ms: None,
        age_s: 0,
        deleted: false,
        damaged: false,
        absent: false,
    }
}

fn page(entries: Vec<ListEntry>, truncated: bool) -> ListPage {
    ListPage { entries, truncated }
}

fn rows(pages: &[Option<ListPage>]) -> Vec<(String, u64, Vec<MemberListing>)> {
    let page = compare(&replicated(pages.len()), Kind::User, pages);
    let row = |it: ObjectRedundancy| (it.name.key().to_owned(), it.tag.number, it.listed);
    page.objects.into_iter().map(row).collect()
}

/// It knows that the version is complete, and that is all (`[CAS-8 finalized-listing]`).
#[test]
fn a_member_without_an_element_of_the_newest_version_lacks_it() {
    let absent = ListEntry {
        absent: true,
        ..entry("a", 2)
    };
    let pages = [entry("a", 2), absent].map(|entry| Some(page(vec![entry], false)));
    let expected = vec![MemberListing::Newest, MemberListing::Older];
    assert_eq!(rows(&pages), [("a".to_owned(), 2, expected)]);
}

#[test]
fn members_are_compared_key_by_key() {
    let damaged = ListEntry {
        damaged: true,
        ..entry("a", 9)
    };
    let pages = [
        Some(page(vec![entry("a", 2), entry("b", 1)], false)),
        Some(page(vec![entry("a", 1)], false)),
        Some(page(vec![damaged, entry("b", 1)], false)),
        None,
    ];
    assert_eq!(
        rows(&pages),
        [
            ("a".into(), 2, vec![Newest, Older, Damaged, Unknown]),
            ("b".into(), 1, vec![Newest, Older, Newest, Unknown]),
        ]
    );
}

/// A proposal that failed may have the larger tag, and is lacked by none.
#[test]
fn of_a_register_the_version_counts_that_a_quorum_lists() {
    let c = conditional(3);
    let listed = |numbers: [u64; 3]| {
        let pages = numbers.map(|number| Some(page(vec![entry("a", number)], false)));
        compare(&c, Kind::User, &pages).objects[0].clone()
    };
    let failed = listed([2, 3, 2]);
    assert_eq!(failed.tag.number, 2);
    assert_eq!(failed.listed, [Newest, Older, Newest]);
    assert_eq!(listed([1, 3, 2]).listed, [Older; 3], "a read decides it");
}

#[test]
fn what_only_damaged_members_list_is_looked_at() {
    let damaged = ListEntry {
        damaged: true,
        ..entry("a", 2)
    };
    let pages = [Some(page(vec![damaged], false)), Some(page(vec![], false))];
    let listed = vec![Damaged, Older];
    assert_eq!(rows(&pages), [("a".into(), 2, listed)]);
}

/// A page that was cut says nothing about the objects behind its end: the member does not lack objects that it was
/// not asked for.
#[test]
fn a_page_ends_where_the_first_member_s_does() {
    let pages = [
        Some(page(vec![entry("a", 1), entry("b", 1)], true)),
        Some(page(vec![entry("a", 1), entry("c", 1)], true)),
    ];
    let c = replicated(2);
    assert_eq!(compare(&c, Kind::User, &pages).next.as_deref(), Some("b"));
    let keys: Vec<String> = rows(&pages).into_iter().map(|row| row.0).collect();
    assert_eq!(keys, ["a", "b"]);
}

fn tally(members: usize) -> Census {
    Census {
        request: ListRequest::new(Kind::User, ""),
        quorum: 2,
        pages: vec![None; members],
        heard: vec![false; members],
        refused: vec![false; members],
    }
}

#[test]
fn a_quorum_waits_for_the_others_for_a_while_and_no_longer() {
    let mut tally = tally(3);
    let reply = || Event::Reply(Reply::Listed(ListPage::default()));
    assert_eq!(tally.add(0, reply()), Decision::Pending);
    assert_eq!((tally.patience(), tally.tick()), (None, Decision::Pending));
    assert_eq!(tally.add(1, reply()), Decision::Pending);
    assert_eq!(tally.patience(), Some(HOLDINGS_PATIENCE));
    let pages = vec![Some(ListPage::default()), Some(ListPage::default()), None];
    assert_eq!(tally.tick(), Decision::Done(pages));
}

#[test]
fn members_out_of_reach_are_not_waited_for() {
    let mut tally = tally(3);
    let reply = || Event::Reply(Reply::Listed(ListPage::default()));
    assert_eq!(tally.add(2, Event::Unreachable), Decision::Pending);
    assert_eq!(tally.add(0, reply()), Decision::Pending);
    let pages = vec![Some(ListPage::default()), Some(ListPage::default()), None];
    assert_eq!(tally.add(1, reply()), Decision::Done(pages));
}

#[test]
fn refusals_that_leave_no_quorum_end_it() {
    let mut tally = tally(3);
    let refused = || Event::Refused(Refusal::Damaged);
    assert_eq!(tally.add(0, refused()), Decision::Pending);
    assert_eq!(tally.add(1, refused()), Decision::Impossible);
}
