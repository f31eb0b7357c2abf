//! Each guard alone keeps an intent from being carried out that nothing else holds.

use super::*;
use crate::intent::State;
use crate::rule::evaluate;
use crate::testing::{ACTING, NOW_MS, cluster, cluster_of};

/// An intent that nothing holds, with its world.
struct Case {
    rules: Rules,
    records: Records,
    journal: Journal,
    intent: Intent,
}

impl Case {
    fn of(records: Records) -> Case {
        let rules = Rules::built_in();
        let mut intents = evaluate(&rules, &records, &Journal::default(), NOW_MS);
        let mut intent = intents.remove(0);
        intent.found = rules.guards.hysteresis;
        let mut journal = Journal::default();
        journal.put(intent.clone());
        let case = Case {
            rules,
            records,
            journal,
            intent,
        };
        assert_eq!(case.holds(), Vec::new());
        case
    }

    fn dead() -> Case {
        let mut records = cluster_of(7, &["s1", "s2", "s3"]);
        records.kill("s2", 1000);
        Case::of(records)
    }

    fn holds_of(&self, actor: Actor) -> Vec<Hold> {
        let (rules, records, journal) = (&self.rules, &self.records, &self.journal);
        let world = World {
            rules,
            records,
            journal,
            now_ms: NOW_MS,
        };
        world.holds(&self.intent, actor)
    }

    fn holds(&self) -> Vec<Hold> {
        self.holds_of(ACTING)
    }

    fn begin(&mut self) {
        let running = State::Running {
            step: "d".into(),
            done: 0,
            total: 2,
        };
        self.intent.advance(running, NOW_MS).unwrap();
    }
}

/// Another intent of this cluster, begun so many seconds ago.
fn other(case: &Case, number: u64, seconds: u64) -> Intent {
    let mut intent = case.intent.clone();
    intent.number = number;
    let change = intent.change.as_mut().unwrap();
    change.domains.retain(|it| it.domain == "d");
    change.domains[0].domain = "other".into();
    let running = State::Running {
        step: "other".into(),
        done: 0,
        total: 1,
    };
    intent.advance(running, NOW_MS - seconds * 1000).unwrap();
    intent
}

#[test]
fn only_the_instance_with_the_lease_acts() {
    let mut case = Case::dead();
    let without = Actor {
        holds_lease: false,
        ..ACTING
    };
    assert_eq!(case.holds_of(without), [Hold::Lease]);
    case.begin();
    assert_eq!(
        case.holds_of(without),
        [Hold::Lease],
        "also of what was begun"
    );
}

#[test]
fn nothing_is_done_while_paused() {
    let mut case = Case::dead();
    case.journal.paused = true;
    assert_eq!(case.holds(), [Hold::Paused]);
    case.begin();
    assert_eq!(case.holds(), [Hold::Paused], "also of what was begun");
}

#[test]
fn more_than_a_third_of_the_servers_are_the_network() {
    let mut case = Case::dead();
    case.records.kill("s6", 1);
    assert_eq!(case.holds(), Vec::new());
    case.records.edit("s7").serving_since_ms = None;
    assert_eq!(case.holds(), [Hold::Network]);
}

#[test]
fn servers_that_were_replaced_are_no_broken_network() {
    let mut records = cluster_of(9, &["s1", "s2", "s3"]);
    records.kill("s2", 1000);
    for out in ["s6", "s7", "s8", "s9"] {
        records.kill(out, 100_000);
        records.edit(out).leaving = true;
    }
    // Four of the others see that s2 is gone; four are gone themselves.
    let mut case = Case::of(records);
    // Without the mark they are servers that look bad.
    for out in ["s6", "s7", "s8"] {
        case.records.edit(out).leaving = false;
    }
    assert!(case.holds().contains(&Hold::Network));
}

#[test]
fn an_instance_that_has_just_begun_changes_nothing_but_finishes() {
    let mut case = Case::dead();
    case.records.observed_ms = 599_999;
    assert_eq!(case.holds(), [Hold::Young { seconds: 600 }]);
    case.begin();
    assert_eq!(case.holds(), Vec::new());
}

#[test]
fn an_operator_approves_what_no_rule_does_by_itself() {
    let mut case = Case::dead();
    let number = case.intent.number;
    let advise = Actor {
        level: Level::Advise,
        ..ACTING
    };
    assert_eq!(case.holds_of(advise), [Hold::Approval { number }]);
    case.intent.approved = true;
    assert_eq!(case.holds_of(advise), Vec::new());
    let observe = Actor {
        level: Level::Observe,
        ..ACTING
    };
    assert_eq!(case.holds_of(observe), [Hold::Approval { number }]);
    case.intent.approved = false;
    case.rules.dead.act = false;
    assert_eq!(case.holds(), [Hold::Approval { number }]);
    case.intent.change = None;
    assert_eq!(
        case.holds(),
        [Hold::Approval { number }],
        "advice is never carried out"
    );
}

#[test]
fn a_reason_is_found_twice() {
    let mut case = Case::dead();
    case.intent.found = 1;
    assert_eq!(case.holds(), [Hold::Hysteresis { evaluations: 2 }]);
}

