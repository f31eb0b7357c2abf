//! Configurations of a domain.

use crate::{holds, violated};
use areo_check::Property::Configurations;

#[test]
fn clients_that_learn_one_sequence() {
    holds(
        "a  0..1  reconfig p @1 <0
         e  0..9  read - seq=0:o!
         b  2..4  read - seq=0:o!,1:p!
         c  2..5  reconfig q @2 <1
         c  12..13 read - seq=2:q!
         d  2..6  reconfig q @2 <1
         d  14..15 read - seq=0:o!,2:q!,3:r
         b  14..15 read - seq=2:q!",
    );
}

#[test]
fn uniqueness() {
    violated(
        Configurations,
        "uniqueness: index 1",
        &[1, 2],
        "a  0..9  reconfig p @1 <0
         b  1..8  reconfig q @1 <0",
    );
    violated(
        Configurations,
        "uniqueness: index 2",
        &[1, 2],
        "a  0..1  read - seq=0:o!,2:p
         b  2..3  read - seq=0:o!,2:q",
    );
}

#[test]
fn subsequence() {
    violated(
        Configurations,
        "do not ascend",
        &[1],
        "a 0..1 read - seq=0:o!,2:q,1:p",
    );
    violated(Configurations, "not after", &[1], "a 0..1 reconfig p @1 <1");
    // What was installed is found by everyone who comes later.
    violated(
        Configurations,
        "subsequence: an operation ended without knowing",
        &[1, 2],
        "a  0..1  reconfig p @1 <0
         b  2..3  read - seq=0:o!",
    );
    // What a client knew it keeps. What another client knew may not be at a quorum yet.
    let second = |client: &str| {
        format!(
            "a  0..1  read - seq=0:o!,1:p
             {client}  2..3  read - seq=0:o!"
        )
    };
    holds(&second("b"));
    violated(
        Configurations,
        "subsequence: an operation ended without knowing",
        &[1, 2],
        &second("a"),
    );
}

#[test]
fn progress() {
    violated(
        Configurations,
        "progress",
        &[1, 2],
        "a  0..1  reconfig p @1 <0
         b  2..3  read - seq=0:o!,1:p",
    );
    violated(
        Configurations,
        "progress",
        &[1, 2],
        "a  0..1  read - seq=0:o!,1:p!
         a  2..3  read - seq=0:o!,1:p",
    );
}
