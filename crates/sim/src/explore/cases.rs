//! The cases, by name.

use super::{Case, Digest, Identity, Operation, linearizable};
use areo_core::config::{Configuration, Dap, Descriptor, ServerId};
use areo_core::limits::{RANKED_VERSIONS, UNCONFIRMED_ELEMENTS};
use areo_core::object::{DomainId, Name};
use areo_core::tag::{ClientId, Tag, Writer};
use reconfigure::Transfer;
use std::rc::Rc;
use std::sync::Arc;

pub mod agreement;
pub mod becoming;
pub mod cap;
pub mod conditional;
pub mod full;
mod mailbox;
pub mod reconfigure;
pub mod start;

/// A case of the table.
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    make: fn() -> Case,
}

impl Entry {
    /// Makes the case, with its clients and their operations.
    pub fn case(&self) -> Case {
        Case {
            name: self.name,
            ..(self.make)()
        }
    }
}

pub const ALL: &[Entry] = &[
    Entry {
        name: "abd-3",
        make: abd,
    },
    Entry {
        name: "abd-3-writers",
        make: abd_writers,
    },
    Entry {
        name: "ec-4-2",
        make: ec,
    },
    Entry {
        name: "ec-2-1",
        make: ec_two,
    },
    Entry {
        name: "ec-3-2",
        make: ec_odd,
    },
    Entry {
        name: "ec-4-2-crash",
        make: ec_crash,
    },
    Entry {
        name: "cas-3",
        make: cas,
    },
    Entry {
        name: "cas-4-2",
        make: cas_coded,
    },
    Entry {
        name: "cas-4-2-crash",
        make: cas_crash,
    },
    Entry {
        name: "cas-writers",
        make: cas_writers,
    },
    Entry {
        name: "casgc-writers",
        make: casgc_writers,
    },
    Entry {
        name: "casss-4-2",
        make: casss,
    },
    Entry {
        name: "casss-writers",
        make: casss_writers,
    },
    Entry {
        name: "one-round-read",
        make: one_round,
    },
    Entry {
        name: "one-round-read-unconfirmed",
        make: one_round_unconfirmed,
    },
    Entry {
        name: "reconfigure",
        make: || reconfigure::case(Dap::Abd, 3, Transfer::Closing),
    },
    Entry {
        name: "reconfigure-ec-4-2",
        make: || reconfigure::case(Dap::Ec { k: 2 }, 4, Transfer::Closing),
    },
    Entry {
        name: "reconfigure-cas",
        make: || reconfigure::case(Dap::Cas { k: 1 }, 3, Transfer::Closing),
    },
    Entry {
        name: "two-reconfigure",
        make: || reconfigure::two(2, Transfer::Closing),
    },
    Entry {
        name: "cap-2-2",
        make: cap::two,
    },
    Entry {
        name: "cap-4-2-crash",
        make: cap::one_stops,
    },
    Entry {
        name: "cap-2-2-writers",
        make: cap::writers,
    },
    Entry {
        name: "cap-2-2-last-place",
        make: cap::last_place,
    },
    Entry {
        name: "full-4-2",
        make: full::put_and_read,
    },
    Entry {
        name: "full-4-2-reads",
        make: full::reads,
    },
    Entry {
        name: "full-4-2-left",
        make: full::left,
    },
    Entry {
        name: "conditional-2-all",
        make: conditional::all,
    },
    Entry {
        name: "conditional-3-once",
        make: conditional::once,
    },
    Entry {
        name: "conditional-cap",
        make: conditional::cap,
    },
    Entry {
        name: "conditional-3-read",
        make: conditional::read,
    },
    Entry {
        name: "conditional-moves",
        make: becoming::stays,
    },
    Entry {
        name: "conditional-3-two",
        make: conditional::two,
    },
    Entry {
        name: "conditional-3-reader",
        make: conditional::reader,
    },
    Entry {
        name: "conditional-two-move",
        make: becoming::two,
    },
    Entry {
        name: "conditional-3-mixed",
        make: conditional::mixed,
    },
    Entry {
        name: "conditional-4-2",
        make: conditional::coded,
    },
    Entry {
        name: "to-abd",
        make: becoming::back,
    },
    Entry {
        name: "to-abd-over",
        make: becoming::back_over,
    },
    Entry {
        name: "from-abd",
        make: becoming::one,
    },
    Entry {
        name: "mailbox-3",
        make: mailbox::two,
    },
    Entry {
        name: "la-3",
        make: agreement::two,
    },
    Entry {
        name: "sm-4-2",
        make: agreement::announced,
    },
    Entry {
        name: "leader-3",
        make: agreement::led,
    },
    Entry {
        name: "spsn-3",
        make: || agreement::speculating(agreement::Helper::Proposing),
    },
    Entry {
        name: "snapshot-3",
        make: agreement::snapshot,
    },
    Entry {
        name: "spsn-3-handed",
        make: agreement::handed_on,
    },
    Entry {
        name: "rolled-back-start",
        make: start::rolled_back,
    },
    Entry {
        name: "copied-start",
        make: start::copied,
    },
    Entry {
        name: "told-start",
        make: start::told,
    },
];

/// The case of this name.
pub fn find(name: &str) -> Option<Case> {
    ALL.iter().find(|entry| entry.name == name).map(Entry::case)
}

/// A configuration of `n` servers, numbered from 1, of which nobody but its cases knows.
pub fn configuration(n: usize, dap: Dap) -> Arc<Configuration> {
    let members = (1..=n).map(|server| ServerId(server as u128)).collect();
    Configuration::new(Descriptor {
        delta: 0,
        copy_bytes: 0,
        ..Descriptor::new(DomainId(1), members, dap)
    })
    .expect("a valid descriptor")
}

