use super::super::ready;
use super::*;
use crate::cmd::domain::tests::domain;
use areo_client::{ClusterId, Dap, Health, ServerHealth, ServerInfo, ServerStatus};

/// Servers s1 to sN; of these the ones serve, and the others are full.
pub(in super::super) fn cluster(
    n: u128,
    serving: &[u128],
    full: &[u128],
    domains: Vec<DomainInfo>,
) -> ClusterStatus {
    let server = |number: u128| {
        let status = ServerStatus {
            serving: true,
            full: full.contains(&number),
            ..ServerStatus::default()
        };
        let refused = Health::Unreachable {
            reason: "connection refused".into(),
        };
        ServerHealth {
            server: ServerInfo {
                id: areo_client::ServerId(number),
                name: format!("s{number}"),
                address: format!("127.0.0.1:{}", 7399 + number),
                admin: String::new(),
                incarnation: 1,
                leaving: false,
                version: "0.1.0".into(),
                level: 0,
            },
            status: match serving.contains(&number) {
                true => Health::Answered(status),
                false => refused,
            },
            domains: None,
        }
    };
    ClusterStatus {
        cluster: ClusterId(1),
        root: domain(ROOT_DOMAIN, Dap::Abd, n),
        root_warning: None,
        level: 0,
        required_level: 0,
        servers: (1..=n).map(server).collect(),
        domains: Ok(domains),
    }
}

fn texts(status: &ClusterStatus, is_outage: bool) -> Vec<String> {
    let all = all(status).into_iter();
    let all = all.filter(|it| it.is_outage == is_outage);
    all.map(|it| it.text).collect()
}

fn default(k: u8, n: u128) -> Vec<DomainInfo> {
    vec![domain("default", Dap::Ec { k }, n)]
}

#[test]
fn a_key_that_may_not_see_servers_is_no_outage() {
    let mut status = cluster(3, &[], &[], default(1, 3));
    let reason = "not authorised: key 00000000000000ab lacks the grant 'status'";
    for server in &mut status.servers {
        let reason = reason.into();
        server.status = Health::Unreachable { reason };
    }
    let missing = ready::missing(&status, "default").expect("nothing was seen");
    assert_eq!((missing.code as u8, missing.message.as_str()), (6, reason));
}

#[test]
fn a_domain_without_a_quorum_is_an_outage() {
    let none: [String; 0] = [];
    let whole = cluster(5, &[1, 2, 3, 4, 5], &[], default(3, 5));
    assert_eq!(all(&whole), []);
    assert!(ready::missing(&whole, "default").is_none());
    let risky = cluster(5, &[1, 2, 3, 4], &[], default(3, 5));
    assert_eq!(texts(&risky, true), none);
    assert_eq!(
        texts(&risky, false),
        ["'default' tolerates no further crash: 4 of 4 needed servers serve, not s5"]
    );
    let stopped = cluster(5, &[1, 3, 5], &[], default(3, 5));
    assert_eq!(
        texts(&stopped, true),
        ["'default' has no quorum: 3 of 4 needed servers serve, not s2, s4"]
    );
    assert_eq!(stopped.summary().without_quorum, ["default"]);
    // A change that is pending needs a quorum of its own.
    let mut changing = cluster(5, &[1, 2, 3], &[], default(1, 3));
    let mut next = domain("default", Dap::Ec { k: 3 }, 5).configuration;
    next.index = 1;
    changing.domains.as_mut().unwrap()[0].pending = Some(vec![next]);
    let outages = texts(&changing, true);
    assert!(
        outages[0].starts_with("'default' has no quorum in its pending configuration 1: 3 of 4"),
        "{outages:?}"
    );
}

#[test]
fn full_disks_fail_writes_where_a_quorum_lacks_room() {
    let full = cluster(3, &[1, 2, 3], &[2, 3], default(1, 3));
    let sentence = "s2, s3: disk full, writes of the root domain and 'default' fail";
    assert_eq!(texts(&full, true), [sentence]);
    assert_eq!(full.summary().without_room, [ROOT_DOMAIN, "default"]);
    let missing = ready::missing(&full, "default").expect("writes fail");
    assert_eq!(
        (missing.code as u8, missing.message.as_str()),
        (5, sentence)
    );
    let roomy = cluster(3, &[1, 2, 3], &[2], default(1, 3));
    assert_eq!(texts(&roomy, false), ["s2: disk full"]);
    assert!(ready::missing(&roomy, "default").is_none());
}

#[test]
fn a_domain_without_spare_servers_says_so() {
    let first = cluster(1, &[1], &[], Vec::new());
    let alone = "the root domain tolerates no crash: it is on s1 alone";
    assert_eq!(texts(&first, false), [alone]);
    let remedy = "the root domain tolerates no crash: start two more servers";
    let warned = ClusterStatus {
        root_warning: Some(remedy.into()),
        ..first
    };
    assert_eq!(texts(&warned, false), [remedy]);
    let two = cluster(3, &[1, 2, 3], &[], default(1, 2));
    assert_eq!(
        texts(&two, false),
        ["'default' tolerates no crash: it needs all of s1, s2"]
    );
}

#[test]
fn sentences_for_people_fit_80_columns() {
    let text = "the root domain is on one server and tolerates no crash: start 2 more servers (`areo server --join`), and it grows to 3 by itself";
    let lines = folded(text);
    assert!(
        lines.len() > 1 && lines.iter().all(|it| it.chars().count() <= COLUMNS),
        "{lines:?}"
    );
    let words: Vec<&str> = lines.iter().map(|it| it.trim_start()).collect();
    assert_eq!(words.join(" "), text);
    assert_eq!(folded("short"), ["short"]);
    let long = "x".repeat(90);
    assert_eq!(folded(&format!("{long} y")), [long, "  y".into()]);
}
