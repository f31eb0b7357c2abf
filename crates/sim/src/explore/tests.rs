use super::*;
use areo_core::config::Dap;
use areo_core::gather::{self, Fold, Quorum, Visit};
use areo_core::message::{Access, Answer, Body, Want};

mod naive;

fn all(case: Case) -> Explored {
    explore(case, &Options::default(), |_, _| {})
}

/// A read that believes the first server that answers: what the explorer must find out.
fn hasty(c: &Arc<Configuration>, name: &Name) -> Operation {
    let (c, name) = (c.clone(), name.clone());
    Operation::new("read", Kind::Read, move |client| {
        let (c, name) = (c.clone(), name.clone());
        async move {
            let query = Access::Query {
                want: Want::Tags,
                have: Tag::INITIAL,
            };
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
                Ok(tag) if tag.is_initial() => Ended::Read(tag, None),
                Ok(tag) => Ended::Read(tag, Some("a".to_owned())),
                Err(why) => Ended::Failed(format!("{why:?}")),
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

fn compare_with(naive: &naive::Explored, case: Case, identity: Identity) {
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
    println!("{} states, reduced to {}", naive.states, reduced.states);
}

#[test]
fn reductions_hide_nothing_of_abd() {
    let c = cases::configuration(2, Dap::Abd);
    compare(|| cases::register(&c, &[&["a"], &["R"]]));
}

#[test]
fn reductions_do_not_hide_a_hasty_read() {
    compare(|| with_hasty(2, 2));
    let violation = all(with_hasty(3, 2)).violation.expect("it is wrong");
    println!("{}\n{}", violation.rule, violation.schedule.join("\n"));
    assert!(
        violation.rule.starts_with("linearizable"),
        "{}",
        violation.rule
    );
    let text = violation.schedule.join("\n");
    assert!(text.contains("client 1: read reads nothing"), "{text}");
}
