//! A server's part of a domain's sequence, which it shows with every answer (`docs/spec` 3.2, 3.4, 10.4).

use super::move_to;
use crate::world::{World, configuration, name, successor};
use areo_core::config::{Collect, Configuration, Dap, Descriptor, Options};
use areo_core::element::{Element, Form};
use areo_core::message::{Access, Answer, Body, Note, Refusal, Reply, Request, Want};
use areo_core::pointer::{Pointer, Status, Successors};
use areo_core::server::record::Header;
use areo_core::tag::{Tag, Writer};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const COLLECTS: [Collect; 3] = [Collect::On, Collect::Off, Collect::Paper];

/// A sequence of configurations of the same three servers.
fn sequence(collect: Collect, length: u32) -> Vec<Arc<Configuration>> {
    let first = configuration(3, Dap::Abd, 1, 0);
    let at = |index| {
        let options = Options {
            collect,
            ..Options::default()
        };
        let descriptor = Descriptor {
            index,
            options,
            ..first.descriptor().clone()
        };
        Configuration::new(descriptor).expect("a valid descriptor")
    };
    (0..length).map(at).collect()
}

fn request(c: &Arc<Configuration>, pointer: Option<&Pointer>, body: Body) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: Some(c.clone()),
        successors: pointer.cloned().into(),
        body,
    }
}

/// Asks server 0; the pointer and the answer.
fn ask(
    world: &World,
    c: &Arc<Configuration>,
    pointer: Option<&Pointer>,
    body: Body,
) -> Result<(Option<Pointer>, Option<Reply>), Refusal> {
    let (shown, reply) = world.ask(0, request(c, pointer, body))?.open();
    Ok((shown.nearest().cloned(), reply))
}

/// READ-CONFIG, or WRITE-CONFIG; the pointer that server 0 knows then.
fn config(
    world: &World,
    c: &Arc<Configuration>,
    pointer: Option<&Pointer>,
) -> Result<Option<Pointer>, Refusal> {
    ask(world, c, pointer, Body::ReadConfig).map(|(pointer, _)| pointer)
}

fn query(key: &str) -> Body {
    let (want, have) = (Want::Element, Tag::INITIAL);
    Body::Access(vec![(name(key), Access::query(want, have))])
}

fn tag(number: u64) -> Tag {
    let writer = Writer::default();
    Tag { number, writer }
}

fn put(key: &str, number: u64) -> Body {
    let element = Element {
        form: Form::Copy,
        deleted: false,
        length: 1,
        metadata: Bytes::new(),
        payload: Bytes::from_static(b"x"),
        checksum: None,
    };
    let access = Access::Put {
        tag: tag(number),
        element,
        write_back: false,
    };
    Body::Access(vec![(name(key), access)])
}

/// Kills server 0 and starts it again, with some of the records that it had dropped if `resurrect`.
fn restart(world: &World, resurrect: bool) {
    world.crash(0);
    world.restart(0, resurrect);
}

/// Every sequence of `length` numbers below `base`.
fn words(base: usize, length: u32) -> impl Iterator<Item = Vec<usize>> {
    let digits = move |word: usize| (0..length).map(move |place| word / base.pow(place) % base);
    (0..base.pow(length)).map(move |word| digits(word).collect())
}

/// `[A-2 pointers-rise]`, schedule T6, 3.5 items 3 to 5: of all pointers that a server was sent, in every order, it knows
/// the largest; final is never replaced by pending, an equal pending one is upgraded; and so after every restart, whichever
/// records of older pointers are found. At first there is none.
#[test]
fn a_server_knows_the_largest_pointer_that_it_was_sent() {
    for collect in COLLECTS {
        let c = sequence(collect, 8);
        let ascending = [
            Pointer::pending(&c[5]),
            Pointer::finalized(&c[5]),
            Pointer::finalized(&c[6]),
            Pointer::finalized(&c[7]),
        ];
        for (seed, word) in words(ascending.len(), 4).enumerate() {
            let world = World::of(&c[0], 3, seed as u64);
            assert_eq!(config(&world, &c[4], None), Ok(None));
            let mut largest = 0;
            for (turn, place) in word.iter().enumerate() {
                largest = largest.max(*place);
                let expected = Ok(Some(ascending[largest].clone()));
                let told = config(&world, &c[4], Some(&ascending[*place]));
                assert_eq!(told, expected, "{collect:?} {word:?}");
                restart(&world, turn % 2 == 0);
                assert_eq!(config(&world, &c[4], None), expected, "{word:?}");
            }
        }
    }
}

