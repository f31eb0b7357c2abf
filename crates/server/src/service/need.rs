//! The table of grants: what each message needs of its caller (decision record 0072).
//!
//! A message is matched without a wildcard, so that a new one without a row does not compile. A batch of accesses has a need for each. What a
//! message passes on of other servers' words beside its own request is in [`Hearsay`].
//!
//! The root domain is one whose objects and configurations are the cluster's: what needs a verb for a domain elsewhere needs `reconfig` there.

use std::ops::ControlFlow;
use std::sync::Arc;

use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::consensus::agreement::AGREEMENT_CELL;
use areo_core::consensus::mailbox::MAILBOX_CELL;
use areo_core::consensus::snapshot::FIRST_CELL;
use areo_core::consensus::speculating::ROUNDS;
use areo_core::consensus::{SUCCESSOR_CELL, fate};
use areo_core::dsm::large::GIVEN_UP;
use areo_core::element::Element;
use areo_core::manager::chains::CHAIN_CELLS;
use areo_core::manager::domains::{DOMAIN_CELLS, domain_of_cell};
use areo_core::manager::names::SERVER_CELLS;
use areo_core::message::{
    Access, Body, CellRequest, Enrolment, Levels, ListRequest, Note, Proposal, Request,
    ServerRecord, Want,
};
use areo_core::object::{DomainId, Kind, Name, UPLOAD_PREFIX, key_of_record};
use areo_core::pointer::Successors;
use areo_trust::grant::Verb;

/// The verbs of which one is enough, in the order in which a refusal names them.
pub(crate) type Verbs = &'static [Verb];

const READ: Verbs = &[Verb::Read];
const WRITE: Verbs = &[Verb::Write];
const LIST: Verbs = &[Verb::List];
const DELETE: Verbs = &[Verb::Delete];
const ADMIN: Verbs = &[Verb::Admin];
/// For steps that change an object and have no content of their own.
const CHANGE: Verbs = &[Verb::Write, Verb::Delete];
/// For questions about the version of an object, without its content: a change asks one first.
const LOOK: Verbs = &[Verb::Read, Verb::Write, Verb::Delete];
/// For records of uploads: a caller that may write an object may see and remove those of its uploads, and nothing else of the object
/// (`[X-43 upload-records]`).
const READ_RECORD: Verbs = &[Verb::Read, Verb::Write];
/// For records of uploads of one key.
const LIST_RECORDS: Verbs = &[Verb::List, Verb::Write];
/// For a list of blocks: a change looks for those of the version that it replaces.
const BLOCKS: Verbs = &[Verb::Write, Verb::Delete, Verb::Admin];

/// The right that a message, or a part of one, needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need<'a> {
    /// Nothing: a stranger may ask.
    Nothing,
    /// A valid access key of any kind.
    AnyKey,
    /// A verb of the cluster.
    Cluster(Verb),
    /// One of these verbs, in a domain.
    Domain {
        verbs: Verbs,
        domain: DomainId,
        /// The keys for which it must count.
        keys: Keys<'a>,
    },
    /// `admin` of the domain of this name, or `reconfig`: a change of the root domain moves its directory.
    Named(&'a str),
    /// The certificate of a server: of this one, or of any; or the grant `reconfig`, where that is enough.
    Server {
        /// The server; `None`: any.
        id: Option<ServerId>,
        /// True if `reconfig` is enough.
        or_reconfig: bool,
    },
    /// The certificate of a server, also of one that is about to register; or `reconfig`.
    Newcomer,
    /// No caller may send it.
    NoCaller,
}

/// The keys of a domain for which a verb must count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys<'a> {
    /// All that begin so; of one object, its key.
    From(&'a str),
    /// Any of them, one is enough.
    Any,
}

/// The statements of servers that a message passes on: the place of a configuration, and its successors. A caller
/// that may not decide them is believed if servers state the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hearsay<'a> {
    /// The configuration that it is about.
    pub(crate) configuration: ConfigurationId,
    /// Descriptor of the configuration; `None` if the message has none.
    pub(crate) descriptor: Option<&'a Arc<Configuration>>,
    /// Its successors. `None`: the configuration itself is final.
    pub(crate) successors: Option<&'a Successors>,
}

/// The table, for the root domain of this cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Id of the root domain.
    pub(crate) root: DomainId,
}

impl Table {
    /// Visits the needs of a request, part by part, until the visitor breaks off.
    pub(crate) fn each_need<'a, B>(
        self,
        request: &'a Request,
        mut visit: impl FnMut(Need<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match request {
            Request::Configured {
                configuration,
                body,
                ..
            } => self.each_need_of_body(configuration.domain, body, visit),
            Request::Directory => visit(Need::Nothing),
            Request::Latest { .. } => visit(Need::AnyKey),
            Request::Status | Request::View => visit(Need::Cluster(Verb::Status)),
            // What a server knows of others comes from the registry and from themselves: decision record 0033.
            Request::Know(_) => visit(Need::NoCaller),
        }
    }

