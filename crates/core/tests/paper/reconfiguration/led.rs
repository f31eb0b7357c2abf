//! The leader of L-Rambo, a task of a server, and the reconfigurers that wait for it (`docs/spec` 6.5, `[R-31 designated-leader]`).

use super::gate::{Gate, GatedEnv, until_death};
use super::leading::{led, post_and_die};
use super::merging::{
    LEADER, ORDER, Run, SERVERS, changed, contains, first, installed, membership, see,
};
use super::reconfigure;
use crate::world::{Actor, World, WorldEnv, server};
use areo_core::config::Configuration;
use areo_core::consensus::AsDescribed;
use areo_core::consensus::mailbox::PostedChanges;
use areo_core::dsm::Client;
use areo_core::env::Env;
use areo_core::limits::INLINE_BYTES;
use areo_core::message::Transferred;
use areo_core::reconfig::change::Change;
use areo_core::reconfig::transfer::Progress;
use areo_core::reconfig::{ReconfigError, Reconfigurer};
use areo_core::reconfig::{leading, merged};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Shorter than the deadline of an operation here.
const PATIENCE: Duration = Duration::from_millis(100);
/// Interval between two looks of a leader at its mailboxes.
const ROUND: Duration = Duration::from_millis(1);

/// Counts the work of one process.
#[derive(Clone, Default)]
struct Work {
    /// Objects were brought into a configuration.
    moved: Rc<Cell<u64>>,
    /// A configuration was made final.
    finals: Rc<Cell<u64>>,
}

impl Work {
    fn counting(&self) -> impl Fn(Progress) + use<> {
        let work = self.clone();
        move |step| match step {
            Progress::Transferring { objects, .. } => work.moved.update(|it| it + objects),
            Progress::Finalizing => work.finals.update(|it| it + 1),
            _ => {}
        }
    }
}

/// Makes what was posted, once.
async fn lead_once<E: Env>(
    client: &Client<E>,
    known: &Arc<Configuration>,
    posted: &PostedChanges,
    progress: &dyn Fn(Progress),
) -> Result<Option<Arc<Configuration>>, ReconfigError> {
    let by = Reconfigurer {
        env: &client.env,
        sequences: client.sequences(),
        consensus: &AsDescribed(|| client.next_writer()),
        progress,
        patience: Duration::ZERO,
    };
    leading::lead(&by, known, posted).await
}

/// The task of a server, for ever. `env`: the world of one round.
fn lead<E: Env, F: Fn() -> E>(
    (world, number): (&World, usize),
    known: &Arc<Configuration>,
    env: F,
    work: &Work,
) -> impl Future<Output = ()> + use<E, F> {
    let (world, known, count) = (world.clone(), known.clone(), work.counting());
    let of_server = Client::new(env());
    async move {
        loop {
            let client = of_server.with(env());
            client.env.sleep(ROUND).await;
            for posted in world.posted(number) {
                let domain = posted.configuration.id().domain;
                let progress = |step| {
                    count(step);
                    world.leads(number, domain, Some(step.moved()));
                };
                // What failed is posted still.
                let _ = lead_once(&client, &known, &posted, &progress).await;
                world.leads(number, domain, None);
            }
        }
    }
}

/// The task of a server that goes on.
fn spawn_leader(world: &World, number: usize, known: &Arc<Configuration>) -> Work {
    let work = Work::default();
    let of_world = world.clone();
    world.spawn(lead((world, number), known, move || of_world.env(), &work));
    work
}

/// A reconfigurer that counts.
fn make<P: Fn(Progress)>(
    actor: &Actor,
    next: &Arc<Configuration>,
    progress: P,
) -> impl Future<Output = Arc<Configuration>> + use<P> {
    let (client, known) = (actor.client(), actor.c.clone());
    let change = Change::new(&known, next.descriptor()).expect("a valid change");
    async move {
        let by = Reconfigurer {
            env: &client.env,
            sequences: client.sequences(),
            consensus: &AsDescribed(|| client.next_writer()),
            progress: &progress,
            patience: client.leader_patience(),
        };
        let made = merged::make(&by, &known, &change, &async |_: &Change| true).await;
        installed(made, "it is made")
    }
}