/// `[A-2 pointers-rise]`, schedules T5 and T6: a pointer to the same configuration or to an earlier one, or a pending one
/// that is not to the next, is refused and changes nothing.
#[test]
fn a_server_refuses_pointers_that_do_not_lead_on() {
    for collect in COLLECTS {
        let c = sequence(collect, 8);
        let wrong = |at: usize| {
            let back =
                (0..=at).flat_map(|to| [Pointer::pending(&c[to]), Pointer::finalized(&c[to])]);
            let far = (at + 2..8).map(|to| Pointer::pending(&c[to]));
            back.chain(far)
        };
        for known in [
            None,
            Some(Pointer::pending(&c[5])),
            Some(Pointer::finalized(&c[5])),
        ] {
            let world = World::of(&c[0], 3, 1);
            assert_eq!(config(&world, &c[4], known.as_ref()), Ok(known.clone()));
            for pointer in wrong(4) {
                for body in [Body::ReadConfig, query("k"), put("k", 1)] {
                    let refused = ask(&world, &c[4], Some(&pointer), body);
                    assert_eq!(refused, Err(Refusal::Malformed), "{pointer:?}");
                }
                assert_eq!(config(&world, &c[4], None), Ok(known.clone()));
            }
        }
    }
}

/// `[A-11 drop-when-final]`, `[A-12 pointer-tombstone]`, schedule T10, 3.5 items 4 and 10: an answer is withheld always with
/// a final pointer, and where state may have been dropped always; a pending pointer withholds nothing. The object that was
/// never touched is no exception.
#[test]
fn what_is_withheld_comes_with_a_final_pointer() {
    for collect in COLLECTS {
        let c = sequence(collect, 3);
        let world = World::of(&c[0], 3, 1);
        let bodies = || [query("k"), query("untouched"), put("k", 1), put("new", 1)];
        assert!(ask(&world, &c[0], None, put("k", 1)).is_ok());
        let pending = Pointer::pending(&c[1]);
        for pointer in [Some(&pending), None] {
            for body in bodies() {
                let (shown, reply) = ask(&world, &c[0], pointer, body).expect("no refusal");
                assert_eq!(shown.as_ref(), Some(&pending));
                assert!(reply.is_some(), "a pending pointer withholds nothing");
            }
        }
        // The pointer becomes final, under an equal index, with any of the requests.
        let last = Pointer::finalized(&c[1]);
        for (turn, pointer) in [Some(&last), None, None].into_iter().enumerate() {
            for body in bodies() {
                let (shown, reply) = ask(&world, &c[0], pointer, body).expect("no refusal");
                assert_eq!(shown.as_ref(), Some(&last));
                assert_eq!(reply.is_some(), collect == Collect::Off, "{collect:?}");
            }
            restart(&world, turn == 0);
        }
        let elements = world.disk(0, |disk| disk.elements());
        assert_eq!(elements > 0, collect == Collect::Off);
    }
}

/// `[X-13 highest-final]`: below the highest final configuration that a server has heard of there is nothing but that
/// pointer; state is created for that index and larger ones, only from the descriptor, and only for one descriptor.
#[test]
fn below_the_highest_final_configuration_nothing_is_created() {
    let c = sequence(Collect::On, 5);
    let world = World::of(&c[0], 3, 1);
    let id = c[3].id();
    let latest = Request::Latest {
        domain: id.domain,
        partition: id.partition,
        known: Some(c[3].clone()),
    };
    let know = world.ask(0, latest);
    assert_eq!(know, Ok(Reply::Latest(Some(c[3].clone()))));
    for resurrect in [true, false] {
        for below in &c[..3] {
            for body in [query("k"), put("k", 1), Body::ReadConfig] {
                let answer = ask(&world, below, None, body).expect("no refusal");
                assert_eq!(answer, (Some(Pointer::finalized(&c[3])), None));
            }
            let pointer = Pointer::pending(&c[below.id().index as usize + 1]);
            let (shown, reply) =
                ask(&world, below, Some(&pointer), query("k")).expect("no refusal");
            assert_eq!((shown, reply), (Some(Pointer::finalized(&c[3])), None));
        }
        restart(&world, resurrect);
    }
    for above in &c[3..] {
        let without = Request::Configured {
            configuration: above.id(),
            descriptor: None,
            successors: Successors::default(),
            body: query("k"),
        };
        assert_eq!(world.ask(0, without), Err(Refusal::UnknownConfiguration));
        let (pointer, reply) = ask(&world, above, None, put("k", 1)).expect("no refusal");
        assert_eq!(
            (pointer, reply),
            (None, Some(Reply::Access(vec![Answer::Stored])))
        );
    }
    for index in 3..5 {
        let other = Descriptor {
            index,
            ..successor(&c[2], 0, 2, Dap::Abd).descriptor().clone()
        };
        let other = Configuration::new(other).expect("a valid descriptor");
        for body in [query("k"), put("k", 2), Body::ReadConfig] {
            let refused = ask(&world, &other, None, body);
            assert_eq!(refused, Err(Refusal::Forked), "another digest");
        }
    }
}

