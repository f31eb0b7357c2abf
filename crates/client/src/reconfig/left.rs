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
    match done {
        Ok(Some(done)) => return Ok(reported(context, &done).await),
        Ok(None) => {}
        Err(error) => return Err(failed(context, error).await),
    }
    let names = context.names_of(std::slice::from_ref(new)).await;
    Ok(ReconfigOutcome::LeftOff(names.configuration(new)))
}
