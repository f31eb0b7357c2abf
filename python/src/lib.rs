//! The native module `areo._areo`, on which the package `areo` stands (`package/areo`).
//!
//! A handle begins an [`operation`], which a thread waits for or an event loop polls; the package has an interface for each. Nothing else
//! here differs between the two.

mod client;
mod ending;
mod failure;
mod operation;
mod process;
mod stream;
mod trace;
mod value;

#[pyo3::pymodule]
mod _areo {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::client::{Client, Domain, connect};
    #[pymodule_export]
    use crate::operation::{Operation, Wakes};
    #[pymodule_export]
    use crate::stream::{Reader, Writer};
    #[pymodule_export]
    use crate::trace::{unwatch, watch};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::ending::register(module.py(), module)
    }
}
