//! A cluster for tests: s1 to s3 with a domain of copies and the root domain, and the spare s4. All see all, and have done so for an hour.

use crate::guard::{Actor, Level};
use crate::records::{DomainRecord, Observer, Records, ServerRecord, View};

pub(crate) const NOW_MS: u64 = 100 * 3_600_000;
pub(crate) const ACTING: Actor = Actor {
    level: Level::Act,
    holds_lease: true,
};

pub(crate) fn cluster() -> Records {
    cluster_of(4, &["s1", "s2", "s3"])
}

/// A cluster of so many servers with these members of both domains.
pub(crate) fn cluster_of(servers: usize, members: &[&str]) -> Records {
    let names: Vec<String> = (1..=servers).map(|i| format!("s{i}")).collect();
    let server = |name: &String| ServerRecord {
        name: name.clone(),
        serving_since_ms: Some(NOW_MS - 3_600_000),
        stored_bytes: 10 << 30,
        used_bytes: 10 << 30,
        capacity_bytes: 100 << 30,
        ..ServerRecord::default()
    };
    let domain = |name: &str, grows| DomainRecord {
        name: name.into(),
        members: members.iter().map(|it| (*it).to_owned()).collect(),
        k: 1,
        is_replicated: true,
        grows,
        objects: 10,
        member_bytes: 1 << 30,
        ..DomainRecord::default()
    };
    let pairs = names.iter().flat_map(|a| names.iter().map(move |b| (a, b)));
    let view = |(observer, server): (&String, &String)| View {
        observer: Observer::Server(observer.clone()),
        server: server.clone(),
        unreachable_since_ms: None,
        suspicion: Some(0.0),
        slow_windows: 0,
        sampled_ms: NOW_MS,
    };
    Records {
        views: pairs.filter(|(a, b)| a != b).map(view).collect(),
        servers: names.iter().map(server).collect(),
        domains: vec![domain("@root", true), domain("d", false)],
        observed_ms: 3_600_000,
        servers_changed: false,
    }
}

impl Records {
    pub(crate) fn edit(&mut self, server: &str) -> &mut ServerRecord {
        self.servers
            .iter_mut()
            .find(|it| it.name == server)
            .unwrap()
    }

    pub(crate) fn domain_mut(&mut self, domain: &str) -> &mut DomainRecord {
        self.domains
            .iter_mut()
            .find(|it| it.name == domain)
            .unwrap()
    }

    pub(crate) fn view_mut(&mut self, observer: &str, server: &str) -> &mut View {
        let observer = Observer::Server(observer.into());
        let mut views = self.views.iter_mut();
        views
            .find(|it| it.observer == observer && it.server == server)
            .unwrap()
    }

    /// These observers have not reached the server for so many seconds.
    pub(crate) fn cut(&mut self, observers: &[&str], server: &str, seconds: u64) {
        for observer in observers {
            let view = self.view_mut(observer, server);
            view.unreachable_since_ms = Some(NOW_MS - seconds * 1000);
            view.suspicion = Some(20.0);
        }
    }

    /// The server is gone for so many seconds: it answers and sees nothing any more.
    pub(crate) fn kill(&mut self, server: &str, seconds: u64) {
        let others: Vec<String> = self.servers.iter().map(|it| it.name.clone()).collect();
        let others: Vec<&str> = others
            .iter()
            .map(String::as_str)
            .filter(|it| *it != server)
            .collect();
        self.cut(&others, server, seconds);
        for other in others {
            self.view_mut(server, other).sampled_ms = NOW_MS - seconds * 1000;
        }
        self.edit(server).serving_since_ms = None;
    }
}
