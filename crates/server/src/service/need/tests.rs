//! The table, row by row, as it stands in decision record 0072.

use areo_core::config::{Dap, Descriptor};
use areo_core::element::Form;
use areo_core::message::{
    Announcement, Ballot, ChosenVersion, Gossip, Lineage, RestartNote, ServerRecord, Stance,
};
use areo_core::pointer::Pointer;
use areo_core::tag::Tag;
use bytes::Bytes;

use super::*;

/// The root domain of the rows.
pub(crate) const ROOT: DomainId = DomainId(1);
/// Another domain, and its name.
pub(crate) const PHOTOS: DomainId = DomainId(2);
/// A server that speaks for itself.
pub(crate) const OWN: ServerId = ServerId(7);

/// A message of a row.
#[derive(Debug)]
pub(crate) enum Message {
    Request(Request),
    Note(Note),
}

/// A row: a message, and the right that it needs.
pub(crate) struct Row {
    pub(crate) message: Message,
    pub(crate) needs: Vec<Need<'static>>,
}

pub(crate) fn configuration(domain: DomainId, index: u32) -> Arc<Configuration> {
    let members = (1..=3).map(ServerId).collect();
    let descriptor = Descriptor {
        index,
        ..Descriptor::new(domain, members, Dap::Abd)
    };
    Configuration::new(descriptor).expect("it tolerates a crash")
}

fn asked(domain: DomainId, body: Body) -> Request {
    Request::Configured {
        configuration: configuration(domain, 0).id(),
        descriptor: None,
        successors: Successors::default(),
        body,
    }
}

fn row(request: Request, needs: &[Need<'static>]) -> Row {
    Row {
        message: Message::Request(request),
        needs: needs.to_vec(),
    }
}

fn note(note: Note, need: Need<'static>) -> Row {
    Row {
        message: Message::Note(note),
        needs: vec![need],
    }
}

pub(crate) fn access(kind: Kind, accesses: &[Access]) -> Request {
    access_to(&Name::new(kind, "2024/a").expect("it is short"), accesses)
}

fn access_to(name: &Name, accesses: &[Access]) -> Request {
    let accesses = accesses.iter().map(|it| (name.clone(), it.clone()));
    asked(PHOTOS, Body::Access(accesses.collect()))
}

pub(crate) fn element(deleted: bool) -> Element {
    Element {
        form: Form::Copy,
        deleted,
        length: 0,
        metadata: Bytes::new(),
        payload: Bytes::new(),
        checksum: None,
    }
}

pub(crate) fn put(deleted: bool, write_back: bool) -> Access {
    Access::Put {
        tag: Tag::INITIAL,
        element: element(deleted),
        write_back,
    }
}

fn rank(want: Want, ballot: Option<Ballot>) -> Access {
    Access::Rank {
        ballot,
        want,
        have: Tag::INITIAL,
    }
}

fn accept(element: Option<Element>) -> Access {
    Access::Accept(Box::new(Proposal {
        ballot: Ballot::default(),
        tag: Tag::INITIAL,
        element,
        lineage: Lineage::default(),
        settles: false,
        base_chosen: false,
    }))
}

pub(crate) fn cell(domain: DomainId, cell: &'static str, step: CellRequest) -> Request {
    let cell = Bytes::from_static(cell.as_bytes());
    asked(domain, Body::Cell { cell, step })
}

pub(crate) fn prepare() -> CellRequest {
    let ballot = Ballot::default();
    CellRequest::Prepare { ballot }
}

fn cells(domain: DomainId, prefix: &'static str) -> Request {
    let prefix = Bytes::from_static(prefix.as_bytes());
    let after = Bytes::new();
    asked(domain, Body::Cells { prefix, after })
}

fn list(kind: Kind) -> Request {
    list_of(kind, "2024/")
}

fn list_of(kind: Kind, prefix: &str) -> Request {
    asked(PHOTOS, Body::List(ListRequest::new(kind, prefix)))
}

fn register(step: Enrolment, record: ServerRecord) -> Request {
    let record = Box::new(record);
    asked(ROOT, Body::Register { step, record })
}

const fn of(verbs: Verbs, keys: Keys<'static>) -> Need<'static> {
    Need::Domain {
        verbs,
        domain: PHOTOS,
        keys,
    }
}

const KEY: Keys<'static> = Keys::From("2024/a");
const WHOLE: Keys<'static> = Keys::From("");
const RECONFIG: Need<'static> = Need::Cluster(Verb::Reconfig);

const fn server(id: Option<ServerId>, or_reconfig: bool) -> Need<'static> {
    Need::Server { id, or_reconfig }
}

/// All rows of the table.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = accesses();
    rows.extend(lists_and_cells());
    rows.extend(of_servers());
    rows.extend(notes());
    rows
}

