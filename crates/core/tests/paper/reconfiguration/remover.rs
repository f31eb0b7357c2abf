//! Removers that die after any of their quorum calls. Another removal finishes what they left, from every step.

use super::gate::{Gate, GatedEnv, until_death};
use super::{move_to, reconfigure};
use crate::world::{Message, World, configuration, server, successor};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dsm::Client;
use areo_core::error::{Response, WriteError};
use areo_core::manager::{self, Creation, Removal};
use areo_core::message::Refusal;
use areo_core::object::DomainId;
use areo_core::reconfig::ReconfigError;
use std::sync::Arc;
use std::time::Duration;

/// Members of each configuration.
const N: usize = 3;
const NAME: &str = "photos";

/// Events of the domain between the first remover's look at the directory and the second removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Domain {
    Quiet,
    /// Its first configuration was replaced, and the directory hears of that after the first remover has looked.
    Moved,
    /// Its first configuration was replaced as for `Moved`, and another configuration is pending.
    Moving,
}

/// The fate of the requests of the remover's last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Lost,
    /// The first member of each configuration gets one.
    One,
    Arrive,
}

struct Case {
    world: World,
    root: Arc<Configuration>,
    first: Arc<Configuration>,
    /// The last one that is final before the domain is removed.
    last: Arc<Configuration>,
}

impl Case {
    fn new(domain: Domain) -> Case {
        let root = configuration(N, Dap::Abd, 1, 0);
        let world = World::of(&root, 4 * N, 1);
        let first = Case::first(&root, 11);
        let mut case = Case {
            last: first.clone(),
            world,
            root,
            first,
        };
        assert_eq!(case.create(11), Creation::Created);
        case.world.actor(&case.first).put("k", "old");
        if domain != Domain::Quiet {
            // The reconfigurer dies before it tells the directory.
            let next = successor(&case.first, 2 * N, N, Dap::Abd);
            move_to(&case.world, &case.world.actor(&case.first), &next);
            case.last = next;
        }
        if domain == Domain::Moving {
            let next = successor(&case.last, 3 * N, N, Dap::Abd);
            let gate = Gate::after(6);
            let client = Client::new(GatedEnv::new(case.world.env(), &gate));
            let moving = until_death(gate, reconfigure(client, &case.first, &next));
            assert_eq!(case.world.run(moving), None);
        }
        case.world.settle();
        case
    }

    /// The first configuration of a domain beside the root domain.
    fn first(root: &Configuration, domain: u128) -> Arc<Configuration> {
        let first = Descriptor {
            domain: DomainId(domain),
            members: (N..2 * N).map(server).collect(),
            ..root.descriptor().clone()
        };
        Configuration::new(first).expect("it is valid")
    }

    fn create(&self, domain: u128) -> Creation {
        let (client, root) = (Client::new(self.world.env()), self.root.clone());
        let first = Case::first(&root, domain);
        let created = async move { client.root(&root).create_domain(NAME, &first).await };
        self.world.run(created).expect("a quorum is up")
    }

    /// Runs a remover that dies after this number of calls. Returns whether it died.
    fn die(&self, calls: usize, fate: Fate) -> bool {
        let (gate, root) = (Gate::after(calls), self.root.clone());
        let client = Client::new(GatedEnv::new(self.world.env(), &gate));
        let remove = async move { client.root(&root).remove_domain(NAME).await };
        let died = self.world.run(until_death(gate, remove)).is_none();
        let first = |m: &Message| (0..4).any(|group| m.at(&[group * N]));
        match fate {
            Fate::Lost => drop(self.world.lose(|_| true)),
            Fate::One => drop(self.world.lose(|m| !first(m))),
            Fate::Arrive => {}
        }
        self.world.settle();
        died
    }

    /// The directory hears of the last configuration before the removal that is final.
    fn tell_directory(&self) {
        let (client, root) = (Client::new(self.world.env()), self.root.clone());
        let last = self.last.clone();
        let told = async move { client.domain(&last).announce(&root).await };
        self.world.run(told).expect("a quorum is up");
        self.world.settle();
    }

    /// Operations through an old handle work, or say that the domain is removed.
    fn operate(&self, case: &str) {
        let actor = self.world.actor(&self.first);
        let Err(WriteError::NotApplied(failed) | WriteError::Unknown(failed)) =
            self.world.run(actor.write("k", "new"))
        else {
            return;
        };
        let removed = Response::Refused(Refusal::Removed);
        let says = |(_, response): &(_, Response)| *response == removed;
        assert!(failed.servers.iter().any(says), "{case}: {failed:?}");
    }

    fn is_listed(&self) -> bool {
        let (client, root) = (Client::new(self.world.env()), self.root.clone());
        let domains = self
            .world
            .run(async move { client.root(&root).domains().await });
        !domains.expect("a quorum is up").is_empty()
    }

    fn remove(&self) -> Result<Removal, manager::RemovalError> {
        let (client, root) = (Client::new(self.world.env()), self.root.clone());
        let removed = self
            .world
            .run(async move { client.root(&root).remove_domain(NAME).await });
        self.world.settle();
        removed
    }

    /// Nothing is left, and the name is free.
    fn assert_gone(&self, case: &str) {
        assert_eq!(self.remove(), Ok(Removal::NotFound), "{case}");
        // What is superseded goes when the replies that may need it have left.
        self.world.pass(Duration::from_secs(1));
        for number in 0..self.world.servers() {
            let left = self.world.disk(number, |disk| disk.elements());
            assert_eq!(left, 0, "{case}: at server {number}");
        }
        let late = self.world.actor(&self.first);
        let next = successor(&late.c, 0, N, Dap::Abd);
        let done = self.world.run(reconfigure(late.client(), &late.c, &next));
        assert_eq!(done, Err(ReconfigError::Removed), "{case}");
        assert_eq!(self.create(12), Creation::Created, "{case}");
        let new = self.world.actor(&Case::first(&self.root, 12));
        assert_eq!(new.get("k").1, None, "{case}");
        new.put("k", "new");
        self.world.assert_one_chain();
    }
}

#[test]
fn another_removal_finishes_what_a_remover_left_at_any_step() {
    for domain in [Domain::Quiet, Domain::Moved, Domain::Moving] {
        for fate in [Fate::Lost, Fate::One, Fate::Arrive] {
            for calls in 0.. {
                let what = format!("{domain:?}, death after call {calls}, {fate:?}");
                let case = Case::new(domain);
                let died = case.die(calls, fate);
                case.tell_directory();
                case.operate(&what);
                let expected = match case.is_listed() {
                    true => Removal::Removed,
                    false => Removal::NotFound,
                };
                assert_eq!(case.remove(), Ok(expected), "{what}");
                case.assert_gone(&what);
                if !died {
                    assert!(calls > 6, "it has more calls than {calls}");
                    break;
                }
            }
        }
    }
}