/// The cost of simultaneous changes, over several runs.
#[derive(PartialEq, Default, Debug)]
struct Cost {
    configurations: u64,
    /// Transfers of an object, by reconfigurers and by the leader.
    by_clients: u64,
    by_leader: u64,
}

/// Adds the cost of this number of simultaneous changes, with or without a leader.
fn add_cost(all: &mut Cost, changes: usize, is_led: bool, seed: u64) {
    let c = first(LEADER, 4);
    let world = World::of(&c, 4 + changes, seed);
    world.actor(&c).put("k", "v");
    world.settle();
    world.random(ORDER);
    let (by_clients, by_leader) = match is_led {
        true => (Work::default(), spawn_leader(&world, 0, &c)),
        false => Default::default(),
    };
    let patience = if is_led { PATIENCE } else { Duration::ZERO };
    let making: Vec<_> = (0..changes)
        .map(|number| {
            let actor = world.actor(&c).waiting_for_leaders(patience);
            let next = changed(&c, |it| it.with(server(4 + number)));
            (
                world.spawn(make(&actor, &next, by_clients.counting())),
                next,
            )
        })
        .collect();
    let mut seen = BTreeSet::new();
    while making.iter().any(|(making, _)| making.borrow().is_none()) {
        assert!(world.step(), "they end");
        see(&world, &mut seen);
    }
    for (making, next) in &making {
        let made = making.borrow_mut().take().expect("it has ended");
        assert!(contains(&made, next));
    }
    world.assert_one_chain();
    all.configurations += seen.len() as u64;
    all.by_clients += by_clients.moved.get();
    all.by_leader += by_leader.moved.get();
}

/// Reconfigurers with a leader transfer no objects, and changes that meet are transferred once. Without a leader
/// several reconfigurers transfer objects, and proposals that meet are decided one after the other.
#[test]
fn a_leader_transfers_for_all() {
    const RUNS: u64 = 40;
    // Configurations and transfers without a leader, by the number of changes.
    let unled = [(40, 40), (50, 48), (66, 65), (63, 72)];
    let costs = [1, 2, 3, 4].map(|changes| {
        let [led, alone] = [true, false].map(|is_led| {
            let mut all = Cost::default();
            (0..RUNS).for_each(|seed| add_cost(&mut all, changes, is_led, seed));
            all
        });
        let expected = Cost {
            configurations: RUNS,
            by_clients: 0,
            by_leader: RUNS,
        };
        assert_eq!(led, expected, "{changes} changes");
        assert_eq!(alone.by_leader, 0);
        (alone.configurations, alone.by_clients)
    });
    assert_eq!(costs, unled);
}

/// If messages take time a reconfigurer meets the leader in the middle of its transfer, and leaves the transfer to
/// it.
#[test]
fn a_transfer_is_left_to_the_leader() {
    let c = first(LEADER, 4);
    let world = World::of(&c, 5, 1);
    for key in ["k", "l", "m"] {
        world.actor(&c).put(key, "v");
    }
    world.settle();
    world.latency(Duration::from_millis(2));
    let (by_client, by_leader) = (Work::default(), spawn_leader(&world, 0, &c));
    let actor = world.actor(&c).waiting_for_leaders(PATIENCE);
    let next = changed(&c, |it| it.with(server(4)));
    let made = world.run(make(&actor, &next, by_client.counting()));
    assert_eq!(membership(&made), membership(&next));
    assert_eq!((by_client.moved.get(), by_leader.moved.get()), (0, 3));
}

