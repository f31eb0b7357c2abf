//! The operations of a load.

use crate::target::TargetName;
use crate::words::words;

words! {
    /// An operation of clients.
    pub enum Operation, "operation of clients" {
        /// A put.
        Put => "put",
        /// A get.
        Get => "get",
        /// Each puts an object of its own on the version that it knows.
        PutIf => "put-if",
        /// All of them increment one counter.
        Increment => "increment",
        /// A listing of all objects of a size, with their names and lengths.
        List => "list",
        /// A listing of the level above, where all those objects are one entry.
        ListFolder => "list-folder",
    }
}

impl Operation {
    /// True if a history of it can be judged.
    pub const fn is_recorded(self) -> bool {
        matches!(self, Operation::Put | Operation::Get)
    }

    /// True if a trace of it is broken down. An increment is a read and a write, which are traced one by one.
    pub(crate) const fn is_traced(self) -> bool {
        matches!(self, Operation::Put | Operation::Get | Operation::PutIf)
    }

    /// True if this store is asked to do it.
    pub const fn is_possible_at(self, target: TargetName) -> bool {
        match self {
            Operation::Put | Operation::Get => true,
            Operation::PutIf | Operation::Increment => target.compares_and_sets(),
            Operation::List | Operation::ListFolder => target.is_s3(),
        }
    }
}
