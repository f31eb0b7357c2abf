//! Changes over a lattice, which are merged or follow each other: Rambo, L-Rambo, SM, SpSn and DynaStore (`docs/spec` 6.3, 6.5).

use super::gate::{Gate, GatedEnv, until_death};
use super::{reconfigure, resume};
use crate::history::{History, Kind};
use crate::world::{Actor, Chaos, Message, World, configuration, server, with};
use areo_core::config::{
    Configuration, ConfigurationId, Dap, Decider, Descriptor, Membership, Options,
};
use areo_core::dsm::Client;
use areo_core::reconfig::{ReconfigError, ReconfigOutcome};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// A leader as decider, in the first configuration of a domain.
pub(super) const LEADER: Decider = Decider::Leader {
    owner: Tag::INITIAL.writer,
};

/// All deciders of lattices: Rambo, L-Rambo, SM, SpSn and DynaStore.
const DECIDERS: [Decider; 5] = [
    Decider::Members,
    LEADER,
    Decider::Agreement,
    Decider::Speculation,
    Decider::Snapshot,
];

/// The deciders with the kind that objects are kept by: SM also with fragments.
const WAYS: [(Decider, Dap); 6] = [
    (Decider::Members, Dap::Abd),
    (LEADER, Dap::Abd),
    (Decider::Agreement, Dap::Abd),
    (Decider::Speculation, Dap::Abd),
    (Decider::Snapshot, Dap::Abd),
    (Decider::Agreement, Dap::Ec { k: 2 }),
];

/// The first configuration of a domain with copies: of the first `n` servers.
pub(super) fn first(decided_by: Decider, n: usize) -> Arc<Configuration> {
    first_of(decided_by, Dap::Abd, n)
}

/// The first configuration of a domain: of the first `n` servers.
pub(super) fn first_of(decided_by: Decider, dap: Dap, n: usize) -> Arc<Configuration> {
    let plain = Membership::first((0..n).map(server));
    let membership = match dap.is_coded() {
        true => plain.with_slots(),
        false => plain,
    };
    let descriptor = Descriptor {
        members: membership.members(),
        lattice: Some(membership),
        decided_by,
        dap,
        ..configuration(1, Dap::Abd, 1, 0).descriptor().clone()
    };
    Configuration::new(descriptor).expect("a valid descriptor")
}

pub(super) fn membership(c: &Configuration) -> &Membership {
    c.descriptor().lattice.as_ref().expect("of a lattice")
}

/// True if the configuration has what the other one has.
pub(super) fn contains(c: &Configuration, other: &Configuration) -> bool {
    membership(other).is_within(membership(c))
}

/// `c` with this change.
pub(super) fn changed(
    c: &Configuration,
    change: impl FnOnce(&Membership) -> Membership,
) -> Arc<Configuration> {
    let changed = c.with_membership(change(membership(c)));
    changed.expect("a valid change")
}

fn replaced(c: &Configuration, old: usize, new: usize) -> Arc<Configuration> {
    changed(c, |it| it.without(server(old)).with(server(new)))
}

/// The configuration in which a change ended that must succeed.
pub(super) fn installed(
    ended: Result<ReconfigOutcome, ReconfigError>,
    case: &str,
) -> Arc<Configuration> {
    match ended {
        Ok(ReconfigOutcome::Installed(c) | ReconfigOutcome::Unchanged(c)) => c,
        other => panic!("{case}: {other:?}"),
    }
}

/// Adds the configurations that servers know now.
pub(super) fn see(world: &World, seen: &mut BTreeSet<ConfigurationId>) {
    for number in 0..world.servers() {
        world.disk(number, |disk| {
            seen.extend(disk.headers().filter_map(|header| match header {
                Header::Pointer { pointer, .. } => Some(pointer.configuration.id()),
                _ => None,
            }));
        });
    }
}

