//! Values in parts, which several clients put and publish (`docs/spec` `[X-44 published-once]`).

use crate::large::uploader::{get, look, sweep, sweep_as};
use crate::paper::reconfiguration::gate::{Gate, GatedEnv};
use crate::world::{Actor, World, configuration, name, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dsm::conditional::Condition;
use areo_core::dsm::large::parts::{Publication, PublishOutcome};
use areo_core::dsm::large::{BlockPlace, PublishError};
use areo_core::dsm::sweep::{Count, UploadSweep};
use areo_core::dsm::{Client, Domain};
use areo_core::element::Value;
use areo_core::env::Env;
use areo_core::object::{Metadata, Name, Part, PartList};
use areo_core::tag::{Tag, Writer};
use bytes::Bytes;
use std::sync::Arc;

const TEXTS: [&str; 3] = ["the first part, ", "", "the last part"];
const WHOLE: &str = "the first part, the last part";
const BLOCK_BYTES: usize = 4;

/// Puts a part, in a lane of its own.
fn put(world: &World, actor: &Actor, upload: Writer, text: &'static str) -> Part {
    let (client, c) = (actor.client(), actor.c.clone());
    let lane = client.next_writer();
    let putting = async move {
        for (number, piece) in text.as_bytes().chunks(BLOCK_BYTES).enumerate() {
            let piece = value(std::str::from_utf8(piece).expect("ASCII"));
            let number = number as u32;
            let block = (upload, BlockPlace::Lane { lane, number });
            let domain = client.domain(&c);
            domain.put_block(block, &piece).await.expect("a quorum");
        }
    };
    world.run(putting);
    Part {
        lane: Some(lane),
        first: 0,
        length: text.len() as u64,
        block_bytes: BLOCK_BYTES as u32,
    }
}

fn put_all(world: &World, actors: &[Actor], upload: Writer) -> Vec<Part> {
    let actors = actors.iter().cycle();
    let parts = TEXTS.iter().zip(actors);
    parts
        .map(|(text, actor)| put(world, actor, upload, text))
        .collect()
}

async fn publish_in<E: Env>(
    domain: Domain<E>,
    upload: Writer,
    parts: Vec<Part>,
    condition: Option<(Condition, u128)>,
) -> Result<PublishOutcome, PublishError> {
    let publication = Publication {
        upload,
        parts: &parts,
        list: &Value::new(Bytes::new(), PartList::encode_parts(&parts)),
        metadata: &Metadata::default(),
        condition,
    };
    domain.publish_parts(&name("k"), &publication).await
}

fn publish(
    world: &World,
    actor: &Actor,
    (upload, parts): (Writer, &[Part]),
) -> Result<PublishOutcome, PublishError> {
    let (domain, parts) = (actor.domain(), parts.to_vec());
    world.run(async move { publish_in(domain, upload, parts, None).await })
}

fn abort(world: &World, actor: &Actor, upload: Writer) {
    let domain = actor.domain();
    let aborted = world.run(async move { domain.abort_parts(upload).await });
    aborted.expect("a quorum is up");
}

fn orphans(world: &World, actor: &Actor) -> Count {
    world.run(look(actor)).expect("a quorum is up").orphans()
}

#[test]
fn a_value_in_parts_is_one_version() {
    for dap in [Dap::Abd, Dap::Ec { k: 2 }, Dap::Conditional { k: 2 }] {
        let c = configuration(4, dap, 1, 2);
        let world = World::new(&c, 1);
        let actors = [world.actor(&c), world.actor(&c), world.actor(&c)];
        let upload = actors[0].client().next_upload();
        let replaced = put(&world, &actors[1], upload, "another attempt");
        let parts = put_all(&world, &actors, upload);
        let all = (upload, &parts[..]);
        let published = publish(&world, &actors[2], all).expect("all parts are there");
        let PublishOutcome::Written(version) = published else {
            panic!("{published:?}");
        };
        assert_eq!(get(&world, &actors[0], "k").as_deref(), Some(WHOLE));
        let about = world.run(actors[0].stat("k")).unwrap();
        assert_eq!((about.tag, about.length), (version, WHOLE.len() as u64));
        // Of the attempt that was replaced nothing is left.
        let swept = world.run(look(&actors[0])).unwrap();
        assert_eq!((swept.live.blocks, swept.orphans()), (8, Count::default()));
        assert_eq!(publish(&world, &actors[1], all), Ok(published), "again");
        let other = publish(&world, &actors[1], (upload, &parts[..1]));
        assert_eq!(other, Ok(PublishOutcome::Differs(version)));
        abort(&world, &actors[0], upload);
        assert_eq!(get(&world, &actors[1], "k").as_deref(), Some(WHOLE));
        // What replaces it removes its blocks.
        actors[1].put("k", "short");
        world.settle();
        assert_eq!(world.run(look(&actors[0])).unwrap(), UploadSweep::default());
        for parts in [&parts[..], &[replaced]] {
            let late = publish(&world, &actors[2], (upload, parts));
            assert_eq!(late, Err(PublishError::Swept));
        }
        assert_eq!(get(&world, &actors[2], "k").as_deref(), Some("short"));
        assert_eq!(orphans(&world, &actors[0]), Count::default());
    }
}

#[test]
fn what_is_aborted_leaves_nothing() {
    let c = configuration(4, Dap::Ec { k: 2 }, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let upload = actor.client().next_upload();
    let parts = put_all(&world, std::slice::from_ref(&actor), upload);
    abort(&world, &actor, upload);
    assert_eq!(orphans(&world, &actor), Count::default());
    let late = publish(&world, &actor, (upload, &parts));
    assert_eq!(late, Err(PublishError::Swept));
    assert_eq!(get(&world, &actor, "k"), None);
}

/// A gateway keeps a record as long as parts may come.
#[test]
fn a_sweep_ends_no_upload_of_which_there_is_a_record() {
    let c = configuration(4, Dap::Conditional { k: 2 }, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let upload = actor.client().next_upload();
    let parts = put_all(&world, std::slice::from_ref(&actor), upload);
    let suffix = format!("{:016x}{:016x}-1", upload.client.0, upload.counter);
    let record = Name::record("k", &suffix).expect("short");
    let written = {
        let (domain, record) = (actor.domain(), record.clone());
        world.run(async move { domain.put(&record, &value("record")).await })
    };
    written.expect("a quorum is up");
    let swept = world.run(sweep(&actor)).expect("a quorum is up");
    assert_eq!((swept.unfinished.blocks, swept.removed.blocks), (8, 0));
    let published = publish(&world, &actor, (upload, &parts));
    assert!(matches!(published, Ok(PublishOutcome::Written(_))));
    // One without a record is ended by its age.
    let upload = actor.client().next_upload();
    put_all(&world, std::slice::from_ref(&actor), upload);
    let only_old = sweep_as(actor.client(), actor.c.clone(), Some(1_000_000), Some(0));
    assert_eq!(world.run(only_old).expect("a quorum").removed.blocks, 0);
    let swept = world.run(sweep(&actor)).expect("a quorum is up");
    assert_eq!((swept.live.blocks, swept.removed.blocks), (8, 8));
    assert_eq!(get(&world, &actor, "k").as_deref(), Some(WHOLE));
}

/// After a condition that does not hold the parts are left, and can be published on another one.
#[test]
fn a_conflict_leaves_the_parts() {
    let c = configuration(4, Dap::Conditional { k: 2 }, 1, 2);
    let world = World::new(&c, 1);
    let actor = world.actor(&c);
    let version = actor.put("k", "before");
    let upload = actor.client().next_upload();
    let parts = put_all(&world, std::slice::from_ref(&actor), upload);
    let publish_if = |condition| {
        let (domain, parts) = (actor.domain(), parts.clone());
        let on = Some((condition, 0));
        world.run(async move { publish_in(domain, upload, parts, on).await })
    };
    let conflict = publish_if(Condition::Absent);
    assert!(matches!(conflict, Ok(PublishOutcome::Conflict(found)) if found.tag == version));
    let published = publish_if(Condition::Version(version));
    assert!(matches!(published, Ok(PublishOutcome::Written(_))));
    assert_eq!(get(&world, &actor, "k").as_deref(), Some(WHOLE));
    assert_eq!(orphans(&world, &actor), Count::default());
}

/// A step of others while the client that publishes, or ends, an upload stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Publish,
    /// A part comes late, and is published alone.
    PublishLate,
    Abort,
    Sweep,
    Write,
}

/// All sequences of up to two steps.
fn sequences() -> Vec<Vec<Step>> {
    use Step::{Abort, Publish, PublishLate, Sweep, Write};
    let steps = [Publish, PublishLate, Abort, Sweep, Write];
    let one = steps.map(|step| vec![step]);
    let two = steps.iter().flat_map(|a| steps.map(|b| vec![*a, b]));
    [Vec::new()].into_iter().chain(one).chain(two).collect()
}

/// A world with an upload of which all parts are there, and what was read.
struct Case {
    world: World,
    actor: Actor,
    upload: Writer,
    parts: Vec<Part>,
    seen: Vec<(Tag, String)>,
    title: String,
}

impl Case {
    fn new(c: &Arc<Configuration>, title: String) -> Case {
        let world = World::new(c, 1);
        let actor = world.actor(c);
        let upload = actor.client().next_upload();
        let parts = put_all(&world, std::slice::from_ref(&actor), upload);
        world.settle();
        Case {
            world,
            actor,
            upload,
            parts,
            seen: Vec::new(),
            title,
        }
    }

    fn publish(&self, parts: &[Part]) {
        match publish(&self.world, &self.actor, (self.upload, parts)) {
            Ok(_) | Err(PublishError::Swept) => {}
            Err(PublishError::Write(error)) => panic!("{}: {error:?}", self.title),
        }
    }

    /// Carries out a step, and reads: what is there is whole.
    fn take(&mut self, step: Step) {
        let (world, actor) = (&self.world, &self.actor);
        match step {
            Step::Publish => self.publish(&self.parts),
            Step::PublishLate => {
                let late = put(world, actor, self.upload, "a late part");
                self.publish(&[late]);
            }
            Step::Abort => abort(world, actor, self.upload),
            Step::Sweep => drop(world.run(sweep(actor)).expect("a quorum is up")),
            Step::Write => drop(actor.put("k", "written over")),
        }
        self.world.settle();
        let found = self.world.run(self.actor.stat("k"));
        let tag = found.expect("a quorum is up").tag;
        let text = get(&self.world, &self.actor, "k");
        self.seen.extend(text.map(|text| (tag, text)));
    }

    /// The upload was one version at most, and nothing is left that no version needs.
    fn judge(&mut self) {
        for _ in 0..2 {
            self.take(Step::Sweep);
        }
        let of_parts = self.seen.iter().filter(|(_, text)| text == WHOLE);
        let mut tags: Vec<Tag> = of_parts.map(|(tag, _)| *tag).collect();
        tags.dedup();
        assert!(tags.len() <= 1, "{}: {:?}", self.title, self.seen);
        let swept = self.world.run(look(&self.actor)).expect("a quorum is up");
        assert_eq!(swept.orphans(), Count::default(), "{}", self.title);
        assert!(swept.live.uploads <= 1, "{}: {swept:?}", self.title);
    }
}

/// One case. Returns whether the client was stopped.
fn run(dap: Dap, (slow, limit): (Step, usize), steps: &[Step]) -> bool {
    let c = configuration(3, dap, 1, 2);
    let title = format!("{dap}, {slow:?} stopped before call {limit}, {steps:?}");
    let mut case = Case::new(&c, title);
    if slow == Step::Write {
        // It removes what it replaces.
        case.take(Step::Publish);
    }
    let gate = Gate::after(limit);
    let client = Client::new(GatedEnv::new(case.world.env(), &gate));
    let (upload, parts) = (case.upload, case.parts.clone());
    let ended = case.world.spawn(async move {
        let domain = client.domain(&c);
        match slow {
            Step::Abort => domain.abort_parts(upload).await.expect("a quorum is up"),
            Step::Write => {
                let written = domain.put(&name("k"), &value("written over")).await;
                written.expect("a quorum is up");
            }
            _ => match publish_in(domain, upload, parts, None).await {
                Ok(_) | Err(PublishError::Swept) => {}
                Err(PublishError::Write(error)) => panic!("{error:?}"),
            },
        }
    });
    while ended.borrow().is_none() && !gate.is_reached() {
        assert!(case.world.step(), "{}: it ends, or stops", case.title);
    }
    let stopped = ended.borrow().is_none();
    for step in steps {
        case.take(*step);
    }
    gate.open();
    while ended.borrow().is_none() {
        assert!(case.world.step(), "{}: it ends", case.title);
    }
    case.world.settle();
    case.judge();
    stopped
}

#[test]
fn a_slow_publication_and_a_slow_end_do_no_harm() {
    let mut cases = 0;
    for dap in [Dap::Abd, Dap::Ec { k: 1 }, Dap::Conditional { k: 1 }] {
        for slow in [Step::Publish, Step::Abort, Step::Write] {
            for steps in sequences() {
                for limit in 0.. {
                    cases += 1;
                    if !run(dap, (slow, limit), &steps) {
                        assert!(limit > 5, "it has more calls than {limit}");
                        break;
                    }
                }
            }
        }
    }
    assert!(cases > 1500, "{cases}");
}
