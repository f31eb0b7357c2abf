//! The state of servers and domains that rules judge: smoothed signals, each with the time since when it is so.
//!
//! Times are milliseconds by the clock of the instance that observed.

use std::collections::BTreeSet;

/// The state of a cluster.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Records {
    /// Servers of the cluster, by name.
    pub servers: Vec<ServerRecord>,
    /// Domains, the root domain included.
    pub domains: Vec<DomainRecord>,
    /// The views that servers, and this instance, have of servers.
    pub views: Vec<View>,
    /// The time for which this instance has observed.
    pub observed_ms: u64,
    /// Servers came or went in the last day.
    pub servers_changed: bool,
}

/// The record of one server.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ServerRecord {
    /// The name of the server.
    pub name: String,
    /// The label that says where it stands.
    pub zone: Option<String>,
    /// The label that says which machine or disk it has.
    pub class: Option<String>,
    /// An operator labelled it to be emptied.
    pub to_empty: bool,
    /// It is in maintenance until this time, as people read it; `None`: it is not.
    pub maintenance: Option<String>,
    /// An operator takes it out: `server drain` or `server replace` has marked it.
    pub leaving: bool,
    /// It serves without a pause since then, as this instance sees it.
    pub serving_since_ms: Option<u64>,
    /// Windows in a row in which its sync took far longer than the median of its configuration.
    pub slow_sync_windows: u32,
    /// The age of a sync that has not ended.
    pub sync_running_ms: u64,
    /// Errors that its disk reported in the last day.
    pub io_errors: u64,
    /// Elements that were found corrupted in the last day.
    pub corrupted: u64,
    /// Starts of its process in the last day.
    pub restarts: u64,
    /// The report of its disk on itself; `None`: there is none.
    pub smart: Option<Smart>,
    /// Bytes that its store takes.
    pub stored_bytes: u64,
    /// It refuses writes for want of room: its disk, or its part of the disk, is full.
    pub is_full: bool,
    /// Bytes in use on its disk, by others too.
    pub used_bytes: u64,
    /// Bytes that its disk holds; 0: not known.
    pub capacity_bytes: u64,
    /// Growth of the bytes in use, over six hours.
    pub growth_bytes_per_hour: f64,
}

/// The report of a disk on itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Smart {
    /// The largest number of rises of one of the counters 5, 187, 197, 198.
    pub rises: u32,
    /// A critical warning of an `NVMe` disk.
    pub is_critical: bool,
    /// The part of its life that is used.
    pub wear_percent: u8,
}

/// A domain in its final configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DomainRecord {
    /// The name of the domain; `@root` of the root domain.
    pub name: String,
    /// Names of its members.
    pub members: Vec<String>,
    /// Servers whose fragments make a value; 1 for copies.
    pub k: usize,
    /// It keeps copies, and no fragments.
    pub is_replicated: bool,
    /// The root domain chooses members itself when servers come and go.
    pub grows: bool,
    /// A change is pending that nothing in the journal began.
    pub is_pending: bool,
    /// The number of objects in it.
    pub objects: u64,
    /// Bytes that one of its members holds of it.
    pub member_bytes: u64,
    /// Objects that are not at all of its members.
    pub below: u64,
    /// Objects are below redundancy since then.
    pub below_since_ms: Option<u64>,
}

impl DomainRecord {
    /// Crashes that a configuration of so many servers tolerates.
    pub fn f_of(&self, servers: usize) -> usize {
        servers.saturating_sub(self.k.max(1)) / 2
    }

    /// Crashes that its configuration tolerates.
    pub fn f(&self) -> usize {
        self.f_of(self.members.len())
    }

    /// True if this server is a member.
    pub fn has(&self, server: &str) -> bool {
        self.members.iter().any(|member| member == server)
    }

    /// The number of its members that are in this set.
    pub fn members_in(&self, servers: &BTreeSet<&str>) -> usize {
        let within = |member: &&String| servers.contains(member.as_str());
        self.members.iter().filter(within).count()
    }
}

/// The holder of a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Observer {
    /// The instance that evaluates. Its view counts for nothing.
    Instance,
    /// A server of the cluster, by name.
    Server(String),
}

/// The view that one observer has of a server.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// The holder of the view.
    pub observer: Observer,
    /// The server that is seen.
    pub server: String,
    /// The server is out of reach since then, in every sample.
    pub unreachable_since_ms: Option<u64>,
    /// The suspicion that its silence is no chance; `None`: it never answered this observer often enough.
    pub suspicion: Option<f64>,
    /// Windows in a row in which it answered far slower than the median of its configuration.
    pub slow_windows: u32,
    /// The time of the last sample.
    pub sampled_ms: u64,
}

impl View {
    /// True if the server is out of reach for all of this time, and its silence is no chance.
    pub fn is_gone_for(&self, ms: u64, suspicion: f64, now_ms: u64) -> bool {
        let is_long = |since_ms: u64| now_ms.saturating_sub(since_ms) >= ms;
        let is_sure = self.suspicion.is_none_or(|it| it >= suspicion);
        is_sure && self.unreachable_since_ms.is_some_and(is_long)
    }
}

impl Records {
    /// The record of a server.
    pub fn server(&self, name: &str) -> Option<&ServerRecord> {
        self.servers.iter().find(|it| it.name == name)
    }

    /// True if a server was taken out of all domains and does not serve: it says nothing about the network. One that serves is a witness.
    pub fn is_out(&self, server: &ServerRecord) -> bool {
        let is_member = self.domains.iter().any(|it| it.has(&server.name));
        server.leaving && server.serving_since_ms.is_none() && !is_member
    }

    /// The servers that are not out.
    pub fn within(&self) -> impl Iterator<Item = &ServerRecord> {
        self.servers.iter().filter(|it| !self.is_out(it))
    }

    /// The record of a domain.
    pub fn domain(&self, name: &str) -> Option<&DomainRecord> {
        self.domains.iter().find(|it| it.name == name)
    }

    /// The views that other servers have of this one, and that are not old.
    pub fn views_of<'a>(
        &'a self,
        server: &'a str,
        (now_ms, view_ms): (u64, u64),
    ) -> impl Iterator<Item = (&'a str, &'a View)> {
        self.views.iter().filter_map(move |view| {
            let Observer::Server(observer) = &view.observer else {
                return None;
            };
            let is_fresh = now_ms.saturating_sub(view.sampled_ms) <= view_ms;
            let counts = view.server == server && observer != server && is_fresh;
            counts.then_some((observer.as_str(), view))
        })
    }
}
