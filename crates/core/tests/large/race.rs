//! Writers, readers, sweeps and reconfigurations at once, in the order that a seed draws, with losses and crashes. The
//! histories are those of registers: a value is one value, in however many blocks it is.

use crate::history::{History, Kind};
use crate::large::moving::reconfigure;
use crate::large::uploader::{Upload, look, read, sweep, version};
use crate::world::{Actor, Chaos, World, configuration};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::large::PublishError;
use areo_core::dsm::sweep::Count;
use areo_core::manager::Deletion;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const CLIENTS: usize = 4;
const KEY: &str = "k";

/// What happened, over all seeds.
#[derive(Default, Debug)]
struct Fired {
    published: Cell<u64>,
    lost_to_a_sweep: Cell<u64>,
    removed_blocks: Cell<u64>,
    reads_of_large: Cell<u64>,
    moves: Cell<u64>,
}

fn more(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get() + by);
}

struct Run {
    world: World,
    actors: Vec<Actor>,
    history: Rc<RefCell<History>>,
    busy: Rc<RefCell<Vec<bool>>>,
    fired: Rc<Fired>,
    first: Arc<Configuration>,
    moves: bool,
}

impl Run {
    fn new(seed: u64, moves: bool, fired: &Rc<Fired>) -> Run {
        let dap = [Dap::Abd, Dap::Ec { k: 2 }][seed as usize % 2];
        let first = configuration(4, dap, 1, 2);
        let world = World::of(&first, 6, seed);
        world.random(Chaos {
            lose: [0, 0, 10][world.below(3)],
            duplicate: [0, 50][world.below(2)],
            pass_time: [0, 20][world.below(2)],
        });
        Run {
            actors: (0..CLIENTS)
                .map(|client| match client % 2 {
                    0 => world.actor(&first).keeping_replaced(),
                    _ => world.actor(&first),
                })
                .collect(),
            history: Rc::default(),
            busy: Rc::new(RefCell::new(vec![false; CLIENTS])),
            fired: fired.clone(),
            first,
            moves,
            world,
        }
    }

    fn spawn(&self, client: usize, operation: impl Future<Output = ()> + 'static) {
        self.busy.borrow_mut()[client] = true;
        let busy = self.busy.clone();
        self.world.spawn(async move {
            operation.await;
            busy.borrow_mut()[client] = false;
        });
    }

    fn start(&self, client: usize, number: usize) {
        match self.world.below(16) {
            0 => self.delete(client),
            1 => self.write_small(client, number),
            2..=6 => self.write(client, number),
            7..=9 => self.sweep(client),
            10 if self.moves => self.move_on(client),
            _ => self.read(client),
        }
    }

    fn begin(&self, kind: Kind) -> (usize, Rc<RefCell<History>>) {
        let id = self.history.borrow_mut().begin(kind);
        (id, self.history.clone())
    }

    fn write(&self, client: usize, number: usize) {
        let text = format!("{number:->width$}", width = 5 + self.world.below(20));
        let (id, history) = self.begin(Kind::Write(text.clone()));
        let (upload, fired) = (
            Upload::begin(&self.actors[client], &text),
            self.fired.clone(),
        );
        self.spawn(client, async move {
            let ended = upload.write(KEY).await;
            match &ended {
                Ok(_) => more(&fired.published, 1),
                Err(PublishError::Swept) => {
                    more(&fired.lost_to_a_sweep, 1);
                    // It says that nothing was written: then nobody may have seen it.
                    return history.borrow_mut().never(id);
                }
                Err(PublishError::Write(_)) => {}
            }
            history.borrow_mut().end_write(id, ended.ok());
        });
    }

    fn write_small(&self, client: usize, number: usize) {
        let text = format!("{number}");
        let (id, history) = self.begin(Kind::Write(text.clone()));
        let write = self.actors[client].write(KEY, &text);
        self.spawn(client, async move {
            let ended = write.await;
            history.borrow_mut().end_write(id, ended.ok());
        });
    }

    fn delete(&self, client: usize) {
        let (id, history) = self.begin(Kind::Delete);
        let delete = self.actors[client].delete(KEY);
        self.spawn(client, async move {
            let ended = delete.await;
            match ended {
                Ok(Deletion::NotFound) => history.borrow_mut().forget(id),
                Ok(Deletion::Deleted(tag)) => history.borrow_mut().end_write(id, Some(tag)),
                Err(_) => history.borrow_mut().end_write(id, None),
            }
        });
    }

    fn read(&self, client: usize) {
        let (id, history) = self.begin(Kind::Read);
        let (read, fired) = (read(&self.actors[client], KEY), self.fired.clone());
        self.spawn(client, async move {
            let found = read.await.ok().map(version);
            let text = found.as_ref().and_then(|(_, text)| text.as_ref());
            more(
                &fired.reads_of_large,
                text.is_some_and(|text| text.len() > 4).into(),
            );
            history.borrow_mut().end_read(id, found);
        });
    }

