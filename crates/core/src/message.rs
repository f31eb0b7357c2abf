//! Everything that clients and servers say to each other. The codec in `wire` gives each of these its bytes.

use crate::config::{Configuration, ConfigurationId};
use crate::element::{Element, Form, ReplyElement};
use crate::object::{DomainId, Name};
use crate::pointer::{Pointer, Successors};
use crate::tag::{Tag, Writer};
use bytes::Bytes;
use std::sync::Arc;

pub use enrolment::{Enrolment, Levels, Program, RecordRank, RegisterKey, ServerRecord};
pub use gossip::{Gossip, GossipMarks};
pub use labels::{Label, Labels};
pub use listing::{ListEntry, ListPage, ListRequest};
pub use ranked::{Ancestor, ChosenVersion, Lineage, Proposal, RankedVersion, RankedVersions};
pub use refusal::Refusal;
pub use restart::{ObjectReport, Phase, RestartNote, Stance, digest};
pub use status::{DomainStanding, LeaderStanding, ServerStatus, Transferred};
pub use view::{PeerView, ServerView};

mod bounds;
mod enrolment;
mod gossip;
mod labels;
mod listing;
mod queried;
mod ranked;
mod refusal;
mod restart;
mod status;
mod view;

/// A request of a client to one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A request for one configuration.
    Configured {
        configuration: ConfigurationId,
        /// Its descriptor, for a server that has not heard of it (`[C-7 describe-unknown]`).
        descriptor: Option<Arc<Configuration>>,
        /// The successors that the server is to know before it answers (WRITE-CONFIG; a closed request, `[A-8 closed-get]`): the reply then shows
        /// these pointers, or larger ones.
        successors: Successors,
        body: Body,
    },
    /// The root configuration and the registered servers.
    Directory,
    /// Takes note of a server: the asked one tells callers of it. That is no registration ([`Body::Register`]).
    Know(ServerRecord),
    /// Asks for the status of this server.
    Status,
    /// Asks for the view of this server. The process around the algorithms has it, and answers at once: also while the disk has stopped.
    View,
    /// Asks for the latest configuration of the domain: its highest final configuration, as far as this server knows (3.6, `[X-21 directory-join]`).
    Latest {
        domain: DomainId,
        /// The part of the domain.
        partition: u32,
        /// The configuration that the asker knows; the server knows at least that afterwards.
        known: Option<Arc<Configuration>>,
    },
}

/// The part of a request that a configuration answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Data access, of one or several objects; each has its own answer in the reply.
    Access(Vec<(Name, Access)>),
    /// A page of the objects that this server holds.
    List(ListRequest),
    /// Asks for the successor (READ-CONFIG; with a pointer in the envelope, WRITE-CONFIG).
    ReadConfig,
    /// One step of a decided-once cell.
    Cell {
        /// The name of the cell.
        cell: Bytes,
        step: CellRequest,
    },
    /// The cells whose names begin so, for which this server has accepted a value; a page.
    Cells {
        /// The beginning of the names.
        prefix: Bytes,
        /// Only names larger than this.
        after: Bytes,
    },
    /// Registers a start of a server. Of the root domain.
    Register {
        /// The change of the record.
        step: Enrolment,
        /// The server, as of that start. In a box: it is large and rare, and requests are moved often.
        record: Box<ServerRecord>,
    },
    /// The registered servers. Of the root domain.
    Servers,
}

/// The part of the newest element that a query wants beside the tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// Tags only, no element.
    Tags,
    /// The metadata, without the payload.
    Metadata,
    /// The element if it is a fragment; of a copy, one other server is asked.
    Fragment,
    /// The element in any form.
    Element,
}

