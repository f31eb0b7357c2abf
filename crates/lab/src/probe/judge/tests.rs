use super::findings;
use crate::probe::operation::{Action, Condition, Ending, Operation, Reading, settle_deletions};

/// An operation from one time to another.
fn at(from: u64, to: u64, action: Action) -> Operation {
    Operation {
        client: 0,
        endpoint: 0,
        key: "k".to_owned(),
        action,
        invoked_ns: from,
        ended_ns: to,
        ending: Ending::Done,
        answer: "200".to_owned(),
    }
}

fn put(value: &str, condition: Condition) -> Action {
    Action::Put {
        value: value.to_owned(),
        condition,
        is_completion: false,
    }
}

fn on(base: &str) -> Condition {
    Condition::Match(base.to_owned())
}

fn read(by: Reading, observed: Option<&str>) -> Action {
    let observed = observed.map(str::to_owned);
    Action::Read { by, observed }
}

fn ended(mut operation: Operation, ending: Ending) -> Operation {
    operation.ending = ending;
    operation
}

/// The places of the only finding.
#[track_caller]
fn convicted(operations: &[Operation]) -> Vec<usize> {
    let found = findings(operations);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].places.clone()
}

/// A chain of compare-and-set with losers and reads, all of it legal.
fn legal() -> Vec<Operation> {
    let mut operations = vec![at(0, 1, put("a", Condition::Absent))];
    let mut base = "a".to_owned();
    for round in 1..8 {
        let now = round * 100;
        for writer in 0..4 {
            let one = at(
                now + writer,
                now + 50,
                put(&format!("{round}-{writer}"), on(&base)),
            );
            let lost = Ending::ConditionFailed;
            operations.push(if writer == 2 { one } else { ended(one, lost) });
        }
        base = format!("{round}-2");
        operations.push(at(now + 60, now + 61, read(Reading::Get, Some(&base))));
    }
    operations
}

#[test]
fn a_legal_history_is_not_convicted() {
    assert_eq!(findings(&legal()), []);
    let mut with_unknown = legal();
    let late = at(150, 150, put("late", on("1-2")));
    with_unknown.push(ended(late, Ending::Unknown));
    with_unknown.sort_by_key(|one| one.invoked_ns);
    assert_eq!(findings(&with_unknown), []);
}

#[test]
fn two_winners_are_shown_with_their_base() {
    let mut operations = legal();
    // The winner of round 4 is at place 18, that of round 5 at 23.
    operations[22].ending = Ending::Done;
    assert_eq!(convicted(&operations), [18, 22, 23]);
    let first = [
        at(0, 1, put("a", Condition::Absent)),
        at(2, 9, put("b", on("a"))),
        at(3, 9, put("c", on("a"))),
        at(10, 11, read(Reading::Get, Some("c"))),
    ];
    assert_eq!(convicted(&first), [0, 1, 2]);
    let created = [
        at(0, 5, put("a", Condition::Absent)),
        at(1, 6, put("b", Condition::Absent)),
        at(7, 8, read(Reading::Get, Some("b"))),
    ];
    assert_eq!(convicted(&created), [0, 1]);
}

#[test]
fn a_deletion_in_spite_of_its_condition_is_shown_by_three() {
    let delete = Action::Delete { condition: on("a") };
    let operations = [
        at(0, 1, put("a", Condition::None)),
        at(2, 3, put("b", Condition::None)),
        at(4, 5, read(Reading::Get, Some("b"))),
        at(6, 7, delete),
        at(8, 9, read(Reading::Get, None)),
    ];
    assert_eq!(convicted(&operations), [0, 1, 3]);
}

#[test]
fn a_late_listing_is_shown_by_two() {
    let operations = [
        at(0, 1, put("a", Condition::None)),
        at(2, 3, read(Reading::Get, Some("a"))),
        at(4, 5, read(Reading::List, None)),
        at(6, 7, read(Reading::List, Some("a"))),
    ];
    assert_eq!(convicted(&operations), [0, 2]);
}

#[test]
fn a_stale_read_and_a_write_applied_twice_are_shown() {
    let operations = [
        at(0, 1, put("a", Condition::Absent)),
        at(2, 3, put("b", on("a"))),
        at(4, 5, read(Reading::Get, Some("a"))),
    ];
    assert_eq!(convicted(&operations), [0, 1, 2]);
}

#[test]
fn a_refusal_without_a_reason_is_convicted() {
    let lost = |operation| ended(operation, Ending::ConditionFailed);
    let absent = [lost(at(0, 1, put("a", Condition::Absent)))];
    assert_eq!(convicted(&absent), [0]);
    let operations = [
        at(0, 1, put("a", Condition::Absent)),
        lost(at(2, 3, put("b", on("a")))),
    ];
    assert_eq!(convicted(&operations), [0, 1]);
    // Another write of the base that may have taken effect explains it.
    let unknown = ended(at(2, 2, put("c", on("a"))), Ending::Unknown);
    let operations = [operations[0].clone(), unknown, operations[1].clone()];
    assert_eq!(findings(&operations), []);
}

#[test]
fn an_unknown_write_that_is_seen_wins() {
    let unknown = ended(at(2, 2, put("b", on("a"))), Ending::Unknown);
    let operations = [
        at(0, 1, put("a", Condition::Absent)),
        unknown,
        at(3, 9, put("c", on("a"))),
        at(10, 11, read(Reading::Get, Some("b"))),
    ];
    assert_eq!(convicted(&operations), [0, 1, 2, 3]);
}

#[test]
fn what_concurrent_winners_leave_is_no_violation_without_their_base() {
    // Without the base nothing says which of the two came last.
    let operations = [
        at(0, 1, put("a", Condition::Absent)),
        at(2, 9, put("b", on("a"))),
        at(3, 9, put("c", on("a"))),
        at(10, 11, read(Reading::Get, Some("b"))),
        at(12, 13, put("d", on("b"))),
    ];
    assert_eq!(convicted(&operations), [0, 1, 2]);
}

#[test]
fn two_deletions_of_a_version_may_both_succeed_but_not_beside_a_write() {
    let delete = |from, to| at(from, to, Action::Delete { condition: on("a") });
    let mut operations = [
        at(0, 1, put("a", Condition::None)),
        delete(2, 9),
        delete(3, 8),
        at(10, 11, read(Reading::Get, None)),
    ];
    assert_eq!(findings(&operations).len(), 1, "before they are settled");
    settle_deletions(&mut operations);
    assert_eq!(findings(&operations), []);
    let mut operations = [
        at(0, 1, put("a", Condition::None)),
        delete(2, 9),
        delete(3, 8),
        at(4, 9, put("b", on("a"))),
    ];
    settle_deletions(&mut operations);
    assert_eq!(convicted(&operations), [0, 2, 3]);
}
