//! Making a change: what the core does with it, and what is checked where it meets those of others.

use super::conflict::Contradiction;
use super::failed::{conflict, failed};
use super::left::leave_off;
use super::{Progress, ReconfigError, ReconfigOutcome, UnreachableServer, choose, unreachable};
use crate::choice::{self, Change, InvalidChoice};
use crate::session::Context;
use areo_core::config::ServerId;
use areo_core::message::ServerRecord;
use areo_core::reconfig::{self, change as merging};
use std::cell::RefCell;

pub(super) async fn reconfigure(
    context: &Context,
    change: &Change,
    progress: &dyn Fn(Progress),
) -> Result<ReconfigOutcome, ReconfigError> {
    let chosen = choose(context, change).await?;
    check(context, change, &chosen.unreachable)?;
    let (path, new) = (chosen.path, chosen.new);
    if let Some(after) = change.experimental.leave_off {
        return leave_off(context, &path[0], &new, after).await;
    }
    let base = path.last().expect("a sequence has an end");
    let (domain, wanted) = (base.id().domain, new.id().domain);
    assert_eq!(domain, wanted, "a change stays in its domain");
    let invalid = |error| InvalidChoice::InvalidShape { error };
    let made = merging::Change::new(base, new.descriptor()).map_err(invalid)?;
    let made = match change.servers.is_empty() {
        true => made,
        false => made.naming_all(),
    };
    let refused = RefCell::new(None);
    let approves = async |joined: &merging::Change| {
        let approved = approve(context, change, joined).await;
        approved
            .map_err(|error| refused.replace(Some((joined.base().clone(), error))))
            .is_ok()
    };
    let domain = context.client.domain(&path[0]);
    let done = domain.reconfigure(context.root(), &made, &approves, progress);
    match (done.await, refused.take()) {
        (Ok(done), _) => Ok(reported(context, &done).await),
        (
            Err(reconfig::ReconfigError::Unwanted(_)),
            Some((last, ReconfigError::Choice { error })),
        ) => {
            let names = context.names_of(std::slice::from_ref(&last)).await;
            let error = Box::new(error);
            let about = Contradiction::Both { error };
            Err(conflict(context, names.configuration(&last), about))
        }
        (Err(reconfig::ReconfigError::Unwanted(_)), Some((_, error))) => Err(error),
        (Err(error), _) => Err(failed(context, error).await),
    }
}

/// Checks the join of the change with those of others as the change itself was checked.
async fn approve(
    context: &Context,
    change: &Change,
    joined: &merging::Change,
) -> Result<(), ReconfigError> {
    let names = context.servers().await?;
    let (last, new) = (joined.base(), joined.made());
    // What was allowed once need not be allowed again to be kept.
    let kept = (new.dap(), new.n()) == (last.dap(), last.n());
    choice::checked(new.descriptor().clone(), change.allow_f0 || kept)?;
    let record = |server: &ServerId| names.records().get(server);
    let known: Vec<&ServerRecord> = new.members().iter().filter_map(record).collect();
    choice::distinct(&known)?;
    let unreachable = unreachable(context, new, &names).await;
    check(context, change, &unreachable)
}

async fn reported(context: &Context, done: &reconfig::ReconfigOutcome) -> ReconfigOutcome {
    let (reconfig::ReconfigOutcome::Installed(c)
    | reconfig::ReconfigOutcome::Unchanged(c)
    | reconfig::ReconfigOutcome::Superseded(c)) = done;
    let names = context.names_of(std::slice::from_ref(c)).await;
    let info = names.configuration(c);
    match done {
        reconfig::ReconfigOutcome::Installed(_) => ReconfigOutcome::Installed(info),
        reconfig::ReconfigOutcome::Unchanged(_) => ReconfigOutcome::Unchanged(info),
        reconfig::ReconfigOutcome::Superseded(_) => ReconfigOutcome::Superseded(info),
    }
}

/// Refuses a change to servers that do not serve.
pub(super) fn check(
    context: &Context,
    change: &Change,
    servers: &[UnreachableServer],
) -> Result<(), ReconfigError> {
    match change.force || servers.is_empty() {
        true => Ok(()),
        false => Err(ReconfigError::Unreachable {
            domain: context.domain.name().into(),
            servers: servers.to_vec(),
        }),
    }
}
