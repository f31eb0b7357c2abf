//! Conditional writes.

use crate::{holds, violated};
use areo_check::Property::OneWinner;

#[test]
fn one_wins_and_the_others_are_refused() {
    holds(
        "a  0..1   conditional_write x @1-a
         a  2..9   conditional_write y @2-a <1-a
         b  3..8   conditional_write <1-a fail
         c  3..10  conditional_write y @2-a <1-a fail
         a  11..12 delete @3-a
         b  13..14 conditional_write z @4-b",
    );
}

#[test]
fn two_winners() {
    violated(
        OneWinner,
        "two conditional writes of one version",
        &[2, 3],
        "a  0..1  write x @1-a
         a  2..9  conditional_write y @2-a <1-a
         b  3..8  conditional_write z @2-b <1-a",
    );
}

#[test]
fn an_unknown_one_wins_if_its_value_was_seen() {
    let table = |read: &str| {
        format!(
            "a  0..1   write x @1-a
             a  2..9   conditional_write y <1-a unknown
             b  3..20  conditional_write z @2-b <1-a
             c  4..5   {read}"
        )
    };
    holds(&table("read x @1-a"));
    violated(
        OneWinner,
        "two conditional writes of one version",
        &[2, 3],
        &table("read y @2-a"),
    );
}

#[test]
fn nothing_comes_between() {
    violated(
        OneWinner,
        "another write came between",
        &[2, 3],
        "a  0..1  write x @1-a
         a  2..9  write y @2-a
         b  3..8  conditional_write z @3-b <1-a",
    );
}

#[test]
fn creation_requires_absence() {
    violated(
        OneWinner,
        "requires absence",
        &[1, 2],
        "a  0..1  write x @1-a
         b  2..3  conditional_write z @2-b",
    );
    violated(
        OneWinner,
        "requires absence",
        &[1, 2],
        "a  0..9  conditional_write x @1-a
         b  1..8  conditional_write z @2-b",
    );
    // An unknown delete may have been between.
    holds(
        "a  0..1  write x @1-a
         a  2..3  delete unknown
         b  4..5  conditional_write z @3-b",
    );
}

#[test]
fn the_version_that_it_is_for_exists_and_is_smaller() {
    violated(
        OneWinner,
        "no write created",
        &[1],
        "b 0..1 conditional_write z @3-b <2-a",
    );
    violated(
        OneWinner,
        "not larger",
        &[2],
        "a  0..9  write x @3-a
         b  1..8  conditional_write z @2-b <3-a",
    );
}
