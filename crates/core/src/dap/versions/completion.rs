//! Which versions a quorum is known to have finalized, and what other members say of the object: of kinds whose servers gossip
//! (`docs/spec` 2.10).

use super::Versions;
use crate::message::GossipMarks;
use crate::tag::Tag;

/// The knowledge of an object beside its own mark.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    /// The largest tag of which a quorum has finalized it or a larger one, durably.
    complete: Tag,
    /// The largest tag that another member has said. Forgotten in a crash.
    seen: Tag,
    /// Marks of other members above `complete`, by position. Forgotten in a crash.
    marks: Vec<(u8, Tag)>,
}

impl Versions {
    /// The largest tag of which a quorum has finalized it or a larger one.
    pub fn complete(&self) -> Tag {
        self.completion
            .as_ref()
            .map_or(Tag::INITIAL, |it| it.complete)
    }

    /// The largest tag that another member has said, if it is above all that is known here.
    pub fn seen(&self) -> Tag {
        let seen = self.completion.as_ref().map_or(Tag::INITIAL, |it| it.seen);
        if seen > self.largest_known() {
            seen
        } else {
            Tag::INITIAL
        }
    }

    /// The knowledge beside the object's own mark.
    pub fn completion(&self) -> Option<&Completion> {
        self.completion.as_deref()
    }

    fn largest_known(&self) -> Tag {
        let largest = self.largest().map_or(Tag::INITIAL, |largest| largest.tag);
        let marks = self.floor.max(self.stable).max(self.fence());
        largest.max(marks)
    }

    /// The marks that other members are to hear of the object.
    pub fn gossip_marks(&self) -> GossipMarks {
        GossipMarks {
            largest: self.largest_known(),
            finalized: self.stable,
            complete: self.complete(),
        }
    }

    /// A quorum has finalized this version (FIN2). Returns whether a mark rose.
    pub fn complete_upto(&mut self, tag: Tag) -> bool {
        let rises = self.confirm(tag) || tag > self.complete();
        if tag > self.complete() {
            let completion = self.completion.get_or_insert_default();
            completion.complete = tag;
            completion.marks.retain(|(_, mark)| *mark > tag);
            self.marks_fall_behind();
        }
        assert!(self.complete() <= self.stable, "a quorum has a mark first");
        rises
    }

    /// Another member, at this position, has said that. What it says is durable there, so that a mark that `quorum` members
    /// have is complete. Late or doubled, it changes nothing. Returns whether a mark rose.
    pub fn hear(&mut self, from: u8, said: &GossipMarks, quorum: usize) -> bool {
        assert!(quorum > 0, "no quorum is empty");
        let mut rises = self.confirm(said.finalized);
        rises |= self.complete_upto(said.complete);
        let is_news = said.largest > self.largest_known();
        if is_news || said.finalized > self.complete() {
            let completion = self.completion.get_or_insert_default();
            if is_news {
                completion.seen = completion.seen.max(said.largest);
            }
            let known = completion.marks.iter_mut().find(|(at, _)| *at == from);
            match known {
                Some((_, mark)) => *mark = said.finalized.max(*mark),
                None if said.finalized > completion.complete => {
                    completion.marks.push((from, said.finalized));
                }
                None => {}
            }
            completion.marks.sort_unstable();
            let marks = completion.marks.iter().map(|(_, mark)| *mark);
            let mut marks: Vec<Tag> = marks.chain([self.stable]).collect();
            marks.sort_unstable_by(|a, b| b.cmp(a));
            if let Some(shared) = marks.get(quorum - 1) {
                rises |= self.complete_upto(*shared);
            }
        }
        assert!(self.stable >= said.finalized, "marks join");
        rises
    }
}