/// Accesses, with the verbs of which each needs one.
fn verbs_of_accesses() -> Vec<(Access, Verbs)> {
    let tag = Tag::INITIAL;
    let fetch = |payload| Access::Fetch { tag, payload };
    let finalize = Access::Finalize {
        tag,
        want: Want::Element,
        complete: false,
    };
    let fence = Access::Fence {
        upto: tag,
        spared: tag,
    };
    let keep = |deleted| Access::Keep {
        tag,
        element: element(deleted),
    };
    let announced = Access::Query {
        want: Want::Tags,
        have: tag,
        announced: Some(Announcement {
            length: 1,
            element_bytes: 1,
        }),
    };
    let ballot = Some(Ballot::default());
    let rows = [
        (Access::query(Want::Tags, tag), LOOK),
        (Access::query(Want::Metadata, tag), LOOK),
        (Access::query(Want::Fragment, tag), READ),
        (Access::query(Want::Element, tag), READ),
        (announced, CHANGE),
        (rank(Want::Tags, None), LOOK),
        (rank(Want::Metadata, None), LOOK),
        (rank(Want::Fragment, None), READ),
        (rank(Want::Element, None), READ),
        (rank(Want::Tags, ballot), CHANGE),
        (fetch(false), LOOK),
        (fetch(true), READ),
        (put(false, false), WRITE),
        (put(false, true), WRITE),
        (put(true, false), DELETE),
        (put(true, true), DELETE),
        (keep(false), WRITE),
        (keep(true), DELETE),
        (accept(Some(element(false))), WRITE),
        (accept(Some(element(true))), DELETE),
        (accept(None), CHANGE),
        (Access::Adopt(tag), CHANGE),
        (fence, CHANGE),
        (finalize, CHANGE),
        (Access::Drop(tag), CHANGE),
    ];
    rows.to_vec()
}

fn accesses() -> Vec<Row> {
    let tag = Tag::INITIAL;
    let row_of = |(asked, verbs): (Access, Verbs)| {
        let asked = [asked];
        let user = row(access(Kind::User, &asked), &[of(verbs, KEY)]);
        let others = [Kind::Block, Kind::Genesis, Kind::System];
        let others = others.map(|kind| row(access(kind, &asked), &[of(verbs, WHOLE)]));
        let of_record = match verbs {
            READ => &[Verb::Read, Verb::Write],
            DELETE => CHANGE,
            verbs => verbs,
        };
        let request = access_to(&Name::record("2024/a", "1").expect("short"), &asked);
        let record = row(request, &[of(of_record, KEY)]);
        let request = access_to(&Name::document("cors").expect("short"), &asked);
        let of_document = match verbs {
            READ | LOOK => Need::AnyKey,
            _ => of(ADMIN, WHOLE),
        };
        let document = row(request, &[of_document]);
        [user, record, document].into_iter().chain(others)
    };
    let mut rows: Vec<Row> = verbs_of_accesses().into_iter().flat_map(row_of).collect();
    // Each part of a batch has its need.
    let batch = [
        Access::query(Want::Tags, tag),
        put(false, false),
        put(true, false),
    ];
    let needs = [of(LOOK, KEY), of(WRITE, KEY), of(DELETE, KEY)];
    rows.push(row(access(Kind::User, &batch), &needs));
    rows.push(row(access(Kind::User, &[]), &[]));
    let query = (
        Name::user("a").expect("short"),
        Access::query(Want::Tags, tag),
    );
    rows.push(row(asked(ROOT, Body::Access(vec![query])), &[RECONFIG]));
    let query = (
        Name::document("cors").expect("short"),
        Access::query(Want::Tags, tag),
    );
    rows.push(row(asked(ROOT, Body::Access(vec![query])), &[RECONFIG]));
    rows
}

