//! Each rule is shown what it must let pass, and what it must not. Planted bugs often break several rules, and the first
//! to notice gets the credit; here each has to notice by itself.

use super::*;
use areo_core::config::{Dap, Decider, Descriptor, Membership};
use areo_core::dsm::large;
use areo_core::element::Form;
use areo_core::message::{Gossip, GossipMarks, ServerRecord};
use areo_core::object::DomainId;
use areo_core::pointer::{Pointer, Status};
use areo_core::tag::Writer;

mod unsynced;

const KEY: ConfigurationId = ConfigurationId {
    domain: DomainId(1),
    partition: 0,
    index: 0,
    digest: 0,
};

fn tag(number: u64) -> Tag {
    Tag {
        number,
        writer: Writer::default(),
    }
}

fn held(stored: &[u64], floor: u64) -> HeldVersions {
    HeldVersions {
        stored: stored
            .iter()
            .map(|number| (tag(*number), Form::Copy))
            .collect(),
        floor: tag(floor),
        ..HeldVersions::default()
    }
}

/// One server with these versions of one object on its disk; true: damaged.
struct Scene {
    truths: Vec<Truth>,
    objects: Objects,
    shapes: BTreeMap<ConfigurationId, Arc<Configuration>>,
}

impl Scene {
    fn new(elements: &[(u64, bool)]) -> Scene {
        let mut objects = Objects::default();
        let object = objects.number(KEY, &Bytes::from_static(b"\0k"));
        let element = |(handle, (number, damaged)): (usize, &(u64, bool))| {
            let kept = KeptRecord::Element {
                object,
                tag: tag(*number),
                floor: Tag::INITIAL,
                form: Form::Copy,
                deleted: false,
                damaged: *damaged,
            };
            (u32::try_from(handle).unwrap(), kept)
        };
        let mut truth = Truth::default();
        let found = elements.iter().enumerate().map(element).collect();
        assert!(truth.recovered(found, false).is_empty());
        Scene {
            truths: vec![truth],
            objects,
            shapes: BTreeMap::new(),
        }
    }

    fn tell(&self, rule: &mut dyn Invariant, observation: &Observation<'_>) -> bool {
        let context = Context {
            truths: &self.truths,
            objects: &self.objects,
            shapes: &self.shapes,
        };
        rule.observe(observation, &context).is_some()
    }

    /// True if a server that shows these successors of the configuration with this index breaks the rule.
    fn leads(&self, rule: &mut dyn Invariant, index: u32, pointers: &[Pointer]) -> bool {
        let at = &ConfigurationId { index, ..KEY };
        let successors = &Successors::new(pointers.to_vec()).expect("they are in order");
        let server = 0;
        let shown = Observation::SuccessorsShown {
            server,
            at,
            successors,
        };
        self.tell(rule, &shown)
    }

    /// True if a server that shows this decision breaks the rule.
    fn decides(&self, rule: &mut dyn Invariant, cell: &Bytes, value: &Bytes) -> bool {
        let (server, key) = (0, KEY);
        let shown = Observation::CellShown {
            server,
            key,
            cell,
            value,
        };
        self.tell(rule, &shown)
    }

    /// True if a server that shows these versions breaks the rule.
    fn shows(&self, rule: &mut dyn Invariant, held: &HeldVersions) -> bool {
        let (server, object) = (0, 0);
        let shown = Observation::Shown {
            server,
            object,
            held,
        };
        self.tell(rule, &shown)
    }
}

#[test]
fn tags_that_go_back_are_caught() {
    let (scene, mut rule) = (Scene::new(&[]), tags_never_go_back::Rule::default());
    assert!(!scene.shows(&mut rule, &held(&[1, 2], 0)));
    assert!(!scene.shows(&mut rule, &held(&[2], 1)));
    assert!(scene.shows(&mut rule, &held(&[1], 1)), "an older version");
    assert!(scene.shows(&mut rule, &held(&[2], 0)), "a lower floor");
}

#[test]
fn a_damaged_server_that_speaks_is_caught() {
    let mut rule = damaged_is_never_counted::Rule;
    let older = Scene::new(&[(1, true), (2, false)]);
    assert!(
        !older.shows(&mut rule, &held(&[2], 1)),
        "a newer one is sound"
    );
    let repaired = Scene::new(&[(2, true), (2, false)]);
    assert!(!repaired.shows(&mut rule, &held(&[2], 0)));
    let newest = Scene::new(&[(1, false), (2, true)]);
    assert!(newest.shows(&mut rule, &held(&[1], 0)));
    let mut named = held(&[1], 0);
    named.stored.push((tag(2), Form::Trimmed));
    assert!(!newest.shows(&mut rule, &named), "it names what it lost");
    let mut unreadable = Scene::new(&[]);
    unreadable.truths[0].unreadable = true;
    assert!(unreadable.shows(&mut rule, &held(&[], 0)));
}