/// One reconfigurer is stopped before each of its calls in turn, while another one makes its change. Both changes are
/// made in the end, in each order, and nothing is lost.
#[test]
fn two_changes_at_once_are_both_made() {
    for (decided_by, dap) in WAYS {
        for limit in 0.. {
            let case = format!("{decided_by} {dap}, stopped before call {limit}");
            let c = first_of(decided_by.clone(), dap, 4);
            let world = World::of(&c, 6, 1);
            world.actor(&c).put("k", "v");
            let [one, other] = [replaced(&c, 0, 4), replaced(&c, 1, 5)];
            let gate = Gate::after(limit);
            let client = Client::new(GatedEnv::new(world.env(), &gate));
            let late = world.spawn(reconfigure(client, &c, &other));
            while late.borrow().is_none() && !gate.is_reached() {
                assert!(world.step(), "it ends, or stops");
            }
            let stopped = gate.is_reached();
            let done = world.run(reconfigure(world.actor(&c).client(), &c, &one));
            assert!(contains(&installed(done, &case), &one), "{case}");
            let written = world.actor(&c).put("k", "w");
            gate.open();
            while late.borrow().is_none() {
                assert!(world.step(), "it ends");
            }
            let ended = late.borrow_mut().take().expect("it has ended");
            let last = installed(ended, &case);
            assert!(contains(&last, &other), "{case}");
            world.settle();
            let both = membership(&one).join(membership(&other));
            let again = changed(&c, |_| both.clone());
            let done = world.run(reconfigure(world.actor(&c).client(), &c, &again));
            let Ok(ReconfigOutcome::Unchanged(again)) = done else {
                panic!("{case}: {done:?}")
            };
            let members = both.members();
            assert_eq!(again.members()[..], members, "{case}");
            for known in [&c, &one, &last, &again] {
                let (tag, text) = world.actor(known).get("k");
                assert_eq!((tag, text.as_deref()), (written, Some("w")), "{case}");
            }
            world.assert_one_chain();
            if !stopped {
                break;
            }
        }
    }
}

/// Three changes at once. By consensus each is a configuration of its own; otherwise those whose proposals meet are one.
#[test]
fn changes_that_meet_are_merged() {
    const SEEDS: u64 = 60;
    for (decided_by, dap) in WAYS {
        let mut made = Vec::new();
        for seed in 0..SEEDS {
            let c = first_of(decided_by.clone(), dap, 3);
            let world = World::of(&c, 6, seed);
            world.random(match decided_by {
                // One member does not answer in time, so that another one is asked.
                Decider::Snapshot => LATE,
                _ => ORDER,
            });
            let changes = [3, 4, 5].map(|new| changed(&c, |it| it.with(server(new))));
            let ended: Vec<_> = changes
                .iter()
                .map(|change| world.spawn(reconfigure(world.actor(&c).client(), &c, change)))
                .collect();
            let mut seen = BTreeSet::new();
            while ended.iter().any(|ended| ended.borrow().is_none()) {
                assert!(world.step(), "seed {seed}: they end");
                see(&world, &mut seen);
            }
            for (ended, change) in ended.iter().zip(&changes) {
                let ended = ended.borrow_mut().take().expect("it has ended");
                let last = installed(ended, &decided_by.to_string());
                assert!(
                    contains(&last, change),
                    "seed {seed}: it contains the own one"
                );
            }
            world.assert_one_chain();
            made.push(seen.len());
        }
        let (least, most) = (made.iter().min(), made.iter().max());
        match decided_by {
            Decider::Members => assert!(made.iter().all(|made| *made == 3), "{made:?}"),
            // 3, and the joins of those that meet: 2^2 + 3 in the worst case.
            Decider::Snapshot => {
                assert!(
                    least == Some(&3) && most > least && most <= Some(&7),
                    "{made:?}"
                );
            }
            _ => assert!(least == Some(&1) && most <= Some(&3), "{made:?}"),
        }
    }
}

/// Messages come in any order, and none is lost.
pub(super) const ORDER: Chaos = Chaos {
    lose: 0,
    duplicate: 0,
    pass_time: 0,
};

/// Messages come in any order, none is lost, and calls run out of patience.
pub(super) const LATE: Chaos = Chaos {
    pass_time: 50,
    ..ORDER
};

/// The fate of the requests of a reconfigurer's last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Lost,
    /// Only one member gets one.
    One,
    Arrive,
}

