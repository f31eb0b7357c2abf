//! Evaluations one after the other, with the journal that they leave: what is confirmed, superseded, declined, begun and gone on with.

use super::*;

/// Evaluates again and again, and writes what is decided.
struct Steward {
    rules: Rules,
    records: Records,
    journal: Journal,
    now_ms: u64,
}

impl Steward {
    fn of(records: Records) -> Steward {
        Steward {
            rules: Rules::built_in(),
            records,
            journal: Journal::default(),
            now_ms: NOW_MS,
        }
    }

    fn decide(&mut self) -> Option<u64> {
        let decision = decide(
            &self.rules,
            &self.records,
            &self.journal,
            ACTING,
            self.now_ms,
        );
        for intent in decision.writes {
            self.journal.put(intent);
        }
        decision.act
    }

    fn decline(&mut self, number: u64) {
        let mut intent = self.intent(number).clone();
        intent.decline(self.now_ms).unwrap();
        self.journal.put(intent);
    }

    /// The journal stays as it is.
    #[track_caller]
    fn assert_no_news(&mut self) {
        let before = self.journal.clone();
        assert_eq!(self.decide(), None);
        assert_eq!(self.journal, before);
    }

    fn intent(&self, number: u64) -> &Intent {
        self.journal
            .intents
            .iter()
            .find(|it| it.number == number)
            .unwrap()
    }
}

#[test]
fn a_change_is_begun_at_the_second_evaluation_that_finds_its_reason() {
    let mut records = cluster();
    records.kill("s2", 1000);
    let mut steward = Steward::of(records);
    assert_eq!(steward.decide(), None);
    let State::Waiting { waits_for } = &steward.intent(1).state else {
        unreachable!()
    };
    assert_eq!(
        waits_for,
        &["its reason was not found in 2 evaluations one after the other"]
    );
    assert_eq!(steward.decide(), Some(1));
    // Nothing is left to write.
    let before = steward.journal.clone();
    assert_eq!(steward.decide(), Some(1));
    assert_eq!(steward.journal, before);
}

#[test]
fn a_declined_change_is_not_proposed_again_while_its_reason_lasts() {
    let mut records = cluster_of(5, &["s1", "s2", "s3"]);
    records.kill("s2", 1000);
    let mut steward = Steward::of(records.clone());
    assert_eq!(steward.decide(), None);
    steward.decline(1);
    steward.assert_no_news();
    // Neither with another spare, nor without one.
    for spare in ["s4", "s5"] {
        steward.records.edit(spare).leaving = true;
        steward.assert_no_news();
    }
    // Another instance has not seen for long that the server is gone.
    for (gone, observed_ms) in [(0, 0), (601, 601_000)] {
        steward.records = cluster();
        steward.records.kill("s2", gone);
        steward.records.observed_ms = observed_ms;
        steward.assert_no_news();
    }
    // An instance without a network sees no server.
    steward.records = cluster();
    steward.records.views.clear();
    for server in &mut steward.records.servers {
        server.serving_since_ms = None;
    }
    steward.assert_no_news();
    // Once it was there, its next end is another reason.
    steward.records = cluster();
    steward.decide();
    assert_eq!(steward.intent(1).state, State::Declined, "it may flap");
    steward.decide();
    let by = "its reason is gone".into();
    assert_eq!(steward.intent(1).state, State::Superseded { by });
    steward.records = records;
    steward.decide();
    assert_eq!(steward.decide(), Some(2));
}

#[test]
fn a_declined_change_is_proposed_for_another_reason() {
    let mut records = cluster();
    records.edit("s2").io_errors = 1;
    let mut steward = Steward::of(records);
    steward.decide();
    assert_eq!(steward.intent(1).rule(), RuleName::Disk);
    steward.decline(1);
    steward.records.kill("s2", 1000);
    steward.decide();
    assert_eq!(steward.decide(), Some(2));
    let reasons: Vec<RuleName> = steward.intent(2).reasons.iter().map(|it| it.rule).collect();
    assert_eq!(reasons, [RuleName::Dead]);
}

