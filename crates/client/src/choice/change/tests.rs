use super::*;
use crate::cluster::tests::{names, on};
use crate::experimental::Experimental;
use areo_core::config::Dap;

fn seven() -> Names {
    names(&["s1", "s2", "s3", "s4", "s5", "s6", "s7"])
}

fn list(servers: &[&str]) -> Vec<String> {
    servers.iter().map(ToString::to_string).collect()
}

fn change(add: &[&str], remove: &[&str]) -> Change {
    Change {
        add: list(add),
        remove: list(remove),
        ..Change::default()
    }
}

fn ids(c: &Configuration) -> Vec<u128> {
    c.members().iter().map(|server| server.0).collect()
}

#[test]
fn a_new_server_takes_the_place_of_one_that_goes() {
    let old = on(5, Dap::Ec { k: 3 });
    let make = |change: &Change| wanted(change, &old, &seven()).unwrap();
    let replaced = make(&change(&["s6"], &["s2"]));
    assert_eq!(ids(&replaced), [1, 6, 3, 4, 5]);
    assert_eq!(replaced.id().index, 4);
    assert_eq!(replaced.dap(), Dap::Ec { k: 3 });
    let more = make(&change(&["s7", "s6"], &["s5"]));
    assert_eq!(ids(&more), [1, 2, 3, 4, 7, 6]);
    assert_eq!(ids(&make(&change(&[], &[]))), [1, 2, 3, 4, 5]);
    let named = Change {
        servers: list(&["s7", "s6", "s1"]),
        dap: Some(DapKind::Abd),
        ..Change::default()
    };
    let named = make(&named);
    assert_eq!((ids(&named), named.dap()), (vec![7, 6, 1], Dap::Abd));
}

#[test]
fn what_is_not_said_stays() {
    let abd = on(5, Dap::Abd);
    let coded = Change {
        dap: Some(DapKind::Ec),
        ..Change::default()
    };
    let ec = wanted(&coded, &abd, &seven()).unwrap();
    assert_eq!(ec.dap(), Dap::Ec { k: 3 });
    let other = Change {
        delta: Some(9),
        experimental: Experimental {
            piggyback: Some(false),
            ..Experimental::default()
        },
        ..Change::default()
    };
    let made = wanted(&other, &ec, &seven()).unwrap();
    assert_eq!((made.descriptor().delta, made.dap()), (9, ec.dap()));
    assert!(!made.options().piggyback);
    assert_eq!(made.options().collect, ec.options().collect);
    assert!(!is_same_but_for_index(&ec, &made));
    let same = wanted(&Change::default(), &made, &seven()).unwrap();
    assert!(is_same_but_for_index(&made, &same));
}

#[test]
fn what_papers_compare_with_is_chosen_and_given_up() {
    let k = 3;
    let make = |dap, c: &Configuration| {
        let change = Change {
            dap,
            ..Change::default()
        };
        wanted(&change, c, &seven()).unwrap()
    };
    let published = make(Some(DapKind::EcPublished), &on(5, Dap::Ec { k }));
    assert_eq!(published.dap(), Dap::EcPublished { k });
    assert_eq!(make(None, &published).dap(), published.dap());
    let optimized = make(Some(DapKind::EcOptimized), &published);
    assert_eq!(optimized.dap(), Dap::EcOptimized { k });
    assert_eq!(make(Some(DapKind::Ec), &optimized).dap(), Dap::Ec { k });
    assert_eq!(make(Some(DapKind::Abd), &optimized).dap(), Dap::Abd);
}

#[test]
fn changes_that_cannot_be_are_told_as_such() {
    let ec = on(5, Dap::Ec { k: 3 });
    let refused = |change: &Change| wanted(change, &ec, &seven()).unwrap_err().to_string();
    assert_eq!(
        refused(&change(&["s9"], &[])),
        "there is no server 's9': there are s1, s2, s3, s4, s5, s6, s7"
    );
    assert_eq!(
        refused(&change(&[], &["s6"])),
        "'s6' cannot be removed, it is no member: there are s1, s2, s3, s4, s5"
    );
    assert_eq!(
        refused(&change(&["s2"], &[])),
        "server 's2' cannot be added, it is a member already"
    );
    assert!(refused(&change(&["s6", "s6"], &[])).contains("'s6' is named twice"));
    let with_k = |k, dap| Change {
        k: Some(k),
        dap,
        ..Change::default()
    };
    assert!(refused(&with_k(6, None)).contains("k = 6 with 5 servers"));
    assert!(refused(&with_k(4, None)).contains("ec [5,4] tolerates no crash"));
    assert!(refused(&with_k(2, Some(DapKind::Abd))).contains("leave --k out"));
    assert!(refused(&change(&[], &["s5"])).contains("ec [4,3] tolerates no crash"));
    let allowed = Change {
        allow_f0: true,
        ..change(&[], &["s5"])
    };
    let f0 = wanted(&allowed, &ec, &seven()).unwrap();
    let kept = wanted(&change(&["s7"], &["s1"]), &f0, &seven());
    assert!(kept.is_ok(), "what was allowed is not asked for again");
}

#[test]
fn a_member_that_the_directory_forgot_can_be_removed() {
    let old = on(3, Dap::Abd);
    let left = names(&["s1", "s2"]);
    let short = left.name(ServerId(3));
    for name in [short, ServerId(3).to_string()] {
        let gone = Change {
            remove: vec![name],
            allow_f0: true,
            ..Change::default()
        };
        assert_eq!(ids(&wanted(&gone, &old, &left).unwrap()), [1, 2]);
    }
}
