//! `[X-10 durable-replies]`: what a server says of its own accord, too, is on its disk.

use super::{Context, Invariant, Observation};
use areo_core::message::{Note, ServerRecord};

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "told_is_durable"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::Told { server, note } = *observation else {
            return None;
        };
        let Note::Serving(record) = note else {
            return Some(format!(
                "server {server} says what only clients say: {note:?}"
            ));
        };
        let ServerRecord {
            id, incarnation, ..
        } = record;
        (!context.truths[server].knows(record)).then(|| {
            format!("server {server} says that {id} serves since start {incarnation}, which is not on its disk")
        })
    }
}
