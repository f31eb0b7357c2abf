use super::*;
use crate::cluster::tests::names;
use crate::cluster::{Names, ServerInfo};
use crate::{ClusterId, Dap, Health, ServerStatus};
use areo_core::config::{Configuration, Descriptor, ServerId};
use areo_core::object::DomainId;

/// The directory of servers s1 to sN.
fn directory(n: u128) -> Names {
    let called: Vec<String> = (1..=n).map(|number| format!("s{number}")).collect();
    let called: Vec<&str> = called.iter().map(String::as_str).collect();
    names(&called)
}

/// A domain on servers s1 to sN, of which no change is pending.
fn domain(name: &str, dap: Dap, n: u128) -> DomainInfo {
    let members = (1..=n).map(ServerId).collect();
    let c = Configuration::new(Descriptor::new(DomainId(7), members, dap)).unwrap();
    DomainInfo {
        pending: Some(Vec::new()),
        ..directory(n).domain(name, &c)
    }
}

/// Servers s1 to sN; of these the ones serve, and the others are full.
pub(in crate::cluster) fn cluster(
    n: u128,
    serving: &[u128],
    full: &[u128],
    domains: Vec<DomainInfo>,
) -> ClusterStatus {
    let health = |server: ServerInfo| {
        let number = server.id.0;
        let status = ServerStatus {
            serving: true,
            full: full.contains(&number),
            ..ServerStatus::default()
        };
        let refused = Health::unreachable(Some("connection refused".into()));
        ServerHealth {
            server,
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
        servers: directory(n).sorted().into_iter().map(health).collect(),
        domains: Ok(domains),
    }
}

fn texts(status: &ClusterStatus, is_outage: bool) -> Vec<String> {
    let all = status.problems().into_iter();
    let all = all.filter(|it| it.is_outage == is_outage);
    all.map(|it| it.text).collect()
}

fn default(k: u8, n: u128) -> Vec<DomainInfo> {
    vec![domain("default", Dap::Ec { k }, n)]
}

#[test]
fn a_domain_without_a_quorum_is_an_outage() {
    let none: [String; 0] = [];
    let whole = cluster(5, &[1, 2, 3, 4, 5], &[], default(3, 5));
    assert_eq!(whole.problems(), []);
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
    let roomy = cluster(3, &[1, 2, 3], &[2], default(1, 3));
    assert_eq!(texts(&roomy, false), ["s2: disk full"]);
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
