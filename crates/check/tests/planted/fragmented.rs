//! Files of blocks (`[B-1 never-unlinked]`, `[B-3 create-first]`, O5). The first block is `f`.

use crate::{holds, violated};
use areo_check::Property::Fragmented;

/// A file of two blocks: f -> b -> c.
const FILE: &str = "a 0..1   cvr_write c1 @1-1 <0 k=c file=f
                    a 2..3   cvr_write b1 @1-2 <0 k=b file=f next=c
                    a 4..5   cvr_write f1 @1-3 <0 k=f file=f next=b
                    ";

#[test]
fn splits_that_keep_the_file_together() {
    // b is split into b -> x -> y -> c, while c is changed.
    holds(&format!(
        "{FILE}
         b 10..11 cvr_write y1 @1-4 <0   k=y file=f next=c
         b 12..13 cvr_write x1 @1-5 <0   k=x file=f next=y
         b 14..15 cvr_write b2 @2-6 <1-2 k=b file=f next=x
         c 10..15 cvr_write c2 @2-7 <1-1 k=c file=f
         c 20..21 read      b2 @2-6      k=b file=f next=x
         c 22..23 cvr_write b3 @3-8 <2-6 k=b file=f next=x"
    ));
}

#[test]
fn two_concurrent_splits_lead_to_either_chain() {
    holds(&format!(
        "{FILE}
         b 10..11 cvr_write x1 @1-4 <0   k=x file=f next=c
         c 10..11 cvr_write y1 @1-5 <0   k=y file=f next=c
         b 12..20 cvr_write b2 @2-6 <1-2 k=b file=f next=x
         c 12..20 cvr_write b3 @2-7 <1-2 k=b file=f next=y"
    ));
}

/// `[B-3 create-first]`: new blocks are created all at once, before anything leads to the first of them.
#[test]
fn new_blocks_are_created_in_any_order_before_the_first_is_linked() {
    let created = |y_ends| {
        format!(
            "{FILE}
             b 10..13 cvr_write x1 @1-4 <0   k=x file=f next=y
             b 11..{y_ends} cvr_write y1 @1-5 <0   k=y file=f next=c
             b 14..16 cvr_write b2 @2-6 <1-2 k=b file=f next=x"
        )
    };
    holds(&created(12));
    violated(Fragmented, "created first: block y", &[5, 6], &created(15));
}

#[test]
fn a_block_is_created_before_it_is_linked() {
    violated(
        Fragmented,
        "created first: block x",
        &[4, 5],
        &format!(
            "{FILE}
             b 10..13 cvr_write x1 @1-5 <0   k=x file=f next=c
             b 12..15 cvr_write b2 @2-6 <1-2 k=b file=f next=x"
        ),
    );
    violated(
        Fragmented,
        "created first: block x",
        &[4],
        &format!("{FILE} b 12..15 cvr_write b2 @2-6 <1-2 k=b file=f next=x"),
    );
    // A creation of unknown outcome will do once somebody read the block.
    let unknown = format!("{FILE} b 10..11 cvr_write x1 <0 k=x file=f next=c unknown\n");
    let linked = "b 14..15 cvr_write b2 @2-6 <1-2 k=b file=f next=x";
    violated(
        Fragmented,
        "created first: block x",
        &[4, 5],
        &format!("{unknown} {linked}"),
    );
    holds(&format!(
        "{unknown} b 12..13 read x1 @1-4 k=x file=f next=c\n {linked}"
    ));
}

#[test]
fn the_rest_of_the_file_is_not_dropped() {
    violated(
        Fragmented,
        "connected: a write dropped block c",
        &[2, 4],
        &format!("{FILE} b 12..15 cvr_write b2 @2-6 <1-2 k=b file=f"),
    );
    violated(
        Fragmented,
        "connected: a write dropped block c",
        &[2, 4, 5],
        &format!(
            "{FILE}
             b 10..11 cvr_write x1 @1-5 <0   k=x file=f
             b 12..15 cvr_write b2 @2-6 <1-2 k=b file=f next=x"
        ),
    );
}

#[test]
fn no_block_leads_back() {
    violated(
        Fragmented,
        "acyclic",
        &[3, 4, 5],
        &format!(
            "{FILE}
             b 10..11 cvr_write x1 @1-5 <0   k=x file=f next=f
             b 12..15 cvr_write f2 @2-6 <1-3 k=f file=f next=x"
        ),
    );
    violated(
        Fragmented,
        "acyclic",
        &[1, 4],
        &format!("{FILE} b 12..15 cvr_write c2 @2-6 <1-1 k=c file=f next=c"),
    );
}

#[test]
fn a_read_returns_the_link_that_was_written() {
    violated(
        Fragmented,
        "one link per version",
        &[2, 4],
        &format!("{FILE} b 12..15 read b1 @1-2 k=b file=f next=f"),
    );
}
