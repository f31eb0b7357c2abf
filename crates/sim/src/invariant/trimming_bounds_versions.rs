//! `[X-3 unconfirmed-cap]`, section 2.8: below the confirmed tag a server holds no version that is not among the `delta + 1`
//! largest; replication holds one version. Where a round finalizes versions, it shows no more of those that are
//! (`[CAS-6 finalized-trimming]`), or are known to be complete (`[CASSS-3 bounded-versions]`).

use super::{Context, Invariant, Observation};
use areo_core::config::Dap;
use areo_core::dap;
use areo_core::element::Form;

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "trimming_bounds_versions"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::Shown {
            server,
            object,
            held,
        } = *observation
        else {
            return None;
        };
        let c = context.shape(object)?;
        let kept = usize::from(c.descriptor().delta) + 1;
        let stored = &held.stored;
        // What is no register in a conditional domain is kept as with erasure coding.
        let is_trimmed = c.dap().is_coded() || c.dap().is_conditional();
        // A version that was lost is listed without an element ([X-40 named-loss]).
        let is_held = |form: Form| form != Form::Trimmed;
        let too_many = if dap::has_durable_marks(c) {
            let upto = match c.dap() {
                Dap::CasSs { .. } => held.complete,
                _ => held.stable,
            };
            let finalized = stored.iter();
            let finalized = finalized.filter(|(tag, form)| *tag <= upto && is_held(*form));
            finalized.count() > kept
        } else if is_trimmed {
            let mut older = stored.iter().rev().skip(kept);
            older.any(|(tag, _)| *tag < held.stable)
        } else {
            stored.iter().filter(|(_, form)| is_held(*form)).count() > 1
        };
        too_many.then(|| {
            let object = context.objects.describe(object);
            let stable = held.stable;
            format!("server {server} holds too many versions of {object}, confirmed is {stable}: {stored:?}")
        })
    }
}
