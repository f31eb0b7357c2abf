//! Exploring small cases: what it finds, what it must not miss, and scripts.

use areo_core::config::{Configuration, Dap};
use areo_core::gather::{self, Fold, Quorum, Visit};
use areo_core::message::{Access, Answer, Body, Reply, Want};
use areo_core::object::Name;
use areo_core::tag::Tag;
use areo_sim::explore::cases::agreement::Helper;
use areo_sim::explore::cases::conditional::{Does, race};
use areo_sim::explore::cases::reconfigure::Transfer;
use areo_sim::explore::script::Script;
use areo_sim::explore::{
    Case, Digest, Exploration, Identity, Kind, ObservedOperation, Operation, Options, Outcome,
    cases, explore, naive,
};
use std::rc::Rc;
use std::sync::Arc;

fn all(case: Case) -> Exploration {
    explore(case, &Options::default(), |_, _| {})
}

/// The case with every schedule followed, of which none breaks a rule.
fn holds(name: &str) -> Exploration {
    let explored = all(cases::find(name).expect("a case of this name"));
    eprintln!("{name}: {} states", explored.states);
    assert_eq!(explored.violation, None, "{name}");
    assert!(explored.exhaustive && explored.leaves > 0, "{name}");
    explored
}

/// True if some schedule has an operation with such a result.
fn ends(explored: &Exploration, is_so: impl Fn(&Outcome) -> bool) -> bool {
    let mut operations = explored.outcomes.iter().flatten();
    operations.any(|of| of.ended.as_ref().is_some_and(&is_so))
}

fn ends_with(explored: &Exploration, text: &str) -> bool {
    ends(explored, |it| *it == Outcome::Other(text.to_owned()))
}

/// A read that believes the first server that answers: what the explorer must find out.
fn hasty(c: &Arc<Configuration>, name: &Name) -> Operation {
    let (c, name) = (c.clone(), name.clone());
    Operation::new("read", Kind::Read, move |client| {
        let (c, name) = (c.clone(), name.clone());
        async move {
            let query = Access::query(Want::Tags, Tag::INITIAL);
            let body = Body::Access(vec![(name, query)]);
            let fold = |found: &mut Tag, _: usize, reply: Reply| match reply {
                Reply::Access(answers) => {
                    if let [Answer::Held(held)] = answers.as_slice() {
                        *found = held.max_tag();
                    }
                    Fold::Count
                }
                _ => Fold::Ignore,
            };
            let tally = Quorum::new(c.n(), 1, body, Tag::INITIAL, fold);
            match gather::gather(&client.env, &Visit::new(&c), tally).await {
                Ok(tag) if tag.is_initial() => Outcome::Read(tag, None),
                Ok(tag) => Outcome::Read(tag, Some("a".to_owned())),
                Err(why) => Outcome::Failed(format!("{why:?}")),
            }
        }
    })
}

fn with_hasty(n: usize, reads: usize) -> Case {
    let c = cases::configuration(n, Dap::Abd);
    let mut case = cases::register(&c, &[&["a"], &[]]);
    let object = cases::object();
    // Only the clients' view is judged.
    case.judge.held = |_, _, _| None;
    case.notes = false;
    case.clients[1] = (0..reads).map(|_| hasty(&c, &object)).collect();
    case
}

/// The reduced exploration against the one without reductions: the same results of operations; what it found of their
/// order, the other found too; and whatever order the other found, it found one that forbids at least as much.
fn compare(make: impl Fn() -> Case) {
    let naive = naive::explore(&make());
    for identity in [Identity::Said, Identity::Fed] {
        compare_with(&naive, make(), identity);
    }
}

