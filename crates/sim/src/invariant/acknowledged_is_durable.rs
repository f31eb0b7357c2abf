//! `[C-3 durable-first]`, `[X-10 durable-replies]`: what a server acknowledged is on its disk, is found again there after
//! every crash, and is not forgotten by its answers. A newer version may stand for an older one; a version of which it was
//! decided that it is dropped may be gone (`[X-3 unconfirmed-cap]`).

use super::{Context, Invariant, Marks, Observation};

#[derive(Default)]
pub(super) struct Rule {
    acknowledged: Marks,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "acknowledged_is_durable"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        match *observation {
            Observation::Acknowledged {
                server,
                object,
                tag,
            } => {
                self.acknowledged.raise(server, object, tag);
                let truth = &context.truths[server];
                let newest = truth.newest(object);
                (newest < tag && !context.is_dropped(server, object, tag)).then(|| {
                    let object = context.objects.describe(object);
                    format!("server {server} acknowledged {tag} of {object}, its disk has {newest}")
                })
            }
            Observation::Shown {
                server,
                object,
                held,
            } => {
                let shown = held
                    .stored
                    .last()
                    .map_or_else(Default::default, |(tag, _)| *tag);
                let acknowledged = self.acknowledged.at(server, object);
                let is_gone =
                    shown < acknowledged && !context.is_dropped(server, object, acknowledged);
                is_gone.then(|| {
                    let object = context.objects.describe(object);
                    format!("server {server} shows {shown} of {object}, and has acknowledged {acknowledged}")
                })
            }
            Observation::Recovered { server, missing } => {
                let truth = &context.truths[server];
                if let Some(object) = truth.returned().filter(|_| truth.is_sound()) {
                    let object = context.objects.describe(object);
                    return Some(format!(
                        "server {server} found {object} again, whose tombstone it had dropped"
                    ));
                }
                let excused = context.truths[server].is_rotten() || missing.is_empty();
                (!excused).then(|| format!("server {server} did not find again: {missing:?}"))
            }
            _ => None,
        }
    }
}
