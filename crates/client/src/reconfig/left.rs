//! Changes that an experiment leaves off, as if the process that makes them died.

use super::{ReconfigError, Reconfigured, Work};
use crate::experimental::LeaveOff;
use areo_core::config::Configuration;
use areo_core::manager::reconfiguration;
use std::sync::Arc;

impl Work {
    pub(super) async fn leave_off(
        &self,
        known: &Arc<Configuration>,
        new: &Arc<Configuration>,
        after: LeaveOff,
    ) -> Result<Reconfigured, ReconfigError> {
        let (client, wanted) = (&self.session.client, new.descriptor());
        let done = reconfiguration::leave_off(client, known, wanted, after).await;
        if let Some(done) = done.map_err(|error| self.failed(error))? {
            return Ok(self.told(&done).await);
        }
        let names = self.names(std::slice::from_ref(new)).await;
        Ok(Reconfigured::LeftOff(names.configuration(new)))
    }
}
