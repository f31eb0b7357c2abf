//! `[X-10 durable-replies]`: no answer, to a query either, reveals what is not durable at its server: a version, its floor or fence, a mark by
//! which reads are judged (`[CAS-1 durable-marks]`), a promise, an accepted or decided value, or what comes after a configuration.

use super::{Context, Invariant, Observation};
use crate::truth::domain_of;
use areo_core::dap;

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "nothing_unsynced_is_shown"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let is_rotten = |server: usize| context.truths[server].is_rotten();
        let (server, shown) = match *observation {
            Observation::Shown { .. } => return shown(observation, context),
            Observation::Ranked {
                server,
                object,
                ranked,
            } => {
                let subject = (object, context.objects);
                let is_durable = context.truths[server].backs_register(subject, ranked);
                let shown = || format!("{ranked:?} of {}", context.objects.describe(object));
                (server, (!is_durable).then(shown))
            }
            Observation::Fetched {
                server,
                object,
                tag,
            } => {
                let is_durable = context.truths[server].holds(object, tag);
                let shown = || format!("{tag} of {}", context.objects.describe(object));
                (server, (!is_durable).then(shown))
            }
            Observation::AcceptanceShown {
                server,
                key,
                cell,
                ballot,
            } => {
                let is_durable = context.truths[server].backs_cell((&key, cell), Some(ballot));
                let shown = || format!("that {cell:?} has a value at {ballot:?}");
                (server, (!is_durable).then(shown))
            }
            Observation::CellShown {
                server, key, cell, ..
            } => {
                let is_durable = context.truths[server].backs_cell((&key, cell), None);
                (
                    server,
                    (!is_durable).then(|| format!("that {cell:?} is decided")),
                )
            }
            Observation::SuccessorsShown {
                server,
                at,
                successors,
            } => {
                let is_durable = context.truths[server].backs_successors(at, successors);
                let shown = || format!("{successors:?} after configuration {}", at.index);
                (server, (!is_durable).then(shown))
            }
            Observation::FinalShown { server, c } => {
                let last = context.truths[server].final_index(domain_of(&c.id()));
                let index = c.id().index;
                let shown = || format!("that configuration {index} is final");
                (server, (index > last).then(shown))
            }
            _ => return None,
        };
        let shown = shown.filter(|_| !is_rotten(server))?;
        Some(format!(
            "server {server} shows {shown}, which is not on its disk"
        ))
    }
}

/// Judges the answer to a query.
fn shown(observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
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
    if !truth.is_rotten() && !truth.backs_marks(object, held) {
        let object = context.objects.describe(object);
        return Some(format!(
            "server {server} shows {held:?} of {object}, and not all of its marks are on its disk"
        ));
    }
    let tags = held.stored.iter().map(|(tag, _)| *tag);
    let missing = tags.into_iter().find(|tag| !truth.holds(object, *tag))?;
    let object = context.objects.describe(object);
    Some(format!(
        "server {server} shows {missing} of {object}, which is not on its disk"
    ))
}
