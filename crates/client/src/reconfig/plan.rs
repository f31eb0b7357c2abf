//! The effect of a change, before it is made.

use crate::cluster::{ConfigurationInfo, Health, ServerStatus};
use crate::session::{Context, STATUS_PATIENCE};
use areo_core::config::Configuration;
use serde::{Serialize, Serializer};

/// The effect that a change would have.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The last configuration, which is to be replaced.
    pub old: ConfigurationInfo,
    /// The one that is to come.
    pub new: ConfigurationInfo,
    /// True if the servers are the same, apart from their places.
    pub unchanged: bool,
    /// Pending configurations that another client installs, or left; the last one is `old`. They are finished first.
    pub pending: Vec<ConfigurationInfo>,
    /// Servers of the new configuration that do not serve.
    pub unreachable: Vec<UnreachableServer>,
    /// Elements of a value that may be lost now before the value is: as [`Shape::fragments_spare`](crate::Shape::fragments_spare)
    /// for the old configuration, without its members that do not answer, or did not find themselves in possession of their part of every
    /// object when they last looked.
    pub spare_now: usize,
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
    /// Name of the server.
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

    /// The source of the counts of objects to move: `listing`, or `beginning of the listing` if there is more.
    pub fn counted(&self) -> &'static str {
        if self.more {
            "beginning of the listing"
        } else {
            "listing"
        }
    }
}

/// Elements of a value that may be lost now before the value is ([`Plan::spare_now`]).
pub(super) async fn spare_now(context: &Context, c: &Configuration) -> usize {
    let patience = context.timeout().min(STATUS_PATIENCE);
    let health = context.health(c.members(), patience).await;
    let is_whole = |it: &&Health| it.answered().is_some_and(is_whole);
    let whole = health.iter().filter(is_whole).count();
    whole.saturating_sub(c.dap().k().into())
}

/// The server held its part of every object when it last looked, and nothing of it is known to be damaged.
fn is_whole(status: &ServerStatus) -> bool {
    status.serving && status.lacking == 0 && status.damaged == 0 && status.proven_ms.is_some()
}

fn pick<'a>(of: &'a ConfigurationInfo, other: &ConfigurationInfo, both: bool) -> Vec<&'a str> {
    let is_in_both = |id| other.members.iter().any(|member| member.id == id);
    let wanted = of.members.iter().filter(|m| is_in_both(m.id) == both);
    wanted.map(|member| member.name.as_str()).collect()
}

/// A plan is serialised with the names of servers that are `added`, `removed` and `kept`, the indices of `pending` configurations, with `counted` for
/// `more`, and with `fragments_spare_now` for `spare_now`.
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
            fragments_spare_now: usize,
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
            fragments_spare_now: self.spare_now,
            objects: self.objects,
            bytes: self.bytes,
            element_bytes: self.element_bytes,
            sent_bytes: self.sent_bytes,
            counted: self.counted(),
        };
        parts.serialize(serializer)
    }
}