fn compare_with(naive: &naive::Exploration, case: Case, identity: Identity) {
    let judge = case.judge.seen;
    let options = Options {
        identity,
        ..Options::default()
    };
    // The search ends at the first broken rule: here everything is to be seen.
    let mut tolerant = case;
    tolerant.judge.seen = |_| None;
    tolerant.judge.held = |_, _, _| None;
    let reduced = explore(tolerant, &options, |_, _| {});
    assert!(reduced.exhaustive && reduced.states < naive.states as u64);
    let leaves: Vec<naive::Leaf> = reduced
        .outcomes
        .iter()
        .map(|observed| {
            let of = observed.iter().cloned();
            of.map(|of| (of.ended.expect("all ended"), of.after))
                .collect()
        })
        .collect();
    for leaf in &leaves {
        assert!(naive.leaves.contains(leaf), "never happens: {leaf:?}");
    }
    for leaf in &naive.leaves {
        let covers = |other: &&naive::Leaf| {
            leaf.iter().zip(*other).all(|((a, before), (b, after))| {
                a == b && before.iter().zip(after).all(|(less, more)| less <= more)
            })
        };
        assert!(
            leaves.iter().any(|other| covers(&other)),
            "missed: {leaf:?}"
        );
    }
    let broken = reduced
        .outcomes
        .iter()
        .any(|observed| judge(observed).is_some());
    assert_eq!(broken, !naive.broken.is_empty());
}

/// 3.5 item 1: the explorer finds the lost write by itself.
#[test]
fn an_open_transfer_loses_a_write() {
    let cas = Dap::Cas { k: 1 };
    for (dap, n) in [(Dap::Abd, 3), (Dap::Ec { k: 2 }, 4), (cas, 3)] {
        let explored = all(cases::reconfigure::case(dap, n, Transfer::Open));
        let violation = explored
            .violation
            .expect("the published hand-over is wrong");
        let rule = violation.rule;
        assert!(rule.starts_with("linearizable"), "{rule}");
    }
}

/// `[A-8 closed-get]`: and finds nothing where the transfer closes what it reads.
#[test]
fn a_closing_transfer_loses_nothing() {
    let explored = all(cases::reconfigure::case(Dap::Abd, 3, Transfer::Closing));
    assert_eq!(explored.violation, None);
    assert!(explored.exhaustive, "every schedule was followed");
}

/// `[W-7 one-winner]`: of two writers one wins, whichever it is; beside a plain one, a reader, and a move.
#[test]
fn one_wins_in_every_order() {
    for name in [
        "conditional-2-all",
        "conditional-3-once",
        "conditional-3-two",
        "conditional-moves",
        "conditional-two-move",
    ] {
        let explored = holds(name);
        let is_creation = |of: &&ObservedOperation| matches!(of.kind, Kind::Conditional(..));
        let won = |of: &ObservedOperation| matches!(of.ended, Some(Outcome::Written(_)));
        for client in explored
            .outcomes
            .iter()
            .flatten()
            .filter(is_creation)
            .map(|of| of.client)
        {
            let wins = |seen: &Vec<ObservedOperation>| {
                seen.iter().any(|of| of.client == client && won(of))
            };
            assert!(
                explored.outcomes.iter().any(wins),
                "{name}: client {client} wins"
            );
        }
        for seen in &explored.outcomes {
            let winners = seen.iter().filter(is_creation).filter(|of| won(of)).count();
            assert!(winners <= 1, "{name}: {seen:?}");
        }
    }
}

/// `[W-4 cap]`: a writer gets on, and a reader loses nothing, where two members take no further version.
#[test]
fn a_cap_keeps_no_quorum_out_in_any_order() {
    holds("conditional-cap");
}

/// `[W-9 one-round-read]`: what is read is chosen.
#[test]
fn a_read_beside_a_conditional_write_is_settled_in_every_order() {
    holds("conditional-3-read");
}

/// `[W-12 becoming-conditional]`: a write beside the move, and a read after it.
#[test]
fn a_domain_becomes_conditional_in_every_order() {
    holds("from-abd");
}

/// `[W-13 ceasing-to-be-conditional]`: a conditional write beside the move back, and a read after it.
#[test]
fn a_domain_ceases_to_be_conditional_in_every_order() {
    holds("to-abd");
}

