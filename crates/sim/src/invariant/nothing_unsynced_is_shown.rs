//! `[X-10 durable-replies]`: no answer, to a query either, reveals a version that is not durable at its server; nor a mark
//! by which reads are judged (`[CAS-1 durable-marks]`).

use super::{Context, Invariant, Observation};
use areo_core::dap;

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "nothing_unsynced_is_shown"
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
        let truth = &context.truths[server];
        let mark = held.stable;
        let finalizes = context
            .shape(object)
            .is_some_and(|c| dap::has_durable_marks(c));
        if finalizes && truth.mark(object) < mark {
            let (object, known) = (context.objects.describe(object), truth.mark(object));
            return Some(format!(
                "server {server} shows that {mark} of {object} is finalized, its disk says {known}"
            ));
        }
        let tags = held.stored.iter().map(|(tag, _)| *tag);
        let missing = tags.into_iter().find(|tag| !truth.holds(object, *tag))?;
        let object = context.objects.describe(object);
        Some(format!(
            "server {server} shows {missing} of {object}, which is not on its disk"
        ))
    }
}