    fn each_need_of_body<'a, B>(
        self,
        domain: DomainId,
        body: &'a Body,
        mut visit: impl FnMut(Need<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match body {
            Body::Access(accesses) => accesses
                .iter()
                .try_for_each(|(name, access)| visit(self.of_access(domain, name, access))),
            Body::List(list) => visit(self.of_list(domain, list)),
            Body::ReadConfig | Body::Servers => visit(Need::AnyKey),
            Body::Cell { cell, step } => visit(self.of_cell(domain, cell, step)),
            Body::Cells { prefix, .. } => visit(self.of_cells(domain, prefix)),
            Body::Register { step, record } => visit(match step {
                // An operator's client forgets a server. No start is later than that.
                Enrolment::Register if record.is_forgotten() => Need::Server {
                    id: Some(record.id),
                    or_reconfig: true,
                },
                Enrolment::Ask | Enrolment::Register => Need::Server {
                    id: Some(record.id),
                    or_reconfig: false,
                },
                // A server that takes the place of another one marks that as one that is to go, before it registers.
                // Levels of a cluster and labels are changed by those who may reconfigure (`[X-46 cluster-level]`, `[X-47 server-labels]`).
                Enrolment::HandOn if is_mark_alone(record) => Need::Newcomer,
                // A change of the root domain moves all records.
                Enrolment::HandOn => Need::Server {
                    id: None,
                    or_reconfig: true,
                },
            }),
        }
    }

    fn of_access<'a>(self, domain: DomainId, name: &'a Name, access: &Access) -> Need<'a> {
        let verbs = match access {
            Access::Query {
                want,
                announced: None,
                ..
            }
            | Access::Rank {
                want, ballot: None, ..
            } => match want {
                Want::Tags | Want::Metadata => LOOK,
                Want::Fragment | Want::Element => READ,
            },
            Access::Fetch { payload: false, .. } => LOOK,
            Access::Fetch { payload: true, .. } => READ,
            Access::Put { element, .. } | Access::Keep { element, .. } => verbs_of_content(element),
            Access::Accept(proposal) => verbs_of_proposal(proposal),
            // An announced version is sent next.
            Access::Query {
                announced: Some(_), ..
            }
            | Access::Adopt(_)
            | Access::Fence { .. }
            | Access::Finalize { .. }
            | Access::Drop(_)
            | Access::Rank {
                ballot: Some(_), ..
            } => CHANGE,
        };
        self.of_object(verbs, domain, name)
    }

    /// Blocks have no key of an object in their names: they need the verb for the domain.
    fn of_object(self, verbs: Verbs, domain: DomainId, name: &Name) -> Need<'_> {
        if name.is_document() && domain != self.root {
            return self.of_document(verbs, domain);
        }
        let (verbs, key) = match name.kind() {
            Kind::User => (verbs, name.key()),
            Kind::Upload => (verbs_of_record(verbs), name.user_key()),
            Kind::Block | Kind::Genesis | Kind::System => (verbs, ""),
        };
        self.in_domain(verbs, domain, Keys::From(key))
    }

    /// The need of a document of a domain, where these verbs are enough for an object: any key may see it, and who may change the domain may change it
    /// (`[X-45 domain-documents]`).
    fn of_document<'a>(self, verbs: Verbs, domain: DomainId) -> Need<'a> {
        match verbs.contains(&Verb::Read) {
            true => Need::AnyKey,
            false => self.in_domain(ADMIN, domain, Keys::From("")),
        }
    }

    /// The need of each object that the server completes for a caller.
    pub(crate) fn of_completed(self, domain: DomainId, name: &Name) -> Need<'_> {
        self.of_object(READ, domain, name)
    }

    /// The need of a caller in whose place the server decides a cell with what members have accepted there. `None`: the server does that for no
    /// caller. Names of domains are looked up with any key, and their cells are listed with any key ([`Self::of_cells`]).
    pub(crate) fn of_finished_cell(self, domain: DomainId, cell: &[u8]) -> Option<Need<'static>> {
        let is_of_directory = domain == self.root && domain_of_cell(cell).is_some();
        is_of_directory.then_some(Need::AnyKey)
    }

    fn of_list(self, domain: DomainId, list: &ListRequest) -> Need<'_> {
        match list.kind {
            Kind::User => self.in_domain(LIST, domain, Keys::From(&list.prefix)),
            Kind::Upload => {
                let key = key_of_record(&list.prefix);
                let verbs = match key == list.prefix {
                    true => LIST,
                    false => LIST_RECORDS,
                };
                self.in_domain(verbs, domain, Keys::From(key))
            }
            Kind::Block => self.in_domain(BLOCKS, domain, Keys::From("")),
            Kind::Genesis | Kind::System => self.in_domain(ADMIN, domain, Keys::From("")),
        }
    }

    fn of_cell<'a>(self, domain: DomainId, cell: &'a [u8], step: &CellRequest) -> Need<'a> {
        let is_of_chain = domain == self.root && cell.starts_with(CHAIN_CELLS.as_bytes());
        match step {
            CellRequest::Query if !is_of_chain => Need::AnyKey,
            CellRequest::Query
            | CellRequest::Prepare { .. }
            | CellRequest::Accept { .. }
            | CellRequest::Join(_) => self.of_decision(domain, cell),
        }
    }

    /// The need of a step that promises or accepts in this cell.
    fn of_decision(self, domain: DomainId, cell: &[u8]) -> Need<'_> {
        let decides_configuration = [SUCCESSOR_CELL, FIRST_CELL, AGREEMENT_CELL, MAILBOX_CELL]
            .contains(&cell)
            || cell.starts_with(ROUNDS);
        if decides_configuration {
            return self.of_configuration(domain);
        }
        let is_of_upload = [UPLOAD_PREFIX, GIVEN_UP]
            .iter()
            .any(|it| cell.starts_with(it.as_bytes()));
        if is_of_upload || fate::is_fate(cell) {
            return self.in_domain(CHANGE, domain, Keys::Any);
        }
        if domain != self.root {
            return self.in_domain(ADMIN, domain, Keys::From(""));
        }
        if let Some(name) = domain_of_cell(cell) {
            return Need::Named(name);
        }
        // A server has its name before it registers.
        if cell.starts_with(SERVER_CELLS.as_bytes()) {
            return Need::Newcomer;
        }
        // The chains of the cluster, and what a later version keeps there.
        Need::Server {
            id: None,
            or_reconfig: true,
        }
    }

    fn of_cells(self, domain: DomainId, prefix: &[u8]) -> Need<'_> {
        let begins = |kind: &[u8]| prefix.starts_with(kind);
        if domain != self.root {
            self.in_domain(ADMIN, domain, Keys::From(""))
        } else if begins(DOMAIN_CELLS) || begins(SERVER_CELLS.as_bytes()) {
            Need::AnyKey
        } else {
            // Those of chains may be among them.
            Need::Server {
                id: None,
                or_reconfig: true,
            }
        }
    }

    /// The need of a message that says which configuration of the domain comes next.
    pub(crate) fn of_configuration<'a>(self, domain: DomainId) -> Need<'a> {
        self.in_domain(ADMIN, domain, Keys::From(""))
    }

    fn in_domain(self, verbs: Verbs, domain: DomainId, keys: Keys<'_>) -> Need<'_> {
        if domain == self.root {
            return Need::Cluster(Verb::Reconfig);
        }
        Need::Domain {
            verbs,
            domain,
            keys,
        }
    }

    /// The need of a note. A note whose caller lacks the right is dropped.
    pub(crate) fn of_note(self, note: &Note) -> Need<'_> {
        match note {
            Note::Confirm {
                configuration,
                name,
                ..
            }
            | Note::Chosen {
                configuration,
                name,
                ..
            } => self.of_object(CHANGE, configuration.domain, name),
            Note::Decided {
                configuration,
                cell,
                ..
            }
            | Note::Forget {
                configuration,
                cell,
            } => self.of_decision(configuration.domain, cell),
            Note::Next { configuration, .. } => self.of_configuration(configuration.domain),
            Note::Serving(record) => Need::Server {
                id: Some(record.id),
                or_reconfig: false,
            },
            Note::Gossip(gossip) => Need::Server {
                id: Some(gossip.from),
                or_reconfig: false,
            },
            Note::Restart(restart) => Need::Server {
                id: Some(restart.from),
                or_reconfig: false,
            },
        }
    }
}

