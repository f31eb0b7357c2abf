//! Servers that take elements from earlier configurations (`[X-17 adopted-elements]`).

use super::{Job, Live, REQUEST_BYTES, Subject};
use crate::invariant::Observation;
use crate::truth::ObjectId;
use crate::world::World;
use areo_core::element::Element;
use areo_core::message::{Access, Body, Request};
use areo_core::object::Name;
use areo_core::shard::announced_bytes;
use areo_core::tag::Tag;

/// An element that a server took from an earlier configuration.
pub(super) type Adopted = (ObjectId, Tag, Element);

impl Live {
    /// Lets the job adopt what it can, and says so. Returns the bytes that it may take in the store.
    pub(super) fn adopt(&mut self, job: &mut Job, adopted: &mut Vec<Adopted>) -> u64 {
        let Job::Request(_, _, request, Subject::Objects(about), payload_bytes) = job else {
            return REQUEST_BYTES;
        };
        let wanted: Vec<usize> = accesses(request)
            .iter()
            .enumerate()
            .filter(|(_, (_, access))| matches!(access, Access::Adopt(_)))
            .map(|(place, _)| place)
            .collect();
        if !wanted.is_empty() {
            self.shard.adopt(request, &self.records);
        }
        let mut bytes =
            *payload_bytes + announced_bytes(request) + REQUEST_BYTES * (about.len() as u64).max(1);
        for place in wanted {
            if let Access::Put { tag, element, .. } = &accesses(request)[place].1 {
                bytes += element.payload.len() as u64;
                adopted.push((about[place].0, *tag, element.clone()));
            }
        }
        bytes
    }
}

fn accesses(request: &Request) -> &[(Name, Access)] {
    match request {
        Request::Configured {
            body: Body::Access(accesses),
            ..
        } => accesses,
        _ => &[],
    }
}

impl World {
    /// Shows the invariants elements that were made without a client.
    pub(super) fn show_adopted(&self, adopted: &[Adopted]) {
        let machines = self.0.machines.borrow();
        for &(object, tag, ref element) in adopted {
            let submitted = Observation::Submitted {
                object,
                tag,
                element,
            };
            self.observe(&machines, &submitted);
        }
        self.0.adopted.update(|count| count + adopted.len() as u64);
    }
}