/// Advice for want of a spare, and a change once there is one.
#[test]
fn declined_advice_holds_back_no_change() {
    let mut records = cluster();
    records.kill("s2", 1000);
    records.edit("s4").leaving = true;
    let mut steward = Steward::of(records);
    steward.decide();
    assert_eq!(steward.intent(1).change, None);
    steward.decline(1);
    steward.assert_no_news();
    steward.records.edit("s4").leaving = false;
    steward.decide();
    assert_eq!(steward.decide(), Some(2));
}

#[test]
fn a_reason_that_is_gone_twice_supersedes_its_intent() {
    let mut records = cluster();
    records.kill("s2", 1000);
    let mut steward = Steward::of(records);
    steward.decide();
    steward.records = cluster();
    assert_eq!(steward.decide(), None);
    assert!(!steward.intent(1).state.is_final(), "it may flap");
    assert_eq!(steward.decide(), None);
    assert_eq!(
        steward.intent(1).state,
        State::Superseded {
            by: "its reason is gone".into()
        }
    );
}

/// The intent stays, and nothing is done by it: neither while the next instance is young, nor before it has seen for long enough that a server is gone.
#[test]
fn an_open_intent_stays_when_another_instance_takes_over() {
    let mut records = cluster();
    records.kill("s2", 1000);
    let mut steward = Steward::of(records.clone());
    assert_eq!([steward.decide(), steward.decide()], [None, Some(1)]);
    let mut looked = |gone, observed_ms| {
        steward.records = cluster();
        steward.records.kill("s2", gone);
        steward.records.observed_ms = observed_ms;
        let acts = [steward.decide(), steward.decide(), steward.decide()];
        assert_eq!(acts, [None; 3]);
        assert!(!steward.intent(1).state.is_final(), "{gone} s");
    };
    looked(0, 0);
    looked(601, 601_000);
    steward.records = records;
    assert_eq!([steward.decide(), steward.decide()], [None, Some(1)]);
    assert_eq!(steward.journal.intents.len(), 1);
}

/// An error of a disk counts for a day: an instance that has watched for an hour cannot tell that there was none.
#[test]
fn a_reason_of_the_last_day_is_not_gone_before_a_day_was_watched() {
    let mut records = cluster();
    records.edit("s2").io_errors = 1;
    let mut steward = Steward::of(records);
    steward.decide();
    steward.records = cluster();
    assert_eq!([steward.decide(), steward.decide()], [None; 2]);
    assert!(!steward.intent(1).state.is_final());
    steward.records.observed_ms = 24 * 3_600_000;
    assert_eq!([steward.decide(), steward.decide()], [None; 2]);
    let by = "its reason is gone".into();
    assert_eq!(steward.intent(1).state, State::Superseded { by });
}

#[test]
fn an_intent_of_which_nothing_is_known_holds_no_domain_and_no_spare() {
    let mut records = cluster();
    records.edit("s2").io_errors = 1;
    let mut steward = Steward::of(records);
    steward.decide();
    steward.records = cluster();
    steward.records.kill("s3", 1000);
    let acts = [steward.decide(), steward.decide(), steward.decide()];
    assert_eq!(acts, [None, None, Some(3)]);
    let change = steward.intent(3).change.as_ref().unwrap();
    assert_eq!(change.to_string(), "replace s3 by s4");
    assert!(!steward.intent(1).state.is_final());
    // Its reason is found again: the other change goes first, and this one is proposed anew.
    steward.records.edit("s2").io_errors = 1;
    assert_eq!([steward.decide(), steward.decide()], [Some(3); 2]);
    assert!(steward.intent(1).state.is_final());
}

#[test]
fn advice_becomes_a_change_when_a_spare_comes() {
    let mut records = cluster();
    records.kill("s2", 1000);
    let spare = records.servers.pop().unwrap();
    let mut steward = Steward::of(records);
    steward.decide();
    assert_eq!(steward.intent(1).change, None);
    steward.records.servers.push(spare);
    steward.decide();
    assert_eq!(steward.decide(), Some(2));
    assert_eq!(
        steward.intent(1).state,
        State::Superseded {
            by: "intent 2".into()
        }
    );
}

