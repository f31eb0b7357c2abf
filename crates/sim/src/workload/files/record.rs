//! Writes of blocks for the history, taken from what goes out to servers: an update writes many blocks at once, and who is
//! interrupted says of none of them what became of it.
//!
//! A write of a block that exists begins with its query, one of a new block with its put, and both end with the confirmation
//! that the version is at a quorum, or when a quorum has acknowledged that it is finalized; removals as well. What was never put has had no effect, and is not written down.

use super::{FILE, value_of};
use crate::history::{BlockVersion, History, Operation};
use crate::world::World;
use crate::world::call::Watch;
use areo_core::config::ConfigurationId;
use areo_core::element::Element;
use areo_core::fragment::block::{self, Metadata};
use areo_core::instant::Instant;
use areo_core::message::{Access, Answer, Body, Note, Reply, Request};
use areo_core::object::Name;
use areo_core::tag::Tag;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Records the writes of one update.
pub(super) struct Recorder {
    pub(super) world: World,
    pub(super) history: Rc<RefCell<History>>,
    pub(super) client: usize,
    pub(super) domain: usize,
    /// The version of each block that the update is based on.
    pub(super) bases: BTreeMap<Name, Tag>,
    pub(super) blocks: RefCell<BTreeMap<Name, Progress>>,
}

/// Progress of the write of a block.
#[derive(Default)]
pub(super) struct Progress {
    asked: Option<Instant>,
    put: Option<(Tag, Operation)>,
    /// Members that acknowledged that the put version is finalized, and know no later configuration.
    finalized: BTreeSet<(ConfigurationId, usize)>,
    ended: bool,
}

impl Progress {
    /// The member acknowledged that this version is finalized. Returns whether the put version is at a quorum of that configuration. An
    /// acknowledgement of the version that the put is based on, which the update read before, does not count.
    fn finalizes(&mut self, tag: Tag, member: (ConfigurationId, usize), quorum: usize) -> bool {
        if self.put.as_ref().is_none_or(|(version, _)| *version != tag) {
            return false;
        }
        self.finalized.insert(member);
        let here = self.finalized.iter().filter(|(c, _)| *c == member.0);
        here.count() >= quorum
    }
}

impl Recorder {
    fn puts(&self, name: &Name, tag: Tag, element: &Element) {
        let mut blocks = self.blocks.borrow_mut();
        let progress = blocks.entry(name.clone()).or_default();
        if progress.put.is_some() {
            return;
        }
        let began = progress.asked.unwrap_or(self.world.now());
        let object = (self.domain, name.key().to_owned());
        let mut history = self.history.borrow_mut();
        if element.deleted {
            let removal = history.begin_removal(began, self.client, object, FILE);
            progress.put = Some((tag, removal));
            return;
        }
        let metadata = Metadata::decode(&element.metadata).expect("of a block");
        let written = BlockVersion {
            value: value_of(&metadata),
            next: metadata.next.map(|next| block::name(next).key().to_owned()),
        };
        let base = self.bases.get(name).copied().unwrap_or_default();
        let operation = history.begin_block(began, (self.client, base), object, (FILE, &written));
        progress.put = Some((tag, operation));
    }
}

impl Watch for Recorder {
    fn asks(&self, request: &Request) {
        let Request::Configured {
            body: Body::Access(accesses),
            ..
        } = request
        else {
            return;
        };
        for (name, access) in accesses {
            match access {
                Access::Query { .. } => {
                    let mut blocks = self.blocks.borrow_mut();
                    let progress = blocks.entry(name.clone()).or_default();
                    progress.asked.get_or_insert(self.world.now());
                }
                Access::Put {
                    tag,
                    element,
                    write_back: false,
                } => self.puts(name, *tag, element),
                _ => {}
            }
        }
    }

    fn hears(&self, request: &Request, position: usize, reply: &Reply) {
        let Request::Configured {
            configuration,
            body: Body::Access(accesses),
            ..
        } = request
        else {
            return;
        };
        // With a successor the put goes on there ([CAS-3 fin-decides]).
        let Reply::Access(answers) = reply else {
            return;
        };
        for ((name, access), answer) in accesses.iter().zip(answers) {
            let fin = match access {
                Access::Finalize { tag, complete, .. } if !complete => Some(tag),
                _ => None,
            };
            if let (Some(tag), Answer::Stored) = (fin, answer) {
                let mut blocks = self.blocks.borrow_mut();
                let Some(progress) = blocks.get_mut(name) else {
                    continue;
                };
                let quorum = self.world.quorum(configuration);
                let is_at_quorum = progress.finalizes(*tag, (*configuration, position), quorum);
                drop(blocks);
                if is_at_quorum {
                    self.ends(name, *tag);
                }
            }
        }
    }

    fn tells(&self, note: &Note) {
        if let Note::Confirm { name, tag, .. } = note {
            self.ends(name, *tag);
        }
    }
}

impl Recorder {
    /// The version is at a quorum.
    fn ends(&self, name: &Name, tag: Tag) {
        let mut blocks = self.blocks.borrow_mut();
        if let Some(Progress {
            put: Some((version, operation)),
            ended,
            ..
        }) = blocks.get_mut(name)
            && *version == tag
            && !std::mem::replace(ended, true)
        {
            let now = self.world.now();
            self.history.borrow_mut().end_block(now, operation, tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::object::DomainId;
    use areo_core::tag::Writer;

    #[test]
    fn a_base_that_is_finalized_does_not_end_the_write() {
        let writer = Writer::default();
        let [base, version] = [1, 2].map(|number| Tag { number, writer });
        let object = (0, FILE.to_owned());
        let removal = History::default().begin_removal(Instant::default(), 0, object, FILE);
        let mut progress = Progress::default();
        let c = ConfigurationId {
            domain: DomainId(1),
            partition: 0,
            index: 0,
            digest: 0,
        };
        let member = |position| (c, position);
        assert!(!progress.finalizes(base, member(0), 2), "nothing was put");
        progress.put = Some((version, removal));
        assert!(!progress.finalizes(base, member(1), 2));
        assert!(!progress.finalizes(version, member(0), 2), "one of two");
        assert!(progress.finalizes(version, member(2), 2));
    }
}
