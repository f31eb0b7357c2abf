//! One evaluation: each row of the table of rules.

mod over_time;

use super::*;
use crate::intent::{Sides, State};
use crate::records::{Observer, Smart, View};
use crate::rules::RuleName;
use crate::testing::{ACTING, NOW_MS, cluster, cluster_of};

fn found(records: &Records) -> Vec<Intent> {
    evaluate(&Rules::built_in(), records, &Journal::default(), NOW_MS)
}

/// The one intent of this evaluation.
#[track_caller]
fn one(records: &Records) -> Intent {
    let mut intents = found(records);
    assert_eq!(intents.len(), 1, "{intents:#?}");
    intents.remove(0)
}

#[track_caller]
fn assert_none(records: &Records) {
    assert_eq!(found(records), Vec::new());
}

/// The one intent is advice by this rule about this subject, and its remedy contains this.
#[track_caller]
fn assert_advice(records: &Records, rule: RuleName, subject: &str, remedy: &str) {
    let intent = one(records);
    assert_eq!((intent.rule(), intent.subject.as_str()), (rule, subject));
    assert_eq!(intent.change, None);
    assert!(intent.remedy.contains(remedy), "{}", intent.remedy);
}

/// The one intent is a change by this rule.
#[track_caller]
fn assert_change(records: &Records, rule: RuleName, expected: &str) -> Change {
    let intent = one(records);
    assert_eq!(intent.rule(), rule, "{intent:?}");
    let change = intent.change.expect("it is a change");
    assert_eq!(change.to_string(), expected);
    change
}

#[test]
fn a_whole_cluster_gives_no_intent() {
    assert_none(&cluster());
}

#[test]
fn dead_a_server_that_the_others_do_not_reach_for_15_minutes_is_replaced() {
    let mut records = cluster();
    records.kill("s2", 899);
    assert_none(&records);
    records.kill("s2", 900);
    let change = assert_change(&records, RuleName::Dead, "replace s2 by s4");
    let domains: Vec<&str> = change.domains.iter().map(|it| it.domain.as_str()).collect();
    assert_eq!(domains, ["@root", "d"]);
    assert_eq!(
        change.domains[1].f,
        Sides {
            before: 1,
            after: 1
        }
    );
    assert_eq!(
        change.domains[1].survivable,
        Sides {
            before: 0,
            after: 1
        }
    );
    assert_eq!((change.objects, change.bytes), (20, 2 << 30));
    let reason = &one(&records).reasons[0];
    assert_eq!(
        reason.sentence,
        "3 of 3 other servers have not reached s2 for 900 s"
    );
    assert_eq!(reason.evidence.len(), 3);
}

/// Two of three others are a majority, one of three and the instance itself are none.
#[test]
fn dead_counts_the_other_servers_and_not_the_observer() {
    let mut records = cluster();
    records.views.push(View {
        observer: Observer::Instance,
        server: "s2".into(),
        unreachable_since_ms: Some(0),
        suspicion: Some(20.0),
        slow_windows: 0,
        sampled_ms: NOW_MS,
    });
    records.cut(&["s1"], "s2", 1000);
    assert!(found(&records).iter().all(|it| it.rule() != RuleName::Dead));
    records.cut(&["s3"], "s2", 1000);
    assert_change(&records, RuleName::Dead, "replace s2 by s4");
}

#[test]
fn dead_needs_views_that_are_fresh_and_silence_that_is_no_chance() {
    let mut records = cluster();
    records.kill("s2", 1000);
    for observer in ["s1", "s3"] {
        records.view_mut(observer, "s2").sampled_ms = NOW_MS - 61_000;
    }
    assert_none(&records);
    records.kill("s2", 1000);
    for observer in ["s1", "s3"] {
        let view = records.view_mut(observer, "s2");
        (view.suspicion, view.sampled_ms) = (Some(3.0), NOW_MS);
    }
    assert_none(&records);
    records.view_mut("s1", "s2").suspicion = None;
    assert_change(&records, RuleName::Dead, "replace s2 by s4");
}