#[test]
fn what_is_shown_before_it_is_durable_is_caught() {
    let (scene, mut rule) = (Scene::new(&[(1, false)]), nothing_unsynced_is_shown::Rule);
    assert!(!scene.shows(&mut rule, &held(&[1], 0)));
    assert!(scene.shows(&mut rule, &held(&[1, 2], 0)));
}

#[test]
fn acknowledged_versions_that_are_gone_are_caught() {
    let scene = Scene::new(&[(2, false)]);
    let mut rule = acknowledged_is_durable::Rule::default();
    let (server, object) = (0, 0);
    let acknowledged = |number| Observation::Acknowledged {
        server,
        object,
        tag: tag(number),
    };
    assert!(!scene.tell(&mut rule, &acknowledged(2)));
    assert!(scene.tell(&mut rule, &acknowledged(3)), "not on disk");
    assert!(scene.shows(&mut rule, &held(&[2], 0)), "3 was acknowledged");
    let missing = &[KeptRecord::Configuration { key: KEY }];
    assert!(scene.tell(&mut rule, &Observation::Recovered { server, missing }));
}

#[test]
fn a_cell_with_two_values_is_caught() {
    let (scene, mut rule) = (Scene::new(&[]), decided_once::Rule::default());
    let (cell, other) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
    let (one, two) = (Bytes::from_static(b"1"), Bytes::from_static(b"2"));
    let mut shown = |cell, value| scene.decides(&mut rule, cell, value);
    assert!(!shown(&cell, &one) && !shown(&other, &two) && !shown(&cell, &one));
    assert!(shown(&cell, &two));
}

/// `[W-11 given-up]`: a sweep forgets the cell of an upload that was committed, and that the register did not choose.
#[test]
fn the_cell_of_an_upload_that_a_register_did_not_choose_may_be_forgotten() {
    let cell = Bytes::from_static(b"upload-00000000000000000000000000000007");
    let abort = Bytes::from_static(b"\x04\x80\0\0\0\0");
    let decides_twice = |current: u64, upload: u64, dap| {
        let tag = [1_u64, 0, upload].map(u64::to_le_bytes).concat();
        let name = b"\x01\x80\x02\0\0\0\0k\x02\x80\x18\0\0\0";
        let commit = [&name[..], &tag, b"\x03\x80\0\0\0\0"].concat().into();
        assert!(large::committed(&commit).is_some());
        let mut scene = Scene::new(&[(current, false)]);
        let members = vec![areo_core::config::ServerId(1)];
        let c = Configuration::new(Descriptor::new(DomainId(1), members, dap)).unwrap();
        scene.shapes.insert(KEY, c);
        let mut rule = decided_once::Rule::default();
        let mut shown = |value| scene.decides(&mut rule, &cell, value);
        assert!(!shown(&commit));
        shown(&abort)
    };
    let conditional = Dap::Conditional { k: 1 };
    assert!(!decides_twice(1, 7, conditional), "another one was chosen");
    assert!(
        decides_twice(1, 0, conditional),
        "it is the current version"
    );
    assert!(decides_twice(1, 7, Dap::Abd), "it may become a version");
    assert!(!decides_twice(2, 7, Dap::Abd), "it is written over");
}

#[test]
fn an_index_with_two_configurations_is_caught() {
    let (scene, mut rule) = (Scene::new(&[]), successors_are_ordered::Rule::default());
    let pointer = |index, delta| {
        let members = vec![areo_core::config::ServerId(1)];
        let descriptor = Descriptor {
            index,
            delta,
            ..Descriptor::new(DomainId(1), members, Dap::Abd)
        };
        Pointer::pending(&Configuration::new(descriptor).unwrap())
    };
    let mut shown =
        |pointer: Pointer| scene.leads(&mut rule, pointer.configuration.id().index - 1, &[pointer]);
    let same = Pointer {
        status: Status::Final,
        ..pointer(3, 1)
    };
    assert!(!shown(pointer(3, 1)) && !shown(same) && !shown(pointer(4, 2)));
    assert!(shown(pointer(3, 2)));
}

fn first() -> Membership {
    Membership::first((1..=3).map(ServerId))
}

fn with(ids: &[u128]) -> Membership {
    let add = |all: Membership, id: &u128| all.with(ServerId(*id));
    ids.iter().fold(first(), add)
}

