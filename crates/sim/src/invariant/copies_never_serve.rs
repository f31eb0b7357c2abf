//! `[X-12]`, decision record 0002: a start from a copy of a server's older state is never confirmed.

use super::{Context, Invariant, Observation};

#[derive(Default)]
pub(super) struct Rule;

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "copies_never_serve"
    }

    fn observe(&mut self, observation: &Observation<'_>, _: &Context<'_>) -> Option<String> {
        match *observation {
            Observation::Confirmed {
                server,
                is_copy: true,
            } => Some(format!(
                "server {server} is confirmed with an older copy of its disk"
            )),
            _ => None,
        }
    }
}
