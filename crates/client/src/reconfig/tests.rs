use super::*;
use crate::cluster::tests::on;
use areo_core::config::Dap;

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
