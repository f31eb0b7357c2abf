//! Changes posted in the domains that this server leads (`docs/spec` 6.5, `[R-31 designated-leader]`).

use super::Server;
use crate::consensus::mailbox::PostedChanges;

impl Server {
    /// The changes that were posted in configurations that it leads, but for those of which it knows that a later one is final.
    pub fn posted(&self) -> Vec<PostedChanges> {
        let posted = self.states.values().filter_map(|state| {
            let configuration = state.configuration()?;
            let leads = configuration.leader() == Some(self.identity.id);
            if !leads || state.next().last_final().is_some() {
                return None;
            }
            let changes = state.posted();
            (!changes.is_empty()).then(|| PostedChanges {
                configuration: configuration.clone(),
                changes,
            })
        });
        posted.collect()
    }

    /// True if changes came to such a configuration since the last call.
    pub(crate) fn take_posted(&mut self) -> bool {
        std::mem::take(&mut self.was_posted)
    }
}
