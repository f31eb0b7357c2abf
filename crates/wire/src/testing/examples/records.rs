//! Headers of records.

use super::super::ranked;
use super::{
    ballot, cell, configuration, fragment, id, in_memory, labelled, leaving, levelled, manifest,
    metadata, name, next, positioned, server, tag, value,
};
use areo_core::config::{ConfigurationId, Membership, ServerId};
use areo_core::consensus::paxos::Acceptor;
use areo_core::consensus::snapshot::FIRST_CELL;
use areo_core::consensus::speculating;
use areo_core::dap::versions::{Fence, Marks};
use areo_core::element::Form;
use areo_core::pointer::Pointer;
use areo_core::server::record::{ElementHeader, Header};
use areo_core::tag::Tag;
use bytes::Bytes;

fn marks() -> Marks {
    Marks {
        floor: tag(0x62),
        stable: tag(0x63),
        complete: Tag::INITIAL,
        fence: Some(Fence {
            upto: tag(0x65),
            turn: 2,
            spared: tag(0x66),
            held: vec![tag(0x61), tag(0x64)],
        }),
    }
}

fn complete_marks() -> Marks {
    Marks {
        complete: tag(0x62),
        ..marks()
    }
}

fn marked(key: &str, marks: Marks) -> Header {
    Header::Marks {
        key: id(),
        name: name(key),
        marks,
    }
}

/// One record header of every variant.
pub fn headers() -> Vec<Header> {
    let key = id();
    let cell_of = |acceptor| Header::Cell {
        key,
        cell: cell(),
        acceptor,
    };
    let accepted = Acceptor {
        promised: ballot(9),
        accepted: Some((ballot(8), value())),
        decided: false,
    };
    vec![
        Header::Configuration(configuration()),
        Header::Element(ElementHeader {
            key,
            name: name("photos/ä.jpg"),
            tag: tag(0x61),
            floor: tag(0x5f),
            form: fragment(4).form,
            deleted: false,
            length: 11,
            bytes: 4,
            metadata: metadata(),
        }),
        Header::Element(ElementHeader {
            key,
            name: name("large"),
            tag: tag(0x64),
            floor: tag(0x60),
            form: manifest().form,
            deleted: false,
            length: manifest().length,
            bytes: 0,
            metadata: manifest().metadata,
        }),
        marked("k", marks()),
        marked("l", complete_marks()),
        cell_of(Acceptor {
            promised: ballot(9),
            ..Acceptor::default()
        }),
        cell_of(accepted.clone()),
        cell_of(Acceptor {
            decided: true,
            ..accepted
        }),
        Header::Registry(server(1)),
        Header::Registry(in_memory()),
        Header::Registry(positioned()),
        Header::Pointer {
            key,
            pointer: Pointer::pending(&next()),
        },
        Header::Final(next()),
        Header::Element(trimmed(key)),
        ranked::header(),
        round(key),
        first(key),
        Header::Registry(leaving()),
        ranked::floor_header(),
        Header::Registry(levelled()),
        Header::Registry(labelled()),
    ]
}

/// A tag whose element was trimmed.
fn trimmed(key: ConfigurationId) -> ElementHeader {
    ElementHeader {
        key,
        name: name("photos/ä.jpg"),
        tag: tag(0x65),
        floor: Tag::INITIAL,
        form: Form::Trimmed,
        deleted: false,
        length: 11,
        bytes: 0,
        metadata: Bytes::new(),
    }
}

/// The header of the value that came first to a member of a weak snapshot.
fn first(key: ConfigurationId) -> Header {
    let mut acceptor = Acceptor::default();
    let membership = Membership::first((1..=3).map(ServerId)).with(ServerId(4));
    let kept = acceptor.keep_first(&membership.encode());
    kept.expect("a membership");
    Header::Cell {
        key,
        cell: Bytes::from_static(FIRST_CELL),
        acceptor,
    }
}

/// The header of a round of a speculating snapshot, in which several proposals came.
fn round(key: ConfigurationId) -> Header {
    let mut acceptor = Acceptor::default();
    let one = Membership::first((1..=3).map(ServerId));
    for proposal in [&one, &one.with(ServerId(4))] {
        let kept = acceptor.propose(&proposal.encode());
        kept.expect("a membership");
    }
    let cell = speculating::round_cell(1);
    Header::Cell {
        key,
        cell,
        acceptor,
    }
}