/// `[X-13 highest-final]`, `[X-10 durable-replies]`, 10.3: after everything that a server heard, dropped and found again, it
/// never goes back: neither the pointer of a configuration nor what it withholds, and what it holds where nothing final follows
/// stays.
#[test]
fn a_server_with_pointers_never_says_less_after_a_restart() {
    for collect in COLLECTS {
        for seed in 0..300 {
            let c = sequence(collect, 6);
            let world = World::of(&c[0], 3, seed);
            let mut next: Vec<Option<Pointer>> = vec![None; 5];
            let mut largest = [0; 5];
            for turn in 1..40 {
                let at = world.below(5);
                match world.below(6) {
                    0 => restart(&world, world.below(2) == 0),
                    1 => {
                        let pointer = Pointer::pending(&c[at + 1]);
                        drop(config(&world, &c[at], Some(&pointer)));
                    }
                    2 if world.below(3) == 0 => {
                        let pointer = Pointer::finalized(&c[at + 1 + world.below(5 - at)]);
                        drop(config(&world, &c[at], Some(&pointer)));
                    }
                    3 if world.below(3) == 0 => world.tell(
                        0,
                        Note::Next {
                            configuration: c[at].id(),
                            pointer: Pointer::finalized(&c[at + 1]),
                        },
                    ),
                    _ => {
                        let (_, reply) = ask(&world, &c[at], None, put("k", turn)).expect("ok");
                        if reply.is_some() {
                            largest[at] = turn;
                        }
                    }
                }
                for at in 0..5 {
                    let (shown, reply) = ask(&world, &c[at], None, query("k")).expect("ok");
                    let rank = |pointer: &Option<Pointer>| pointer.as_ref().map(Pointer::rank);
                    assert!(
                        rank(&shown) >= rank(&next[at]),
                        "{collect:?} {seed}: it went back"
                    );
                    match reply {
                        None => assert!(shown.as_ref().is_some_and(Pointer::is_final)),
                        Some(Reply::Access(answers)) => {
                            let [Answer::Held(held)] = answers.as_slice() else {
                                panic!("{answers:?}")
                            };
                            let newest = held.stored.last().map_or(0, |(tag, _)| tag.number);
                            assert_eq!(newest, largest[at], "{collect:?} {seed}");
                        }
                        other => panic!("{other:?}"),
                    }
                    next[at] = shown;
                }
            }
        }
    }
}

/// `[X-14 final-after-transfer]`: a note says final pointers and nothing else, and only to who knows the configuration.
#[test]
fn a_note_announces_final_pointers_only() {
    let c = sequence(Collect::On, 3);
    let world = World::of(&c[0], 3, 1);
    let note = |at: &Arc<Configuration>, pointer| Note::Next {
        configuration: at.id(),
        pointer,
    };
    world.tell(0, note(&c[0], Pointer::finalized(&c[1])));
    assert_eq!(config(&world, &c[0], None), Ok(None), "it did not know c0");
    world.tell(0, note(&c[0], Pointer::pending(&c[1])));
    assert_eq!(config(&world, &c[0], None), Ok(None));
    world.tell(0, note(&c[0], Pointer::finalized(&c[0])));
    assert_eq!(config(&world, &c[0], None), Ok(None), "it does not lead on");
    world.tell(0, note(&c[0], Pointer::finalized(&c[1])));
    let known = Ok(Some(Pointer::finalized(&c[1])));
    assert_eq!(config(&world, &c[0], None), known);
    // It has let c0 go by now, and still learns where the domain is.
    world.tell(0, note(&c[0], Pointer::finalized(&c[2])));
    let known = Ok(Some(Pointer::finalized(&c[2])));
    assert_eq!(config(&world, &c[0], None), known);
}