/// Data access to one object: the requests that data access primitives consist of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Asks for the held versions of the object: their tags, and the wanted part of the newest element (QUERY,
    /// QUERY-TAG, QUERY-LIST).
    Query {
        /// The wanted part of the newest element.
        want: Want,
        /// The asker has the value of this tag: no element is sent for it or for smaller ones.
        have: Tag,
        /// The new version that the asker is going to put. A server that has no room for it refuses, so that no element is sent unless a quorum has
        /// room (`[X-3 unconfirmed-cap]`).
        announced: Option<Announcement>,
    },
    /// The element of exactly this tag.
    Fetch {
        tag: Tag,
        /// False: its metadata is enough.
        payload: bool,
    },
    /// Stores an element of a version: a new one, or one that a reader writes back.
    Put {
        tag: Tag,
        /// The receiver's element of the version.
        element: Element,
        /// A reader found the version at other servers and completes it: it is taken in however many unconfirmed
        /// versions are here, because only completing one lets those go (`[X-3 unconfirmed-cap]`).
        write_back: bool,
    },
    /// Hold this, which was decided to be kept: neither a fence nor the number of versions keeps it out (`[X-3 unconfirmed-cap]`).
    Keep {
        tag: Tag,
        /// The receiver's element of the version.
        element: Element,
    },
    /// Stores the element that the server holds of this version in an earlier configuration, as if a write-back had
    /// put it (ADOPT, `[X-17 adopted-elements]`).
    Adopt(Tag),
    /// Take in no version up to this tag that is not here yet, unless it is confirmed or decided to be kept; and say what you
    /// hold (FENCE, `[X-3 unconfirmed-cap]`).
    Fence {
        /// Up to which tag.
        upto: Tag,
        /// The asker is about to put this version: it is let through, unless an earlier fence holds it back.
        spared: Tag,
    },
    /// The version's elements are at a quorum: let reads find it from now on (FIN, `[CAS-1 durable-marks]`). The answer is
    /// [`Answer::Fetched`], or [`Answer::Stored`] where nothing is wanted or here.
    Finalize {
        tag: Tag,
        /// The part of the element here that comes with the answer.
        want: Want,
        /// A quorum has acknowledged a FIN before (FIN2, 2.10).
        complete: bool,
    },
    /// Evict this version if it is not confirmed: it was decided never to be at a quorum (DROP, `[X-3 unconfirmed-cap]`).
    Drop(Tag),
    /// Asks for the state of a ranked register; with a ballot, also for a promise to take no smaller one (PREPARE,
    /// `[W-1 promise]`).
    Rank {
        /// The ballot to be promised; `None`: nothing is promised.
        ballot: Option<Ballot>,
        /// The wanted part of the version with the largest ballot.
        want: Want,
        /// The asker has the value of this tag.
        have: Tag,
    },
    /// Hold this version of a ranked register, unless a larger ballot was promised (ACCEPT, `[W-2 accept]`).
    Accept(Box<Proposal>),
}

impl Access {
    /// A query of a reader.
    pub fn query(want: Want, have: Tag) -> Access {
        Access::Query {
            want,
            have,
            announced: None,
        }
    }
}

/// A new version that has not been sent yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// Length of the value in bytes.
    pub length: u64,
    /// Bytes of the largest element with its metadata.
    pub element_bytes: u64,
}

/// One step of single-decree Paxos ([`crate::consensus::paxos`]), or of lattice agreement ([`crate::consensus::agreement`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellRequest {
    /// Asks for the accepted value. Promises nothing.
    Query,
    /// Promise to refuse smaller ballots.
    Prepare { ballot: Ballot },
    /// Asks to accept this value at this ballot.
    Accept { ballot: Ballot, value: Bytes },
    /// Joins this value to the acceptor's, and returns the join. Only for the cells of lattice agreement and of a
    /// speculating snapshot, with a membership, and for the mailbox, with a change.
    Join(Bytes),
}

/// A ballot: unique per attempt, also between tasks of one client, because it contains the client and its counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ballot {
    /// Above every number that the proposer has seen.
    pub number: u64,
    /// The proposer, with the number of its attempt.
    pub proposer: Writer,
}

