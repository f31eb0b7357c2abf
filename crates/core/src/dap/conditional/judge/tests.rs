use super::*;
use crate::config::Dap;
use crate::config::testing::configuration;
use crate::dap::conditional::register::{Acceptance, Register};
use crate::element::{Element, Form};
use crate::message::{ChosenVersion, Proposal, RankedVersion};
use crate::tag::{ClientId, Writer};
use bytes::Bytes;

fn writer(client: u64) -> Writer {
    Writer {
        client: ClientId(client),
        counter: 1,
    }
}

fn tag(number: u64, client: u64) -> Tag {
    Tag {
        number,
        writer: writer(client),
    }
}

fn ballot(number: u64) -> Ballot {
    Ballot {
        number,
        proposer: writer(number),
    }
}

fn listed(tag: Tag, number: u64) -> RankedVersion {
    RankedVersion {
        tag,
        ballot: ballot(number),
        form: Form::Copy,
        deleted: false,
        lineage: Lineage::default(),
    }
}

fn answer(versions: &[RankedVersion], chosen: Option<(Tag, u64)>) -> RankedVersions {
    RankedVersions {
        versions: versions.to_vec(),
        chosen: chosen.map_or_else(ChosenVersion::default, |(tag, number)| ChosenVersion {
            ballot: ballot(number),
            tag,
        }),
        ..RankedVersions::default()
    }
}

fn judged(n: usize, k: u8, answers: &[RankedVersions]) -> Option<(Tag, Option<Ballot>)> {
    let c = configuration(n, Dap::Conditional { k });
    let answers: Vec<&RankedVersions> = answers.iter().collect();
    current(&c, &answers).map(|current| (current.tag, current.chosen))
}

#[test]
fn a_version_is_counted_at_any_ballot_and_known_to_be_chosen_at_one() {
    let (x, nothing) = (tag(1, 1), answer(&[], None));
    let at = |number| answer(&[listed(x, number)], None);
    let initial = Some((Tag::INITIAL, Some(Ballot::default())));
    assert_eq!(judged(3, 1, &[nothing.clone(), nothing.clone()]), initial);
    assert_eq!(judged(3, 1, &[at(1), nothing.clone()]), Some((x, None)));
    assert_eq!(judged(3, 1, &[at(1), at(1)]), Some((x, Some(ballot(1)))));
    // Settled at a minority: the version is listed at two ballots, and a quorum must say one.
    assert_eq!(judged(3, 1, &[at(1), at(2)]), Some((x, None)));
    assert_eq!(
        judged(3, 1, &[at(1), at(2), at(2)]),
        Some((x, Some(ballot(2))))
    );
    // Three of four answers, of which two quorums share two: one that a single answer lists is not chosen.
    let lonely = [at(3), nothing.clone(), nothing.clone()];
    assert_eq!(judged(4, 2, &lonely), initial);
    let listed_at_two = [at(1), at(3), nothing.clone()];
    assert_eq!(judged(4, 2, &listed_at_two), Some((x, None)));
    // All four answer: a quorum of three meets them in three.
    let all = [at(1), at(3), nothing.clone(), nothing];
    assert_eq!(judged(4, 2, &all), initial);
}

#[test]
fn the_largest_ballot_decides_and_not_the_largest_number() {
    let (failed, later) = (tag(9, 1), tag(2, 2));
    let both = answer(&[listed(failed, 1), listed(later, 2)], None);
    assert_eq!(
        judged(3, 1, &[both.clone(), answer(&[], None)]),
        Some((later, None))
    );
}

#[test]
fn what_is_above_a_chosen_version_keeps_it_from_being_returned() {
    let (x, y) = (tag(1, 1), tag(2, 2));
    let confirmed = answer(&[listed(x, 1)], Some((x, 1)));
    assert_eq!(
        judged(3, 1, &[confirmed.clone(), answer(&[], None)]),
        Some((x, Some(ballot(1))))
    );
    let above = answer(&[listed(x, 1), listed(y, 2)], Some((x, 1)));
    assert_eq!(judged(3, 1, &[above, confirmed.clone()]), Some((y, None)));
    // A member that knew a chosen version which no other lists has lost what it knew.
    let lost = answer(&[], Some((y, 2)));
    assert_eq!(judged(3, 1, &[lost, confirmed]), None);
}

/// Every history of a few steps of three proposers at three members with one fragment's worth of overlap: each step is a
/// proposer's PREPARE or ACCEPT at a member, or the news that its version is chosen. What was chosen stays current.
#[test]
fn what_was_chosen_is_current_for_every_quorum_ever_after() {
    let c = configuration(3, Dap::Conditional { k: 1 });
    let mut seen = std::collections::BTreeSet::new();
    explore(&c, &State::new(), &mut seen);
    assert!(seen.len() > 10_000, "{} states", seen.len());
}