/// A transfer takes many times as long as reconfigurers wait for something new. They see how far it is, and leave it to the leader.
#[test]
fn a_long_transfer_is_left_to_the_leader() {
    const OBJECTS: u64 = 48;
    let c = first(LEADER, 4);
    let world = World::of(&c, 5, 1);
    let long = "v".repeat(INLINE_BYTES as usize);
    for key in 0..OBJECTS {
        world.actor(&c).put(&key.to_string(), &long);
    }
    world.settle();
    world.latency(PATIENCE / 20);
    let by_leader = spawn_leader(&world, 0, &c);
    let (began, seen) = (world.now(), Rc::new(RefCell::new(Vec::new())));
    let actor = world.actor(&c).waiting_for_leaders(PATIENCE);
    let next = changed(&c, |it| it.with(server(4)));
    let by_client = Work::default();
    let (count, steps) = (by_client.counting(), seen.clone());
    let progress = move |step| {
        count(step);
        if let Progress::Waiting {
            leader,
            transferred,
        } = step
        {
            assert_eq!(leader, server(0));
            steps.borrow_mut().push(transferred);
        }
    };
    let made = world.run(make(&actor, &next, progress));
    assert_eq!(membership(&made), membership(&next));
    assert_eq!((by_client.moved.get(), by_leader.moved.get()), (0, OBJECTS));
    let took = world.now().since(began);
    assert!(took > 4 * PATIENCE, "{took:?}");
    let seen = seen.borrow();
    assert_eq!(seen[0], Transferred::default());
    // While the path stays as it is.
    assert!(
        seen[1..].is_sorted_by(|a, b| a < b) || seen.len() < 3,
        "{seen:?}"
    );
    let last = seen.last().expect("it waited");
    assert!(
        last.objects > 0 && last.bytes == last.objects * INLINE_BYTES,
        "{seen:?}"
    );
    assert_eq!(world.status(0).leads, [], "it has made it");
}

/// The fate of a leader before one of its calls.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    /// Its task ends; its server stays up.
    Dies,
    /// It ends with its server.
    Crashes,
    /// It goes on when others have made everything.
    IsLate,
}

/// Two reconfigurers wait for a leader that stops before its call number `limit`. Returns whether the leader came
/// that far, and whether a reconfigurer took over.
fn leaves(end: End, limit: usize) -> (bool, bool) {
    let case = format!("{end:?} before call {limit}");
    let c = first(LEADER, 5);
    let world = World::of(&c, 7, 1);
    let written = world.actor(&c).put("k", "v");
    world.settle();
    let (gate, work) = (Gate::after(limit), Work::default());
    let (of_world, of_gate) = (world.clone(), gate.clone());
    let env = move || GatedEnv::new(of_world.env(), &of_gate);
    let task = lead((&world, 0), &c, env, &work);
    let ended = match end {
        End::IsLate => world.spawn(async move {
            task.await;
            None
        }),
        _ => world.spawn(until_death(gate.clone(), task)),
    };
    let changes = [
        changed(&c, |it| it.without(server(1)).with(server(5))),
        changed(&c, |it| it.with(server(6))),
    ];
    let by_clients = Work::default();
    let making = changes.clone().map(|next| {
        let actor = world.actor(&c).waiting_for_leaders(PATIENCE);
        world.spawn(make(&actor, &next, by_clients.counting()))
    });
    let mut is_reached = false;
    while making.iter().any(|making| making.borrow().is_none()) {
        assert!(world.step(), "{case}: they end");
        let is_over = ended.borrow().is_some() || gate.is_reached();
        if is_over && !is_reached && end == End::Crashes {
            world.crash(0);
        }
        is_reached |= is_over;
    }
    for (making, next) in making.iter().zip(&changes) {
        let made = making.borrow_mut().take().expect("it has ended");
        assert!(contains(&made, next), "{case}");
    }
    if end == End::IsLate {
        gate.open();
        world.pass(Duration::from_millis(50));
    }
    world.settle();
    for known in [&c, &changes[0], &changes[1]] {
        let (tag, text) = world.actor(known).get("k");
        assert_eq!((tag, text.as_deref()), (written, Some("v")), "{case}");
    }
    world.assert_one_chain();
    (is_reached, by_clients.finals.get() > 0)
}

/// A leader that dies, or stops, before each of its calls in turn: the changes are made all the same, and nothing is lost.
#[test]
fn a_leader_is_taken_over_at_every_step() {
    for end in [End::Dies, End::Crashes, End::IsLate] {
        let mut taken_over = 0;
        for limit in 0.. {
            let (is_reached, is_taken_over) = leaves(end, limit);
            taken_over += usize::from(is_taken_over);
            if !is_reached {
                assert!(!is_taken_over, "the leader has made everything");
                break;
            }
        }
        assert_eq!(taken_over, 17, "{end:?}");
    }
}

