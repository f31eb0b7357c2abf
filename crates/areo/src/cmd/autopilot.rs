//! `areo autopilot`: an instance of the autopilot, and its journal.

mod instance;
mod metrics;
mod observe;
mod show;

use crate::args::{Autopilot, AutopilotVerb};
use crate::exit::{Code, Failure, Outcome};
use crate::session::{self, Session, creation_failure, failure};
use areo_client::journal::{JournalError, JournalObjects, RequestError};

pub(super) fn run(session: &Session, args: &Autopilot) -> Outcome {
    match &args.verb {
        None => instance::run(session, args),
        Some(verb) => session::run(perform(session, verb), ""),
    }
}

async fn perform(session: &Session, verb: &AutopilotVerb) -> Outcome {
    let client = session.connect().await?;
    let store = JournalObjects::find(&client).await?;
    match (verb, store) {
        (AutopilotVerb::Status, store) => show::status(session.out, store).await?,
        (AutopilotVerb::Ls, store) => show::open(session.out, store).await?,
        (AutopilotVerb::Journal, store) => show::journal(session.out, store).await?,
        (AutopilotVerb::Explain { subject }, store) => {
            show::explain(session.out, &client, store, subject).await?;
        }
        (_, None) => return Err(never_ran()),
        (AutopilotVerb::Pause { off }, Some(store)) => {
            store.pause(!off).await?;
            show::paused(session.out, !off)?;
        }
        (AutopilotVerb::Approve { number }, Some(mut store)) => {
            show::intents(session.out, &[store.approve(*number).await?])?;
        }
        (AutopilotVerb::Decline { number }, Some(mut store)) => {
            show::intents(session.out, &[store.decline(*number).await?])?;
        }
        (AutopilotVerb::Retry { number }, Some(mut store)) => {
            show::intents(session.out, &[store.retry(*number).await?])?;
        }
    }
    client.close().await;
    Ok(())
}

fn never_ran() -> Failure {
    let sentence = "no autopilot has run in this cluster: `areo autopilot` runs one";
    Failure::new(Code::NotFound, sentence)
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Failure {
        match error {
            JournalError::Operation { error } => failure(error),
            JournalError::Creation { error } => creation_failure(error),
            error @ JournalError::Unreadable { .. } => Failure::other(error.to_string()),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        let code = match error {
            RequestError::NoIntent { .. } => Code::NotFound,
            RequestError::Refused { .. } => Code::Precondition,
            RequestError::Journal { error } => return error.into(),
        };
        Failure::new(code, error.to_string())
    }
}
