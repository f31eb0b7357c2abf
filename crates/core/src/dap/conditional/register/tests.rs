use super::*;
use crate::element::{Element, Form};
use crate::message::Ancestor;
use crate::tag::{ClientId, Writer};
use bytes::Bytes;

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
    register.accept(proposal, has_element)
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
    assert_eq!(register.accept(&without(3, 1), false), Acceptance::Need);
    assert_eq!(register.accept(&proposal(3, 1), false), stored(vec![]));
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

#[test]
fn versions_are_bounded_and_a_settling_proposal_has_a_place_more() {
    let mut register = Register::default();
    let cap = limits::RANKED_VERSIONS as u64;
    for number in 1..=cap {
        assert_eq!(
            accept(&mut register, &proposal(number, number)),
            stored(vec![])
        );
    }
    let next = proposal(cap + 1, cap + 1);
    assert_eq!(accept(&mut register, &next), Acceptance::Full);
    let settles = Proposal {
        settles: true,
        ..proposal(cap + 1, cap + 7)
    };
    assert_eq!(accept(&mut register, &settles), stored(vec![]));
    assert_eq!(register.accepted.len(), limits::RANKED_VERSIONS + 1);
    // Another one finds no place: nothing of what is here is known not to be chosen.
    let settles = Proposal {
        settles: true,
        ..proposal(cap + 1, cap + 6)
    };
    assert_eq!(accept(&mut register, &settles), Acceptance::Full);
    // On a base that is known to be chosen, all others may go.
    let next = Proposal {
        base_chosen: true,
        ..proposal(cap + 2, cap + 8)
    };
    let evicted = (1..=cap).map(tag).collect();
    assert_eq!(accept(&mut register, &next), stored(evicted));
    assert_eq!(numbers(&register), [(cap + 7, cap + 1), (cap + 8, cap + 2)]);
}