/// Two reconfigurers die, after each of their calls; operations go on, and a third one, which wants something else, finishes
/// what they left. T8 and T20 of `docs/spec` section 8.
#[test]
fn reconfigurers_that_die_leave_nothing_behind_that_others_cannot_finish() {
    for (decided_by, dap) in WAYS {
        for fate in [Fate::Lost, Fate::One, Fate::Arrive] {
            for limit in 0.. {
                let case = format!("{decided_by} {dap}, {fate:?}, deaths after {limit}");
                let c = first_of(decided_by.clone(), dap, 4);
                let world = World::of(&c, 7, 1);
                let kept = world.actor(&c).put("kept", "v");
                let mut died = false;
                for (turn, change) in [replaced(&c, 0, 4), replaced(&c, 1, 5)].iter().enumerate() {
                    let gate = Gate::after(limit / (1 + turn));
                    let client = Client::new(GatedEnv::new(world.env(), &gate));
                    died |= world
                        .run(until_death(gate, reconfigure(client, &c, change)))
                        .is_none();
                    match fate {
                        Fate::Lost => drop(world.lose(|_| true)),
                        Fate::One => drop(world.lose(|m: &Message| !m.at(&[1, 4]))),
                        Fate::Arrive => {}
                    }
                    world.settle();
                }
                let written = world.actor(&c).put("k", "w");
                if limit % 2 == 0 {
                    let resumed = world.run(resume(world.actor(&c).client(), &c));
                    assert!(resumed.is_ok(), "{case}: {resumed:?}");
                }
                let third = changed(&c, |it| it.with(server(6)));
                let done = world.run(reconfigure(world.actor(&c).client(), &c, &third));
                let last = installed(done, &case);
                assert!(contains(&last, &third), "{case}");
                world.settle();
                for known in [&c, &last] {
                    for (key, tag) in [("kept", kept), ("k", written)] {
                        assert_eq!(world.actor(known).get(key).0, tag, "{case}");
                    }
                }
                world.assert_one_chain();
                if !died {
                    assert!(limit > 8, "{case}: it has more calls than these");
                    break;
                }
            }
        }
    }
}

/// Changes that are merged may leave too few servers. Such a change is refused, and stays
/// proposed where it was; another one that brings servers lifts it (`[R-3 never-too-few]`, `[R-26 refused-stays]`).
#[test]
fn changes_never_leave_too_few_members() {
    for decided_by in DECIDERS {
        let c = first(decided_by.clone(), 4);
        let world = World::of(&c, 7, 1);
        let change = |change: Arc<Configuration>| {
            world.run(reconfigure(world.actor(&c).client(), &c, &change))
        };
        let one = changed(&c, |it| it.without(server(0)));
        installed(change(one), "three are left");
        let two = changed(&c, |it| it.without(server(1)));
        let (members, least) = (2, 3);
        let refused = change(two.clone());
        assert_eq!(refused, Err(ReconfigError::TooFew { members, least }));
        let more = changed(&c, |it| it.with(server(5)));
        installed(change(more), "another one comes");
        let last = installed(change(two), "now there are enough");
        assert_eq!(last.members().len(), 3, "{decided_by}");
        assert_eq!(world.actor(&c).get("k").1, None);
    }
}

/// A removal is a change like others: it comes after what it meets, and what is made at the same time changes nothing any more.
#[test]
fn a_domain_is_removed_beside_other_changes() {
    for (decided_by, dap) in WAYS {
        for limit in 0.. {
            let case = format!("{decided_by} {dap}, stopped before call {limit}");
            let c = first_of(decided_by.clone(), dap, 3);
            let world = World::of(&c, 5, 1);
            world.actor(&c).put("k", "v");
            let removal = changed(&c, Membership::removal);
            let gate = Gate::after(limit);
            let client = Client::new(GatedEnv::new(world.env(), &gate));
            let late = world.spawn(reconfigure(client, &c, &replaced(&c, 0, 4)));
            while late.borrow().is_none() && !gate.is_reached() {
                assert!(world.step(), "it ends, or stops");
            }
            let stopped = gate.is_reached();
            let done = world.run(reconfigure(world.actor(&c).client(), &c, &removal));
            let last = installed(done, &case);
            assert!(last.dap().is_removal(), "{case}");
            gate.open();
            while late.borrow().is_none() {
                assert!(world.step(), "it ends");
            }
            let ended = late.borrow_mut().take().expect("it has ended");
            assert!(
                matches!(
                    ended,
                    Err(ReconfigError::Removed) | Ok(ReconfigOutcome::Installed(_))
                ),
                "{case}: {ended:?}"
            );
            let again = world.run(reconfigure(world.actor(&c).client(), &c, &removal));
            assert!(installed(again, &case).dap().is_removal());
            world.assert_one_chain();
            if !stopped {
                break;
            }
        }
    }
}

/// A random run: writers and readers beside reconfigurers that make several changes each, messages late, lost and doubled.
pub(super) struct Run {
    pub(super) world: World,
    pub(super) c: Arc<Configuration>,
    history: Rc<RefCell<History>>,
    busy: Rc<Cell<usize>>,
    /// Changes that were made.
    pub(super) made: Rc<Cell<usize>>,
}

/// Servers, of which the first four are the first members.
pub(super) const SERVERS: usize = 7;