#[test]
fn over_conditional_in_every_order() {
    holds("to-abd-over");
}

/// `[CAS-2 quorum-of-marks]`, `[CAS-6 finalized-trimming]`: two writers that read, in every order of their rounds; and what
/// servers say to each other among them.
#[test]
fn coded_atomic_storage_is_linearizable_in_every_order() {
    for name in ["cas-3", "cas-writers", "casgc-writers", "casss-writers"] {
        let explored = holds(name);
        let reads_a = |it: &Outcome| matches!(it, Outcome::Read(_, Some(read)) if read == "a");
        assert!(ends(&explored, reads_a), "{name}");
    }
}

#[test]
fn reductions_hide_nothing_of_abd() {
    let c = cases::configuration(2, Dap::Abd);
    compare(|| cases::register(&c, &[&["a"], &["R"]]));
}

/// Proposers that overtake each other, and one that reads.
#[test]
fn reductions_hide_nothing_of_registers() {
    let (creates, also) = (Does::Creates("a"), Does::Creates("b"));
    compare(|| race(1, 1, &[(creates, 2), (also, 2)], false));
    compare(|| race(1, 1, &[(creates, 1), (also, 1), (Does::Reads, 1)], false));
    compare(|| race(2, 1, &[(creates, 1), (also, 1)], false));
}

#[test]
fn reductions_do_not_hide_a_hasty_read() {
    compare(|| with_hasty(2, 2));
    let violation = all(with_hasty(3, 2)).violation.expect("it is wrong");
    assert!(
        violation.rule.starts_with("linearizable"),
        "{}",
        violation.rule
    );
    let text = violation.schedule.join("\n");
    assert!(text.contains("client 1: read reads nothing"), "{text}");
}

#[test]
fn the_small_cases_hold() {
    for name in ["abd-3", "one-round-read", "one-round-read-unconfirmed"] {
        let explored = holds(name);
        assert_eq!(explored.identity, Identity::Said, "{name}");
        let reads = |value: Option<&str>| {
            ends(
                &explored,
                |it| matches!(it, Outcome::Read(_, read) if read.as_deref() == value),
            )
        };
        assert!(reads(None) && reads(Some("a")), "{name}");
    }
}

#[test]
fn of_two_changes_that_are_posted_one_is_proposed_with_the_other() {
    let explored = holds("mailbox-3");
    for made in ["delta", "option", "delta option"] {
        assert!(ends_with(&explored, made), "{made}");
    }
}

#[test]
fn of_two_decisions_of_lattice_agreement_one_contains_the_other() {
    let explored = holds("la-3");
    assert_eq!(explored.identity, Identity::Said);
    for own in ["4", "5", "4 5"] {
        assert!(ends_with(&explored, own), "{own}");
    }
}

/// Agreement where elements are fragments, and the decision is announced.
#[test]
fn decisions_meet_announcements_at_the_quorums_of_the_code() {
    let explored = holds("sm-4-2");
    assert_eq!(explored.identity, Identity::Said);
    for decided in ["4 5", "4 6", "4 5 6"] {
        assert!(ends_with(&explored, decided), "{decided}");
    }
}

/// `[R-11 owned-ballot]`: the owner of ballot 0 and another proposer decide the same, which may be the proposal of either.
#[test]
fn a_leader_and_another_proposer_decide_one_configuration() {
    let explored = holds("leader-3");
    assert_eq!(explored.identity, Identity::Said);
    // An owner that is refused decides nothing.
    for decided in [["4", "4"], ["", "5"]] {
        let ended = decided.map(|added| Some(Outcome::Other(added.to_owned())));
        let is_so = |seen: &Vec<ObservedOperation>| {
            ended.iter().all(|it| seen.iter().any(|of| of.ended == *it))
        };
        assert!(explored.outcomes.iter().any(is_so), "{decided:?}");
    }
}

