//! One server and any sequence of valid messages: in every order, with crashes between, the server keeps
//! what its answers promised. The reference is no second server: it remembers what was said, and says what may not be said
//! afterwards.
//!
//! Three bugs were planted to see that it notices, and taken back: floors that are not raised when versions go
//! (`Versions::evict`), an acceptor that accepts below its promise (`Acceptor::receive`), and floors that are not recorded
//! when records go (`keeping::mark`). Each was caught within the cases of one run.

mod promises;
mod size;

use crate::world::{World, configuration, name, server};
use areo_core::config::{Configuration, Dap, Descriptor};
use areo_core::dap;
use areo_core::element::Element;
use areo_core::message::{
    Access, Ballot, Body, CellRequest, Labels, Levels, ListRequest, Note, Program, Refusal, Reply,
    Request, ServerRecord, Want,
};
use areo_core::object::Kind;
use areo_core::pointer::Pointer;
use areo_core::tag::{ClientId, Tag, Writer};
use areo_core::timing;
use bytes::Bytes;
use promises::Promises;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

/// Configurations of the domain.
const CONFIGURATIONS: usize = 4;
/// Keys of the objects.
const KEYS: [&str; 2] = ["a", "b"];
/// Names of the cells.
const CELLS: [&[u8]; 2] = [b"one", b"two"];

/// A request to the server, or a crash of it.
#[derive(Clone, Copy, Debug)]
enum Event {
    Put {
        at: usize,
        key: usize,
        tag: Tag,
        write_back: bool,
    },
    Adopt {
        at: usize,
        key: usize,
        tag: Tag,
    },
    Fetch {
        at: usize,
        key: usize,
        tag: Tag,
    },
    Confirm {
        at: usize,
        key: usize,
        tag: Tag,
    },
    List {
        at: usize,
    },
    Pending {
        at: usize,
    },
    Final {
        at: usize,
        to: usize,
        note: bool,
    },
    Latest {
        to: usize,
    },
    Prepare {
        at: usize,
        cell: usize,
        ballot: Ballot,
    },
    Accept {
        at: usize,
        cell: usize,
        ballot: Ballot,
    },
    Register {
        server: usize,
        incarnation: u64,
        start: u64,
    },
    Quiet,
    Crash {
        resurrect: bool,
    },
}

fn tag() -> impl Strategy<Value = Tag> {
    (1..8_u64, 1..3_u64).prop_map(|(number, client)| Tag {
        number,
        writer: writer(client),
    })
}

fn ballot() -> impl Strategy<Value = Ballot> {
    (0..4_u64, 1..3_u64).prop_map(|(number, client)| Ballot {
        number,
        proposer: writer(client),
    })
}

fn writer(client: u64) -> Writer {
    Writer {
        client: ClientId(client),
        counter: 1,
    }
}

fn event() -> impl Strategy<Value = Event> {
    // Mostly in one configuration, so that things meet there.
    let at = || prop_oneof![3 => Just(0), 1 => 0..CONFIGURATIONS];
    let key = || 0..KEYS.len();
    let cell = || 0..CELLS.len();
    let object = move || (at(), key(), tag());
    let register = (0..2_usize, 1..4_u64, 1..3_u64);
    prop_oneof![
        12 => (object(), any::<bool>())
            .prop_map(|((at, key, tag), write_back)| Event::Put { at, key, tag, write_back }),
        2 => object().prop_map(|(at, key, tag)| Event::Adopt { at, key, tag }),
        3 => object().prop_map(|(at, key, tag)| Event::Fetch { at, key, tag }),
        5 => object().prop_map(|(at, key, tag)| Event::Confirm { at, key, tag }),
        1 => at().prop_map(|at| Event::List { at }),
        1 => at().prop_map(|at| Event::Pending { at }),
        1 => (at(), 1..CONFIGURATIONS, any::<bool>())
            .prop_map(|(at, to, note)| Event::Final { at, to, note }),
        1 => (1..CONFIGURATIONS).prop_map(|to| Event::Latest { to }),
        2 => (at(), cell(), ballot())
            .prop_map(|(at, cell, ballot)| Event::Prepare { at, cell, ballot }),
        2 => (at(), cell(), ballot())
            .prop_map(|(at, cell, ballot)| Event::Accept { at, cell, ballot }),
        1 => register.prop_map(|(server, incarnation, start)| Event::Register {
            server,
            incarnation,
            start
        }),
        2 => Just(Event::Quiet),
        3 => any::<bool>().prop_map(|resurrect| Event::Crash { resurrect }),
    ]
}