#[test]
fn dead_a_spare_fits_if_it_is_stable_and_free_and_has_room() {
    let mut records = cluster_of(6, &["s1", "s2", "s3"]);
    records.kill("s2", 1000);
    records.edit("s4").serving_since_ms = Some(NOW_MS - 599_000);
    records.edit("s5").used_bytes = 79 << 30;
    records.domain_mut("d").member_bytes = 12 << 30;
    assert_change(&records, RuleName::Dead, "replace s2 by s6");
    for spoil in [
        |it: &mut Records| it.edit("s6").leaving = true,
        |it: &mut Records| it.edit("s6").io_errors = 1,
        |it: &mut Records| it.edit("s6").is_full = true,
        |it: &mut Records| it.edit("s6").serving_since_ms = None,
        |it: &mut Records| it.domain_mut("d").members.push("s6".into()),
    ] {
        let mut records = records.clone();
        spoil(&mut records);
        let intents = found(&records);
        let dead = intents
            .iter()
            .find(|it| it.rule() == RuleName::Dead)
            .unwrap();
        assert_eq!(dead.change, None, "{dead:?}");
        assert!(
            dead.remedy.contains("areo server --join"),
            "{}",
            dead.remedy
        );
    }
    records.edit("s4").serving_since_ms = Some(NOW_MS - 600_000);
    assert_change(&records, RuleName::Dead, "replace s2 by s4");
}

#[test]
fn dead_a_spare_stands_in_a_zone_with_room() {
    let mut records = cluster_of(5, &["s1", "s2", "s3"]);
    for (server, zone) in [
        ("s1", "a"),
        ("s2", "b"),
        ("s3", "c"),
        ("s4", "a"),
        ("s5", "b"),
    ] {
        records.edit(server).zone = Some(zone.into());
    }
    records.kill("s2", 1000);
    assert_change(&records, RuleName::Dead, "replace s2 by s5");
}

#[test]
fn dead_a_server_of_no_domain_is_told_of() {
    let mut records = cluster();
    records.kill("s4", 1000);
    assert_advice(&records, RuleName::Dead, "s4", "areo server forget s4");
}

/// The root domain has taken every server already: it goes from five members to three.
#[test]
fn dead_the_root_domain_goes_on_with_fewer_members() {
    let mut records = cluster_of(5, &["s1", "s2", "s3", "s4", "s5"]);
    records.domain_mut("d").members = ["s1", "s2", "s3"].map(str::to_owned).to_vec();
    records.kill("s2", 1000);
    let change = assert_change(&records, RuleName::Dead, "replace s2 by s4");
    assert_eq!(
        change.domains[0].f,
        Sides {
            before: 2,
            after: 1
        }
    );
    assert_eq!(
        change.domains[0].survivable,
        Sides {
            before: 1,
            after: 1
        }
    );
}

#[test]
fn a_change_that_takes_f_to_0_is_advice() {
    let mut records = cluster_of(3, &["s1", "s2"]);
    records.domains.remove(0);
    records.kill("s2", 1000);
    assert_advice(&records, RuleName::Dead, "s2", "tolerates 0");
}

#[test]
fn slow_two_peers_and_six_windows_are_advice_while_a_quorum_hides_it() {
    let mut records = cluster_of(6, &["s1", "s2", "s3", "s4", "s5"]);
    records.view_mut("s1", "s2").slow_windows = 6;
    assert_none(&records);
    records.view_mut("s3", "s2").slow_windows = 5;
    assert_none(&records);
    records.view_mut("s3", "s2").slow_windows = 6;
    assert_advice(&records, RuleName::Slow, "s2", "areo server drain s2");
    // With a server that is dead the change of that one comes first.
    records.kill("s5", 1000);
    records.domains.remove(0);
    let intents = found(&records);
    assert!(
        intents
            .iter()
            .all(|it| it.change.is_none() || it.rule() == RuleName::Dead)
    );
    records.edit("s5").serving_since_ms = Some(NOW_MS - 3_600_000);
    records.edit("s3").slow_sync_windows = 6;
    let mut records = records.clone();
    for view in records.views.iter_mut().filter(|it| it.server == "s5") {
        view.unreachable_since_ms = None;
    }
    assert_change_of(&records, "s2", "replace s2 by s6");
}

