use super::*;
use crate::config::testing::replicated;
use crate::message::Refusal;

/// A fate of the question to one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Votes,
    KnowsBetter,
    Refuses,
    Silent,
}

const FATES: [Fate; 4] = [Fate::Votes, Fate::KnowsBetter, Fate::Refuses, Fate::Silent];

fn admission(n: usize) -> Admission {
    Admission::new(&replicated(n), Body::Servers)
}

fn outcome(decided: Decision<Admitted>) -> Decision<Registration> {
    match decided {
        Decision::Done(admitted) => Decision::Done(admitted.registration),
        Decision::Pending => Decision::Pending,
        Decision::Ask(positions) => Decision::Ask(positions),
        Decision::Impossible => Decision::Impossible,
    }
}

fn add(tally: &mut Admission, member: usize, fate: Fate) -> Decision<Registration> {
    let event = match fate {
        Fate::Votes => Event::Reply(Reply::Registered),
        Fate::KnowsBetter => Event::Reply(Reply::Outdated { registered: 9 }),
        Fate::Refuses => Event::Refused(Refusal::Damaged),
        Fate::Silent => Event::Unreachable,
    };
    outcome(tally.add(member, event))
}

/// Until the patience has run out, or there is a decision.
fn wait(tally: &mut Admission) -> Decision<Registration> {
    for _ in 0..PATIENCE_TICKS {
        if tally.patience().is_none() {
            break;
        }
        match outcome(tally.tick()) {
            Decision::Pending => {}
            decided => return decided,
        }
    }
    Decision::Pending
}

fn orders(n: usize) -> Vec<Vec<usize>> {
    match n {
        0 => vec![Vec::new()],
        _ => orders(n - 1)
            .into_iter()
            .flat_map(|order| {
                (0..n).map(move |place| {
                    let mut order = order.clone();
                    order.insert(place, n - 1);
                    order
                })
            })
            .collect(),
    }
}

/// In every order of answers: one that knows better decides; without one, a registration needs a quorum, and all the
/// members or the whole patience.
#[test]
fn a_member_that_knows_better_and_answers_within_the_patience_decides() {
    for n in 1..=5_usize {
        let quorum = replicated(n).quorums().quorum();
        for number in 0..FATES.len().pow(n as u32) {
            let fates: Vec<Fate> = (0..n as u32)
                .map(|member| FATES[number / FATES.len().pow(member) % FATES.len()])
                .collect();
            let count = |fate| fates.iter().filter(|it| **it == fate).count();
            for order in orders(n) {
                let mut tally = admission(n);
                let mut decided = Decision::Pending;
                for member in &order {
                    decided = add(&mut tally, *member, fates[*member]);
                    // Nearly all of the patience may pass between any two answers.
                    if decided == Decision::Pending && tally.patience().is_some() {
                        let _ = (tally.ticks < PATIENCE_TICKS - 1).then(|| tally.tick());
                    }
                    if decided != Decision::Pending {
                        break;
                    }
                }
                if decided == Decision::Pending {
                    decided = wait(&mut tally);
                }
                let outdated = Decision::Done(Registration::Outdated { registered: 9 });
                let case = format!("{fates:?} in order {order:?}");
                match (count(Fate::KnowsBetter), count(Fate::Votes)) {
                    (0, votes) if votes >= quorum => {
                        assert_eq!(decided, Decision::Done(Registration::Registered), "{case}");
                    }
                    (0, _) => assert!(
                        matches!(decided, Decision::Pending | Decision::Impossible),
                        "{case}"
                    ),
                    // So many refused first that no quorum was to be expected.
                    (_, _) if decided == Decision::Impossible => {
                        assert!(n - count(Fate::Refuses) < quorum, "{case}");
                    }
                    _ => assert_eq!(decided, outdated, "{case}"),
                }
            }
        }
    }
}

/// The clock of a process jumps, or the process stood still: one timer is due at once, not all of the patience.
#[test]
fn one_tick_is_not_the_patience() {
    let mut tally = admission(3);
    assert_eq!(add(&mut tally, 0, Fate::Votes), Decision::Pending);
    assert_eq!(
        tally.patience(),
        None,
        "without a quorum nothing is hoped for"
    );
    assert_eq!(add(&mut tally, 1, Fate::Votes), Decision::Pending);
    for _ in 1..PATIENCE_TICKS {
        assert_eq!(tally.tick(), Decision::Pending);
    }
    assert_eq!(
        outcome(tally.tick()),
        Decision::Done(Registration::Registered)
    );
}
