//! Configurations for unit tests.

use super::{Configuration, Dap, Descriptor, ServerId};
use crate::object::DomainId;
use std::sync::Arc;

/// Servers 1 to `n`, which keep values of more than 16 bytes as the kind says.
pub(crate) fn configuration(n: usize, dap: Dap) -> Arc<Configuration> {
    let members = (1..=n as u128).map(ServerId).collect();
    let descriptor = Descriptor {
        delta: 1,
        copy_bytes: 16,
        ..Descriptor::new(DomainId(1), members, dap)
    };
    Configuration::new(descriptor).unwrap()
}

/// A configuration with replication.
pub(crate) fn replicated(n: usize) -> Arc<Configuration> {
    configuration(n, Dap::Abd)
}

/// A configuration with erasure coding.
pub(crate) fn coded(n: usize, k: u8) -> Arc<Configuration> {
    configuration(n, Dap::Ec { k })
}

/// A configuration with ranked registers, which are replicated.
pub(crate) fn conditional(n: usize) -> Arc<Configuration> {
    configuration(n, Dap::Conditional { k: 1 })
}

/// A configuration of each kind that remembers another part of a put: tags, nothing, pairs.
pub(crate) fn remembering() -> [Arc<Configuration>; 3] {
    let k = 1;
    [
        Dap::Ec { k },
        Dap::EcPublished { k },
        Dap::EcOptimized { k },
    ]
    .map(|dap| configuration(3, dap))
}