#[track_caller]
fn assert_change_of(records: &Records, subject: &str, expected: &str) {
    let intents = found(records);
    let intent = intents.iter().find(|it| it.subject == subject).unwrap();
    assert_eq!(
        intent.change.as_ref().map(ToString::to_string).as_deref(),
        Some(expected)
    );
}

#[test]
fn slow_a_sync_that_is_slow_counts_alone() {
    let mut records = cluster();
    records.edit("s2").slow_sync_windows = 6;
    assert_change(&records, RuleName::Slow, "replace s2 by s4");
}

#[test]
fn slow_links_that_are_bad_at_both_ends_are_left_out() {
    let mut records = cluster_of(5, &["s1", "s2", "s3"]);
    for (observer, server) in [("s1", "s2"), ("s3", "s2"), ("s2", "s1")] {
        records.view_mut(observer, server).slow_windows = 6;
    }
    assert_none(&records);
}

#[test]
fn link_one_pair_replaces_nothing() {
    let mut records = cluster();
    records.cut(&["s1"], "s2", 59);
    records.cut(&["s2"], "s1", 59);
    assert_none(&records);
    records.cut(&["s1"], "s2", 1000);
    records.cut(&["s2"], "s1", 1000);
    assert_advice(
        &records,
        RuleName::Link,
        "s1-s2",
        "network between s1 and s2",
    );
}

#[test]
fn stall_a_sync_of_20_seconds_is_told_of() {
    let mut records = cluster();
    records.edit("s2").sync_running_ms = 19_999;
    assert_none(&records);
    records.edit("s2").sync_running_ms = 20_000;
    assert_advice(&records, RuleName::Stall, "s2", "start s2 again");
}

#[test]
fn disk_an_error_moves_a_server_out_and_the_rest_is_advice() {
    let mut records = cluster();
    records.edit("s2").io_errors = 1;
    assert_change(&records, RuleName::Disk, "replace s2 by s4");
    let smart = |rises, is_critical, wear_percent| {
        Some(Smart {
            rises,
            is_critical,
            wear_percent,
        })
    };
    for (corrupted, report, is_at_risk) in [
        (2, smart(1, false, 89), false),
        (3, None, true),
        (0, smart(2, false, 0), true),
        (0, smart(0, true, 0), true),
        (0, smart(0, false, 90), true),
    ] {
        let mut records = cluster();
        let server = records.edit("s2");
        (server.corrupted, server.smart) = (corrupted, report);
        match is_at_risk {
            true => assert_advice(&records, RuleName::Disk, "s2", "areo server drain s2"),
            false => assert_none(&records),
        }
    }
}

/// A prediction alone never moves a server out, at no level.
#[test]
fn disk_a_predicted_loss_is_advice_and_off_by_default() {
    let mut records = cluster();
    let server = records.edit("s2");
    (server.corrupted, server.restarts, server.slow_sync_windows) = (2, 8, 5);
    assert_none(&records);
    let on = "[prediction]\non = true\nprobability = 0.1\n";
    let mut rules = Rules::overridden(on).unwrap();
    let found =
        |rules: &Rules, records: &Records| evaluate(rules, records, &Journal::default(), NOW_MS);
    let intents = found(&rules, &records);
    assert_eq!(intents.len(), 1, "{intents:?}");
    assert_eq!(
        (intents[0].rule(), &intents[0].change),
        (RuleName::Disk, &None)
    );
    assert_eq!(intents[0].reasons[0].evidence[0].signal, "prediction");
    assert_eq!(found(&rules, &cluster()), Vec::new());
    rules.prediction.probability = 1.0;
    assert_eq!(found(&rules, &records), Vec::new());
}