/// Schedule T5, `[A-4 from-the-asked]`: a client that finds c1 at a minority of c0, and c2 after it, brings c1 to a quorum
/// of c0; no answer leads back.
#[test]
fn a_pending_pointer_is_written_back_to_the_configuration_just_asked() {
    let c0 = configuration(3, Dap::Abd, 1, 0);
    let c1 = successor(&c0, 3, 3, Dap::Abd);
    let c2 = successor(&c1, 6, 3, Dap::Abd);
    let world = World::of(&c0, 9, 1);
    world.actor(&c0).put("k", "v");
    world.settle();
    let told = |number, c: &Arc<Configuration>, next: &Arc<Configuration>| {
        let pointer = Pointer::pending(next);
        world
            .ask(number, request(c, Some(&pointer), Body::ReadConfig))
            .expect("ok");
    };
    told(0, &c0, &c1);
    for number in 3..6 {
        told(number, &c1, &c2);
    }
    // A quorum in which only server 0 knows of it.
    world.hold(|m| m.at(&[2]));
    assert_eq!(world.actor(&c0).get("k").1.as_deref(), Some("v"));
    let mut knowing = 0;
    for number in 0..9 {
        world.disk(number, |disk| {
            for header in disk.headers() {
                let Header::Pointer { key, pointer } = header else {
                    continue;
                };
                assert!(pointer.index() > key.index, "it leads back");
                knowing += usize::from(key.index == 0);
            }
        });
    }
    assert_eq!(knowing, 2, "a quorum of c0 knows of c1");
    // A client that misses server 0 finds the way now.
    world.release();
    world.settle();
    world.hold(|m| m.at(&[0]));
    world.actor(&c0).put("k", "w");
    assert_eq!(world.actor(&c0).get("k").1.as_deref(), Some("w"));
    assert_eq!(world.actor(&c2).get("k").1.as_deref(), Some("w"));
}

/// `[X-13 highest-final]`, collection: servers that were members of every configuration remember one pointer and one
/// configuration.
#[test]
fn collected_configurations_leave_one_pointer() {
    let c = sequence(Collect::On, 6);
    let world = World::of(&c[0], 3, 1);
    let actor = world.actor(&c[0]);
    actor.put("k", "v");
    for delta in 2..7 {
        let next = Descriptor {
            delta,
            ..c[0].descriptor().clone()
        };
        let next = Descriptor {
            index: u32::from(delta) - 1,
            ..next
        };
        move_to(&world, &actor, &Configuration::new(next).expect("valid"));
    }
    world.settle();
    for number in 0..3 {
        for resurrect in [false, true, false] {
            let headers: Vec<Header> = world.disk(number, |disk| disk.headers().cloned().collect());
            let count = |is: fn(&Header) -> bool| headers.iter().filter(|h| is(h)).count();
            if !resurrect {
                assert_eq!(count(|h| matches!(h, Header::Configuration(_))), 1);
                assert_eq!(count(|h| matches!(h, Header::Final(_))), 1);
                assert_eq!(count(|h| matches!(h, Header::Pointer { .. })), 0);
                assert_eq!(count(|h| matches!(h, Header::Element(_))), 1);
            }
            world.crash(number);
            world.restart(number, resurrect);
            // What came back is dropped with the first batch.
            assert!(world.ask(number, Request::Status).is_ok());
            assert!(world.ask(number, Request::Status).is_ok());
        }
    }
    assert_eq!(actor.get("k").1.as_deref(), Some("v"));
    assert_eq!(world.disk(0, |disk| disk.elements()), 1);
}

/// The status of servers with a change that stays pending.
#[test]
fn a_server_says_since_when_a_change_is_pending() {
    let c = sequence(Collect::On, 2);
    let world = World::of(&c[0], 3, 1);
    let pending = || {
        let status = world.status(0);
        (status.pending, status.pending_ms)
    };
    assert_eq!(config(&world, &c[0], None), Ok(None));
    world.pass(Duration::from_secs(5));
    assert_eq!(pending(), (0, 0));
    let next = Pointer::pending(&c[1]);
    for _ in 0..3 {
        // Heard again it is no younger.
        config(&world, &c[0], Some(&next)).unwrap();
        world.pass(Duration::from_secs(2));
    }
    assert_eq!(pending(), (1, 6_000));
    let last = Pointer {
        status: Status::Final,
        ..next
    };
    config(&world, &c[0], Some(&last)).unwrap();
    assert_eq!(pending(), (0, 0));
}
