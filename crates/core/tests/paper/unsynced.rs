//! A read waits for what it reflects, and for nothing else (`[X-10 durable-replies]`).

use crate::world::{Disk, configuration, identity, name, server, successor, value};
use areo_core::config::{Configuration, Dap};
use areo_core::dap;
use areo_core::instant::Instant;
use areo_core::message::{
    Access, Announcement, Ballot, Body, CellRequest, DomainStanding, Request, ServerRecord, Want,
};
use areo_core::pointer::{Pointer, Successors};
use areo_core::shard::Shard;
use areo_core::tag::{ClientId, Tag, Writer};
use bytes::Bytes;
use std::sync::Arc;

/// A server of one configuration with its disk.
struct Member {
    c: Arc<Configuration>,
    shard: Shard<()>,
    disk: Disk,
}

impl Member {
    fn new(dap: Dap) -> Member {
        let c = configuration(4, dap, 0, 64);
        let mut shard = Shard::new(identity(server(0), 1, &c));
        shard.serve();
        let disk = Disk::default();
        let mut member = Member { c, shard, disk };
        let descriptor = Some(member.c.clone());
        member.receive(request(&member.c, descriptor, Body::ReadConfig));
        member.commit();
        member
    }

    fn receive(&mut self, request: Request) {
        self.shard.receive(Instant(0), (), request);
    }

    fn commit(&mut self) {
        self.disk.apply(self.shard.close());
        let released = self.shard.release(&self.disk);
        assert!(released.replies.iter().all(|((), reply)| reply.is_ok()));
    }

    /// The places of those of the requests that wait for no batch.
    fn settled(&self, requests: &[Request]) -> Vec<usize> {
        let settled = |place: &usize| self.shard.is_settled(&requests[*place]);
        (0..requests.len()).filter(settled).collect()
    }

    /// The places of requests that wait for no batch while this change is in the open batch, and while it is in the closed one.
    fn settled_beside(&mut self, changing: Request, requests: &[Request]) -> Vec<usize> {
        let all: Vec<usize> = (0..requests.len()).collect();
        assert_eq!(self.settled(requests), all, "everything is durable");
        assert!(!self.shard.is_settled(&changing));
        self.receive(changing);
        let open = self.settled(requests);
        let steps = self.shard.close();
        assert_eq!(self.settled(requests), open);
        self.disk.apply(steps);
        self.shard.release(&self.disk);
        assert_eq!(self.settled(requests), all, "it is durable");
        open
    }
}

fn request(c: &Configuration, descriptor: Option<Arc<Configuration>>, body: Body) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor,
        successors: Successors::default(),
        body,
    }
}

fn access(c: &Configuration, key: &str, access: Access) -> Request {
    request(c, None, Body::Access(vec![(name(key), access)]))
}

fn query(c: &Configuration, key: &str) -> Request {
    access(c, key, Access::query(Want::Element, Tag::INITIAL))
}

fn cell(c: &Configuration, cell: &'static [u8], step: CellRequest) -> Request {
    let cell = Bytes::from_static(cell);
    request(c, None, Body::Cell { cell, step })
}

fn latest(c: &Configuration) -> Request {
    Request::Latest {
        domain: c.id().domain,
        partition: c.id().partition,
        known: None,
    }
}

fn pointed(c: &Configuration, pointer: &Pointer) -> Request {
    Request::Configured {
        configuration: c.id(),
        descriptor: None,
        successors: Successors::from(pointer),
        body: Body::ReadConfig,
    }
}

fn tag(number: u64) -> Tag {
    let writer = Writer {
        client: ClientId(1),
        counter: number,
    };
    Tag { number, writer }
}

fn ballot(number: u64) -> Ballot {
    let proposer = tag(1).writer;
    Ballot { number, proposer }
}

fn put(c: &Configuration, key: &str, number: u64) -> Request {
    let element = dap::elements(c, &name(key), &value("a value"))[0].clone();
    let put = Access::Put {
        tag: tag(number),
        element,
        write_back: false,
    };
    access(c, key, put)
}

