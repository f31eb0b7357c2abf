//! The invariants' view of a node at work.

use super::{Caller, Subject};
use crate::invariant::Observation;
use crate::truth::{ObjectId, Truth};
use crate::world::{Watch as Invariants, World};
use areo_core::config::Configuration;
use areo_core::element::Element;
use areo_core::env::Conclusion;
use areo_core::message::{Access, Body, Request};
use areo_core::server::record::{Header, Step};
use areo_core::tag::Tag;
use areo_node::Watch;
use std::sync::Arc;

/// An element that a server took from an earlier configuration (`[X-17 adopted-elements]`).
pub(super) type AdoptedElement = (ObjectId, Tag, Element);

/// Records the steps of a node while the world is borrowed.
pub(super) struct Observer<'a> {
    pub(super) truth: &'a mut Truth,
    pub(super) watch: &'a mut Invariants,
    pub(super) adopted: Vec<AdoptedElement>,
}

impl Watch<Caller> for Observer<'_> {
    fn adopted(&mut self, caller: &Caller, request: &Request, _count: usize) {
        let (Subject::Objects(about), Request::Configured { body, .. }) =
            (&caller.subject, request)
        else {
            return;
        };
        let Body::Access(accesses) = body else { return };
        for (about, (_, access)) in about.iter().zip(accesses) {
            if let (true, Access::Put { tag, element, .. }) = (about.adopts, access) {
                self.adopted.push((about.object, *tag, element.clone()));
            }
        }
    }

    fn closed(&mut self, steps: &[Step]) {
        self.truth.close(steps, &mut self.watch.objects);
        let described = steps.iter().filter_map(configuration_of);
        let described = described.map(|c| (c.id(), c.clone()));
        self.watch.shapes.extend(described);
    }
}

/// The configuration that a server gets to know.
fn configuration_of(step: &Step) -> Option<&Arc<Configuration>> {
    match step {
        Step::Append { header, .. } => match &**header {
            Header::Configuration(c) => Some(c),
            _ => None,
        },
        Step::Free(_) | Step::Bury { .. } => None,
    }
}

impl World {
    /// Shows the invariants a conclusion of a client.
    pub(crate) fn show_conclusion(&self, at: &Configuration, conclusion: Conclusion<'_>) {
        let machines = self.0.machines.borrow();
        self.observe(&machines, &Observation::Concluded { at, conclusion });
    }

    /// Shows the invariants elements that were made without a client.
    pub(super) fn show_adopted(&self, adopted: &[AdoptedElement]) {
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