/// `[R-23 propose-first]`: two proposers and a helper. As published the helper commits what a quorum was never shown.
#[test]
fn of_two_commits_of_a_speculating_snapshot_one_contains_the_other() {
    let explored = holds("spsn-3");
    assert_eq!(explored.identity, Identity::Said);
    let published = all(cases::agreement::speculating(Helper::Published));
    let violation = published.violation.expect("the published helper is wrong");
    let rule = violation.rule;
    assert!(rule.starts_with("decisions_are_comparable"), "{rule}");
}

/// `[R-22 collect-again]`: of what two operations collect of a weak snapshot one contains the other, so that all that collect something
/// have a successor in common.
#[test]
fn of_two_collected_sets_of_a_weak_snapshot_one_contains_the_other() {
    let explored = holds("snapshot-3");
    assert_eq!(explored.identity, Identity::Said);
    for collected in ["5", "6", "4 5 6"] {
        assert!(ends_with(&explored, collected), "{collected}");
    }
}

#[test]
fn a_coded_object_survives_a_server_that_stops_at_any_moment() {
    let c = cases::configuration(4, Dap::Ec { k: 2 });
    let case = |crashes| Case {
        crashes,
        ticks: 0,
        ..cases::register(&c, &[&["a"], &["R"]])
    };
    let one = all(case(1));
    assert_eq!(one.violation, None);
    assert!(one.exhaustive);
    let two = all(case(2)).violation.expect("more than may stop");
    assert!(two.rule.starts_with("liveness"), "{}", two.rule);
    let stops = two
        .schedule
        .iter()
        .filter(|line| line.ends_with("stops for ever"));
    assert_eq!(stops.count(), 2, "{:#?}", two.schedule);
}

/// `[EC-11 acceptance-test]`, `[X-1 support-threshold]`: more answers than a quorum, where members refuse the version.
#[test]
fn what_a_put_leaves_on_full_disks_keeps_no_reader_out() {
    let explored = holds("full-4-2-left");
    let fails = ends(&explored, |it| matches!(it, Outcome::Unknown(_)));
    assert!(fails, "puts fail");
    assert!(ends(&explored, |it| matches!(it, Outcome::Read(_, None))));
}

/// `[X-3 unconfirmed-cap]`: writers that race for the last place.
#[test]
fn writers_at_the_cap_lose_nothing() {
    holds("cap-2-2-writers");
}

/// No answer shows what a fence spares.
#[test]
#[should_panic(expected = "the probes do not show all of a server's state")]
fn a_state_that_no_answer_shows_is_noticed() {
    let case = cases::find("cap-2-2-writers").expect("it is in the table");
    let digest = Digest::Answers;
    all(Case { digest, ..case });
}

/// An operation that asks no server is judged as any other, also if it is the last.
#[test]
fn what_ends_at_once_is_judged() {
    let c = cases::configuration(2, Dap::Abd);
    let fails = Operation::new("read", Kind::Read, |_| async {
        Outcome::Failed("at once".to_owned())
    });
    let case = Case {
        clients: vec![Rc::new([fails])],
        ..cases::register(&c, &[])
    };
    let violation = all(case).violation.expect("it fails");
    let rule = violation.rule;
    assert!(rule.starts_with("liveness: read of client 0"), "{rule}");
}

#[test]
fn a_search_that_was_cut_short_says_so() {
    let options = Options {
        states: 100,
        ..Options::default()
    };
    let case = cases::find("abd-3").expect("it is in the table");
    assert!(!explore(case, &options, |_, _| {}).exhaustive);
}

/// A client that learns something in one operation and says it in the next.
fn secretive(c: &Arc<Configuration>, name: &Name) -> Rc<[Operation]> {
    let learn = hasty(c, name);
    let listen = Operation::new("listen", Kind::Other, move |client| {
        let heard = (learn.run)(client.clone());
        async move {
            if !matches!(heard.await, Outcome::Read(_, None)) {
                // Its counter of writes is invisible memory.
                let _ = client.next_writer();
            }
            Outcome::Other("has listened".to_owned())
        }
    });
    let tell = Operation::new("tell", Kind::Other, |client| async move {
        Outcome::Other(format!("counts {}", client.next_writer().counter))
    });
    Rc::new([listen, tell])
}