#[test]
fn filling_names_the_bytes_that_are_to_go() {
    let mut records = cluster();
    records.edit("s2").used_bytes = (80 << 30) - 1;
    assert_none(&records);
    records.edit("s2").used_bytes = (80 << 30) + 7;
    assert_advice(
        &records,
        RuleName::Filling,
        "s2",
        "7 bytes are to go from s2",
    );
    records.edit("s2").used_bytes = 70 << 30;
    records.edit("s2").growth_bytes_per_hour = f64::from(1 << 30);
    assert_none(&records);
    records.edit("s2").growth_bytes_per_hour = 1.3 * f64::from(1 << 30);
    assert_advice(&records, RuleName::Filling, "s2", "areo server --join");
}

/// Its part of the disk may be smaller than the disk, and the size of the disk may not be known.
#[test]
fn filling_a_server_that_refuses_writes_is_full_whatever_its_disk_says() {
    for capacity_bytes in [0, 100 << 30] {
        let mut records = cluster();
        records.edit("s2").capacity_bytes = capacity_bytes;
        records.edit("s2").growth_bytes_per_hour = 1e12;
        if capacity_bytes == 0 {
            assert_none(&records);
        }
        records.edit("s2").is_full = true;
        assert_advice(&records, RuleName::Filling, "s2", "areo server --join");
        assert_eq!(
            one(&records).reasons[0].sentence,
            "s2 is full: it refuses writes"
        );
    }
}

#[test]
fn redundancy_below_for_an_hour_although_all_answer() {
    let mut records = cluster();
    let domain = records.domain_mut("d");
    (domain.below, domain.below_since_ms) = (3, Some(NOW_MS - 3_599_000));
    assert_none(&records);
    records.domain_mut("d").below_since_ms = Some(NOW_MS - 3_600_000);
    assert_advice(
        &records,
        RuleName::Redundancy,
        "d",
        "areo repair ls --domain d",
    );
    records.edit("s1").serving_since_ms = None;
    assert_none(&records);
}

#[test]
fn class_a_labelled_server_is_emptied_in_the_background() {
    let mut records = cluster();
    records.edit("s2").to_empty = true;
    assert_change(&records, RuleName::Class, "replace s2 by s4");
    assert!(RuleName::Class.is_background() && !RuleName::Dead.is_background());
    records.edit("s2").to_empty = false;
    records.edit("s4").to_empty = true;
    assert_none(&records);
}

#[test]
fn class_rules_may_name_classes_that_are_to_be_emptied() {
    let rules = Rules::overridden("[class]\nempty = [\"tape\", \"hdd\"]").unwrap();
    let found = |records: &Records| evaluate(&rules, records, &Journal::default(), NOW_MS);
    let mut records = cluster_of(5, &["s1", "s2", "s3"]);
    records.edit("s2").class = Some("hdd".into());
    records.edit("s3").class = Some("ssd".into());
    let [intent] = &found(&records)[..] else {
        panic!("one server is of such a class")
    };
    assert_eq!(
        intent.reasons[0].sentence,
        "s2 is of class hdd, which is to be emptied"
    );
    assert_eq!(
        intent.change.as_ref().unwrap().to_string(),
        "replace s2 by s4"
    );
    records.edit("s4").class = Some("tape".into());
    let [intent] = &found(&records)[..] else {
        panic!("the spare is in no domain")
    };
    assert_eq!(
        intent.change.as_ref().unwrap().to_string(),
        "replace s2 by s5"
    );
    assert_none(&records);
}

#[test]
fn dead_a_spare_in_maintenance_does_not_come() {
    let mut records = cluster_of(5, &["s1", "s2", "s3"]);
    records.kill("s2", 1000);
    assert_change(&records, RuleName::Dead, "replace s2 by s4");
    records.edit("s4").maintenance = Some("noon".into());
    assert_change(&records, RuleName::Dead, "replace s2 by s5");
}

