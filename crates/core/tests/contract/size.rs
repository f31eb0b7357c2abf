//! The sizes of operations. A future is moved when an operation begins, once for each function that it goes through: a rare
//! branch that is not boxed makes every operation pay for it.

use crate::world::{World, configuration, name, value};
use areo_core::config::Dap;
use std::mem::size_of_val;

/// Upper bound for the bytes of a call in the world of these tests; a call over TCP is a little larger.
const OPERATION_BYTES: usize = 4096;

#[test]
fn an_operation_fits_a_page() {
    let c = configuration(5, Dap::Ec { k: 3 }, 2, 0);
    let domain = World::new(&c, 1).actor(&c).domain();
    let (name, value) = (name("k"), value("v"));
    let sizes = [
        size_of_val(&domain.read(&name, None)),
        size_of_val(&domain.write(&name, &value)),
    ];
    assert!(
        sizes.iter().all(|bytes| *bytes <= OPERATION_BYTES),
        "a read and a write have {sizes:?} bytes"
    );
}
