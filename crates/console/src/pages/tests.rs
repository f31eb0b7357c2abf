//! Made-up parts of a cluster for tests of pages.

use areo_client::experimental::Experimental;
use areo_client::{
    ClusterId, ClusterStatus, ConfigurationInfo, Dap, Decider, DomainInfo, Health, Member,
    ROOT_DOMAIN, ReconfigKind, ServerHealth, ServerId, ServerInfo, ServerStatus, Shape,
};
use std::collections::BTreeMap;

/// A configuration of copies on the servers from s1 on.
pub(super) fn configuration(n: u128) -> ConfigurationInfo {
    let member = |i: u128| Member {
        id: ServerId(i),
        name: format!("s{i}"),
        address: Some(format!("127.0.0.1:{}", 7399 + i)),
    };
    ConfigurationInfo {
        index: 2,
        shape: Shape::new(Dap::Abd, usize::try_from(n).unwrap()).unwrap(),
        delta: 5,
        copy_bytes: 16_384,
        experimental: Experimental::default(),
        decided_by: Decider::Members,
        reconfig: ReconfigKind::default(),
        leader: None,
        members: (1..=n).map(member).collect(),
    }
}

fn domain(name: String) -> DomainInfo {
    DomainInfo {
        name,
        id: "0".repeat(32),
        configuration: configuration(5),
        pending: Some(Vec::new()),
    }
}

/// The root domain, and so many others: d00000, d00001 and so on.
pub(super) fn domains(count: usize) -> Vec<DomainInfo> {
    let named = (0..count).map(|number| format!("d{number:05}"));
    let names = std::iter::once(ROOT_DOMAIN.to_owned()).chain(named);
    names.map(domain).collect()
}

/// A cluster of so many domains on five servers, of which so many serve.
pub(super) fn status(count: usize, serving: u128) -> ClusterStatus {
    let server = |i: u128| ServerHealth {
        server: ServerInfo {
            id: ServerId(i),
            name: format!("s{i}"),
            address: format!("127.0.0.1:{}", 7399 + i),
            admin: format!("127.0.0.1:{}", 7489 + i),
            incarnation: 1,
            leaving: false,
            version: "0.1.0".into(),
            level: 0,
            labels: BTreeMap::new(),
            maintenance: None,
        },
        status: Health::Answered(ServerStatus {
            serving: i <= serving,
            ..ServerStatus::default()
        }),
        domains: Some(1 + count as u64),
    };
    let mut domains = domains(count);
    let root = domains.remove(0);
    ClusterStatus {
        cluster: ClusterId(1),
        root,
        root_warning: None,
        level: 0,
        required_level: 0,
        servers: (1..=5).map(server).collect(),
        domains: Ok(domains),
    }
}