/// The kind of each configuration, and the slack of its lists.
fn shapes() -> impl Strategy<Value = Vec<(Dap, u16)>> {
    let dap = prop_oneof![
        Just(Dap::Abd),
        Just(Dap::Ec { k: 2 }),
        Just(Dap::Ec { k: 3 })
    ];
    let delta = prop_oneof![Just(0_u16), Just(1), Just(5)];
    vec((dap, delta), CONFIGURATIONS)
}

/// Every fifth version is one.
fn is_tombstone(tag: Tag) -> bool {
    tag.number.is_multiple_of(5)
}

/// The content of this version, equal wherever and however often it is put.
fn content(key: usize, tag: Tag) -> Option<Bytes> {
    (!is_tombstone(tag))
        .then(|| format!("{key}: {tag}, and so that it is long enough for three").into())
}

struct Subject {
    world: World,
    c: Vec<Arc<Configuration>>,
    promises: Promises,
}

impl Subject {
    fn new(shapes: &[(Dap, u16)], seed: u64) -> Subject {
        let root = configuration(5, Dap::Abd, 1, 8);
        let of = |(index, (dap, delta)): (usize, &(Dap, u16))| {
            let descriptor = Descriptor {
                index: index as u32,
                dap: *dap,
                delta: *delta,
                copy_bytes: 8,
                ..root.descriptor().clone()
            };
            Configuration::new(descriptor).expect("a valid descriptor")
        };
        let c: Vec<_> = shapes.iter().enumerate().map(of).collect();
        Subject {
            world: World::of(&c[0], 1, seed),
            promises: Promises::new(&c),
            c,
        }
    }

    fn ask(
        &self,
        at: usize,
        pointer: Option<Pointer>,
        body: Body,
    ) -> Result<(Option<Pointer>, Option<Reply>), Refusal> {
        let request = Request::Configured {
            configuration: self.c[at].id(),
            descriptor: Some(self.c[at].clone()),
            successors: pointer.into(),
            body,
        };
        let (shown, reply) = self.world.ask(0, request)?.open();
        Ok((shown.nearest().cloned(), reply))
    }

    fn element(&self, at: usize, key: usize, tag: Tag) -> Element {
        let (c, content) = (&self.c[at], content(key, tag));
        let deleted = content.is_none();
        let payload = content.unwrap_or_default();
        let kept = (payload.len() as u64, deleted);
        let position = c.position(server(0)).expect("it is a member");
        let whole = Element {
            form: areo_core::element::Form::Copy,
            deleted,
            length: kept.0,
            metadata: Bytes::new(),
            payload,
            checksum: None,
        };
        let form = dap::form(c, &name(KEYS[key]), position, kept);
        dap::adapted(c, form, whole).expect("a copy makes any element")
    }

    fn access(
        &mut self,
        at: usize,
        key: usize,
        access: Access,
    ) -> Option<areo_core::message::Answer> {
        let body = Body::Access(vec![(name(KEYS[key]), access)]);
        let (pointer, reply) = self.ask(at, None, body).expect("it serves");
        self.promises.pointer(at, pointer.as_ref(), reply.is_none());
        match reply {
            Some(Reply::Access(mut answers)) => answers.pop(),
            None => None,
            other => panic!("{other:?} answers no access"),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Put {
                at,
                key,
                tag,
                write_back,
            } => {
                let element = self.element(at, key, tag);
                let put = Access::Put {
                    tag,
                    element,
                    write_back,
                };
                let answer = self.access(at, key, put);
                self.promises.stored((at, key), tag, answer.as_ref());
            }
            Event::Adopt { at, key, tag } => {
                let answer = self.access(at, key, Access::Adopt(tag));
                self.promises.stored((at, key), tag, answer.as_ref());
            }
            Event::Fetch { at, key, tag } => {
                let answer = self.access(at, key, Access::Fetch { tag, payload: true });
                let expected = self.element(at, key, tag);
                Promises::fetched(answer, &expected);
            }
            Event::Confirm { at, key, tag } => {
                let (configuration, name) = (self.c[at].id(), name(KEYS[key]));
                self.world.tell(
                    0,
                    Note::Confirm {
                        configuration,
                        name,
                        tag,
                    },
                );
            }
            event => self.happen_to_all(event),
        }
        self.look();
    }

