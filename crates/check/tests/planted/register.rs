//! Linearizability and the order of versions.

use crate::{holds, report, violated};
use areo_check::Property::{Linearizable, VersionOrder};
use areo_check::Verdict;

#[test]
fn concurrent_operations_may_take_effect_in_any_order() {
    holds(
        "a  0..9  write x
         b  1..8  write y
         c  2..3  read  -
         c  4..5  read  y
         c  6..7  read  x",
    );
}

#[test]
fn a_stale_read_is_shown_with_the_write_it_missed() {
    violated(
        Linearizable,
        "two values both had to be there",
        &[2, 3, 4, 5],
        "a  0..1   write w
         a  2..3   write x
         a  4..20  write y
         b  6..7   read  y
         c  8..9   read  x
         b  10..11 read  y",
    );
}

#[test]
fn a_new_value_then_the_old_one_is_an_inversion() {
    // Both reads overlap the write; the second starts after the first has ended.
    violated(
        Linearizable,
        "",
        &[1, 2, 3, 4],
        "a  0..1  write x
         a  2..20 write y
         b  3..4  read  y
         c  5..6  read  x",
    );
}

#[test]
fn an_unknown_write_may_take_effect_much_later_or_never() {
    holds(
        "a  0..1   write x unknown
         b  2..3   write y
         b  4..5   read  y
         b  6..7   read  x
         b  8..9   write z
         b  10..11 read  z",
    );
    holds(
        "a  0..1   delete unknown
         b  2..3   write y
         b  4..5   read  y
         b  6..7   read  -",
    );
}

#[test]
fn an_unknown_write_takes_effect_once() {
    violated(
        Linearizable,
        "a value came and went while another one had to be there",
        &[1, 2, 4, 5],
        "a  0..1   write x unknown
         b  2..3   write y
         b  4..5   read  y
         b  6..7   read  x
         b  8..9   read  y",
    );
}

#[test]
fn a_failed_write_never_takes_effect() {
    holds(
        "a  0..1  write x fail
         b  2..3  read  -",
    );
    violated(
        Linearizable,
        "its write failed",
        &[1, 2],
        "a  0..1  write x fail
         b  2..3  read  x",
    );
}

#[test]
fn values_come_from_writes_that_were_invoked() {
    violated(Linearizable, "nobody wrote", &[1], "a 0..1 read x");
    violated(
        Linearizable,
        "before its write",
        &[1, 2],
        "a 0..1 read x
         b 2..3 write x",
    );
}

#[test]
fn a_lost_write_is_read_as_absent() {
    violated(
        Linearizable,
        "no delete explains",
        &[2, 5],
        "a  0..1   delete
         a  2..3   write x
         b  4..5   read  x
         b  6..7   write y fail
         b  8..9   read  -
         a  10..11 delete",
    );
}

#[test]
fn a_refused_coverable_write_counts_as_a_read() {
    let table = |found: &str| {
        format!(
            "a  0..1  write x @1-a
             a  2..3  write y @2-a
             b  4..5  cvr_write {found} <1-a fail"
        )
    };
    holds(&table("y @2-a"));
    holds(&table("@2-a"));
    holds(&table(""));
    violated(Linearizable, "", &[1, 2, 3], &table("x @1-a"));
    // The version alone stands for its value.
    violated(Linearizable, "", &[1, 2, 3], &table("@1-a"));
}

#[test]
fn values_written_twice_are_searched_if_few_and_not_judged_if_many() {
    holds(
        "a 0..1 write x
         a 2..3 write y
         a 4..5 write x
         b 6..7 read x",
    );
    violated(
        Linearizable,
        "no order",
        &[1, 2, 3, 4],
        "a 0..1 write x
         a 2..3 write x
         a 4..5 write y
         b 6..7 read x",
    );
    let many: Vec<String> = (0..80)
        .map(|i| format!("a {}..{} write x", i * 2, i * 2 + 1))
        .collect();
    let report = report(&many.join("\n"));
    assert_eq!(report.verdict, Verdict::Unjudged);
    assert_eq!(report.property(Linearizable).unjudged, 1);
    assert!(
        report
            .to_string()
            .contains("a value was written twice, by operations 1 and 2"),
        "{report}"
    );
}

#[test]
fn versions_do_not_go_back() {
    holds(
        "a  0..9  write x @1-a
         b  1..8  write y @1-b
         c  2..3  read  x @1-a
         c  4..5  read  y @1-b",
    );
    violated(
        VersionOrder,
        "older version",
        &[3, 4],
        "a  0..9  write x @2-a
         b  1..8  write y @1-b
         c  2..3  read  x @2-a
         c  4..5  read  y @1-b",
    );
    violated(
        VersionOrder,
        "not larger",
        &[1, 2],
        "a  0..1  write x @2-a
         b  2..3  write y @1-b",
    );
    // The unknown write has the version that was read.
    violated(
        VersionOrder,
        "not larger",
        &[1, 2],
        "a  0..1  write x @2-a
         b  2..3  write y unknown
         b  4..9  read  y @1-b",
    );
}

#[test]
fn versions_and_values_belong_together() {
    violated(
        VersionOrder,
        "two values",
        &[1, 2],
        "a  0..1  write x @1-a
         b  2..3  read  y @1-a
         b  0..9  write y unknown",
    );
    violated(
        VersionOrder,
        "two versions",
        &[1, 2],
        "a  0..1  write x @1-a
         b  2..3  read  x @2-a",
    );
    violated(
        VersionOrder,
        "two writes",
        &[1, 2],
        "a  0..1  delete @1-a
         b  2..3  delete @1-a",
    );
    violated(VersionOrder, "never written", &[1], "a 0..1 write x @0");
}

#[test]
fn versions_tell_deletes_apart() {
    // By values alone this is fine: the object is absent. By versions, the second delete was missed.
    violated(
        VersionOrder,
        "older version",
        &[2, 3],
        "a  0..1  delete @1-a
         a  2..3  delete @2-a
         b  4..5  read  - @1-a",
    );
    holds(
        "a  0..1  delete unknown
         b  2..3  read  - @1-a
         b  4..5  read  - @1-a",
    );
    // One delete cannot have written two versions.
    violated(
        VersionOrder,
        "no delete can have written it",
        &[3],
        "a  0..1  delete unknown
         b  2..3  read  - @1-a
         b  4..5  read  - @2-a",
    );
    violated(
        VersionOrder,
        "no delete can have written it",
        &[1],
        "b  2..3  read  - @1-a
         a  4..5  delete unknown",
    );
}
