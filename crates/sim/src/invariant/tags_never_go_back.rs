//! I1 of section 1.1: what a server answers about an object never becomes older: neither its newest version, nor the
//! floor below which it may have evicted (`[X-2 get-tag-maximum]`). A newest version of which it was decided that it is
//! dropped may be gone.
//!
//! The confirmed tag is left out: it comes one-way, its loss costs time only, and it is durable when something else is. Where
//! a round finalizes versions it is durable, and never goes back (`[CAS-1 durable-marks]`).

use super::{Context, Invariant, Marks, Observation};
use areo_core::dap;
use areo_core::tag::Tag;

#[derive(Default)]
pub(super) struct Rule {
    newest: Marks,
    floors: Marks,
    finalized: Marks,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "tags_never_go_back"
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
        let newest = held
            .stored
            .last()
            .map_or_else(Default::default, |(tag, _)| *tag);
        let finalizes = context
            .shape(object)
            .is_some_and(|c| dap::has_durable_marks(c));
        let finalized = if finalizes { held.stable } else { Tag::INITIAL };
        for (what, marks, now, may_be_dropped) in [
            ("newest version", &mut self.newest, newest, true),
            ("floor", &mut self.floors, held.floor, false),
            ("mark", &mut self.finalized, finalized, false),
        ] {
            let before = marks.at(server, object);
            let is_dropped = || {
                may_be_dropped && context.is_dropped(server, object, before)
                    || context.is_forgotten(server, object)
            };
            if now < before && !is_dropped() {
                let object = context.objects.describe(object);
                return Some(format!(
                    "the {what} of {object} at server {server} went from {before} back to {now}"
                ));
            }
            marks.raise(server, object, now);
        }
        None
    }
}