#[derive(Clone)]
struct State {
    members: [Register; 3],
    proposers: [Proposer; 2],
}

#[derive(Clone, Default)]
struct Proposer {
    /// Answers to its PREPARE, by member.
    promised: [Option<RankedVersions>; 3],
    /// The proposed version, once a quorum has promised.
    version: Option<(Tag, Lineage)>,
    asked: [bool; 3],
    accepted: usize,
}

impl State {
    fn new() -> State {
        State {
            members: Default::default(),
            proposers: Default::default(),
        }
    }

    fn text(&self) -> String {
        let members: Vec<String> = self
            .members
            .iter()
            .map(|it| format!("{:?}{:?}{:?}", it.promised.number, it.chosen, it.accepted))
            .collect();
        let proposers = self.proposers.iter().map(|it| {
            let promised = it.promised.each_ref().map(Option::is_some);
            format!("{promised:?}{:?}{:?}{}", it.version, it.asked, it.accepted)
        });
        let proposers: Vec<String> = proposers.collect();
        format!("{members:?}{proposers:?}")
    }
}

fn shown(register: &Register) -> RankedVersions {
    let version = |it: &crate::dap::conditional::register::AcceptedVersion| RankedVersion {
        lineage: it.lineage.clone(),
        ..listed(it.tag, it.ballot.number)
    };
    RankedVersions {
        promised: register.promised,
        chosen: register.chosen,
        versions: register.accepted.iter().map(version).collect(),
        ..RankedVersions::default()
    }
}

fn explore(c: &Configuration, state: &State, seen: &mut std::collections::BTreeSet<String>) {
    if !seen.insert(state.text()) {
        return;
    }
    check(c, state);
    for (number, _) in state.proposers.iter().enumerate() {
        let own = ballot(number as u64 + 1);
        for member in 0..3 {
            let mut next = state.clone();
            let proposer = &mut next.proposers[number];
            if proposer.version.is_none() && proposer.promised[member].is_none() {
                if next.members[member].promise(own).0 {
                    proposer.promised[member] = Some(shown(&next.members[member]));
                    let promised: Vec<&RankedVersions> =
                        proposer.promised.iter().flatten().collect();
                    if promised.len() == 2 {
                        let current = current(c, &promised).unwrap();
                        let largest = current.tag.number + 1;
                        let lineage = current.lineage.followed_by(current.tag, 0);
                        proposer.version = Some((tag(largest, number as u64 + 1), lineage));
                    }
                    explore(c, &next, seen);
                }
            } else if let Some((tag, lineage)) = proposer.version.clone()
                && !proposer.asked[member]
            {
                proposer.asked[member] = true;
                let accepted = next.members[member].accept(&proposal(own, tag, lineage), false, 4);
                let is_accepted = matches!(accepted, Acceptance::Accept { .. });
                next.proposers[number].accepted += usize::from(is_accepted);
                explore(c, &next, seen);
            }
            if let Some((tag, _)) = state.proposers[number].version
                && state.proposers[number].accepted >= 2
            {
                let mut next = state.clone();
                let chosen = ChosenVersion { ballot: own, tag };
                if next.members[member].choose(chosen).is_some() {
                    explore(c, &next, seen);
                }
            }
        }
    }
}

fn proposal(ballot: Ballot, tag: Tag, lineage: Lineage) -> Proposal {
    let element = Element {
        form: Form::Copy,
        deleted: false,
        length: 0,
        metadata: Bytes::new(),
        payload: Bytes::new(),
        checksum: None,
    };
    Proposal {
        ballot,
        tag,
        element: Some(element),
        lineage,
        settles: false,
        base_chosen: false,
    }
}

/// Two chosen versions follow each other, and every quorum finds the later one, or one that is based on it.
fn check(c: &Configuration, state: &State) {
    let chosen = state.proposers.iter().filter(|it| it.accepted >= 2);
    let chosen: Vec<&(Tag, Lineage)> = chosen.filter_map(|it| it.version.as_ref()).collect();
    let follows = |later: &(Tag, Lineage), earlier: Tag| {
        later.0 == earlier || later.1.ancestors.iter().any(|it| it.tag == earlier)
    };
    if let [a, b] = chosen.as_slice() {
        assert!(
            follows(a, b.0) || follows(b, a.0),
            "{a:?} and {b:?} are both chosen"
        );
    }
    let shown: Vec<RankedVersions> = state.members.iter().map(shown).collect();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let current = current(c, &[&shown[a], &shown[b]]).unwrap();
        let current = (current.tag, current.lineage);
        for (tag, _) in &chosen {
            assert!(
                follows(&current, *tag),
                "{tag} is chosen, and {current:?} is found"
            );
        }
    }
}
