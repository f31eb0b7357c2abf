//! `[X-10 durable-replies]`: what a server says of its own accord, too, is on its disk.

use super::{Context, Invariant, Observation};
use areo_core::element::Form;
use areo_core::message::{GossipMarks, HeldVersions, Note, ObjectReport, ServerRecord};
use areo_core::object::Name;

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
        let truth = &context.truths[server];
        let record = match note {
            Note::Serving(record) => record,
            Note::Gossip(gossip) => {
                let key = &gossip.configuration;
                let is_durable = |(name, said): &&(Name, GossipMarks)| {
                    let object = context.objects.find(key, name.as_bytes());
                    truth.is_rotten() || object.is_some_and(|it| truth.says(it, said))
                };
                let (name, said) = gossip.objects.iter().find(|it| !is_durable(it))?;
                return Some(format!(
                    "server {server} says {said:?} of {name:?}, which is not on its disk"
                ));
            }
            Note::Restart(note) => {
                let key = &note.configuration;
                let is_durable = |told: &&ObjectReport| {
                    let object = context.objects.find(key, told.name.as_bytes());
                    let stored = told.held.stored.iter();
                    let mut tags = stored.filter(|(_, form)| *form != Form::Trimmed);
                    truth.is_rotten()
                        || told.abstains
                        || told.held == HeldVersions::default()
                        || object.is_some_and(|object| {
                            tags.all(|(tag, _)| truth.holds(object, *tag))
                                && told.held.stable <= truth.mark(object)
                        })
                };
                let told = note.objects.iter().find(|it| !is_durable(it))?;
                return Some(format!(
                    "server {server} tells {told:?}, which is not on its disk"
                ));
            }
            _ => {
                return Some(format!(
                    "server {server} says what only clients say: {note:?}"
                ));
            }
        };
        let ServerRecord {
            id, incarnation, ..
        } = record;
        (!truth.knows(record)).then(|| {
            format!("server {server} says that {id} serves since start {incarnation}, which is not on its disk")
        })
    }
}