fn configuration(decided_by: &Decider, membership: &Membership) -> Arc<Configuration> {
    let descriptor = Descriptor {
        index: membership.size().unwrap(),
        lattice: Some(membership.clone()),
        decided_by: decided_by.clone(),
        ..Descriptor::new(DomainId(1), membership.members(), Dap::Abd)
    };
    Configuration::new(descriptor).unwrap()
}

/// A pointer to a configuration with these servers more than the first.
fn added(decided_by: &Decider, ids: &[u128], status: Status) -> Pointer {
    let configuration = configuration(decided_by, &with(ids));
    Pointer {
        configuration,
        status,
    }
}

#[test]
fn configurations_of_a_lattice_that_are_beside_each_other_are_caught() {
    let shown = |ids: [&[u128]; 3]| {
        let (scene, mut rule) = (Scene::new(&[]), successors_are_ordered::Rule::default());
        let added = |ids| added(&Decider::Agreement, ids, Status::Pending);
        ids.map(|ids| scene.leads(&mut rule, 0, &[added(ids)]))
    };
    let chain: [&[u128]; 3] = [&[4, 5, 6], &[4], &[4, 5]];
    assert_eq!(shown(chain), [false; 3]);
    for beside in [&[5][..], &[5, 6], &[4, 5, 7, 8]] {
        assert_eq!(shown([&[4, 5, 6], &[4], beside]), [false, false, true]);
    }
}

/// In DynaStore of pending ones neither need precede the other; of those that operations may begin at one does.
#[test]
fn final_configurations_that_are_beside_each_other_are_caught() {
    let (scene, mut rule) = (Scene::new(&[]), successors_are_ordered::Rule::default());
    let shown = [
        (4, Status::Pending, false),
        (5, Status::Pending, false),
        (4, Status::Final, false),
        (5, Status::Pending, false),
        (5, Status::Final, true),
    ];
    for (id, status, is_caught) in shown {
        let pointer = added(&Decider::Snapshot, &[id], status);
        let caught = scene.leads(&mut rule, 0, &[pointer]);
        assert_eq!(caught, is_caught, "{id} {status:?}");
    }
}

/// A second successor breaks the rule where consensus decides. In a lattice another one may come before the first
/// announced one.
#[test]
fn a_second_successor_is_caught() {
    let both = |decider: &Decider| {
        let (scene, mut rule) = (Scene::new(&[]), successors_are_ordered::Rule::default());
        let p = |ids: &[u128]| added(decider, ids, Status::Pending);
        let far = added(decider, &[4, 5, 6, 7], Status::Final);
        assert!(!scene.leads(&mut rule, 0, &[p(&[4, 5]), p(&[4, 5, 6])]));
        assert!(!scene.leads(&mut rule, 2, &[p(&[4, 5, 6])]), "elsewhere");
        assert!(!scene.leads(&mut rule, 0, &[far]), "it superseded all");
        scene.leads(&mut rule, 0, &[p(&[4]), p(&[4, 5])])
    };
    let owner = Writer::default();
    assert!(both(&Decider::Members) && both(&Decider::Leader { owner }));
    assert!(!both(&Decider::Agreement) && !both(&Decider::Snapshot));
}

#[test]
fn a_configuration_with_too_few_members_is_caught() {
    let few = |begun: u128, left: Membership| {
        let (mut scene, mut rule) = (Scene::new(&[]), never_too_few_members::Rule);
        let begun = Membership::first((1..=begun).map(ServerId));
        let begun = configuration(&Decider::Agreement, &begun);
        scene.shapes.insert(begun.id(), begun);
        let left = configuration(&Decider::Agreement, &left);
        scene.leads(&mut rule, 0, &[Pointer::pending(&left)])
    };
    assert!(!few(3, with(&[4]).without(ServerId(1))));
    assert!(few(3, first().without(ServerId(1))));
    let two = Membership::first((1..=2).map(ServerId));
    assert!(!few(2, two.with(ServerId(3)).without(ServerId(1))));
    assert!(few(2, two.without(ServerId(1))));
}

