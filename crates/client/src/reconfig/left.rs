//! Changes that an experiment leaves off, as if the process that makes them died.

use super::{ReconfigError, ReconfigOutcome, failed, reported};
use crate::experimental::LeaveOff;
use crate::session::Context;
use areo_core::config::Configuration;
use std::sync::Arc;

pub(super) async fn leave_off(
    context: &Context,
    known: &Arc<Configuration>,
    new: &Arc<Configuration>,
    after: LeaveOff,
) -> Result<ReconfigOutcome, ReconfigError> {
    let (client, wanted) = (&context.client, new.descriptor());
    let done = client.domain(known).leave_off(wanted, after).await;
    if let Some(done) = done.map_err(|error| failed(context, error))? {
        return Ok(reported(context, &done).await);
    }
    let names = context.names_of(std::slice::from_ref(new)).await;
    Ok(ReconfigOutcome::LeftOff(names.configuration(new)))
}