/// The record says that the server is to go, and changes nothing else of the cluster.
fn is_mark_alone(record: &ServerRecord) -> bool {
    record.is_leaving() && record.levels == Levels::default() && record.labels.is_empty()
}

/// The verbs that are enough for a record of an upload, where these are for an object.
fn verbs_of_record(verbs: Verbs) -> Verbs {
    match verbs {
        [Verb::Read] => READ_RECORD,
        [Verb::Delete] => CHANGE,
        verbs => verbs,
    }
}

fn verbs_of_content(element: &Element) -> Verbs {
    match element.deleted {
        true => DELETE,
        false => WRITE,
    }
}

fn verbs_of_proposal(proposal: &Proposal) -> Verbs {
    proposal.element.as_ref().map_or(CHANGE, verbs_of_content)
}

/// The words of servers that a request passes on, if it does. A note that passes something on needs the grant to decide it ([`Table::of_note`]).
pub(crate) fn hearsay(request: &Request) -> Option<Hearsay<'_>> {
    match request {
        Request::Configured {
            configuration,
            descriptor,
            successors,
            ..
        } => (descriptor.is_some() || !successors.is_empty()).then_some(Hearsay {
            configuration: *configuration,
            descriptor: descriptor.as_ref(),
            successors: Some(successors),
        }),
        Request::Latest { known, .. } => known.as_ref().map(|known| Hearsay {
            configuration: known.id(),
            descriptor: Some(known),
            successors: None,
        }),
        Request::Directory | Request::Know(_) | Request::Status | Request::View => None,
    }
}

#[cfg(test)]
pub(super) mod tests;