impl Run {
    pub(super) fn new(first: &Configuration, seed: u64) -> Run {
        let options = Options {
            single_contact: seed % 2 == 1,
            ..Options::default()
        };
        let c = with(first, options);
        let world = World::of(&c, SERVERS, seed);
        world.random(Chaos {
            lose: [0, 30][world.below(2)],
            duplicate: [0, 50][world.below(2)],
            pass_time: [0, 20, 100][world.below(3)],
        });
        Run {
            world,
            c,
            history: Rc::default(),
            busy: Rc::default(),
            made: Rc::default(),
        }
    }

    /// Operations of one client, one after the other.
    pub(super) fn operate(&self, actor: Actor, name: usize, count: usize) {
        self.busy.set(self.busy.get() + 1);
        let (history, busy) = (self.history.clone(), self.busy.clone());
        let choices: Vec<bool> = (0..count).map(|_| self.world.below(2) == 0).collect();
        self.world.spawn(async move {
            for (number, writes) in choices.into_iter().enumerate() {
                let text = format!("{name}.{number}");
                let kind = match writes {
                    true => Kind::Write(text.clone()),
                    false => Kind::Read,
                };
                let id = history.borrow_mut().begin(kind);
                if writes {
                    let tag = actor.write("k", &text).await.ok();
                    history.borrow_mut().end_write(id, tag);
                } else {
                    let found = actor.read("k").await.ok();
                    let found = found.map(|it| (it.tag, it.value.as_ref().map(crate::world::text)));
                    history.borrow_mut().end_read(id, found);
                }
            }
            busy.set(busy.get() - 1);
        });
    }

    /// Changes of one reconfigurer, one after the other, each made of what it saw last.
    pub(super) fn change(&self, actor: &Actor, count: usize) {
        self.busy.set(self.busy.get() + 1);
        let (busy, made) = (self.busy.clone(), self.made.clone());
        let choices: Vec<(bool, usize)> = (0..count)
            .map(|_| (self.world.below(2) == 0, self.world.below(SERVERS)))
            .collect();
        let (client, c) = (actor.client(), self.c.clone());
        let least = c.least_members();
        self.world.spawn(async move {
            let mut last = c.clone();
            for (comes, number) in choices {
                let wanted = changed(&last, |it| match comes {
                    true => it.with(server(number)),
                    false if it.members().len() > least => it.without(server(number)),
                    false => it.clone(),
                });
                let ended = reconfigure(client.clone(), &c, &wanted).await;
                match ended {
                    Ok(done) => {
                        let is_new = matches!(done, ReconfigOutcome::Installed(_));
                        made.set(made.get() + usize::from(is_new));
                        let done = done.into_configuration();
                        assert!(contains(&done, &wanted), "{done:?} lacks {wanted:?}");
                        last = done;
                    }
                    Err(
                        ReconfigError::NotBegun(_)
                        | ReconfigError::Pending(_)
                        | ReconfigError::TooFew { .. },
                    ) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
            busy.set(busy.get() - 1);
        });
    }

    pub(super) fn finish(&self, seed: u64) {
        while self.busy.get() > 0 {
            assert!(self.world.step(), "seed {seed}: it goes on");
        }
        self.world.random(ORDER);
        self.world.settle();
        let history = &self.history;
        for _ in 0..2 {
            let reader = self.world.actor(&self.c);
            let id = history.borrow_mut().begin(Kind::Read);
            let (tag, text) = reader.get("k");
            history.borrow_mut().end_read(id, Some((tag, text)));
        }
        if let Err(violation) = history.borrow().judge() {
            panic!("seed {seed}: {violation}");
        }
        self.world.assert_one_chain();
    }
}

#[test]
fn operations_are_linearizable_beside_changes_at_once() {
    for (decided_by, dap) in WAYS {
        let mut made = 0;
        for seed in 0..300 {
            let run = Run::new(&first_of(decided_by.clone(), dap, 4), seed);
            let actors: Vec<Actor> = (0..5).map(|_| run.world.actor(&run.c)).collect();
            for (name, actor) in actors[..3].iter().enumerate() {
                run.operate(actor.clone(), name, 5);
            }
            for actor in &actors[3..] {
                run.change(actor, 2);
            }
            run.finish(seed);
            made += run.made.get();
        }
        // With k = 2 none of the first four may go.
        let least = if dap.is_coded() { 200 } else { 400 };
        assert!(made > least, "{decided_by} {dap}: {made}");
    }
}