fn lists_and_cells() -> Vec<Row> {
    let query = || CellRequest::Query;
    let accept = || CellRequest::Accept {
        ballot: Ballot::default(),
        value: Bytes::new(),
    };
    let join = || CellRequest::Join(Bytes::new());
    let admin = of(ADMIN, WHOLE);
    let any = Need::AnyKey;
    let of_all = server(None, true);
    let mut rows = vec![
        row(list(Kind::User), &[of(LIST, Keys::From("2024/"))]),
        row(list(Kind::Upload), &[of(LIST, Keys::From("2024/"))]),
        row(
            list_of(Kind::Upload, "2024/a\0"),
            &[of(&[Verb::List, Verb::Write], KEY)],
        ),
        row(
            list_of(Kind::Upload, "2024/a\0id"),
            &[of(&[Verb::List, Verb::Write], KEY)],
        ),
        row(list(Kind::Block), &[of(BLOCKS, WHOLE)]),
        row(list(Kind::Genesis), &[admin]),
        row(list(Kind::System), &[admin]),
        row(
            asked(ROOT, Body::List(ListRequest::new(Kind::User, ""))),
            &[RECONFIG],
        ),
        row(cells(PHOTOS, "upload-"), &[admin]),
        row(cells(ROOT, "domain/"), &[any]),
        row(cells(ROOT, "server/"), &[any]),
        row(cells(ROOT, "chain/trust/"), &[of_all]),
        row(cells(ROOT, "c"), &[of_all]),
        row(cells(ROOT, ""), &[of_all]),
        row(
            cell(ROOT, "domain/photos/00000000", accept()),
            &[Need::Named("photos")],
        ),
        row(
            cell(ROOT, "domain/photos/00000000", prepare()),
            &[Need::Named("photos")],
        ),
        row(cell(ROOT, "server/s4", prepare()), &[Need::Newcomer]),
        row(cell(ROOT, "server/s4", accept()), &[Need::Newcomer]),
        row(cell(ROOT, "chain/trust/00000000", accept()), &[of_all]),
        row(cell(ROOT, "chain/trust/00000000", query()), &[of_all]),
        row(cell(ROOT, "of a later version", prepare()), &[of_all]),
        row(cell(PHOTOS, "of a later version", prepare()), &[admin]),
        row(cell(PHOTOS, "chain/trust/00000000", query()), &[any]),
    ];
    for decides in [
        "successor",
        "first",
        "agreement",
        "speculation/3",
        "changes",
    ] {
        rows.push(row(cell(PHOTOS, decides, query()), &[any]));
        for step in [prepare(), accept(), join()] {
            rows.push(row(cell(PHOTOS, decides, step.clone()), &[admin]));
            rows.push(row(cell(ROOT, decides, step), &[RECONFIG]));
        }
    }
    for fate in ["upload-1-2", "given-up-1", "fate-0123456789abcdef-k-1"] {
        rows.push(row(cell(PHOTOS, fate, query()), &[any]));
        let needed = [of(CHANGE, Keys::Any)];
        rows.push(row(cell(PHOTOS, fate, prepare()), &needed));
        rows.push(row(cell(PHOTOS, fate, accept()), &needed));
    }
    rows
}

fn of_servers() -> Vec<Row> {
    let record = ServerRecord::at_address(OWN, "host:1".into());
    let leaving = record.with_leaving(true);
    let levels = Levels {
        required: 9,
        finalized: 0,
    };
    let labels = record.labels.changed([("zone", "a")]);
    vec![
        row(Request::Directory, &[Need::Nothing]),
        row(Request::Status, &[Need::Cluster(Verb::Status)]),
        row(Request::View, &[Need::Cluster(Verb::Status)]),
        row(
            Request::Latest {
                domain: PHOTOS,
                partition: 0,
                known: None,
            },
            &[Need::AnyKey],
        ),
        row(asked(PHOTOS, Body::ReadConfig), &[Need::AnyKey]),
        row(asked(ROOT, Body::Servers), &[Need::AnyKey]),
        row(
            register(Enrolment::Ask, record.clone()),
            &[server(Some(OWN), false)],
        ),
        row(
            register(Enrolment::Register, record.clone()),
            &[server(Some(OWN), false)],
        ),
        row(
            register(Enrolment::Register, record.forgotten()),
            &[server(Some(OWN), true)],
        ),
        row(
            register(Enrolment::HandOn, leaving.clone()),
            &[Need::Newcomer],
        ),
        row(
            register(
                Enrolment::HandOn,
                ServerRecord {
                    levels,
                    ..leaving.clone()
                },
            ),
            &[server(None, true)],
        ),
        row(
            register(Enrolment::HandOn, ServerRecord { labels, ..leaving }),
            &[server(None, true)],
        ),
        row(
            register(Enrolment::HandOn, record.clone()),
            &[server(None, true)],
        ),
        row(Request::Know(record), &[Need::NoCaller]),
    ]
}

