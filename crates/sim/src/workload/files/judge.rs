//! The rules for files, checked as operations on them end.

use super::{FILE, Id, value_of};
use crate::fault::Fault;
use crate::history::BlockVersion;
use crate::truth::domain_of;
use crate::workload::operation::One;
use areo_core::fragment::block;
use areo_core::fragment::file::{Block, Chain};
use areo_core::fragment::update::UpdateReport;
use areo_core::instant::Instant;
use areo_core::tag::{Tag, Writer};
use std::collections::BTreeMap;

/// The largest version of each block that an operation which has ended wrote or returned.
pub(super) struct Floors(BTreeMap<Id, Tag>, usize);

impl Floors {
    pub(super) fn of(&self, id: Option<Writer>) -> Tag {
        self.0.get(&(self.1, id)).copied().unwrap_or_default()
    }

    /// The blocks of the domain's file that anybody was shown.
    pub(super) fn ids(&self) -> impl Iterator<Item = Option<Writer>> {
        let of_domain = self.0.keys().filter(|(domain, _)| *domain == self.1);
        of_domain.map(|(_, id)| *id)
    }
}

impl One<'_> {
    /// The floors of the blocks when an operation begins.
    pub(super) fn floors(&self) -> Floors {
        let floors = self.work.files.floors.borrow().clone();
        Floors(floors, self.object.0)
    }

    pub(super) fn violate_file(&self, what: &str) {
        let (process, domain) = (self.process, self.object.0);
        let sentence = format!("fragmented: the file of domain {domain}, client {process}: {what}");
        self.work.world.violate(sentence);
    }

    /// A version of a block was returned, or written.
    pub(super) fn block_is(&self, known: &Block) {
        let id = (self.object.0, known.id);
        let value = (known.metadata.digest, known.metadata.next);
        let mut values = self.work.files.values.borrow_mut();
        let first = *values.entry((id, known.version)).or_insert(value);
        if first != value {
            self.violate_file(&format!("version {} of a block is two", known.version));
        }
        self.version_is(known.id, known.version);
    }

    /// A version of a block is at a quorum.
    pub(super) fn version_is(&self, id: Option<Writer>, version: Tag) {
        let mut floors = self.work.files.floors.borrow_mut();
        let floor = floors.entry((self.object.0, id)).or_default();
        *floor = version.max(*floor);
        let name = super::name(id);
        let domain = domain_of(&self.c.id());
        self.work.world.completed(domain, name.as_bytes(), version);
    }

    /// A block was read, since `began`, when the floors were these.
    pub(super) fn judge_read(&self, read: &Block, floors: &Floors, began: Instant) {
        let (version, floor) = (read.version, floors.of(read.id));
        if version < floor {
            self.violate_file(&format!("read {version} of a block, older than {floor}"));
        }
        self.block_is(read);
        let next = read.metadata.next.map(block::name);
        let written = BlockVersion {
            value: value_of(&read.metadata),
            next: next.map(|next| next.key().to_owned()),
        };
        let object = (self.object.0, super::name(read.id).key().to_owned());
        self.work.history.borrow_mut().read_block(
            (began, self.work.world.now()),
            self.process,
            object,
            (version, FILE, &written),
        );
    }

    /// There was no file, or only its tombstone: this version of the genesis block.
    pub(super) fn judge_absence(&self, version: Tag, floors: &Floors) {
        let floor = floors.of(None);
        if version < floor {
            self.violate_file(&format!("it is gone: {version}, older than {floor}"));
        }
        if !version.is_initial() {
            self.version_is(None, version);
        }
    }

    pub(super) fn judge_push<S>(&self, base: &Chain, updated: &UpdateReport<S>, floors: &Floors) {
        // Who could not look is told that nobody knows.
        let unknown = updated.failed.iter().any(|(block, _)| block.id.is_none());
        if updated.written > 0 && !unknown && floors.of(None).era() > base.era() {
            self.violate_file("it was removed, and an edit of it succeeded");
        }
        for conflict in &updated.conflicts {
            let Block { id, version, .. } = conflict.block;
            self.work.world.plan().note(Fault::BlockConflict);
            if conflict.newest == version || conflict.newest < floors.of(id) {
                self.violate_file(&format!("{version} lost against {}", conflict.newest));
            }
            self.version_is(id, conflict.newest);
        }
        self.judge_links(&updated.chain);
        for written in &updated.chain.blocks {
            let old = base.blocks.iter().find(|old| old.id == written.id);
            if old.is_some_and(|old| old.version == written.version) {
                continue;
            }
            if let Some(old) = old
                && old.version < floors.of(old.id)
            {
                let (version, floor) = (old.version, floors.of(old.id));
                self.violate_file(&format!("covered {version}, older than {floor}"));
            }
            self.block_is(written);
        }
    }

    /// Each block leads to the next one, so that none is lost (`[B-1 never-unlinked]`).
    fn judge_links(&self, chain: &Chain) {
        let next = chain.blocks.iter().skip(1).map(|block| block.id);
        let links = chain.blocks.iter().map(|block| block.metadata.next);
        if !links.eq(next.chain([None])) {
            self.violate_file("the list of its blocks is broken");
        }
    }
}
