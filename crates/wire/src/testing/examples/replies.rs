//! Replies of the examples.

use super::configurations::{
    baselines, beside, ceased, configuration, fixed, led, next, outside, several, slotted,
    speculating,
};
use super::{
    ballot, cell, copy, fragment, id, manifest, metadata_only, positioned, server, tag, tombstone,
    value,
};
use areo_core::config::ServerId;
use areo_core::element::{Form, ReplyElement};
use areo_core::message::{
    Answer, CellReply, CellSummary, Directory, DomainStanding, HeldVersions, LeaderStanding,
    ListEntry, ListPage, PeerView, Refusal, Reply, ServerStatus, ServerView, Transferred,
};
use areo_core::object::{DomainId, Etag};
use areo_core::pointer::{Pointer, Successors};
use bytes::Bytes;

/// One reply of every variant.
pub fn replies() -> Vec<Reply> {
    let mut replies = replies_of_sequences();
    replies.push(Reply::Next {
        successors: several(),
        reply: Some(Box::new(Reply::Config)),
    });
    replies.push(Reply::Next {
        successors: beside(),
        reply: Some(Box::new(Reply::Config)),
    });
    for successors in [Successors::default(), several()] {
        replies.push(Reply::Access(vec![Answer::Later {
            configuration: id(),
            successors,
        }]));
    }
    replies.extend([viewing(), Reply::View(Box::default())]);
    replies
}

fn replies_of_sequences() -> Vec<Reply> {
    let mut replies = answers();
    replies.extend([
        Reply::Listed(ListPage {
            entries: vec![
                entry("photos/a", false, false),
                entry("photos/b", true, false),
                entry("photos/c", false, true),
            ],
            truncated: true,
        }),
        Reply::Listed(ListPage {
            entries: vec![ListEntry {
                absent: true,
                ..entry("photos/d", false, false)
            }],
            truncated: false,
        }),
        Reply::Cells {
            cells: vec![
                CellSummary {
                    cell: cell(),
                    value: value(),
                    decided: true,
                },
                CellSummary {
                    cell: Bytes::from_static(b"domain/t/00000000"),
                    value: Bytes::new(),
                    decided: false,
                },
            ],
            truncated: false,
        },
        Reply::Directory(Directory {
            root: configuration(),
            servers: vec![server(1), server(2)],
        }),
        Reply::Servers(vec![server(1), server(2)]),
        Reply::Registered,
        Reply::Outdated { registered: 0x21 },
        Reply::Admissible(Box::new(positioned())),
        counting(),
    ]);
    replies.extend(cell_replies().map(Reply::Cell));
    replies.extend(envelopes());
    replies.extend(baselines().map(|c| Reply::Latest(Some(c))));
    // As published: a list with a tag that has no element any more.
    replies.push(Reply::Access(vec![Answer::Held(HeldVersions {
        stored: vec![(tag(0x33), Form::Trimmed), (tag(0x34), fragment(2).form)],
        ..HeldVersions::default()
    })]));
    replies.extend([Reply::Latest(Some(outside())), repairing()]);
    replies.extend(super::super::ranked::answers().map(Reply::Access));
    replies.extend([standing(), Reply::Latest(Some(ceased()))]);
    replies.extend([speculating(), led()].map(|c| Reply::Latest(Some(c))));
    replies.extend([
        super::super::restart::waits(),
        Reply::Latest(Some(slotted())),
    ]);
    replies.extend([
        leading(),
        Reply::Latest(Some(fixed())),
        full(),
        incomplete(),
    ]);
    replies
}

fn viewing() -> Reply {
    let peer = |number, is_connected| PeerView {
        server: ServerId(number),
        is_connected,
    };
    Reply::View(Box::new(ServerView {
        peers: vec![peer(0xe0, true), peer(0xe1, false)],
        syncs: 21,
        sync_us: 22,
        sync_running_ms: Some(23),
        disk_bytes: 24,
        disk_free_bytes: 25,
        corrupted: 26,
    }))
}

