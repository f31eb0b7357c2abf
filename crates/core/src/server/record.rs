//! The durable records of a server. Records are joins: they may be taken in again, in any order, and an old one never undoes
//! a newer one; so the store may move them about, and one that it had let go does no harm if it comes back.

use super::unsynced::{Part, Unsynced};
use crate::config::{Configuration, ConfigurationId};
use crate::consensus::paxos::Acceptor;
use crate::dap::conditional::register::{BallotFloor, Register};
use crate::dap::versions::Marks;
use crate::element::{Form, Handle};
use crate::message::ServerRecord;
use crate::object::Name;
use crate::pointer::Pointer;
use crate::tag::Tag;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The small part of a record: everything but an element's payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Header {
    /// A configuration that this server is a member of.
    Configuration(Arc<Configuration>),
    /// An element; its payload is that of the record.
    Element(ElementHeader),
    /// Floor, confirmed tag and fence of an object, where no element's record says them.
    Marks {
        key: ConfigurationId,
        name: Name,
        marks: Marks,
    },
    /// The memory of a ranked register beside its elements.
    Register {
        key: ConfigurationId,
        name: Name,
        register: Box<Register>,
    },
    /// The promises for those registers of a bucket of names of which nothing else is here.
    BallotFloor {
        key: ConfigurationId,
        bucket: u8,
        floor: BallotFloor,
    },
    /// The state of an acceptor.
    Cell {
        key: ConfigurationId,
        /// The name of the cell.
        cell: Bytes,
        acceptor: Acceptor,
    },
    /// A server of the cluster.
    Registry(ServerRecord),
    /// The successors of a configuration, at this server.
    Pointer {
        /// The configuration that is succeeded.
        key: ConfigurationId,
        pointer: Pointer,
    },
    /// The highest final configuration of its domain that this server has heard of, kept for ever (`[X-13 highest-final]`).
    Final(Arc<Configuration>),
}

impl Header {
    /// The part of the server's state that the record states.
    fn part(&self) -> Part {
        match self {
            Header::Element(element) => Part::Object(element.key, element.name.clone()),
            Header::Register { key, name, .. } | Header::Marks { key, name, .. } => {
                Part::Object(*key, name.clone())
            }
            Header::BallotFloor { key, .. } => Part::BallotFloors(*key),
            Header::Cell { key, cell, .. } => Part::Cell(*key, cell.clone()),
            Header::Configuration(c) => Part::Configuration(c.id()),
            Header::Pointer { key, .. } => Part::Configuration(*key),
            Header::Final(c) => Part::final_of(&c.id()),
            Header::Registry(_) => Part::Registry,
        }
    }
}

/// The header of an element's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementHeader {
    pub key: ConfigurationId,
    pub name: Name,
    pub tag: Tag,
    /// The object's floor when this was written: durable with the evictions that it caused (`[X-2 get-tag-maximum]`).
    pub floor: Tag,
    /// The form in which the element carries the value.
    pub form: Form,
    /// The version is a tombstone.
    pub deleted: bool,
    /// Length of the whole value in bytes.
    pub length: u64,
    /// Length of the payload in bytes.
    pub bytes: u64,
    /// Metadata, encoded.
    pub metadata: Bytes,
}

/// One change of the kept records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Keep this record under this handle.
    Append {
        handle: Handle,
        header: Box<Header>,
        /// An element's payload, otherwise empty.
        payload: Bytes,
        /// CRC-32C of the payload, if it is known.
        checksum: Option<u32>,
    },
    /// The record under this handle is no longer needed.
    Free(Handle),
    /// The record of a block of an upload is no longer needed. As long as a start may find it again the store remembers that, under this number of
    /// the block (`[X-30 dropped-tombstones]`).
    Bury {
        handle: Handle,
        /// [`Name::grave`] of the block.
        grave: u64,
    },
}

/// The steps of the open batch, and the handles: draws them, and holds back those that a reply may still need.
#[derive(Default, Debug)]
pub(super) struct Ledger {
    steps: Vec<Step>,
    drawn: u32,
    free: Vec<Handle>,
    /// Superseded, but a reply that is not released yet may name them. Those of blocks of uploads with their graves.
    pinned: Vec<(Handle, Option<u64>)>,
    /// Since it was last asked, a record was kept that the server must not lose.
    has_grown: bool,
    pub(super) unsynced: Unsynced,
    /// Versions let go for newer ones (2.6), since the start.
    pub(super) trimmed: u64,
    /// Damaged objects that a put made whole again, since the start.
    pub(super) repaired: u64,
}

