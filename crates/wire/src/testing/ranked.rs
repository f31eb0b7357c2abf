//! Examples and strategies of what is said, and kept, of ranked registers.

use super::examples::{ballot, copy, id, name, tag};
use super::{parts, strategies};
use areo_core::dap::conditional::register::{AcceptedVersion, BallotFloor, Register};
use areo_core::element::{Form, ReplyElement};
use areo_core::message::{
    Access, Ancestor, Answer, ChosenVersion, Lineage, Note, Proposal, RankedVersion,
    RankedVersions, Want,
};
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn lineage() -> Lineage {
    Lineage {
        request: 0x7100_0000_0000_0000_0000_0000_0000_0001,
        ancestors: vec![
            Ancestor {
                tag: tag(0x70),
                request: 0,
            },
            Ancestor::default(),
        ],
    }
}

/// One access of every variant.
pub(super) fn accesses() -> [Access; 4] {
    let rank = |ballot| Access::Rank {
        ballot,
        want: Want::Element,
        have: tag(0x71),
    };
    let accept = |element, base_chosen: bool| {
        Access::Accept(Box::new(Proposal {
            ballot: ballot(0x72),
            tag: tag(0x73),
            settles: !base_chosen,
            element,
            lineage: lineage(),
            base_chosen,
        }))
    };
    [
        rank(None),
        rank(Some(ballot(0x72))),
        accept(Some(copy()), true),
        accept(None, false),
    ]
}

/// Answers with and without an element.
pub(super) fn answers() -> [Vec<Answer>; 2] {
    let version = |number, form, deleted| RankedVersion {
        tag: tag(number),
        ballot: ballot(number),
        form,
        deleted,
        lineage: lineage(),
    };
    let promised = RankedVersions {
        granted: true,
        closed: false,
        promised: ballot(0x76),
        chosen: chosen(),
        versions: vec![
            version(0x74, Form::Trimmed, true),
            version(0x75, Form::Copy, false),
        ],
        element: Some((tag(0x75), ReplyElement::Whole(copy()))),
    };
    let closed = RankedVersions {
        closed: true,
        ..RankedVersions::default()
    };
    [promised, closed].map(|ranked| vec![Answer::Ranked(Box::new(ranked))])
}

fn chosen() -> ChosenVersion {
    ChosenVersion {
        ballot: ballot(0x74),
        tag: tag(0x74),
    }
}

pub(super) fn note() -> Note {
    Note::Chosen {
        configuration: id(),
        name: name("photos/ä.jpg"),
        chosen: chosen(),
    }
}

pub(super) fn header() -> Header {
    let accepted = |number, deleted| AcceptedVersion {
        tag: tag(number),
        ballot: ballot(number),
        deleted,
        lineage: lineage(),
    };
    Header::Register {
        key: id(),
        name: name("k"),
        register: Box::new(Register {
            turn: 0x7778,
            promised: ballot(0x76),
            chosen: chosen(),
            accepted: vec![accepted(0x74, true), accepted(0x75, false)],
        }),
    }
}

pub(super) fn floor_header() -> Header {
    Header::BallotFloor {
        key: id(),
        bucket: 0x79,
        floor: BallotFloor {
            turn: 0x7a7b,
            promised: ballot(0x7c),
        },
    }
}

pub(super) fn any_floor_header() -> impl Strategy<Value = Header> {
    let fields = (
        parts::configuration_id(),
        any::<u8>(),
        any::<u64>(),
        parts::ballot(),
    );
    fields.prop_map(|(key, bucket, turn, promised)| {
        let floor = BallotFloor { turn, promised };
        Header::BallotFloor { key, bucket, floor }
    })
}

fn any_lineage() -> impl Strategy<Value = Lineage> {
    let ancestor = (parts::tag(), any::<u128>());
    let ancestor = ancestor.prop_map(|(tag, request)| Ancestor { tag, request });
    let ancestors = vec(ancestor, 0..4);
    (any::<u128>(), ancestors).prop_map(|(request, ancestors)| Lineage { request, ancestors })
}

fn any_chosen() -> impl Strategy<Value = ChosenVersion> {
    let chosen = (parts::ballot(), parts::tag());
    chosen.prop_map(|(ballot, tag)| ChosenVersion { ballot, tag })
}

/// Any access to a ranked register.
pub(super) fn any_access(want: impl Strategy<Value = Want>) -> impl Strategy<Value = Access> {
    let rank = (option::of(parts::ballot()), want, parts::tag());
    let rank = rank.prop_map(|(ballot, want, have)| Access::Rank { ballot, want, have });
    let element = option::of(parts::element());
    let flags = (any::<bool>(), any::<bool>());
    let accept = (parts::ballot(), parts::tag(), element, any_lineage(), flags);
    let accept = accept.prop_map(|(ballot, tag, element, lineage, (settles, base_chosen))| {
        Access::Accept(Box::new(Proposal {
            ballot,
            tag,
            element,
            lineage,
            settles,
            base_chosen,
        }))
    });
    prop_oneof![rank, accept]
}

/// Generates any answer about a ranked register.
pub(super) fn any_answer() -> impl Strategy<Value = Answer> {
    let version = (parts::listed_form(), any::<bool>(), any_lineage());
    let versions = btree_map((parts::ballot(), parts::tag()), version, 0..5);
    let element = option::of((parts::tag(), strategies::answered_element()));
    let flags = (any::<bool>(), any::<bool>());
    let fields = (flags, parts::ballot(), any_chosen(), versions, element);
    fields.prop_map(|((granted, closed), promised, chosen, versions, element)| {
        let version = |((ballot, tag), (form, deleted, lineage)): ((_, Tag), _)| RankedVersion {
            tag,
            ballot,
            form,
            deleted,
            lineage,
        };
        Answer::Ranked(Box::new(RankedVersions {
            granted,
            closed,
            promised,
            chosen,
            versions: versions.into_iter().map(version).collect(),
            element,
        }))
    })
}

/// Any note on a ranked register.
pub(super) fn any_note() -> impl Strategy<Value = Note> {
    let fields = (parts::configuration_id(), parts::name(), any_chosen());
    fields.prop_map(|(configuration, name, chosen)| Note::Chosen {
        configuration,
        name,
        chosen,
    })
}

/// Any record of a ranked register.
pub(super) fn any_header() -> impl Strategy<Value = Header> {
    let versions = btree_map(
        (parts::ballot(), parts::tag()),
        (any::<bool>(), any_lineage()),
        0..5,
    );
    let register = (any::<u64>(), parts::ballot(), any_chosen(), versions);
    let register = register.prop_map(|(turn, promised, chosen, versions)| {
        let version = |((ballot, tag), (deleted, lineage)): ((_, Tag), _)| AcceptedVersion {
            tag,
            ballot,
            deleted,
            lineage,
        };
        Register {
            turn,
            promised,
            chosen,
            accepted: versions.into_iter().map(version).collect(),
        }
    });
    let fields = (parts::configuration_id(), parts::name(), register);
    fields.prop_map(|(key, name, register)| Header::Register {
        key,
        name,
        register: Box::new(register),
    })
}