fn counting() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        incarnation: 1,
        serving: true,
        durable: true,
        objects: 2,
        versions: 3,
        element_bytes: 4,
        stored_bytes: 5,
        damaged: 6,
        configurations: 7,
        pending: 8,
        pending_ms: 9,
        trimmed: 10,
        repaired: 11,
        ..ServerStatus::default()
    }))
}

fn repairing() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        lacking: 12,
        proven_ms: Some(13),
        ..ServerStatus::default()
    }))
}

fn leading() -> Reply {
    let standing = |number, objects| LeaderStanding {
        domain: DomainId(number),
        transferred: Transferred { objects, bytes: 19 },
    };
    Reply::Status(Box::new(ServerStatus {
        leads: vec![standing(0xd0, 0), standing(0xd1, 18)],
        ..ServerStatus::default()
    }))
}

fn incomplete() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        incomplete: true,
        ..ServerStatus::default()
    }))
}

fn full() -> Reply {
    Reply::Status(Box::new(ServerStatus {
        tombstones: 20,
        full: true,
        ..ServerStatus::default()
    }))
}

fn standing() -> Reply {
    let standing = |number, proven_ms| DomainStanding {
        domain: DomainId(number),
        objects: 14,
        lacking: 15,
        proven_ms,
    };
    Reply::Status(Box::new(ServerStatus {
        unscrubbed_ms: Some(16),
        domains: vec![standing(0xd0, Some(17)), standing(0xd1, None)],
        ..ServerStatus::default()
    }))
}

fn cell_replies() -> [CellReply; 6] {
    [
        CellReply::Promised { accepted: None },
        CellReply::Promised {
            accepted: Some((ballot(4), value())),
        },
        CellReply::Accepted,
        CellReply::Rejected {
            promised: ballot(5),
        },
        CellReply::Decided(value()),
        CellReply::Closed {
            accepted: Some((ballot(6), value())),
        },
    ]
}

fn envelopes() -> [Reply; 4] {
    [
        Reply::Config,
        Reply::Latest(Some(next())),
        Reply::Next {
            successors: (&Pointer::pending(&next())).into(),
            reply: Some(Box::new(Reply::Access(vec![Answer::Stored]))),
        },
        Reply::Next {
            successors: (&Pointer::finalized(&next())).into(),
            reply: None,
        },
    ]
}

fn answers() -> Vec<Reply> {
    let held = HeldVersions {
        stored: vec![(tag(0x31), fragment(2).form), (tag(0x32), Form::Copy)],
        floor: tag(0x30),
        stable: tag(0x31),
        ..HeldVersions::default()
    };
    let complete = HeldVersions {
        complete: tag(0x31),
        seen: tag(0x34),
        ..held.clone()
    };
    let fenced = HeldVersions {
        fence: tag(0x33),
        ..held.clone()
    };
    let with = |element| HeldVersions {
        element: Some((tag(0x32), ReplyElement::Whole(element))),
        ..held.clone()
    };
    let whole = |element| Answer::Fetched(ReplyElement::Whole(element));
    [
        vec![],
        vec![Answer::Held(held.clone())],
        vec![
            Answer::Held(with(copy())),
            Answer::Held(with(metadata_only())),
            Answer::Held(HeldVersions::default()),
        ],
        vec![whole(fragment(0)), whole(tombstone())],
        vec![whole(manifest())],
        vec![Answer::Evicted],
        vec![Answer::Stored],
        vec![Answer::Needed],
        vec![Answer::Held(fenced)],
        vec![Answer::Held(complete)],
        vec![Answer::Dropped],
        vec![Answer::Refused(Refusal::Damaged)],
    ]
    .map(Reply::Access)
    .into()
}

fn entry(key: &str, deleted: bool, damaged: bool) -> ListEntry {
    ListEntry {
        key: key.into(),
        tag: tag(0x41),
        length: 0x1122_3344_5566,
        etag: deleted.then(|| Etag::new("0123456789abcdef-2").expect("visible ASCII")),
        written_at_ms: damaged.then_some(0x0198_7654_3210),
        age_s: 0x0051_5253,
        deleted,
        damaged,
        absent: false,
    }
}