/// A change of a reconfigurer that died is made by the leader; one that its server has from before a restart, too.
#[test]
fn a_leader_makes_what_is_left() {
    let (world, c, [one, _]) = led();
    post_and_die(&world, &c, &one);
    world.crash(0);
    assert_eq!(world.posted(0), []);
    world.restart(0, false);
    let posted = world.posted(0);
    assert_eq!(posted.len(), 1, "{posted:?}");
    assert!(
        (1..4).all(|number| world.posted(number).is_empty()),
        "one of them leads"
    );
    spawn_leader(&world, 0, &c);
    world.pass(PATIENCE);
    let done = world.run(reconfigure(world.actor(&c).client(), &c, &one));
    let last = installed(done, "it is made");
    assert_eq!(membership(&last), membership(&one));
    assert_eq!(world.posted(0), [], "nothing is left to do");
}

/// Together two removals would leave too few. One of them is made and the other one refused. That is not made later either, when
/// another change brings a server, by a leader that was late at any of its calls.
#[test]
fn a_leader_makes_nothing_that_was_refused() {
    for limit in 0.. {
        let (world, c, _) = led();
        let (gate, work) = (Gate::after(limit), Work::default());
        let (of_world, of_gate) = (world.clone(), gate.clone());
        let env = move || GatedEnv::new(of_world.env(), &of_gate);
        world.spawn(lead((&world, 0), &c, env, &work));
        let few = [0, 1].map(|gone| changed(&c, |it| it.without(server(gone))));
        let making = few.clone().map(|next| {
            let client = world.actor(&c).client().waiting_for_leaders(PATIENCE);
            world.spawn(reconfigure(client, &c, &next))
        });
        let ended = making.map(|making| world.finish(&making));
        let refused = ended.iter().position(Result::is_err);
        let refused = refused.expect("one is refused");
        let (members, least) = (2, 3);
        assert_eq!(
            ended[refused],
            Err(ReconfigError::TooFew { members, least })
        );
        let more = changed(&c, |it| it.with(server(4)));
        let done = world.run(reconfigure(world.actor(&c).client(), &c, &more));
        installed(done, "nothing is in its way");
        let is_late = gate.is_reached();
        gate.open();
        world.pass(PATIENCE);
        let domain = world.actor(&c).domain();
        let path = world.run(async move { domain.path().await });
        let path = path.expect("a quorum is there");
        let last = path.last().expect("there is a first one");
        let case = format!("late before call {limit}");
        assert!(contains(last, &few[1 - refused]), "{case}");
        assert!(!contains(last, &few[refused]), "{case}");
        if !is_late {
            break;
        }
    }
}

/// Several believe to lead, each with the mailbox of its own server: what they propose is decided once.
#[test]
fn two_leaders_are_safe() {
    for seed in 0..200 {
        let run = Run::new(&first(LEADER, 4), seed);
        for number in 0..SERVERS {
            spawn_leader(&run.world, number, &run.c);
        }
        // With the mailbox of another server.
        let (world, c) = (run.world.clone(), run.c.clone());
        run.world.spawn(lead_for_another(world, c));
        let actors: Vec<Actor> = (0..5)
            .map(|_| run.world.actor(&run.c).waiting_for_leaders(PATIENCE / 10))
            .collect();
        for (name, actor) in actors[..3].iter().enumerate() {
            run.operate(actor.clone(), name, 5);
        }
        for actor in &actors[3..] {
            run.change(actor, 2);
        }
        run.finish(seed);
    }
}

async fn lead_for_another(world: World, c: Arc<Configuration>) {
    let of_server = Client::<WorldEnv>::new(world.env());
    loop {
        let client = of_server.with(world.env());
        client.env.sleep(ROUND).await;
        let posted: Vec<_> = (0..SERVERS)
            .flat_map(|number| world.posted(number))
            .collect();
        for posted in posted {
            let _ = lead_once(&client, &c, &posted, &|_| {}).await;
        }
    }
}