#[test]
fn another_spare_comes_when_the_first_one_dies() {
    let mut records = cluster_of(7, &["s1", "s2", "s3"]);
    records.kill("s2", 1000);
    let mut steward = Steward::of(records);
    steward.decide();
    assert_eq!(steward.intent(1).change.as_ref().unwrap().with, "s4");
    let mut approved = steward.intent(1).clone();
    approved.approved = true;
    steward.journal.put(approved);
    steward.records.domain_mut("d").member_bytes += 1;
    steward.decide();
    assert!(
        steward.intent(1).approved,
        "another cost is no other change"
    );
    steward.records.kill("s4", 5);
    steward.decide();
    assert_eq!(steward.intent(1).change.as_ref().unwrap().with, "s5");
    assert!(!steward.intent(1).approved, "s4 was approved, not s5");
}

#[test]
fn what_was_begun_is_gone_on_with_by_the_next_instance() {
    let mut records = cluster();
    records.kill("s2", 1000);
    let mut steward = Steward::of(records);
    steward.decide();
    steward.decide();
    let mut intent = steward.intent(1).clone();
    let running = State::Running {
        step: "d".into(),
        done: 1,
        total: 2,
    };
    intent.advance(running, NOW_MS).unwrap();
    steward.journal.put(intent.clone());
    // The server comes back, and this instance has just begun to watch: the change is half done and is finished.
    steward.records = cluster();
    steward.records.observed_ms = 0;
    assert_eq!(steward.decide(), Some(1));
    assert_eq!(steward.decide(), Some(1));
    let failed = intent.failed("d", "no quorum", &steward.rules.guards, NOW_MS);
    intent.advance(failed, NOW_MS).unwrap();
    steward.journal.put(intent.clone());
    assert_eq!(steward.decide(), None, "it pauses");
    steward.now_ms += 60_000;
    assert_eq!(steward.decide(), Some(1));
}

#[test]
fn a_spare_that_came_and_is_gone_is_replaced_itself() {
    let mut records = cluster_of(7, &["s1", "s2", "s3"]);
    records.kill("s2", 1000);
    let mut steward = Steward::of(records);
    steward.decide();
    let mut intent = steward.intent(1).clone();
    let running = State::Running {
        step: "d".into(),
        done: 2,
        total: 2,
    };
    intent.advance(running, NOW_MS).unwrap();
    let failed = intent.failed("d", "s4 is away", &steward.rules.guards, NOW_MS);
    intent.advance(failed, NOW_MS).unwrap();
    steward.journal.put(intent);
    // s4 is gone, but a domain has s2 still: another try finishes that.
    steward.records = cluster_of(7, &["s1", "s3", "s4"]);
    steward.records.domain_mut("d").members[2] = "s2".into();
    steward.records.edit("s2").leaving = true;
    steward.records.kill("s4", 1000);
    steward.decide();
    assert!(steward.intent(1).state.is_begun());
    steward.records.domain_mut("d").members[2] = "s4".into();
    // A broken network, or an operator, may be the reason that s4 is out of reach.
    steward.journal.paused = true;
    steward.decide();
    steward.journal.paused = false;
    for other in ["s6", "s7"] {
        steward.records.edit(other).serving_since_ms = None;
    }
    steward.decide();
    assert!(steward.intent(1).state.is_begun());
    for other in ["s6", "s7"] {
        steward.records.edit(other).serving_since_ms = Some(0);
    }
    steward.decide();
    assert_eq!(
        steward.intent(1).state,
        State::Superseded {
            by: "s4 came, and is gone itself".into()
        }
    );
    let change = steward.intent(2).change.clone().unwrap();
    assert_eq!(change.to_string(), "replace s4 by s5");
}

#[test]
fn who_has_no_lease_or_only_observes_writes_nothing() {
    let mut records = cluster();
    records.kill("s2", 1000);
    let (rules, journal) = (Rules::built_in(), Journal::default());
    for actor in [
        Actor {
            holds_lease: false,
            ..ACTING
        },
        Actor {
            level: Level::Observe,
            ..ACTING
        },
    ] {
        let decision = decide(&rules, &records, &journal, actor, NOW_MS);
        assert_eq!(decision, Decision::default());
    }
    assert_eq!(evaluate(&rules, &records, &journal, NOW_MS).len(), 1);
}