/// The answer of a server to a request that it did not refuse as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// One answer per access, in their order.
    Access(Vec<Answer>),
    /// A page of objects.
    Listed(ListPage),
    /// No configuration comes after this one, unless the envelope says so.
    Config,
    /// One step of a cell.
    Cell(CellReply),
    /// A page of cells.
    Cells {
        /// In order of their names.
        cells: Vec<CellSummary>,
        /// There are more cells after these.
        truncated: bool,
    },
    Directory(Directory),
    /// The registered servers, by id.
    Servers(Vec<ServerRecord>),
    /// The registration is durable here; to [`Enrolment::Ask`]: it would be admitted.
    Registered,
    /// The answer to [`Enrolment::Ask`] with a position: the start would be admitted, and this is the last known record of the server.
    Admissible(Box<ServerRecord>),
    /// A later start of that server is registered, or another one of the incarnation: this one runs on a copy (`[X-11 damage-abstains]`).
    Outdated {
        /// The incarnation that is registered.
        registered: u64,
    },
    /// The status of the server.
    Status(Box<ServerStatus>),
    /// The view of the server.
    View(Box<ServerView>),
    /// The highest final configuration of the domain that this server knows.
    Latest(Option<Arc<Configuration>>),
    /// The envelope of an answer by a server that knows successors: answer and successors are one snapshot
    /// (`[C-2 atomic-snapshot]`, `[R-25 whole-sets]`).
    Next {
        successors: Successors,
        /// The answer; `None`: withheld. Then a pointer is final.
        reply: Option<Box<Reply>>,
    },
}

impl Reply {
    /// Takes the answer out of its envelope.
    pub fn open(self) -> (Successors, Option<Reply>) {
        match self {
            Reply::Next { successors, reply } => (successors, reply.map(|reply| *reply)),
            reply => (Successors::default(), Some(reply)),
        }
    }

    /// The answers to accesses, if this is a reply to some.
    pub fn answers_mut(&mut self) -> Option<&mut Vec<Answer>> {
        match self {
            Reply::Access(answers) => Some(answers),
            Reply::Next {
                reply: Some(reply), ..
            } => reply.answers_mut(),
            _ => None,
        }
    }

    /// The answers of an access, to look at.
    pub fn answers(&self) -> Option<&Vec<Answer>> {
        match self {
            Reply::Access(answers) => Some(answers),
            Reply::Next {
                reply: Some(reply), ..
            } => reply.answers(),
            _ => None,
        }
    }

    /// True if the counters of one of the objects are being restarted: the answer comes later.
    pub fn restarts(&self) -> bool {
        let restarts = |answer: &Answer| *answer == Answer::Refused(Refusal::Restarting);
        self.answers()
            .is_some_and(|answers| answers.iter().any(restarts))
    }

    /// The refusal, if everything that was asked for was refused.
    pub fn refusal(&self) -> Option<Refusal> {
        let answers = self.answers()?;
        let refused = |answer: &Answer| match answer {
            Answer::Refused(refusal) => Some(*refusal),
            _ => None,
        };
        let first = answers.first().and_then(refused);
        first.filter(|_| answers.iter().all(|answer| refused(answer).is_some()))
    }
}

/// The answer to one access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Answer to a query.
    Held(HeldVersions),
    /// The element. Answer to a fetch; or to a FIN, whose mark is durable.
    Fetched(ReplyElement),
    /// The element is not held (any more), which says nothing about the tag. Answer to a fetch.
    Evicted,
    /// Answer to a put or an adoption: the tag is held, or is below the trimmed part. Answer to a FIN: the mark is
    /// durable.
    Stored,
    /// The server has no source for its element: no acknowledgement. Answer to an adoption or an ACCEPT (NEED,
    /// `[X-17 adopted-elements]`, `[W-2 accept]`).
    Needed,
    /// The version is not stored, or is confirmed. Answer to a drop.
    Dropped,
    /// The state of a ranked register; without an element if it answers an ACCEPT that was refused. Answer to a put:
    /// nothing was stored, because the object is a ranked register from the next configuration on
    /// (`[W-12 becoming-conditional]`).
    Ranked(Box<RankedVersions>),
    /// The object was refused; other objects of the request were not.
    Refused(Refusal),
    /// The answers behind it are those for a later configuration (`[R-20 answers-for-later]`).
    Later {
        configuration: ConfigurationId,
        /// The successors of that one.
        successors: Successors,
    },
}

/// The versions of one object that a server holds: a snapshot (`[C-2 atomic-snapshot]`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldVersions {
    /// The versions whose elements are here, ascending; and those of which only the tag is ([`Form::Trimmed`]).
    pub stored: Vec<(Tag, Form)>,
    /// The largest tag whose element was evicted or refused here (2.2).
    pub floor: Tag,
    /// The largest tag known to be at a quorum (2.2; `confirmed` of `[F-3 confirmed-tag]`).
    pub stable: Tag,
    /// Versions up to this tag are taken in only if they are here, confirmed, or decided to be kept (`[X-3 unconfirmed-cap]`).
    pub fence: Tag,
    /// The largest tag of which a quorum has finalized it or a larger one; only where servers gossip (2.10).
    pub complete: Tag,
    /// The largest tag that another server has said, if none here is as large; only where servers gossip.
    pub seen: Tag,
    /// The element of the largest stored tag, where it was wanted.
    pub element: Option<(Tag, ReplyElement)>,
}