    /// Handles the events that do not belong to one object.
    fn happen_to_all(&mut self, event: Event) {
        match event {
            Event::Put { .. }
            | Event::Adopt { .. }
            | Event::Fetch { .. }
            | Event::Confirm { .. } => unreachable!("it is of an object"),
            Event::List { at } => self.list(at),
            Event::Pending { at } if at + 1 < CONFIGURATIONS => {
                let pointer = Pointer::pending(&self.c[at + 1]);
                self.point(at, &pointer);
            }
            Event::Final { at, to, note: true } if at < to => {
                let (configuration, pointer) = (self.c[at].id(), Pointer::finalized(&self.c[to]));
                self.world.tell(
                    0,
                    Note::Next {
                        configuration,
                        pointer,
                    },
                );
            }
            Event::Final {
                at,
                to,
                note: false,
            } if at < to => {
                let pointer = Pointer::finalized(&self.c[to]);
                self.point(at, &pointer);
            }
            Event::Pending { .. } | Event::Final { .. } => {}
            Event::Latest { to } => self.latest(Some(to)),
            Event::Prepare { at, cell, ballot } => {
                self.cell(at, cell, &CellRequest::Prepare { ballot });
            }
            Event::Accept { at, cell, ballot } => {
                // One ballot brings one value.
                let value = Bytes::from(format!("{ballot:?}"));
                self.cell(at, cell, &CellRequest::Accept { ballot, value });
            }
            Event::Register {
                server,
                incarnation,
                start,
            } => {
                let text = String::new;
                let record = ServerRecord {
                    id: crate::world::server(server),
                    incarnation,
                    start,
                    resumed: false,
                    name: text(),
                    address: text(),
                    admin: text(),
                    generation: None,
                    leaving: 0,
                    position: None,
                    program: Program::default(),
                    levels: Levels::default(),
                    labels: Labels::default(),
                };
                let reply = self.world.ask(0, Request::Know(record));
                self.promises
                    .registered(server, (incarnation, start), reply);
            }
            Event::Quiet => self.world.pass(timing::QUIET * 2),
            Event::Crash { resurrect } => {
                self.world.crash(0);
                self.world.restart(0, resurrect);
                self.promises.restarted();
            }
        }
    }

    fn point(&mut self, at: usize, pointer: &Pointer) {
        let (shown, reply) = self
            .ask(at, Some(pointer.clone()), Body::ReadConfig)
            .expect("it serves");
        let shown = shown.expect("a closed request is answered with a pointer");
        assert!(shown.rank() >= pointer.rank(), "{shown:?}");
        self.promises.pointer(at, Some(&shown), reply.is_none());
    }

    fn latest(&mut self, known: Option<usize>) {
        let id = self.c[0].id();
        let reply = self.world.ask(
            0,
            Request::Latest {
                domain: id.domain,
                partition: id.partition,
                known: known.map(|known| self.c[known].clone()),
            },
        );
        self.promises.latest(known, reply);
    }

    fn cell(&mut self, at: usize, cell: usize, step: &CellRequest) {
        let name = Bytes::from_static(CELLS[cell]);
        let body = Body::Cell {
            cell: name,
            step: step.clone(),
        };
        let (pointer, reply) = self.ask(at, None, body).expect("it serves");
        self.promises.pointer(at, pointer.as_ref(), reply.is_none());
        if let Some(Reply::Cell(reply)) = reply {
            self.promises.cell((at, cell), step, reply);
        }
    }

    fn list(&mut self, at: usize) {
        let body = Body::List(ListRequest::new(Kind::User, ""));
        let (_, reply) = self.ask(at, None, body).expect("it serves");
        if let Some(Reply::Listed(listed)) = reply {
            self.promises.listed(at, &KEYS, &listed);
        }
    }

    /// The server's whole status.
    fn look(&mut self) {
        for at in 0..CONFIGURATIONS {
            for key in 0..KEYS.len() {
                let (want, have) = (Want::Element, Tag::INITIAL);
                if let Some(answer) = self.access(at, key, Access::query(want, have)) {
                    let newest = |tag| self.element(at, key, tag);
                    let newest = Promises::newest(&answer).map(newest);
                    self.promises.held((at, key), answer, newest.as_ref());
                }
            }
            for cell in 0..CELLS.len() {
                self.cell(at, cell, &CellRequest::Query);
            }
        }
        self.latest(None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_server_keeps_what_its_answers_promised(
        shapes in shapes(),
        events in vec(event(), 1..60),
        seed in any::<u64>(),
    ) {
        let mut subject = Subject::new(&shapes, seed);
        for event in events {
            subject.happen(event);
        }
    }
}
