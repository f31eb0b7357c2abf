//! Random clients, deliveries, losses, crashes and rot; every history must be linearizable by its tags (oracle O1 of the
//! specification). That the oracle sees anything is shown by two planted bugs.

mod planted;

use crate::history::{History, Kind};
use crate::paper::reconfiguration::reconfigure;
use crate::world::{Actor, Chaos, World, configuration, successor, text, value};
use areo_core::config::{Configuration, Dap};
use areo_core::limits::UNCONFIRMED_ELEMENTS;
use areo_core::manager::Deletion;
use planted::{Hasty, read_without_write_back};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const CLIENTS: usize = 3;
const KEY: &str = "k";

/// The protocol of the clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Procedure {
    Sound,
    /// Reads return the result of get-data.
    NoWriteBack,
    /// Clients count one reply of every quorum call twice.
    Hasty,
}

struct Run {
    world: World,
    actors: Vec<Actor>,
    history: Rc<RefCell<History>>,
    /// Operations under way, by client.
    busy: Rc<RefCell<Vec<bool>>>,
    procedure: Procedure,
    f: usize,
    rots: bool,
    /// Disks become full, any number of them, and have room again; writers end between two messages.
    fills: bool,
}

impl Run {
    fn new(c: &Arc<Configuration>, seed: u64, procedure: Procedure) -> Run {
        let world = World::new(c, seed);
        Run::of(world, c, procedure)
    }

    fn of(world: World, c: &Arc<Configuration>, procedure: Procedure) -> Run {
        let lose = [0, 20, 100][world.below(3)];
        let duplicate = [0, 50][world.below(2)];
        let pass_time = [0, 20, 200][world.below(3)];
        world.random(Chaos {
            lose,
            duplicate,
            pass_time,
        });
        Run {
            actors: (0..CLIENTS).map(|_| world.actor(c)).collect(),
            history: Rc::default(),
            busy: Rc::new(RefCell::new(vec![false; CLIENTS])),
            procedure,
            f: c.quorums().f(),
            rots: world.below(4) == 0,
            fills: false,
            world,
        }
    }

    /// Runs `operations` operations with faults, then mends everything and requires that a read succeeds.
    fn finish(&self, operations: usize) -> Result<(), String> {
        self.go_on(0, operations)
    }

    /// [`Self::finish`] of a run of which `started` operations have begun.
    fn go_on(&self, mut started: usize, operations: usize) -> Result<(), String> {
        while started < operations || self.busy.borrow().contains(&true) {
            self.begin_some(&mut started, operations);
            self.disturb();
            self.world.step();
        }
        self.mend();
        if self.fills {
            self.write_at_last()?;
        }
        for client in 0..CLIENTS {
            self.read(client);
            while self.busy.borrow()[client] {
                assert!(self.world.step(), "a read ends");
            }
        }
        let history = self.history.borrow();
        let unread = history.failed_reads_at_the_end(CLIENTS);
        // As published, writers that did not end may stand in the way of reads for ever.
        let dap = self.actors[0].c.dap();
        let blocks = matches!(dap, Dap::EcPublished { .. } | Dap::EcOptimized { .. });
        if unread > 0 && !self.rots && !blocks {
            return Err(format!(
                "{unread} reads found no quorum when all was mended"
            ));
        }
        history.judge()
    }

    /// Some of the clients that have nothing to do begin their next operation.
    fn begin_some(&self, started: &mut usize, most: usize) {
        for client in 0..CLIENTS {
            if *started < most && !self.busy.borrow()[client] && self.world.below(8) == 0 {
                self.start(client, *started);
                *started += 1;
            }
        }
    }

    fn start(&self, client: usize, number: usize) {
        match self.world.below(8) {
            0 => self.delete(client),
            1..=3 => self.write(client, number),
            _ => self.read(client),
        }
    }

