//! Changes that are left off, as if whoever makes them died.

use super::{Change, Chosen, LeaveOff, ReconfigError, Reconfigured, choose, failed, told};
use crate::domain::Domain;
use crate::error::Operation;
use crate::session::Context;
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
        let leave_off = move |context| async move { leave_off(&context, &change, after).await };
        self.work(Operation::Reconfigure, None, leave_off).await
    }
}

async fn leave_off(
    context: &Context,
    change: &Change,
    after: LeaveOff,
) -> Result<Option<Reconfigured>, ReconfigError> {
    let Chosen { path, new, .. } = choose(context, change).await?;
    let wanted = new.descriptor();
    let done = reconfiguration::leave_off(&context.client, &path[0], wanted, after).await;
    match done.map_err(|error| failed(context, error))? {
        Some(done) => Ok(Some(told(context, &done).await)),
        None => Ok(None),
    }
}
