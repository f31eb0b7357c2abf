//! Coverable writes (`[V-1 weak-coverability]`, `[V-2 coverable-properties]`).

use crate::{holds, violated};
use areo_check::Property::Coverable;

#[test]
fn writes_that_cover_what_they_saw() {
    holds(
        "a  0..1  cvr_write x @1-a <0
         b  2..3  read      x @1-a
         b  4..5  cvr_write y @2-b <1-a
         a  6..7  cvr_write y @2-b <1-a fail
         a  8..9  cvr_write z @3-a <2-b",
    );
}

#[test]
fn two_concurrent_writes_of_one_version_may_both_succeed() {
    // Weak coverability: not a violation [V-1 weak-coverability].
    holds(
        "a  0..1  cvr_write x @1-a <0
         a  2..9  cvr_write y @2-a <1-a
         b  3..8  cvr_write z @2-b <1-a
         b  10..11 read z @2-b",
    );
}

#[test]
fn an_unknown_write_may_be_covered_once_it_was_seen() {
    holds(
        "a  0..1  cvr_write x <0 unknown
         b  2..3  read      x @1-a
         b  4..5  cvr_write y @2-b <1-a",
    );
}

#[test]
fn validity() {
    violated(
        Coverable,
        "validity: a coverable write created a version that is not larger",
        &[2],
        "a  0..9  write x @2-a
         b  1..8  cvr_write y @1-b <2-a",
    );
    violated(
        Coverable,
        "validity: a version was returned that no write created",
        &[2],
        "a  0..1  cvr_write x @1-a <0
         b  2..3  cvr_write @2-b <0 fail",
    );
    violated(
        Coverable,
        "two writes created one version",
        &[1, 2],
        "a  0..9  cvr_write x @1-a <0
         b  1..8  cvr_write x @1-a <0",
    );
}

#[test]
fn continuity() {
    violated(
        Coverable,
        "continuity",
        &[1],
        "b  0..1  cvr_write y @2-b <1-a
         a  2..3  write x @3-a",
    );
    // A write of unknown version may have created it, if it was invoked in time.
    holds(
        "a  0..1  write x unknown
         b  2..3  cvr_write y @2-b <1-a",
    );
    violated(
        Coverable,
        "continuity",
        &[1],
        "b  0..1  cvr_write y @2-b <1-a
         a  2..3  write x unknown",
    );
}

#[test]
fn consolidation() {
    violated(
        Coverable,
        "consolidation",
        &[2, 3],
        "a  0..1  cvr_write x @1-a <0
         a  2..3  cvr_write y @2-a <1-a
         b  4..5  cvr_write z @3-b <1-a",
    );
    // Also against what was only read.
    violated(
        Coverable,
        "consolidation",
        &[3, 4],
        "a  0..1   cvr_write x @1-a <0
         a  2..20  cvr_write y @2-a <1-a
         c  3..4   read      y @2-a
         b  5..21  cvr_write z @3-b <1-a",
    );
}

#[test]
fn evolution() {
    // Two branches from the first version: the longer one must lead to the larger version.
    violated(
        Coverable,
        "evolution",
        &[3, 4],
        "a  0..1   cvr_write x @1-a <0
         a  2..20  cvr_write y @2-a <1-a
         b  3..21  cvr_write z @3-b <2-a
         c  2..22  cvr_write w @9-c <1-a",
    );
}