/// The object of a case.
pub fn object() -> Name {
    Name::user("x").expect("a short key")
}

/// A version that a writer of this number puts first.
pub fn version(client: u64) -> Tag {
    let writer = Writer {
        client: ClientId(client),
        counter: 1,
    };
    Tag { number: 1, writer }
}

/// The common part of most cases: servers that stay up, in one configuration, with one object, and no clients.
fn plain(c: &Arc<Configuration>) -> Case {
    Case {
        name: "",
        description: String::new(),
        bound: "patience runs out only when no answer is to come".to_owned(),
        servers: c.members().to_vec(),
        configurations: vec![c.clone()],
        before: Vec::new(),
        subjects: vec![(c.clone(), object())],
        probes: Vec::new(),
        clients: Vec::new(),
        crashes: 0,
        ticks: 0,
        notes: false,
        speaks: false,
        gossips: Vec::new(),
        max_unconfirmed: UNCONFIRMED_ELEMENTS,
        max_ranked: RANKED_VERSIONS,
        quiet: false,
        full: Vec::new(),
        fills: Vec::new(),
        digest: Digest::Answers,
        identity: Identity::Said,
        judge: linearizable(),
    }
}

/// A case of reads and writes of one object: `R` reads, anything else writes itself.
pub fn register(c: &Arc<Configuration>, programs: &[&[&str]]) -> Case {
    let name = object();
    let operation = |text: &&str| match *text {
        "R" => Operation::read(c, &name),
        value => Operation::write(c, &name, value),
    };
    let program = |texts: &&[&str]| texts.iter().map(operation).collect::<Rc<[Operation]>>();
    let sentence: Vec<String> = programs.iter().map(|texts| texts.join(" then ")).collect();
    Case {
        description: format!("{} n={}: {}", c.dap(), c.n(), sentence.join(" || ")),
        bound: "patience runs out at most once per operation while answers are to come".to_owned(),
        clients: programs.iter().map(program).collect(),
        ticks: 1,
        notes: true,
        ..plain(c)
    }
}

fn abd() -> Case {
    register(&configuration(3, Dap::Abd), &[&["a"], &["R", "R"]])
}

fn abd_writers() -> Case {
    register(&configuration(3, Dap::Abd), &[&["a", "R"], &["b"]])
}

fn ec() -> Case {
    register(&configuration(4, Dap::Ec { k: 2 }), &[&["a"], &["R", "R"]])
}

/// n + k is odd, and a quorum of one less would not meet another.
fn ec_two() -> Case {
    register(
        &configuration(2, Dap::Ec { k: 1 }),
        &[&["a", "R"], &["b", "R"]],
    )
}

/// n + k is odd: a quorum is the larger half, here all of them.
fn ec_odd() -> Case {
    register(
        &configuration(3, Dap::Ec { k: 2 }),
        &[&["a"], &["b"], &["R"]],
    )
}

fn ec_crash() -> Case {
    let c = configuration(4, Dap::Ec { k: 2 });
    one_stops(register(&c, &[&["a"], &["R", "R"]]))
}

fn one_stops(case: Case) -> Case {
    Case {
        description: format!("{}; one server stops", case.description),
        crashes: 1,
        ..patient(case)
    }
}

fn cas() -> Case {
    let c = configuration(3, Dap::Cas { k: 1 });
    patient(register(&c, &[&["a"], &["R", "R"]]))
}

fn cas_coded() -> Case {
    let c = configuration(4, Dap::Cas { k: 2 });
    patient(register(&c, &[&["a"], &["R", "R"]]))
}

fn patient(case: Case) -> Case {
    Case {
        bound: "patience runs out only when no answer is to come".to_owned(),
        ticks: 0,
        ..case
    }
}

fn cas_crash() -> Case {
    let c = configuration(4, Dap::Cas { k: 2 });
    one_stops(register(&c, &[&["a"], &["R", "R"]]))
}

/// A server shows all that it holds: two versions at most.
fn cas_writers() -> Case {
    let c = configuration(2, Dap::Cas { k: 1 });
    let shown = Descriptor {
        delta: 1,
        ..c.descriptor().clone()
    };
    let c = Configuration::new(shown).expect("a valid descriptor");
    register(&c, &[&["a", "R"], &["b", "R"]])
}

/// A version goes as soon as a larger one is finalized.
fn casgc_writers() -> Case {
    let c = configuration(2, Dap::CasGc { k: 1 });
    register(&c, &[&["a", "R"], &["b", "R"]])
}

/// A server sends gossip once.
fn casss() -> Case {
    let c = configuration(4, Dap::CasSs { k: 2 });
    gossiping(patient(register(&c, &[&["a"], &["R"]])), 1)
}

fn casss_writers() -> Case {
    let c = configuration(2, Dap::CasSs { k: 1 });
    gossiping(register(&c, &[&["a", "R"], &["b"]]), 2)
}

/// Lets the first `speakers` servers of the case gossip, each once.
fn gossiping(case: Case, speakers: usize) -> Case {
    let gossips: Vec<ServerId> = case.servers.iter().copied().take(speakers).collect();
    Case {
        description: format!("{}; {speakers} of the servers gossip", case.description),
        speaks: true,
        gossips,
        ..case
    }
}

fn one_round() -> Case {
    register(&configuration(3, Dap::Abd), &[&["a", "R"], &["R"]])
}

fn one_round_unconfirmed() -> Case {
    let case = one_round();
    Case {
        description: format!("{}; every confirmation is lost", case.description),
        notes: false,
        ..case
    }
}
