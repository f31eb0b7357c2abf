//! Reconfigurations as events of histories: what was wanted, and what was decided, at which index.

use super::{History, Kind, Operation, OperationEnd, quoted};
use crate::world::{generation_of, server_of};
use areo_core::config::{Configuration, Descriptor};
use areo_core::instant::Instant;
use std::fmt::Write;

/// Stands in the history for the wish of a client that resumes a pending reconfiguration.
const PENDING: &str = "pending";

/// Name of a configuration: everything that a run may change, except its index.
pub(super) fn name(c: &Descriptor) -> String {
    let mut name = match c.dap {
        dap if dap.is_coded() => format!("{dap}{}", dap.k()),
        dap => dap.to_string(),
    };
    for (place, member) in c.members.iter().enumerate() {
        let separator = if place == 0 { ' ' } else { '+' };
        let (server, generation) = (server_of(*member), generation_of(*member));
        let written = match generation {
            0 => write!(name, "{separator}s{server}"),
            later => write!(name, "{separator}s{server}.{later:x}"),
        };
        written.expect("writing into memory does not fail");
    }
    name
}

/// The configurations that a client knows, as a field of an event: of those that it knows as final only the last.
pub(super) fn write_sequence(out: &mut String, last: &Configuration) {
    let (index, name) = (last.id().index, name(last.descriptor()));
    let field = write!(
        out,
        ",\"sequence\":[{{\"index\":{index},\"configuration\":\"{name}\",\"final\":true}}]"
    );
    field.expect("writing into memory does not fail");
}

/// The result of a reconfiguration.
pub(crate) enum Change<'a> {
    /// This configuration was decided and is final.
    Decided(&'a Configuration),
    /// There was nothing to do, or nothing was done.
    Nothing,
    /// The outcome is unknown: the wanted configuration may be pending.
    Unknown,
}

impl History {
    /// A reconfiguration of the domain begins, whose last final configuration known to the client has the index
    /// `after`. `wanted`: `None` if it finishes a pending one of others.
    pub(crate) fn begin_change(
        &mut self,
        now: Instant,
        client: usize,
        (domain, after): (usize, u32),
        wanted: Option<&Descriptor>,
    ) -> Operation {
        self.operations += 1;
        let operation = Operation {
            id: self.operations,
            client,
            kind: Kind::Reconfig(after),
            object: (domain, String::new()),
            value: None,
            floor: areo_core::tag::Tag::default(),
        };
        let wanted = wanted.map_or(PENDING.to_owned(), name);
        self.change(&now.into(), &operation, "invoke", (Some(wanted), None));
        operation
    }

    /// Writes down the end of a reconfiguration.
    pub(crate) fn end_change(
        &mut self,
        ended: &OperationEnd,
        operation: &Operation,
        change: &Change<'_>,
    ) {
        let (event, decided) = match change {
            Change::Decided(c) => {
                let (name, index) = (name(c.descriptor()), c.id().index);
                ("ok", (Some(name), Some(index)))
            }
            Change::Nothing => ("fail", (None, None)),
            Change::Unknown => ("unknown", (None, None)),
        };
        self.change(ended, operation, event, decided);
    }

    fn change(
        &mut self,
        when: &OperationEnd,
        operation: &Operation,
        event: &str,
        (configuration, index): (Option<String>, Option<u32>),
    ) {
        let Kind::Reconfig(after) = operation.kind else {
            unreachable!("it began as a reconfiguration");
        };
        let fields = [quoted(configuration), quoted(index), quoted(Some(after))];
        self.line(when, operation, event, &fields, "");
    }
}
