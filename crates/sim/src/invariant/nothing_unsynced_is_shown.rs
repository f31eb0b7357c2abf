//! `[X-10 durable-replies]`: no answer, to a query either, reveals a version that is not durable at its server.

use super::{Context, Invariant, Observation};

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
        let tags = held.stored.iter().map(|(tag, _)| *tag);
        let missing = tags.into_iter().find(|tag| !truth.holds(object, *tag))?;
        let object = context.objects.describe(object);
        Some(format!(
            "server {server} shows {missing} of {object}, which is not on its disk"
        ))
    }
}