impl Ledger {
    /// A handle that names nothing.
    pub(super) fn draw(&mut self) -> Handle {
        let handle = self.free.pop().unwrap_or_else(|| {
            let handle = Handle(self.drawn);
            let next = self.drawn.checked_add(1);
            self.drawn = next.expect("fewer than 2^32 records at a time");
            handle
        });
        assert!(handle.0 < self.drawn, "what is free was drawn before");
        handle
    }

    /// Keeps a record without a payload.
    pub(super) fn append(&mut self, header: Header) -> Handle {
        let handle = self.draw();
        self.append_element(handle, header, Bytes::new(), None);
        handle
    }

    /// Appends a record without a payload that does not state the server's votes: such a record is no growth.
    pub(super) fn append_aside(&mut self, header: Header) -> Handle {
        let had_grown = self.has_grown;
        let handle = self.append(header);
        assert!(self.has_grown, "a record was kept");
        self.has_grown = had_grown;
        handle
    }

    /// True if a record that the server must not lose was kept since the last call.
    pub(super) fn take_growth(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    /// Keeps a record under a handle that was drawn for it.
    pub(super) fn append_element(
        &mut self,
        handle: Handle,
        header: Header,
        payload: Bytes,
        checksum: Option<u32>,
    ) {
        assert!(handle.0 < self.drawn, "it was drawn for the record");
        let bytes = match &header {
            Header::Element(element) => element.bytes,
            _ => 0,
        };
        assert_eq!(
            payload.len() as u64,
            bytes,
            "the header says how much follows"
        );
        self.has_grown = true;
        self.unsynced.append(header.part());
        let header = Box::new(header);
        self.steps.push(Step::Append {
            handle,
            header,
            payload,
            checksum,
        });
    }

    /// These records are no longer needed, once the replies given so far are released.
    pub(super) fn supersede(&mut self, handles: impl IntoIterator<Item = Handle>) {
        self.pinned.extend(handles.into_iter().map(|it| (it, None)));
    }

    /// These records of this object are no longer needed, once the replies given so far are released.
    pub(super) fn supersede_of(&mut self, name: &Name, handles: impl IntoIterator<Item = Handle>) {
        let grave = name.is_upload_block().then(|| name.grave());
        self.pinned
            .extend(handles.into_iter().map(|it| (it, grave)));
    }

    /// Graves of records that the store does not know yet to be superseded.
    pub(super) fn open_graves(&self) -> BTreeSet<u64> {
        let pinned = self.pinned.iter().filter_map(|(_, grave)| *grave);
        let buried = self.steps.iter().filter_map(|step| match step {
            Step::Bury { grave, .. } => Some(*grave),
            Step::Append { .. } | Step::Free(_) => None,
        });
        pinned.chain(buried).collect()
    }

    /// The replies given so far are released, and what the last steps say is durable: superseded records are freed with the next
    /// steps.
    pub(super) fn unpin(&mut self) {
        self.unsynced.release();
        let was_drawn = |(handle, _): &(Handle, _)| handle.0 < self.drawn;
        assert!(self.pinned.iter().all(was_drawn), "what goes was drawn");
        self.free
            .extend(self.pinned.iter().map(|(handle, _)| *handle));
        assert!(self.free.len() <= self.drawn as usize, "each goes once");
        let steps = self.pinned.drain(..).map(|(handle, grave)| match grave {
            Some(grave) => Step::Bury { handle, grave },
            None => Step::Free(handle),
        });
        self.steps.extend(steps);
    }

    /// The steps since they were last taken.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The records of the open batch.
    pub(super) fn open(&self) -> BTreeSet<Handle> {
        let appended = |step: &Step| match step {
            Step::Append { handle, .. } => Some(*handle),
            Step::Free(_) | Step::Bury { .. } => None,
        };
        self.steps.iter().filter_map(appended).collect()
    }

    /// The steps since the last call, to be made durable before [`Self::unpin`].
    pub(super) fn take_steps(&mut self) -> Vec<Step> {
        self.unsynced.close();
        std::mem::take(&mut self.steps)
    }
}
