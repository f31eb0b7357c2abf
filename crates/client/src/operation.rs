//! Operations: one name of each, for errors, metrics and traces.

/// An operation. Errors say which one failed; metrics count those that callers ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A write of an object.
    Put,
    /// A write of an object on a condition.
    WriteIf,
    /// A read of an object.
    Get,
    /// A read of an object's metadata.
    Stat,
    /// A deletion of an object.
    Delete,
    /// A listing of objects.
    List,
    /// Looking for blocks that no object needs.
    Sweep,
    /// Changing the configuration of a domain.
    Reconfigure,
    /// A write of what changed in a file.
    FilePush,
    /// A read of what changed in a file.
    FilePull,
    /// A read of a file.
    FileRead,
    /// A removal of a file.
    FileRemove,
    /// Looking a domain up by its name.
    FindDomain,
    /// The creation of a domain.
    CreateDomain,
    /// The removal of a domain.
    RemoveDomain,
    /// A listing of the domains.
    ListDomains,
    /// Asking which servers there are.
    ListServers,
    /// Asking which configurations a domain has.
    ReadSequence,
    /// Bringing objects to all members.
    Repair,
    /// Taking the number of a start on some hardware.
    Reincarnate,
}

const _: () = {
    let mut place = 0;
    while place < Operation::COUNTED.len() {
        assert!(
            Operation::COUNTED[place].0 as usize == place,
            "each stands at its number"
        );
        place += 1;
    }
};

impl Operation {
    /// The operations that are counted, with their words in metrics. They are the first ones: each stands at its number.
    pub(crate) const COUNTED: [(Operation, &'static str); 12] = [
        (Operation::Put, "put"),
        (Operation::WriteIf, "write_if"),
        (Operation::Get, "get"),
        (Operation::Stat, "stat"),
        (Operation::Delete, "delete"),
        (Operation::List, "list"),
        (Operation::Sweep, "sweep"),
        (Operation::Reconfigure, "reconfigure"),
        (Operation::FilePush, "file_push"),
        (Operation::FilePull, "file_pull"),
        (Operation::FileRead, "file_read"),
        (Operation::FileRemove, "file_remove"),
    ];

    /// True if it changes stored data.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Operation::Put
                | Operation::WriteIf
                | Operation::Delete
                | Operation::FilePush
                | Operation::FileRemove
                | Operation::CreateDomain
                | Operation::RemoveDomain
                | Operation::Reconfigure
                | Operation::Reincarnate
        )
    }

    /// A noun for the effect that may have happened if the outcome is unknown.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Operation::Delete | Operation::FileRemove => "delete",
            Operation::CreateDomain => "creation",
            Operation::RemoveDomain => "removal",
            Operation::Reconfigure => "change",
            _ => "write",
        }
    }
}
