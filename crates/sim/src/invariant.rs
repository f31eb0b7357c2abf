//! The rules that hold at every step, one file each. An invariant sees what servers are told, what they show and what
//! operations end with, and compares it with what is really on the disks ([`crate::truth`]). It never asks a server.

mod acknowledged_is_durable;
mod conclusions_agree;
mod copies_never_serve;
mod damaged_is_never_counted;
mod decided_once;
mod evicted_is_remembered;
mod never_too_few_members;
mod nothing_unsynced_is_shown;
mod one_value_per_tag;
mod promises_are_kept;
mod quorum_holds;
mod successors_are_ordered;
mod tags_never_go_back;
mod told_is_durable;
mod trimming_bounds_versions;

use crate::truth::{self, Domain, KeptRecord, ObjectId, Objects, Truth};
use crate::world::server_of;
use areo_core::config::{Configuration, ConfigurationId, ServerId};
use areo_core::element::Element;
use areo_core::env::Conclusion;
use areo_core::message::{Ballot, HeldVersions, Note, RankedVersions};
use areo_core::object::Name;
use areo_core::pointer::Successors;
use areo_core::tag::Tag;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something that an invariant may have an opinion about.
pub(crate) enum Observation<'a> {
    /// A server was sent an element.
    Submitted {
        object: ObjectId,
        tag: Tag,
        element: &'a Element,
    },
    /// A server's acknowledgement of a put left it.
    Acknowledged {
        server: usize,
        object: ObjectId,
        tag: Tag,
    },
    /// A server's answer to a query left it.
    Shown {
        server: usize,
        object: ObjectId,
        held: &'a HeldVersions,
    },
    /// A server's answer about a ranked register left it.
    Ranked {
        server: usize,
        object: ObjectId,
        ranked: &'a RankedVersions,
    },
    /// A server's answer with the element of this version left it.
    Fetched {
        server: usize,
        object: ObjectId,
        tag: Tag,
    },
    /// A server showed that a value was accepted in a cell, at this ballot.
    AcceptanceShown {
        server: usize,
        key: ConfigurationId,
        cell: &'a Bytes,
        ballot: Ballot,
    },
    /// A server showed the decision of a cell.
    CellShown {
        server: usize,
        key: ConfigurationId,
        cell: &'a Bytes,
        value: &'a Bytes,
    },
    /// A server showed successors of a configuration.
    SuccessorsShown {
        server: usize,
        at: &'a ConfigurationId,
        successors: &'a Successors,
    },
    /// A server showed that the configuration is final.
    FinalShown { server: usize, c: &'a Configuration },
    /// A client concluded this from the answers of a configuration's members.
    Concluded {
        at: &'a Configuration,
        conclusion: Conclusion<'a>,
    },
    /// A server said this to another one of its own accord.
    Told { server: usize, note: &'a Note },
    /// A server started from its disk, on which these durable records were not found again.
    Recovered {
        server: usize,
        missing: &'a [KeptRecord],
    },
    /// The start of a server was confirmed by the root domain, of which that member knows better and was in reach.
    Confirmed {
        id: ServerId,
        incarnation: u64,
        is_copy: bool,
        knows_better: Option<usize>,
    },
    /// A read or a write ended with this version. Where the object may be: in the first configuration of its domain, which
    /// gives it a name that stays, and in each from the highest one on that anybody knows to be final.
    Completed {
        homes: &'a [(ObjectId, Arc<Configuration>)],
        tag: Tag,
    },
}

/// State of the run that invariants compare observations with.
pub(crate) struct Context<'a> {
    pub(crate) truths: &'a [Truth],
    pub(crate) objects: &'a Objects,
    pub(crate) shapes: &'a BTreeMap<ConfigurationId, Arc<Configuration>>,
}

impl Context<'_> {
    /// The configuration that an object is in, if the run knows it yet.
    fn shape(&self, object: ObjectId) -> Option<&Arc<Configuration>> {
        self.shapes.get(&self.objects.key(object))
    }

    /// The records of a server; nothing if they are gone, and it with them.
    fn truth(&self, id: ServerId) -> Option<&Truth> {
        let truth = self.truths[server_of(id)].own();
        truth.is_of(id).then_some(truth)
    }

    /// True if the server may lack a version that it had, because a quorum decided to drop it
    /// (`[X-3 unconfirmed-cap]`).
    fn is_dropped(&self, server: usize, object: ObjectId, tag: Tag) -> bool {
        if self.is_forgotten(server, object) {
            return true;
        }
        let home = self
            .shape(object)
            .map(|c| (&**c, self.objects.name(object)));
        truth::is_dropped(self.truths, server, (object, tag), home)
    }

    /// True if the object is a block of an upload whose tombstone the server dropped (`[X-30 dropped-tombstones]`):
    /// the server remembers nothing of the block.
    fn is_forgotten(&self, server: usize, object: ObjectId) -> bool {
        let name = Name::from_bytes(Bytes::copy_from_slice(self.objects.name(object)));
        let is_block = name.is_ok_and(|name| name.is_upload_block());
        is_block && self.truths[server].has_dropped(object)
    }
}

/// The highest configuration of the domain that any server has ever known to be final.
pub(crate) fn final_index(truths: &[Truth], domain: Domain) -> u32 {
    let known = truths.iter().map(|truth| truth.own().ever_final(domain));
    known.max().unwrap_or(0)
}

/// A rule that every observation is checked against.
pub(crate) trait Invariant {
    /// The file it stands in, without its ending.
    fn name(&self) -> &'static str;

    /// Returns a sentence if the observation breaks the rule.
    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String>;
}

/// All of them, with nothing observed yet.
pub(crate) fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::<acknowledged_is_durable::Rule>::default(),
        Box::<copies_never_serve::Rule>::default(),
        Box::<conclusions_agree::Rule>::default(),
        Box::<damaged_is_never_counted::Rule>::default(),
        Box::<decided_once::Rule>::default(),
        Box::<evicted_is_remembered::Rule>::default(),
        Box::<never_too_few_members::Rule>::default(),
        Box::<nothing_unsynced_is_shown::Rule>::default(),
        Box::<one_value_per_tag::Rule>::default(),
        Box::<promises_are_kept::Rule>::default(),
        Box::<quorum_holds::Rule>::default(),
        Box::<successors_are_ordered::Rule>::default(),
        Box::<tags_never_go_back::Rule>::default(),
        Box::<told_is_durable::Rule>::default(),
        Box::<trimming_bounds_versions::Rule>::default(),
    ]
}

/// Something for each server and object, its default at first.
#[derive(Default)]
struct PerServer<T>(Vec<Vec<T>>);

impl<T: Default> PerServer<T> {
    fn at(&mut self, server: usize, object: ObjectId) -> &mut T {
        let objects = at(&mut self.0, server);
        at(objects, object)
    }
}

/// A place of a list, which grows until it is there.
fn at<T: Default>(list: &mut Vec<T>, place: usize) -> &mut T {
    if list.len() <= place {
        list.resize_with(place + 1, T::default);
    }
    &mut list[place]
}

/// A tag per server and object, `t0` at first.
#[derive(Default)]
struct Marks(PerServer<Tag>);

impl Marks {
    fn at(&mut self, server: usize, object: ObjectId) -> Tag {
        *self.0.at(server, object)
    }

    fn raise(&mut self, server: usize, object: ObjectId, tag: Tag) {
        let mark = self.0.at(server, object);
        *mark = tag.max(*mark);
    }
}

#[cfg(test)]
mod tests;