    fn sweep(&self, client: usize) {
        let (sweep, fired) = (sweep(&self.actors[client]), self.fired.clone());
        self.spawn(client, async move {
            let removed = sweep.await.map_or(0, |swept| swept.removed.blocks);
            more(&fired.removed_blocks, removed);
        });
    }

    fn move_on(&self, client: usize) {
        let (first, n) = ([0, 1, 2][self.world.below(3)], 4);
        let dap = [Dap::Abd, Dap::Ec { k: 2 }][self.world.below(2)];
        let actor = &self.actors[client];
        let (moved, fired) = (reconfigure(actor, first, n, dap), self.fired.clone());
        self.spawn(client, async move {
            more(&fired.moves, moved.await.into());
        });
    }

    fn disturb(&self) {
        let victim = self.world.below(self.first.n());
        let all_up = (0..self.world.servers()).all(|number| self.world.is_up(number));
        match self.world.below(100) {
            0 if all_up => self.world.crash(victim),
            1..=4 if !self.world.is_up(victim) => {
                self.world.restart(victim, self.world.below(2) == 0);
            }
            _ => {}
        }
    }

    fn finish(&self, operations: usize) -> Result<(), String> {
        let mut started = 0;
        while started < operations || self.busy.borrow().contains(&true) {
            for client in 0..CLIENTS {
                if started < operations && !self.busy.borrow()[client] && self.world.below(8) == 0 {
                    self.start(client, started);
                    started += 1;
                }
            }
            self.disturb();
            self.world.step();
        }
        self.mend();
        self.judge_the_end()
    }

    fn mend(&self) {
        for number in (0..self.world.servers()).filter(|number| !self.world.is_up(*number)) {
            self.world.restart(number, false);
        }
        self.world.random(Chaos {
            lose: 0,
            duplicate: 0,
            pass_time: 0,
        });
        self.world.pass(Duration::from_secs(3));
    }

    /// After a sweep nothing is left but what the object consists of, and that is all there.
    fn judge_the_end(&self) -> Result<(), String> {
        let reader = &self.actors[0];
        let unavailable = |_| "no quorum when all was mended".to_owned();
        for _ in 0..2 {
            let id = self.history.borrow_mut().begin(Kind::Read);
            let found = self.world.run(read(reader, KEY)).map_err(|_| "no read")?;
            self.history.borrow_mut().end_read(id, Some(version(found)));
            self.world.run(sweep(reader)).map_err(unavailable)?;
        }
        let left = self.world.run(look(reader)).map_err(unavailable)?;
        if left.orphans() != Count::default() || left.live.uploads > 1 {
            return Err(format!("a sweep leaves {left:?}"));
        }
        self.history.borrow().judge()
    }
}

fn race(seeds: u64, operations: usize, moves: bool) -> Rc<Fired> {
    let fired = Rc::new(Fired::default());
    for seed in 0..seeds {
        let run = Run::new(seed, moves, &fired);
        if let Err(violation) = run.finish(operations) {
            panic!("seed {seed}: {violation}\n{}", run.history.borrow());
        }
    }
    fired
}

#[test]
fn every_read_is_of_one_version_while_sweeps_race_writers() {
    let fired = race(300, 20, false);
    let Fired {
        published,
        lost_to_a_sweep,
        removed_blocks,
        reads_of_large,
        ..
    } = &*fired;
    let all = [published, lost_to_a_sweep, removed_blocks, reads_of_large];
    assert!(all.iter().all(|count| count.get() > 20), "{fired:?}");
}

#[test]
fn every_read_is_of_one_version_while_the_domain_moves() {
    let fired = race(150, 20, true);
    let all = [&fired.published, &fired.removed_blocks, &fired.moves];
    assert!(all.iter().all(|count| count.get() > 50), "{fired:?}");
}

/// One object, written over a hundred times under readers and sweeps: every read is of one version.
#[test]
fn an_object_overwritten_a_hundred_times_is_read_whole() {
    let fired = Rc::new(Fired::default());
    for seed in 0..2 {
        let run = Run::new(seed, false, &fired);
        let (mut written, mut reads) = (0, 0);
        while written < 100 || run.busy.borrow().contains(&true) {
            for client in 0..CLIENTS {
                if written == 100 || run.busy.borrow()[client] {
                    continue;
                }
                match client {
                    0 => {
                        run.write(0, written);
                        written += 1;
                    }
                    1 if written % 7 == 0 => run.sweep(1),
                    1 => {}
                    _ => {
                        run.read(client);
                        reads += 1;
                    }
                }
            }
            run.world.step();
        }
        run.mend();
        if let Err(violation) = run.judge_the_end() {
            panic!("seed {seed}: {violation}\n{}", run.history.borrow());
        }
        assert!(reads > 20, "readers were there: {reads}");
    }
    assert!(fired.removed_blocks.get() > 100, "{fired:?}");
    assert!(fired.reads_of_large.get() > 20, "{fired:?}");
}