    /// Runs an operation of a client; `end` records its result in the history.
    fn spawn<T: 'static>(
        &self,
        client: usize,
        kind: Kind,
        operation: impl Future<Output = T> + 'static,
        end: impl FnOnce(&mut History, usize, T) + 'static,
    ) {
        self.busy.borrow_mut()[client] = true;
        let id = self.history.borrow_mut().begin(kind);
        let (history, busy) = (self.history.clone(), self.busy.clone());
        self.world.spawn(async move {
            let result = operation.await;
            end(&mut history.borrow_mut(), id, result);
            busy.borrow_mut()[client] = false;
        });
    }

    fn write(&self, client: usize, number: usize) {
        // Around the size where copies become fragments; every value is unique.
        let text = format!("{number:->width$}", width = 4 + self.world.below(60));
        let kind = Kind::Write(text.clone());
        let end = |history: &mut History, id, tag| history.end_write(id, tag);
        let actor = &self.actors[client];
        if self.procedure == Procedure::Hasty {
            let operation = Hasty::write(actor, KEY, value(&text));
            return self.spawn(client, kind, operation, end);
        }
        let operation = actor.write(KEY, &text);
        self.spawn(client, kind, async move { operation.await.ok() }, end);
    }

    fn delete(&self, client: usize) {
        let operation = self.actors[client].delete(KEY);
        let end = |history: &mut History, id, ended| match ended {
            Ok(Deletion::NotFound) => history.forget(id),
            Ok(Deletion::Deleted(tag)) => history.end_write(id, Some(tag)),
            Err(_) => history.end_write(id, None),
        };
        self.spawn(client, Kind::Delete, operation, end);
    }

    fn read(&self, client: usize) {
        let end = |history: &mut History, id, found: Option<areo_core::dap::FoundVersion>| {
            let version = found.map(|found| {
                let value = found.value.filter(|value| !value.deleted);
                (found.tag, value.as_ref().map(text))
            });
            history.end_read(id, version);
        };
        let actor = &self.actors[client];
        match self.procedure {
            Procedure::Sound => {
                let operation = actor.read(KEY);
                self.spawn(client, Kind::Read, async move { operation.await.ok() }, end);
            }
            Procedure::NoWriteBack => {
                self.spawn(client, Kind::Read, read_without_write_back(actor, KEY), end);
            }
            Procedure::Hasty => self.spawn(client, Kind::Read, Hasty::read(actor, KEY), end),
        }
    }

    /// Perhaps crashes a server, starts one again, or lets a record rot.
    fn disturb(&self) {
        let n = self.actors[0].c.n();
        let victim = self.world.below(n);
        match self.world.below(100) {
            0 if self.world.is_up(victim) => {
                let down = (0..n).filter(|number| !self.world.is_up(*number)).count();
                if down < self.f {
                    self.world.crash(victim);
                }
            }
            1..=3 if !self.world.is_up(victim) => {
                self.world.restart(victim, self.world.below(2) == 0);
            }
            4 if self.rots => {
                self.world.disk(victim, |disk| disk.rot(|_| true));
            }
            5..=8 if self.fills => {
                let (full, stuffed) = (self.world.below(2) == 0, self.world.below(4) == 0);
                self.world.disk(victim, |disk| {
                    (disk.is_full, disk.is_stuffed) = (full, full && stuffed);
                });
            }
            _ => {}
        }
    }

    /// Once all faults are mended every client can write, also next to remains of earlier writes, and with no more
    /// calls than necessary.
    fn write_at_last(&self) -> Result<(), String> {
        for actor in &self.actors {
            let before = self.world.gathers();
            let text = format!("at last {before}");
            let id = self.history.borrow_mut().begin(Kind::Write(text.clone()));
            let written = self.world.run(actor.write(KEY, &text));
            let calls = self.world.gathers() - before;
            let tag = written.map_err(|error| format!("a write when all was mended: {error:?}"))?;
            self.history.borrow_mut().end_write(id, Some(tag));
            if calls > 200 {
                return Err(format!("{calls} calls for one write"));
            }
        }
        Ok(())
    }

    fn mend(&self) {
        for number in 0..self.actors[0].c.n() {
            self.world.disk(number, |disk| {
                (disk.is_full, disk.is_stuffed) = (false, false);
            });
            if !self.world.is_up(number) {
                self.world.restart(number, false);
            }
        }
        self.world.random(Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        });
        self.world.pass(Duration::from_secs(3));
    }
}

/// The configurations; values up to 24 bytes are copies in the erasure-coded ones.
fn shapes() -> [Arc<Configuration>; 4] {
    [
        configuration(3, Dap::Abd, 1, 24),
        configuration(4, Dap::Ec { k: 2 }, 1, 24),
        configuration(5, Dap::Ec { k: 3 }, 1, 24),
        configuration(5, Dap::Ec { k: 3 }, 0, 0),
    ]
}

/// A few thousand runs of 20 operations.
const SEEDS: u64 = 1000;

#[test]
fn every_history_is_linearizable() {
    for seed in 0..SEEDS {
        for (shape, c) in shapes().iter().enumerate() {
            let run = Run::new(c, seed << 8 | shape as u64, Procedure::Sound);
            if let Err(violation) = run.finish(20) {
                panic!(
                    "seed {seed}, shape {shape}: {violation}\n{}",
                    run.history.borrow()
                );
            }
        }
    }
}

