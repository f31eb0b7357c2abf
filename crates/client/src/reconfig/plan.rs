//! What a change would do.

use crate::cluster::ConfigurationInfo;
use serde::{Serialize, Serializer};

/// What a change would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The last configuration, which is to be replaced.
    pub old: ConfigurationInfo,
    /// The one that is to come.
    pub new: ConfigurationInfo,
    /// They are the same, but for their places.
    pub unchanged: bool,
    /// Pending configurations that another client installs, or left; the last one is `old`. They are finished first.
    pub pending: Vec<ConfigurationInfo>,
    /// Servers of the new configuration that do not serve.
    pub unreachable: Vec<UnreachableServer>,
    /// Objects and blocks of files that have to be moved, by a listing; without those that were deleted, and without the blocks
    /// of large objects, which are counted as one object each.
    pub objects: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Bytes of the elements that the new configuration makes of them, for all servers together.
    pub element_bytes: u64,
    /// Bytes of those elements that have to be sent, because their servers hold nothing that they could be made of.
    pub sent_bytes: u64,
    /// There are more objects than were listed.
    pub more: bool,
}

/// A server that does not serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreachableServer {
    /// Its name.
    pub server: String,
    /// Why: `starting`, `connection refused`, ...
    pub reason: String,
}

impl Plan {
    /// Names of servers that come.
    pub fn added(&self) -> Vec<&str> {
        pick(&self.new, &self.old, false)
    }

    /// Names of servers that go.
    pub fn removed(&self) -> Vec<&str> {
        pick(&self.old, &self.new, false)
    }

    /// Names of servers that stay.
    pub fn kept(&self) -> Vec<&str> {
        pick(&self.new, &self.old, true)
    }

    /// How what has to be moved was counted: `listing`, or `beginning of the listing` if there is more.
    pub fn counted(&self) -> &'static str {
        if self.more {
            "beginning of the listing"
        } else {
            "listing"
        }
    }
}

fn pick<'a>(of: &'a ConfigurationInfo, other: &ConfigurationInfo, both: bool) -> Vec<&'a str> {
    let is_in_both = |id| other.members.iter().any(|member| member.id == id);
    let wanted = of.members.iter().filter(|m| is_in_both(m.id) == both);
    wanted.map(|member| member.name.as_str()).collect()
}

/// With the names of servers that are `added`, `removed` and `kept`, the indices of `pending` configurations, and with `counted`
/// for `more`.
impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Parts<'a> {
            unchanged: bool,
            old: &'a ConfigurationInfo,
            new: &'a ConfigurationInfo,
            added: Vec<&'a str>,
            removed: Vec<&'a str>,
            kept: Vec<&'a str>,
            unreachable: &'a [UnreachableServer],
            pending: Vec<u32>,
            objects: u64,
            bytes: u64,
            element_bytes: u64,
            sent_bytes: u64,
            counted: &'static str,
        }
        let parts = Parts {
            unchanged: self.unchanged,
            old: &self.old,
            new: &self.new,
            added: self.added(),
            removed: self.removed(),
            kept: self.kept(),
            unreachable: &self.unreachable,
            pending: self.pending.iter().map(|c| c.index).collect(),
            objects: self.objects,
            bytes: self.bytes,
            element_bytes: self.element_bytes,
            sent_bytes: self.sent_bytes,
            counted: self.counted(),
        };
        parts.serialize(serializer)
    }
}
