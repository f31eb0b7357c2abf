//! `[X-11 damage-abstains]`: a server whose newest element of an object was found damaged says nothing about that object,
//! least of all an older version, until that or a newer version is stored there again; unless it names the version that it lost
//! (`[X-40 named-loss]`).

use super::{Context, Invariant, Observation};
use areo_core::element::Form;

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "damaged_is_never_counted"
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
        let (sound, damaged) = truth.sound_and_damaged(object);
        let described = || context.objects.describe(object);
        if truth.unreadable {
            return Some(format!(
                "server {server} lost records of unknown objects and speaks for {}",
                described()
            ));
        }
        let names_it = held.stored.last() == Some(&(damaged, Form::Trimmed));
        (sound < damaged && !names_it).then(|| {
            format!(
                "server {server} speaks for {}, of which {damaged} is damaged there",
                described()
            )
        })
    }
}