/// A cap of one or two unconfirmed versions, and full disks: most puts leave unreadable versions. No history breaks
/// linearizability, nothing that was returned is dropped, and when disks have room every write goes through.
#[test]
fn every_history_at_the_cap_is_linearizable_and_every_write_goes_through() {
    let shapes = [(3, 1), (4, 2), (5, 3), (6, 4), (5, 2)].map(|(n, k)| {
        let delta = u16::from(n == 5);
        configuration(n, Dap::Ec { k }, delta, 0)
    });
    for seed in 0..SEEDS {
        for (shape, c) in shapes.iter().enumerate() {
            let cap = 1 + (seed % 3) as usize;
            let world = World::capped(c, c.n(), seed << 8 | shape as u64, cap);
            let run = Run {
                fills: true,
                rots: false,
                ..Run::of(world, c, Procedure::Sound)
            };
            if let Err(violation) = run.finish(30) {
                panic!(
                    "seed {seed}, {:?}, cap {cap}: {violation}\n{}",
                    c.dap(),
                    run.history.borrow()
                );
            }
        }
    }
}

/// EC-DAP as published, EC-DAPopt, and MW-ABD: fewer runs, because reads that stand behind more than delta writers ask for long.
#[test]
fn every_history_of_the_baselines_is_linearizable() {
    for seed in 0..SEEDS / 5 {
        let coded = [Dap::EcPublished { k: 3 }, Dap::EcOptimized { k: 3 }];
        let kinds = [coded[0], coded[1], Dap::AbdPublished];
        for (shape, dap) in kinds.into_iter().enumerate() {
            let c = configuration(5, dap, (seed % 3) as u16, 24);
            let run = Run::new(&c, seed << 8 | shape as u64, Procedure::Sound);
            if let Err(violation) = run.finish(20) {
                panic!(
                    "seed {seed}, {dap:?}: {violation}\n{}",
                    run.history.borrow()
                );
            }
        }
    }
}

/// CAS and CASGC, with fragments and with copies alone.
#[test]
fn every_history_of_coded_atomic_storage_is_linearizable() {
    for seed in 0..SEEDS / 2 {
        let kinds = [Dap::Cas { k: 3 }, Dap::CasGc { k: 3 }, Dap::CasGc { k: 1 }];
        for (shape, dap) in kinds.into_iter().enumerate() {
            let c = configuration(5, dap, (seed % 3) as u16, 24);
            let run = Run::new(&c, seed << 8 | shape as u64, Procedure::Sound);
            if let Err(violation) = run.finish(20) {
                panic!(
                    "seed {seed}, {dap:?}: {violation}\n{}",
                    run.history.borrow()
                );
            }
        }
    }
}

/// CASSS, whose members speak to each other or not: a cap of one or two versions that no round has finalized, dead writers and full
/// disks. What was left is finished or dropped, so that every write goes through (`[CASSS-3 bounded-versions]`).
#[test]
fn every_history_of_casss_is_linearizable_and_every_write_goes_through() {
    for seed in 0..SEEDS / 2 {
        for (shape, (n, k)) in [(3, 1), (4, 2), (5, 3), (6, 4)].into_iter().enumerate() {
            let c = configuration(n, Dap::CasSs { k }, (seed % 2) as u16, 0);
            let cap = [1, 2, 3, UNCONFIRMED_ELEMENTS][(seed / 2 % 4) as usize];
            let world = World::capped(&c, c.n(), seed << 8 | shape as u64, cap);
            if seed % 3 > 0 {
                world.let_servers_speak();
            }
            let run = Run {
                fills: seed % 4 < 3,
                rots: false,
                ..Run::of(world, &c, Procedure::Sound)
            };
            if let Err(violation) = run.finish(30) {
                panic!(
                    "seed {seed}, {n}, {k}, cap {cap}: {violation}\n{}",
                    run.history.borrow()
                );
            }
        }
    }
}

/// Ranked registers: what is chosen follows what was chosen before, so that its tags are in that order, too.
#[test]
fn every_history_of_registers_is_linearizable() {
    let shapes = [(3, 1, 24), (4, 2, 24), (5, 3, 0)]
        .map(|(n, k, copy_bytes)| configuration(n, Dap::Conditional { k }, 1, copy_bytes));
    for seed in 0..SEEDS {
        for (shape, c) in shapes.iter().enumerate() {
            let run = Run::new(c, seed << 8 | shape as u64, Procedure::Sound);
            if let Err(violation) = run.finish(20) {
                panic!(
                    "seed {seed}, shape {shape}: {violation}\n{}",
                    run.history.borrow()
                );
            }
        }
    }
}