fn notes() -> Vec<Row> {
    let configuration_of = |domain| configuration(domain, 0).id();
    let name = || Name::user("2024/a").expect("it is short");
    let next = |domain| Note::Next {
        configuration: configuration_of(domain),
        pointer: Pointer::finalized(&configuration(domain, 1)),
    };
    let decided = |domain, cell: &'static str| Note::Decided {
        configuration: configuration_of(domain),
        cell: Bytes::from_static(cell.as_bytes()),
        value: Bytes::new(),
    };
    let forget = Note::Forget {
        configuration: configuration_of(PHOTOS),
        cell: Bytes::from_static(b"upload-1-2"),
    };
    let confirm = Note::Confirm {
        configuration: configuration_of(PHOTOS),
        name: name(),
        tag: Tag::INITIAL,
    };
    let chosen = Note::Chosen {
        configuration: configuration_of(PHOTOS),
        name: name(),
        chosen: ChosenVersion::default(),
    };
    let gossip = Note::Gossip(Gossip {
        configuration: configuration_of(PHOTOS),
        from: OWN,
        objects: [].into(),
    });
    let restart = Note::Restart(Box::new(RestartNote {
        configuration: configuration_of(PHOTOS),
        from: OWN,
        asks: false,
        turn: 1,
        heard: 0,
        stance: Stance::IDLE,
        echo: Stance::IDLE,
        objects: [].into(),
    }));
    let serving = Note::Serving(ServerRecord::at_address(OWN, "host:1".into()));
    let itself = server(Some(OWN), false);
    vec![
        note(confirm, of(CHANGE, KEY)),
        note(chosen, of(CHANGE, KEY)),
        note(decided(PHOTOS, "upload-1-2"), of(CHANGE, Keys::Any)),
        note(decided(PHOTOS, "successor"), of(ADMIN, WHOLE)),
        note(
            decided(ROOT, "domain/photos/00000000"),
            Need::Named("photos"),
        ),
        note(decided(ROOT, "chain/trust/00000000"), server(None, true)),
        note(forget, of(CHANGE, Keys::Any)),
        note(next(PHOTOS), of(ADMIN, WHOLE)),
        note(next(ROOT), RECONFIG),
        note(serving, itself),
        note(gossip, itself),
        note(restart, itself),
    ]
}

#[test]
fn each_message_has_its_row() {
    let table = Table { root: ROOT };
    for Row { message, needs } in &rows() {
        let mut found = Vec::new();
        match message {
            Message::Request(request) => {
                let _ = table.each_need(request, |need| {
                    found.push(need);
                    ControlFlow::<()>::Continue(())
                });
            }
            Message::Note(note) => found.push(table.of_note(note)),
        }
        assert_eq!(found, *needs, "{message:?}");
    }
}

#[test]
fn what_is_passed_on_is_found() {
    let c = configuration(PHOTOS, 0);
    let next = Successors::from(&Pointer::pending(&configuration(PHOTOS, 1)));
    let request = |descriptor, successors| Request::Configured {
        configuration: c.id(),
        descriptor,
        successors,
        body: Body::ReadConfig,
    };
    assert_eq!(hearsay(&request(None, Successors::default())), None);
    let described = request(Some(c.clone()), Successors::default());
    let found = hearsay(&described).expect("it has a descriptor");
    assert_eq!((found.configuration, found.descriptor), (c.id(), Some(&c)));
    let pointing = request(None, next.clone());
    let found = hearsay(&pointing).expect("it has a pointer");
    assert_eq!((found.descriptor, found.successors), (None, Some(&next)));
    let latest = |known| Request::Latest {
        domain: PHOTOS,
        partition: 0,
        known,
    };
    assert_eq!(hearsay(&latest(None)), None);
    let latest = latest(Some(c.clone()));
    let found = hearsay(&latest).expect("it says that it is final");
    assert_eq!((found.descriptor, found.successors), (Some(&c), None));
}