#[test]
fn a_read_waits_for_what_it_reflects_and_for_nothing_else() {
    let mut member = Member::new(Dap::Ec { k: 2 });
    let c = member.c.clone();
    let fetch = Access::Fetch {
        tag: tag(1),
        payload: true,
    };
    let reads = [
        query(&c, "a"),
        access(&c, "a", fetch),
        query(&c, "b"),
        cell(&c, b"x", CellRequest::Query),
        cell(&c, b"y", CellRequest::Query),
        request(&c, Some(c.clone()), Body::ReadConfig),
        latest(&c),
        Request::Directory,
    ];
    let settled = member.settled_beside(put(&c, "a", 1), &reads);
    assert_eq!(settled, [2, 3, 4, 5, 6, 7], "an element");
    let fence = Access::Fence {
        upto: tag(3),
        spared: Tag::INITIAL,
    };
    let settled = member.settled_beside(access(&c, "b", fence), &reads);
    assert_eq!(settled, [0, 1, 3, 4, 5, 6, 7], "marks without an element");
    let prepare = CellRequest::Prepare { ballot: ballot(1) };
    let settled = member.settled_beside(cell(&c, b"y", prepare), &reads);
    assert_eq!(settled, [0, 1, 2, 3, 5, 6, 7], "a cell");
    let record = ServerRecord {
        incarnation: 1,
        start: 1,
        ..ServerRecord::at_address(server(1), "host:1".into())
    };
    let settled = member.settled_beside(Request::Know(record), &reads);
    assert_eq!(settled, [0, 1, 2, 3, 4, 5, 6], "the register");
    let next = successor(&c, 0, 4, Dap::Ec { k: 2 });
    let described = request(&next, Some(next.clone()), Body::ReadConfig);
    let settled = member.settled_beside(described, &reads);
    assert_eq!(settled, [0, 1, 2, 3, 4, 5, 6, 7], "another configuration");
    let pending = pointed(&c, &Pointer::pending(&next));
    let settled = member.settled_beside(pending.clone(), &reads);
    assert_eq!(settled, [6, 7], "a pointer");
    assert!(member.shard.is_settled(&pending), "it is known by now");
    let of_next = [query(&next, "a")];
    assert_eq!(member.settled(&of_next), [0]);
    let last = pointed(&c, &Pointer::finalized(&next));
    member.receive(last);
    let settled = member.settled(&reads);
    assert_eq!(settled, [0; 0], "a final configuration of the root domain");
    member.commit();
    assert_eq!(member.settled(&reads), [6, 7], "the one before is gone");
}

/// A configuration that the server does not know yet is known by a record, too.
#[test]
fn a_new_configuration_is_waited_for() {
    let mut member = Member::new(Dap::Abd);
    let next = successor(&member.c, 0, 4, Dap::Abd);
    let described = request(&next, Some(next.clone()), Body::ReadConfig);
    assert!(!member.shard.is_settled(&described));
    member.receive(described.clone());
    assert!(!member.shard.is_settled(&described));
    member.commit();
    assert!(member.shard.is_settled(&described));
}

/// Promises of absent registers are folded by the clock, and show in what is read of any name of their bucket.
#[test]
fn a_ballot_floor_is_waited_for() {
    let mut member = Member::new(Dap::Conditional { k: 1 });
    let c = member.c.clone();
    let rank = |key, ballot| {
        let (want, have) = (Want::Tags, Tag::INITIAL);
        access(&c, key, Access::Rank { ballot, want, have })
    };
    let reads = [rank("a", None), rank("b", None), latest(&c)];
    let settled = member.settled_beside(rank("a", Some(ballot(1))), &reads);
    assert_eq!(settled, [1, 2]);
    let standing = DomainStanding {
        domain: c.id().domain,
        objects: 0,
        lacking: 0,
        proven_ms: Some(0),
    };
    for _ in 0..2 {
        member.shard.gone_over(Instant(0), &[standing], true);
    }
    member.shard.tick(Instant(0), &member.disk);
    assert_eq!(member.settled(&reads), [2]);
    member.commit();
    assert_eq!(member.settled(&reads), [0, 1, 2]);
}

/// In doubt a request waits for a batch.
#[test]
fn what_is_no_plain_read_waits_for_a_batch() {
    let member = Member::new(Dap::Abd);
    let c = &member.c;
    let announced = Access::Query {
        want: Want::Tags,
        have: Tag::INITIAL,
        announced: Some(Announcement {
            length: 1,
            element_bytes: 1,
        }),
    };
    let cells = Body::Cells {
        prefix: Bytes::new(),
        after: Bytes::new(),
    };
    let requests = [
        Request::Status,
        request(c, None, Body::Servers),
        request(c, None, cells),
        access(c, "a", announced),
        access(c, "a", Access::Adopt(tag(1))),
    ];
    assert_eq!(member.settled(&requests), [0; 0]);
}
