//! The placement of an object's elements.

use crate::cluster::Names;
use crate::object::{ElementRole, Placement};
use areo_core::config::Configuration;
use areo_core::object::Name;

/// The element of each member of a value of this length.
pub(super) fn placement(
    configuration: &Configuration,
    names: &Names,
    name: &Name,
    length: u64,
) -> Vec<Placement> {
    let hash = name.placement_hash(configuration.descriptor().domain);
    let is_copy = !configuration.dap().is_coded()
        || length <= u64::from(configuration.descriptor().copy_bytes);
    let member = |(position, server): (usize, _)| {
        let element = configuration.element_index(position, hash);
        let role = match is_copy {
            true => ElementRole::Copy,
            false if element < configuration.dap().k() => ElementRole::Data,
            false => ElementRole::Parity,
        };
        Placement {
            server,
            name: names.name(server),
            element,
            role,
            holds: None,
        }
    };
    let members = configuration.members().iter().copied();
    members.enumerate().map(member).collect()
}
