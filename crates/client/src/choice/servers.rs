//! The servers of a configuration, by their names or ids.

use super::invalid::InvalidChoice;
use crate::cluster::Names;
use areo_core::message::ServerRecord;

/// The server of this name or id.
///
/// # Errors
/// None has it, or several have.
pub(crate) fn member<'a>(name: &str, names: &'a Names) -> Result<&'a ServerRecord, InvalidChoice> {
    let named: Vec<&ServerRecord> = names
        .servers()
        .filter(|record| record.name == name || record.id.to_string() == name)
        .collect();
    match named.as_slice() {
        [record] => Ok(record),
        [] => Err(InvalidChoice::UnknownServer {
            name: name.into(),
            known: names.sorted().into_iter().map(|s| s.name).collect(),
        }),
        several => Err(InvalidChoice::AmbiguousServer {
            name: name.into(),
            ids: several.iter().map(|record| record.id).collect(),
        }),
    }
}

/// The server of this name or id, if it may become a member.
///
/// # Errors
/// As [`member`]; it is to go.
pub(crate) fn coming<'a>(name: &str, names: &'a Names) -> Result<&'a ServerRecord, InvalidChoice> {
    let record = member(name, names)?;
    match record.is_leaving() {
        true => Err(InvalidChoice::Leaving {
            name: record.name.clone(),
        }),
        false => Ok(record),
    }
}

/// Checks that every member is another server.
///
/// # Errors
/// The first two that are not.
pub(crate) fn distinct(members: &[&ServerRecord]) -> Result<(), InvalidChoice> {
    for (position, a) in members.iter().enumerate() {
        for b in &members[position + 1..] {
            if a.id == b.id {
                let name = a.name.clone();
                return Err(InvalidChoice::ServerTwice { name });
            }
            if a.address == b.address {
                return Err(InvalidChoice::SameAddress {
                    a: a.name.clone(),
                    b: b.name.clone(),
                    address: a.address.clone(),
                });
            }
        }
    }
    Ok(())
}