/// The spare that stands beside the fewest members comes.
#[test]
fn zone_a_spare_comes_from_the_emptiest_zone() {
    let mut records = cluster_of(7, &["s1", "s2", "s3", "s4", "s5"]);
    for (server, zone) in [("s1", "a"), ("s2", "b"), ("s6", "a"), ("s7", "d")] {
        records.edit(server).zone = Some(zone.into());
    }
    records.kill("s2", 1000);
    assert_change(&records, RuleName::Dead, "replace s2 by s7");
}

#[test]
fn zone_more_than_f_members_move_apart() {
    let mut records = cluster();
    for (server, zone) in [("s1", "a"), ("s2", "b"), ("s3", "c"), ("s4", "d")] {
        records.edit(server).zone = Some(zone.into());
    }
    assert_none(&records);
    records.edit("s3").zone = Some("a".into());
    assert_change(&records, RuleName::Zone, "replace s3 by s4");
    // The zone would have as many members as before, of which each may be dead.
    records.edit("s4").zone = Some("a".into());
    assert_advice(&records, RuleName::Zone, "s3", "no spare fits");
    records.kill("s3", 1000);
    let dead = found(&records).remove(0);
    assert_eq!(dead.change.unwrap().to_string(), "replace s3 by s4");
}

#[test]
fn grow_a_large_domain_of_copies_may_become_fragments() {
    let mut records = cluster_of(5, &["s1", "s2", "s3"]);
    records.domain_mut("d").member_bytes = (100 << 30) - 1;
    assert_none(&records);
    records.domain_mut("d").member_bytes = 100 << 30;
    assert_advice(
        &records,
        RuleName::Grow,
        "d",
        "areo reconfig plan d --dap ec",
    );
    let mut coded = records.clone();
    coded.domain_mut("d").is_replicated = false;
    assert_none(&coded);
    records.servers.pop();
    assert_none(&records);
}

#[test]
fn unbalanced_only_after_servers_came_and_while_all_is_whole() {
    let mut records = cluster();
    records.edit("s2").stored_bytes = 13 << 30;
    assert_none(&records);
    records.servers_changed = true;
    assert_advice(&records, RuleName::Unbalanced, "s2", "moves a domain");
    records.domain_mut("d").below = 1;
    assert_none(&records);
    records.domain_mut("d").below = 0;
    records.edit("s2").stored_bytes = 11 << 30;
    assert_none(&records);
}

/// Others may use the disk as well, and what is nothing beside nothing is no load.
#[test]
fn unbalanced_compares_the_stores_and_their_difference_has_a_least_size() {
    let mut records = cluster();
    records.servers_changed = true;
    records.edit("s2").used_bytes = 79 << 30;
    assert_none(&records);
    for server in ["s1", "s2", "s3", "s4"] {
        records.edit(server).stored_bytes = 0;
    }
    records.edit("s2").stored_bytes = (1 << 30) * 4 / 3;
    assert_none(&records);
    records.edit("s2").stored_bytes += 1;
    assert_advice(&records, RuleName::Unbalanced, "s2", "moves a domain");
}

#[test]
fn several_reasons_become_one_change() {
    let mut records = cluster();
    records.kill("s2", 1000);
    records.edit("s2").io_errors = 2;
    records.edit("s2").to_empty = true;
    let intent = one(&records);
    let rules: Vec<RuleName> = intent.reasons.iter().map(|it| it.rule).collect();
    assert_eq!(rules, [RuleName::Dead, RuleName::Disk, RuleName::Class]);
}

#[test]
fn one_change_for_each_domain_the_greatest_risk_first() {
    let mut records = cluster_of(8, &["s1", "s2", "s3", "s4", "s5"]);
    records.edit("s1").to_empty = true;
    records.kill("s2", 1000);
    records.kill("s3", 1000);
    assert_change(&records, RuleName::Dead, "replace s2 by s6");
}