/// A domain that becomes conditional while clients read, write and delete: the order of tags goes on.
#[test]
fn every_history_of_a_domain_that_becomes_conditional_is_linearizable() {
    let moves = [
        (configuration(3, Dap::Abd, 1, 24), (0, 3, 1)),
        (configuration(3, Dap::Abd, 1, 24), (2, 4, 2)),
        (configuration(4, Dap::Ec { k: 2 }, 1, 24), (4, 3, 1)),
        (configuration(5, Dap::Ec { k: 3 }, 0, 0), (1, 5, 3)),
    ];
    for seed in 0..SEEDS {
        for (shape, (c, (first, n, k))) in moves.iter().enumerate() {
            let world = World::of(c, 8, seed << 8 | shape as u64);
            let run = Run {
                rots: false,
                ..Run::of(world, c, Procedure::Sound)
            };
            let next = successor(c, *first, *n, Dap::Conditional { k: *k });
            let (mover, until) = (run.world.actor(c), run.world.below(60));
            let mut started = 0;
            for _ in 0..until {
                run.begin_some(&mut started, 10);
                run.world.step();
            }
            let moved = run.world.spawn(reconfigure(mover.client(), c, &next));
            if let Err(violation) = run.go_on(started, 20) {
                panic!(
                    "seed {seed}, shape {shape}: {violation}\n{}",
                    run.history.borrow()
                );
            }
            drop(moved);
        }
    }
}

/// A domain that changes its kind again and again while clients read, write and delete.
#[test]
fn every_history_of_a_domain_that_goes_there_and_back_is_linearizable() {
    let conditional = |k| Dap::Conditional { k };
    let ways = [
        [(3, conditional(1)), (3, Dap::Abd), (3, conditional(1))],
        [
            (4, conditional(2)),
            (3, Dap::Ec { k: 1 }),
            (4, conditional(2)),
        ],
        [(3, Dap::Abd), (4, conditional(2)), (5, Dap::Ec { k: 3 })],
        [
            (5, conditional(3)),
            (3, conditional(1)),
            (4, Dap::Ec { k: 2 }),
        ],
        // The second change keeps the kind, so that it does not wait for the first one's end.
        [
            (4, conditional(2)),
            (3, Dap::Ec { k: 1 }),
            (3, Dap::Ec { k: 1 }),
        ],
        [(3, Dap::Abd), (3, conditional(1)), (3, conditional(1))],
    ];
    for seed in 0..SEEDS {
        for (shape, [(n, dap), then, last]) in ways.iter().enumerate() {
            let c = configuration(*n, *dap, 1, 24);
            let world = World::of(&c, 8, seed << 8 | shape as u64);
            let run = Run {
                rots: false,
                ..Run::of(world, &c, Procedure::Sound)
            };
            let second = successor(&c, run.world.below(3), then.0, then.1);
            let third = successor(&second, run.world.below(3), last.0, last.1);
            let mut started = 0;
            let movers: Vec<_> = [second, third]
                .into_iter()
                .map(|next| {
                    for _ in 0..run.world.below(60) {
                        run.begin_some(&mut started, 10);
                        run.world.step();
                    }
                    let mover = run.world.actor(&c);
                    run.world.spawn(reconfigure(mover.client(), &c, &next))
                })
                .collect();
            if let Err(violation) = run.go_on(started, 24) {
                panic!(
                    "seed {seed}, shape {shape}: {violation}\n{}",
                    run.history.borrow()
                );
            }
            drop(movers);
        }
    }
}

/// The number of seeds until the oracle sees a planted bug.
fn seeds_until_caught(procedure: Procedure, c: &Arc<Configuration>) -> u64 {
    let caught = |seed: &u64| Run::new(c, *seed, procedure).finish(20).is_err();
    (0..2000).find(caught).expect("the oracle sees the bug")
}

#[test]
fn a_read_without_its_write_back_is_caught() {
    for c in shapes() {
        seeds_until_caught(Procedure::NoWriteBack, &c);
    }
}

#[test]
fn a_quorum_with_one_member_too_few_is_caught() {
    for c in shapes() {
        seeds_until_caught(Procedure::Hasty, &c);
    }
}
