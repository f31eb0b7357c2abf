//! Changes that an experiment leaves off, as if the process that makes them died.

use super::failed::failed;
use super::{ReconfigError, ReconfigOutcome};
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
    let done = match done {
        Ok(done) => done,
        Err(error) => return Err(failed(context, error).await),
    };
    let c = done.as_ref().unwrap_or(new);
    let names = context.names_of(std::slice::from_ref(c)).await;
    let info = names.configuration(c);
    Ok(match done {
        Some(_) => ReconfigOutcome::Installed(info),
        None => ReconfigOutcome::LeftOff(info),
    })
}
