use super::*;
use areo_core::config::{Dap, Descriptor, ServerId};
use areo_core::object::DomainId;

/// Configuration 3 of a domain, on the first `n` servers.
fn on(n: u128, dap: Dap) -> Arc<Configuration> {
    let members = (1..=n).map(ServerId).collect();
    let descriptor = Descriptor {
        index: 3,
        ..Descriptor::new(DomainId(7), members, dap)
    };
    Configuration::new(descriptor).unwrap()
}

#[test]
fn elements_are_counted_by_what_servers_need() {
    let ec = on(5, Dap::Ec { k: 3 });
    let copy = u64::from(ec.descriptor().copy_bytes);
    assert_eq!(dap::element_bytes(&ec, copy), copy);
    assert_eq!(dap::element_bytes(&ec, 300_000), 100_000);
    let (abd, name) = (on(3, Dap::Abd), Name::user("k").unwrap());
    assert_eq!(dap::element_bytes(&abd, 300_000), 300_000);
    // Two servers come; of the others each has what it needs, unless it has a fragment and needs a copy.
    assert_eq!(needing((&abd, &ec), &name, 300_000), 2);
    assert_eq!(needing((&ec, &abd), &name, 300_000), 3);
    assert_eq!(needing((&ec, &abd), &name, copy), 0);
    assert_eq!(needing((&ec, &ec), &name, 300_000), 0);
}
