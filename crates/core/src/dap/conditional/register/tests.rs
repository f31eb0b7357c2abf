use super::*;
use crate::element::{Element, Form};
use crate::message::Ancestor;
use crate::tag::{ClientId, Writer};
use bytes::Bytes;

const CAP: usize = limits::RANKED_VERSIONS;

fn tag(number: u64) -> Tag {
    let client = ClientId(1);
    Tag {
        number,
        writer: Writer { client, counter: 1 },
    }
}

fn ballot(number: u64) -> Ballot {
    let proposer = Writer::default();
    Ballot { number, proposer }
}

fn proposal(at: u64, number: u64) -> Proposal {
    let base = Ancestor {
        tag: tag(number - 1),
        request: 0,
    };
    Proposal {
        ballot: ballot(at),
        tag: tag(number),
        element: Some(Element {
            form: Form::Copy,
            deleted: false,
            length: 0,
            metadata: Bytes::new(),
            payload: Bytes::new(),
            checksum: None,
        }),
        lineage: Lineage {
            request: 0,
            ancestors: vec![base],
        },
        settles: false,
        base_chosen: false,
    }
}

fn accept(register: &mut Register, proposal: &Proposal) -> Acceptance {
    let has_element = register.lists(proposal.tag);
    register.accept(proposal, has_element, CAP)
}

fn stored(evicted: Vec<Tag>) -> Acceptance {
    let stores = true;
    Acceptance::Accept { stores, evicted }
}

fn numbers(register: &Register) -> Vec<(u64, u64)> {
    let accepted = register.accepted.iter();
    accepted
        .map(|it| (it.tag.number, it.ballot.number))
        .collect()
}

#[test]
fn a_promise_is_kept_and_repeated_until_its_proposal_is_here() {
    let mut register = Register::default();
    assert_eq!(register.promise(ballot(5)), (true, true));
    assert_eq!(register.promise(ballot(5)), (true, false), "sent again");
    assert_eq!(register.promise(ballot(4)), (false, false));
    assert_eq!(accept(&mut register, &proposal(4, 1)), Acceptance::Refuse);
    assert_eq!(accept(&mut register, &proposal(5, 1)), stored(vec![]));
    assert_eq!(register.promise(ballot(5)), (false, false), "it is late");
    assert_eq!(
        accept(&mut register, &proposal(5, 1)),
        Acceptance::Acknowledge
    );
    register.promise(ballot(9));
    // What it acknowledged once it acknowledges again, also after a larger promise.
    assert_eq!(
        accept(&mut register, &proposal(5, 1)),
        Acceptance::Acknowledge
    );
}

#[test]
fn without_an_element_only_what_is_held_is_accepted() {
    let mut register = Register::default();
    let without = |at, number| Proposal {
        element: None,
        settles: true,
        ..proposal(at, number)
    };
    assert_eq!(accept(&mut register, &without(1, 1)), Acceptance::Need);
    assert_eq!(
        register,
        Register::default(),
        "nothing was promised by that"
    );
    accept(&mut register, &proposal(1, 1));
    let raised = Acceptance::Accept {
        stores: false,
        evicted: vec![],
    };
    assert_eq!(accept(&mut register, &without(2, 1)), raised);
    assert_eq!(numbers(&register), [(1, 2)]);
    // Its element was damaged: it is accepted, and not held.
    assert_eq!(
        register.accept(&without(3, 1), false, CAP),
        Acceptance::Need
    );
    assert_eq!(register.accept(&proposal(3, 1), false, CAP), stored(vec![]));
    assert_eq!(numbers(&register), [(1, 3)]);
}

#[test]
fn a_chosen_version_drops_what_was_accepted_below_its_ballot() {
    let mut register = Register::default();
    for (at, number) in [(1, 1), (2, 2), (4, 3)] {
        accept(&mut register, &proposal(at, number));
    }
    let chosen = |at, number| ChosenVersion {
        ballot: ballot(at),
        tag: tag(number),
    };
    // Settled elsewhere at ballot 3: here it rises to that, and what came later stays.
    assert_eq!(register.choose(chosen(3, 1)), Some(vec![tag(2)]));
    assert_eq!(numbers(&register), [(1, 3), (3, 4)]);
    assert_eq!(register.choose(chosen(2, 2)), None, "late");
    assert_eq!(register.choose(chosen(9, 7)), Some(vec![tag(1), tag(3)]));
    assert_eq!(
        register.promised,
        ballot(9),
        "below it nothing can be chosen"
    );
}

/// A proposal of version `number`, which follows these, the last one first.
fn following(at: u64, number: u64, ancestors: &[u64]) -> Proposal {
    let (request, ancestors) = (0, ancestors.iter());
    let ancestors = ancestors.map(|number| Ancestor {
        tag: tag(*number),
        request,
    });
    Proposal {
        lineage: Lineage {
            request,
            ancestors: ancestors.collect(),
        },
        ..proposal(at, number)
    }
}

/// A register at its cap gives up old versions for a new one only if the base of the new one is known to be
/// chosen. That knowledge stays.
#[test]
fn at_the_cap_a_new_version_needs_a_chosen_base() {
    for cap in 1..=CAP as u64 {
        let mut register = Register::default();
        let accept = |register: &mut Register, proposal: &Proposal| {
            register.accept(proposal, false, usize::try_from(cap).unwrap())
        };
        for number in 1..=cap {
            assert_eq!(
                accept(&mut register, &proposal(number, number)),
                stored(vec![])
            );
        }
        let next = following(cap + 1, cap + 1, &[cap, 0]);
        assert_eq!(accept(&mut register, &next), Acceptance::Full);
        let next = Proposal {
            base_chosen: true,
            ..next
        };
        let evicted = (1..cap).map(tag).collect();
        assert_eq!(accept(&mut register, &next), stored(evicted));
        assert_eq!(numbers(&register), [(cap, cap), (cap + 1, cap + 1)]);
    }
}

/// A version that is settled finds a place at each member, and in each one the version that was chosen last stays.
#[test]
fn at_the_cap_a_settled_version_keeps_its_last_two_ancestors() {
    for cap in 1..=CAP {
        let mut register = Register::default();
        for number in 1..=cap as u64 {
            register.accept(&proposal(number, number), false, cap);
        }
        for round in 1..9 {
            let kept: Vec<Tag> = register.accepted.iter().map(|it| it.tag).take(2).collect();
            let ancestors: Vec<u64> = kept.iter().rev().map(|it| it.number).collect();
            let (at, number) = (10 * round, 10 * round);
            let settles = Proposal {
                settles: true,
                ..following(at, number, &ancestors)
            };
            let accepted = register.accept(&settles, false, cap);
            assert!(
                matches!(accepted, Acceptance::Accept { .. }),
                "{accepted:?}"
            );
            let listed: Vec<Tag> = register.accepted.iter().map(|it| it.tag).collect();
            assert!(listed.len() <= cap.max(3), "{listed:?} with {cap}");
            assert!(kept.iter().all(|tag| listed.contains(tag)), "{listed:?}");
            assert_eq!(listed.last(), Some(&tag(number)));
        }
    }
}
