//! The kinds of operations in histories.

use areo_core::tag::Tag;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    /// It may not agree with others about the order of concurrent writes.
    RegularRead,
    Write,
    /// Coverable, on this version.
    CvrWrite(Tag),
    /// On this version, with one winner.
    ConditionalWrite(Tag),
    /// If there is no object, with one winner.
    Creation,
    Delete,
    /// A deletion of this version, with one winner.
    ConditionalDelete(Tag),
    /// A reconfiguration of the domain. The configuration of this index was final when it began.
    Reconfig(u32),
}

impl Kind {
    /// The version that it is to replace, if it names one.
    pub(super) fn base(self) -> Option<Tag> {
        match self {
            Kind::CvrWrite(base) | Kind::ConditionalWrite(base) | Kind::ConditionalDelete(base) => {
                Some(base)
            }
            Kind::Read
            | Kind::RegularRead
            | Kind::Write
            | Kind::Creation
            | Kind::Delete
            | Kind::Reconfig(_) => None,
        }
    }

    pub(super) fn is_read(self) -> bool {
        matches!(self, Kind::Read | Kind::RegularRead)
    }

    /// True if the operation makes the object absent when it succeeds.
    pub(super) fn deletes(self) -> bool {
        matches!(self, Kind::Delete | Kind::ConditionalDelete(_))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::RegularRead => "regular_read",
            Kind::Write => "write",
            Kind::CvrWrite(_) => "cvr_write",
            Kind::ConditionalWrite(_) | Kind::Creation | Kind::ConditionalDelete(_) => {
                "conditional_write"
            }
            Kind::Delete => "delete",
            Kind::Reconfig(_) => "reconfig",
        }
    }
}