#[test]
fn a_client_that_remembers_more_than_it_says_is_told_by_what_it_was_fed() {
    let c = cases::configuration(2, Dap::Abd);
    let mut case = cases::register(&c, &[&["a"], &[]]);
    case.clients[1] = secretive(&c, &cases::object());
    let explored = all(case);
    assert_eq!(explored.identity, Identity::Fed);
    let told: std::collections::BTreeSet<String> = explored
        .outcomes
        .iter()
        .flatten()
        .filter(|of| of.label == "tell")
        .filter_map(|of| of.ended.as_ref().map(ToString::to_string))
        .collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(told, ["counts 1", "counts 2"]);
}

#[test]
#[should_panic(expected = "the probes do not show all of a server's state")]
fn a_case_that_does_not_ask_its_servers_enough_is_refused() {
    let c = cases::configuration(3, Dap::Abd);
    let mut case = cases::register(&c, &[&["a"], &["R"]]);
    case.subjects.clear();
    case.judge.seen = |_| None;
    let _ = all(case);
}

/// Client 0 has written at servers 0 and 1, and server 2 has taken nothing yet.
fn written() -> Script {
    let c = cases::configuration(3, Dap::Abd);
    let mut script = Script::new(cases::register(&c, &[&["a"], &["R"]]));
    script.invoke(0);
    for what in ["query", "put"] {
        script.exchange(0, 0, what);
        script.exchange(0, 1, what);
    }
    assert_eq!(
        script.on_way(0)[..2],
        [
            "server 2: query x, announcing a version",
            "server 2: put 1-00000000000000011 of x"
        ]
    );
    script
}

#[test]
fn a_confirmed_version_is_read_in_one_round() {
    let mut script = written();
    script.take(0, 0, "confirm");
    script.invoke(1);
    script.exchange(1, 0, "query");
    script.exchange(1, 2, "query");
    assert!(
        script.ended(1)[0].to_string().starts_with("reads a"),
        "{:#?}",
        script.schedule()
    );
    assert_eq!(script.broken(), None);
}

#[test]
fn an_unconfirmed_version_that_a_minority_was_seen_to_hold_is_written_back() {
    let mut script = written();
    script.invoke(1);
    script.exchange(1, 0, "query");
    script.exchange(1, 2, "query");
    assert!(script.is_busy(1), "{:#?}", script.schedule());
    script.exchange(1, 2, "put 1-00000000000000011 of x, writing back");
    assert!(
        script.ended(1)[0].to_string().starts_with("reads a"),
        "{:#?}",
        script.schedule()
    );
}

#[test]
#[should_panic(expected = "nothing of client 1 for server 0 begins with \"put\"")]
fn a_script_that_does_not_fit_fails() {
    let mut script = written();
    script.invoke(1);
    script.take(1, 0, "put");
}

#[test]
fn a_server_at_its_cap_keeps_no_writer_and_no_reader_out() {
    for name in ["cap-2-2", "cap-4-2-crash"] {
        holds(name);
    }
}

#[test]
fn two_reconfigurers_lose_nothing_and_one_may_find_the_domain_moved() {
    let explored = holds("two-reconfigure");
    let finds = |it: &Outcome| matches!(it, Outcome::Other(what) if what.contains("finds the domain moved"));
    assert!(ends(&explored, finds), "a reconfigurer that comes too late");
    // A writer of two servers asks both: of three it may miss the one that knows.
    let explored = all(cases::reconfigure::two(3, Transfer::Open));
    let violation = explored.violation.expect("an open transfer loses a write");
    assert!(
        violation.rule.starts_with("linearizable"),
        "{}",
        violation.rule
    );
}