/// True if the last of these conclusions, drawn one after the other in one configuration, breaks the rule.
fn caught(decided_by: &Decider, conclusions: &[Conclusion<'_>]) -> bool {
    let (scene, mut rule) = (Scene::new(&[]), conclusions_agree::Rule::default());
    let at = &configuration(decided_by, &first());
    let mut caught = conclusions.iter().map(|conclusion| {
        let conclusion = *conclusion;
        scene.tell(&mut rule, &Observation::Concluded { at, conclusion })
    });
    let last = caught.by_ref().nth(conclusions.len() - 1);
    last.expect("there is a last one")
}

#[test]
fn what_is_merged_to_two_things_is_caught() {
    let [a, b, ab] = [with(&[4]), with(&[5]), with(&[4, 5])];
    let merged = |membership, round| Conclusion::Merged { membership, round };
    let (agreed, committed) = (&Decider::Agreement, &Decider::Speculation);
    assert!(!caught(agreed, &[merged(&ab, 0), merged(&a, 0)]));
    assert!(caught(agreed, &[merged(&a, 0), merged(&b, 0)]));
    assert!(!caught(committed, &[merged(&ab, 1), merged(&a, 0)]));
    assert!(!caught(committed, &[merged(&a, 0), merged(&a, 0)]));
    assert!(
        caught(committed, &[merged(&a, 0), merged(&ab, 0)]),
        "one round"
    );
    assert!(
        caught(committed, &[merged(&ab, 0), merged(&a, 1)]),
        "less later"
    );
    assert!(caught(committed, &[merged(&a, 1), merged(&ab, 0)]));
}

#[test]
fn sets_that_are_collected_beside_each_other_are_caught() {
    let snapshot = &Decider::Snapshot;
    let set = |ids: &[u128]| {
        let mut set = Successors::default();
        for id in ids {
            let pointer = added(snapshot, &[*id], Status::Pending);
            set.insert(pointer).unwrap();
        }
        set
    };
    let [one, both, other] = [set(&[4]), set(&[4, 5]), set(&[5, 6])];
    let collected = |successors| Conclusion::Collected { successors };
    assert!(!caught(snapshot, &[collected(&both), collected(&one)]));
    assert!(!caught(snapshot, &[collected(&one), collected(&both)]));
    assert!(caught(snapshot, &[collected(&one), collected(&other)]));
    assert!(caught(snapshot, &[collected(&both), collected(&other)]));
}

#[test]
fn what_is_said_before_it_is_durable_is_caught() {
    let (mut scene, mut rule) = (Scene::new(&[]), told_is_durable::Rule);
    let record = |id, incarnation| ServerRecord {
        incarnation,
        start: 1,
        ..ServerRecord::at_address(ServerId(id), String::new())
    };
    let known = KeptRecord::Server {
        key: record(1, 2).key(),
        rank: record(1, 2).rank(),
    };
    scene.truths[0].recovered(vec![(0, known)], false);
    let says = |id, incarnation| Note::Serving(record(id, incarnation));
    let mut is_broken = |note: &Note| scene.tell(&mut rule, &Observation::Told { server: 0, note });
    assert!(!is_broken(&says(1, 2)));
    assert!(is_broken(&says(1, 3)), "a later start");
    assert!(is_broken(&says(2, 1)), "another server");
}

#[test]
fn gossip_of_what_is_not_durable_is_caught() {
    let (mut scene, mut rule) = (Scene::new(&[]), told_is_durable::Rule);
    let (key, name) = (scene.objects.key(0), scene.objects.name(0));
    let name = Name::from_bytes(Bytes::copy_from_slice(name)).expect("it was a name before");
    let marks = |finalized, complete| GossipMarks {
        largest: tag(finalized),
        finalized: tag(finalized),
        complete: tag(complete),
    };
    let known = KeptRecord::Marks {
        object: 0,
        marks: Box::new(areo_core::dap::versions::Marks {
            stable: tag(3),
            complete: tag(2),
            ..Default::default()
        }),
    };
    scene.truths[0].recovered(vec![(0, known)], false);
    let mut is_broken = |marks| {
        let note = &Note::Gossip(Gossip {
            configuration: key,
            from: ServerId(1),
            objects: [(name.clone(), marks)].into(),
        });
        scene.tell(&mut rule, &Observation::Told { server: 0, note })
    };
    assert!(!is_broken(marks(3, 2)) && !is_broken(marks(1, 0)));
    assert!(is_broken(marks(4, 2)), "a mark");
    assert!(is_broken(marks(3, 3)), "what a quorum has");
}

#[test]
fn a_copy_that_serves_is_caught() {
    let (scene, mut rule) = (Scene::new(&[]), copies_never_serve::Rule::default());
    let confirmed = |incarnation, knows_better| Observation::Confirmed {
        id: ServerId(1),
        incarnation,
        is_copy: true,
        knows_better,
    };
    assert!(!scene.tell(&mut rule, &confirmed(1, None)));
    assert!(!scene.tell(&mut rule, &confirmed(2, None)));
    assert!(scene.tell(&mut rule, &confirmed(2, None)), "twice");
    assert!(scene.tell(&mut rule, &confirmed(3, Some(2))));
}