#[test]
fn an_operators_change_goes_first() {
    let mut case = Case::dead();
    case.records.domain_mut("d").is_pending = true;
    assert_eq!(case.holds(), [Hold::Operator { domain: "d".into() }]);
    case.records.domain_mut("d").is_pending = false;
    case.records.edit("s2").leaving = true;
    assert_eq!(
        case.holds(),
        [Hold::Leaving {
            server: "s2".into()
        }]
    );
    case.records.edit("s2").leaving = false;
    // A change of a domain with neither of the servers is none of its business.
    let mut elsewhere = case.records.domain("d").unwrap().clone();
    (elsewhere.name, elsewhere.members, elsewhere.is_pending) =
        ("e".into(), vec!["s5".into()], true);
    case.records.domains.push(elsewhere);
    assert_eq!(case.holds(), Vec::new());
}

#[test]
fn one_change_for_each_domain() {
    let mut case = Case::dead();
    case.rules.guards.between_changes_seconds = 0;
    let mut busy = other(&case, 9, 100);
    case.journal.put(busy.clone());
    assert_eq!(case.holds(), Vec::new(), "it changes another domain");
    busy.change.as_mut().unwrap().domains[0].domain = "d".into();
    case.journal.put(busy);
    assert_eq!(
        case.holds(),
        [Hold::Busy {
            domain: "d".into(),
            number: 9
        }]
    );
}

#[test]
fn one_change_of_the_cluster_in_half_an_hour() {
    let mut case = Case::dead();
    case.journal.put(other(&case, 9, 1799));
    assert_eq!(case.holds(), [Hold::Soon { seconds: 1800 }]);
    case.journal.put(other(&case, 9, 1800));
    assert_eq!(case.holds(), Vec::new());
}

#[test]
fn slow_servers_are_replaced_one_in_half_an_hour() {
    let mut records = cluster();
    records.edit("s2").slow_sync_windows = 6;
    let mut case = Case::of(records);
    case.rules.guards.between_changes_seconds = 0;
    case.journal.put(other(&case, 9, 1799));
    assert_eq!(case.holds(), [Hold::Again { seconds: 1800 }]);
    case.journal.put(other(&case, 9, 1800));
    assert_eq!(case.holds(), Vec::new());
}

#[test]
fn no_domain_tolerates_fewer_crashes_by_our_own_doing() {
    let mut case = Case::dead();
    case.records.domain_mut("d").k = 2;
    assert_eq!(
        case.holds(),
        [Hold::Lowers { domain: "d".into() }],
        "f is 0"
    );
    let mut records = cluster_of(5, &["s1", "s2", "s3", "s4", "s5"]);
    records.domain_mut("d").members.truncate(3);
    records.edit("s2").to_empty = true;
    let choice = Choice {
        rules: &Rules::built_in(),
        records: &records,
        now_ms: NOW_MS,
        rule: RuleName::Class,
    };
    let planned = choice.replacement("s2", None, &std::collections::BTreeSet::new());
    let refused = planned.unwrap_err();
    assert!(
        refused.contains("'@root' would survive 1 crashes"),
        "{refused}"
    );
}

#[test]
fn a_server_in_maintenance_stays() {
    let mut case = Case::dead();
    case.records.edit("s2").maintenance = Some("noon".into());
    let [hold] = &case.holds()[..] else {
        unreachable!()
    };
    assert_eq!(
        hold.to_string(),
        "s2 is in maintenance until noon: `areo server maintain s2 --end` ends that"
    );
    case.begin();
    assert_eq!(case.holds(), Vec::new(), "what was begun is finished");
}

#[test]
fn servers_in_maintenance_are_no_sign_of_a_broken_network() {
    let mut case = Case::dead();
    for server in ["s6", "s7"] {
        case.records.kill(server, 1000);
    }
    assert_eq!(case.holds(), [Hold::Network]);
    case.records.edit("s6").maintenance = Some("noon".into());
    assert_eq!(case.holds(), Vec::new());
}

#[test]
fn the_spare_still_fits_when_it_is_about_to_come() {
    let mut case = Case::dead();
    let spare = case.intent.change.as_ref().unwrap().with.clone();
    case.records.edit(&spare).used_bytes = 90 << 30;
    let [Hold::Unfit { why }] = &case.holds()[..] else {
        unreachable!()
    };
    assert_eq!(why, "s4 would be too full");
}

#[test]
fn changes_in_the_background_have_a_budget() {
    let mut records = cluster();
    records.edit("s2").to_empty = true;
    let mut case = Case::of(records);
    case.rules.guards.between_changes_seconds = 0;
    case.rules.guards.background_bytes_per_day = 2 << 30;
    assert_eq!(case.holds(), Vec::new());
    case.journal.put(other(&case, 9, 3600));
    assert_eq!(case.holds(), [Hold::Budget]);
    case.journal.put(other(&case, 9, 25 * 3600));
    assert_eq!(case.holds(), Vec::new());
}
