//! Observers of a node's work.

use areo_core::message::Request;
use areo_core::server::record::Step;
use areo_core::tag::Tag;

use crate::job::Job;

/// An observer of a node: the metrics and traces of a server, the invariants of a simulator.
pub trait Watch<C> {
    /// Puts took the place of `count` adoptions of the request, and there is room for them
    /// (`[X-17 adopted-elements]`).
    fn adopted(&mut self, _caller: &C, _request: &Request, _count: usize) {}

    /// The request is in the batch.
    fn received(&mut self, _caller: &C) {}

    /// The batch is closed: the store gets these steps now.
    fn closed(&mut self, _steps: &[Step]) {}

    /// The store has the steps, and closed its batch or did not.
    fn applied(&mut self) {}

    /// The element of this version is damaged: the server abstains for its object. Once for each element, however often it is found.
    fn damaged(&mut self, _version: Tag) {}

    /// The disk has no room for users' writes from now on, or has room again.
    fn disk_full(&mut self, _is_full: bool) {}
}

/// A watch that ignores everything.
impl<C> Watch<C> for () {}

/// Shows how many elements a request put that were here already.
pub(crate) fn show_adopted<C>(job: &Job<C>, count: usize, watch: &mut impl Watch<C>) {
    if let Job::Request {
        request, caller, ..
    } = job
        && count > 0
    {
        watch.adopted(caller, request, count);
    }
}
