//! `[W-1 promise]` to `[W-4 cap]`: of a ranked register a server shows no smaller promise than before, lists nothing above its
//! promise, and holds no more versions than it may.

use super::{Context, Invariant, Observation, PerServer};
use areo_core::limits;
use areo_core::message::Ballot;

#[derive(Default)]
pub(super) struct Rule {
    promised: PerServer<Ballot>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "promises_are_kept"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::Ranked {
            server,
            object,
            ranked,
        } = *observation
        else {
            return None;
        };
        let before = self.promised.at(server, object);
        let described = || context.objects.describe(object);
        let now = ranked.promised;
        if now < *before {
            let before = *before;
            return Some(format!(
                "server {server} promised {before:?} for {}, and shows {now:?}",
                described()
            ));
        }
        *before = now;
        let above = ranked.versions.iter().find(|listed| listed.ballot > now);
        if let Some(above) = above {
            let tag = above.tag;
            return Some(format!(
                "server {server} accepted {tag} of {} above its promise",
                described()
            ));
        }
        // [W-3 chosen]
        let chosen = ranked.chosen;
        let below = ranked
            .versions
            .iter()
            .find(|listed| listed.ballot < chosen.ballot);
        if let Some(below) = below {
            let (tag, ballot) = (below.tag, below.ballot);
            return Some(format!(
                "server {server} knows {chosen:?} of {}, and lists {tag} at {ballot:?}",
                described()
            ));
        }
        let held = ranked.versions.len();
        (held > limits::RANKED_VERSIONS)
            .then(|| format!("server {server} holds {held} versions of {}", described()))
    }
}
