//! Made-up parts of a cluster for tests of pages.

use areo_client::experimental::Experimental;
use areo_client::{ConfigurationInfo, Dap, Decider, Member, ReconfigKind, ServerId, Shape};

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
