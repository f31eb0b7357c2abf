//! The harness's copy of a durable record.

use super::{Domain, ObjectId, Objects, domain_of};
use areo_core::config::ConfigurationId;
use areo_core::consensus::paxos::Acceptor;
use areo_core::dap::conditional::register::{BallotFloor, Register};
use areo_core::dap::versions::Marks;
use areo_core::element::Form;
use areo_core::message::{RecordRank, RegisterKey};
use areo_core::pointer::Pointer;
use areo_core::server::record::Header;
use areo_core::tag::Tag;
use bytes::Bytes;

/// A record that is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeptRecord {
    Element {
        object: ObjectId,
        tag: Tag,
        /// The floor of the object that the record states.
        floor: Tag,
        form: Form,
        deleted: bool,
        damaged: bool,
    },
    Cell {
        key: ConfigurationId,
        cell: Bytes,
        /// Boxed: most records are elements, and all of them are moved about.
        acceptor: Box<Acceptor>,
    },
    /// This configuration of its domain is final.
    Final { key: ConfigurationId },
    /// The state of a ranked register.
    Register {
        object: ObjectId,
        register: Box<Register>,
    },
    /// The promises for names of a bucket of which nothing is here.
    BallotFloor {
        key: ConfigurationId,
        bucket: u8,
        floor: BallotFloor,
    },
    /// Floor, confirmed tag and fence of an object.
    Marks { object: ObjectId, marks: Box<Marks> },
    /// A record of a server is known, or one of the servers in memory at an address.
    Server { key: RegisterKey, rank: RecordRank },
    /// A descriptor of a configuration.
    Configuration { key: ConfigurationId },
    /// A pointer to the successor of a configuration.
    Pointer {
        key: ConfigurationId,
        pointer: Box<Pointer>,
    },
}

/// The subject of a record. A later record with the same identity supersedes an earlier one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Identity {
    Element(ObjectId, Tag),
    Cell(ConfigurationId, Bytes),
    Final(Domain),
    Marks(ObjectId),
    Server(RegisterKey),
    Register(ObjectId),
    BallotFloor(ConfigurationId, u8),
    Configuration(ConfigurationId),
    Pointer(ConfigurationId),
}

impl KeptRecord {
    pub(crate) fn of(header: &Header, damaged: bool, objects: &mut Objects) -> KeptRecord {
        match header {
            Header::Element(element) => KeptRecord::Element {
                object: objects.number(element.key, element.name.as_bytes()),
                tag: element.tag,
                floor: element.floor,
                form: element.form,
                deleted: element.deleted,
                damaged,
            },
            Header::Cell {
                key,
                cell,
                acceptor,
            } => KeptRecord::Cell {
                key: *key,
                cell: cell.clone(),
                acceptor: Box::new(acceptor.clone()),
            },
            Header::Registry(record) => KeptRecord::Server {
                key: record.key(),
                rank: record.rank(),
            },
            Header::Final(c) => KeptRecord::Final { key: c.id() },
            Header::Marks { key, name, marks } => KeptRecord::Marks {
                object: objects.number(*key, name.as_bytes()),
                marks: Box::new(marks.clone()),
            },
            Header::Register {
                key,
                name,
                register,
            } => KeptRecord::Register {
                object: objects.number(*key, name.as_bytes()),
                register: register.clone(),
            },
            Header::BallotFloor { key, bucket, floor } => KeptRecord::BallotFloor {
                key: *key,
                bucket: *bucket,
                floor: *floor,
            },
            Header::Configuration(c) => KeptRecord::Configuration { key: c.id() },
            Header::Pointer { key, pointer } => KeptRecord::Pointer {
                key: *key,
                pointer: Box::new(pointer.clone()),
            },
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        match self {
            KeptRecord::Element { object, tag, .. } => Identity::Element(*object, *tag),
            KeptRecord::Cell { key, cell, .. } => Identity::Cell(*key, cell.clone()),
            KeptRecord::Final { key } => Identity::Final(domain_of(key)),
            KeptRecord::Marks { object, .. } => Identity::Marks(*object),
            KeptRecord::Server { key, .. } => Identity::Server(key.clone()),
            KeptRecord::Register { object, .. } => Identity::Register(*object),
            KeptRecord::BallotFloor { key, bucket, .. } => Identity::BallotFloor(*key, *bucket),
            KeptRecord::Configuration { key } => Identity::Configuration(*key),
            KeptRecord::Pointer { key, .. } => Identity::Pointer(*key),
        }
    }

    /// The configuration that the record belongs to, if it belongs to one.
    pub(crate) fn key(&self, objects: &Objects) -> Option<ConfigurationId> {
        match self {
            KeptRecord::Element { object, .. }
            | KeptRecord::Register { object, .. }
            | KeptRecord::Marks { object, .. } => Some(objects.key(*object)),
            KeptRecord::Cell { key, .. }
            | KeptRecord::BallotFloor { key, .. }
            | KeptRecord::Configuration { key }
            | KeptRecord::Pointer { key, .. } => Some(*key),
            KeptRecord::Final { .. } | KeptRecord::Server { .. } => None,
        }
    }
}
