//! Changes that are left off, as if whoever makes them died.

use super::{Change, Chosen, LeaveOff, ReconfigError, Reconfigured, Work};
use crate::domain::Domain;
use areo_core::manager::reconfiguration;

impl Domain {
    /// As [`Domain::reconfigure`], but left off after this step, as if whoever makes the change died there. Returns how it
    /// ended; `None` if it is pending. For experiments and tests: reads and writes go on, and [`Domain::resume`] finishes it.
    ///
    /// # Errors
    /// [`ReconfigError`].
    pub async fn leave_off(
        &self,
        change: &Change,
        after: LeaveOff,
    ) -> Result<Option<Reconfigured>, ReconfigError> {
        let change = change.clone();
        self.work(move |work| async move { work.leave_off(&change, after).await })
            .await
    }
}

impl Work {
    async fn leave_off(
        &self,
        change: &Change,
        after: LeaveOff,
    ) -> Result<Option<Reconfigured>, ReconfigError> {
        let Chosen { path, new, .. } = self.choose(change).await?;
        let wanted = new.descriptor();
        let done = reconfiguration::leave_off(&self.session.client, &path[0], wanted, after).await;
        match done.map_err(|error| self.failed(error))? {
            Some(done) => Ok(Some(self.told(&done).await)),
            None => Ok(None),
        }
    }
}