impl HeldVersions {
    /// The tag that get-tag takes from this reply: `max(List, floor, stable, fence, seen)` (`[X-2 get-tag-maximum]`).
    pub fn max_tag(&self) -> Tag {
        let stored = self.stored.last().map_or(Tag::INITIAL, |(tag, _)| *tag);
        let marks = self.floor.max(self.stable).max(self.fence);
        stored.max(marks).max(self.seen)
    }

    /// True if this reply lists the tag with an element.
    pub fn stores(&self, tag: Tag) -> bool {
        self.form_of(tag).is_some()
    }

    /// The form in which the tag is stored.
    pub fn form_of(&self, tag: Tag) -> Option<Form> {
        self.listed(tag).filter(|form| *form != Form::Trimmed)
    }

    /// True if this reply supports the tag: lists it, or may have trimmed it (`[EC-11 acceptance-test]`, `[X-1 support-threshold]`).
    pub fn supports(&self, tag: Tag) -> bool {
        self.floor >= tag || self.listed(tag).is_some()
    }

    fn listed(&self, tag: Tag) -> Option<Form> {
        let listed = self.stored.iter().find(|(listed, _)| *listed == tag);
        listed.map(|(_, form)| *form)
    }
}

/// The answer of an acceptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellReply {
    /// The value accepted in the highest ballot. Answer to a query, or to an accepted prepare.
    Promised {
        /// The ballot and the value; `None`: nothing was accepted.
        accepted: Option<(Ballot, Bytes)>,
    },
    /// The value was accepted.
    Accepted,
    /// A larger ballot was promised.
    Rejected {
        /// The larger ballot.
        promised: Ballot,
    },
    /// The cell is decided.
    Decided(Bytes),
    /// A configuration comes after this one: nothing is promised or accepted here any more (`[X-20 decided-once]`). What was accepted in
    /// the highest ballot stays so.
    Closed {
        /// The ballot and the value; `None`: nothing was accepted.
        accepted: Option<(Ballot, Bytes)>,
    },
}

/// A cell of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellSummary {
    /// The name of the cell.
    pub cell: Bytes,
    /// The value accepted here in the highest ballot, or decided; empty for the cell of an upload that only promised.
    pub value: Bytes,
    /// True if a value is decided.
    pub decided: bool,
}

/// The root configuration and the servers, by which a client finds everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directory {
    /// The configuration of the root domain.
    pub root: Arc<Configuration>,
    /// The registered servers, by id.
    pub servers: Vec<ServerRecord>,
}

/// A note: no process waits for it, and its loss costs only time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// The version is at a quorum of this configuration (2.6 CONFIRM, `[F-3 confirmed-tag]`).
    Confirm {
        configuration: ConfigurationId,
        name: Name,
        tag: Tag,
    },
    /// The version of a ranked register is chosen at this ballot (CONFIRM, `[W-3 chosen]`).
    Chosen {
        configuration: ConfigurationId,
        name: Name,
        /// The version, and its ballot.
        chosen: ChosenVersion,
    },
    /// The cell is decided.
    Decided {
        configuration: ConfigurationId,
        /// The name of the cell.
        cell: Bytes,
        value: Bytes,
    },
    /// No decision about the upload of this cell matters any more: a version is complete that is larger than the one it is, or
    /// would be (`docs/decisions/0021-cells-go-with-their-uploads.md`).
    Forget {
        configuration: ConfigurationId,
        /// The name of the cell.
        cell: Bytes,
    },
    /// The sender serves since this start: said by a server to others (`[X-21 directory-join]`).
    Serving(ServerRecord),
    /// The knowledge of a server about objects, said to the other members (2.10).
    Gossip(Gossip),
    /// The state of a member in a restart of counters, said to the other members (2.11).
    Restart(Box<RestartNote>),
    /// The configuration has a final successor.
    Next {
        configuration: ConfigurationId,
        pointer: Pointer,
    },
}
