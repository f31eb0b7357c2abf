//! `areo autopilot`: an instance of the autopilot, and its journal.

mod instance;
mod observe;
mod show;
mod store;

use crate::args::{Autopilot, AutopilotVerb};
use crate::exit::{Code, Failure, Outcome};
use crate::session::{self, Session};
use areo_steward::instance::JournalStore;
use areo_steward::intent::Intent;
use std::time::{SystemTime, UNIX_EPOCH};
use store::Store;

pub(super) fn run(session: &Session, args: &Autopilot) -> Outcome {
    match &args.verb {
        None => instance::run(session, args),
        Some(verb) => session::run(perform(session, verb), ""),
    }
}

async fn perform(session: &Session, verb: &AutopilotVerb) -> Outcome {
    let client = session.connect().await?;
    let store = Store::find(&client).await?;
    match (verb, store) {
        (AutopilotVerb::Status, store) => show::status(session.out, store).await?,
        (AutopilotVerb::Journal, store) => show::journal(session.out, store).await?,
        (AutopilotVerb::Explain { subject }, store) => {
            show::explain(session.out, &client, store, subject).await?;
        }
        (_, None) => return Err(never_ran()),
        (AutopilotVerb::Pause { off }, Some(store)) => {
            store.pause(!off).await?;
            show::paused(session.out, !off)?;
        }
        (AutopilotVerb::Approve { number }, Some(store)) => {
            change(session, store, *number, approve).await?;
        }
        (AutopilotVerb::Retry { number }, Some(store)) => {
            change(session, store, *number, retry).await?;
        }
    }
    client.close().await;
    Ok(())
}

fn never_ran() -> Failure {
    let sentence = "no autopilot has run in this cluster: `areo autopilot` runs one";
    Failure::new(Code::NotFound, sentence)
}

/// The time that intents carry, in milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Changes an intent on the version that was read, again if an instance was faster.
async fn change(
    session: &Session,
    mut store: Store,
    number: u64,
    edit: fn(&mut Intent) -> Result<(), String>,
) -> Outcome {
    loop {
        let journal = store.read().await?;
        let Some(mut intent) = journal.intents.into_iter().find(|it| it.number == number) else {
            let sentence =
                format!("there is no intent {number}: `areo autopilot journal` lists them");
            return Err(Failure::new(Code::NotFound, sentence));
        };
        edit(&mut intent).map_err(|why| Failure::new(Code::Precondition, why))?;
        if store.write(&intent).await? {
            return show::intents(session.out, &[intent]);
        }
    }
}

fn approve(intent: &mut Intent) -> Result<(), String> {
    if intent.change.is_none() {
        let remedy = &intent.remedy;
        return Err(format!(
            "intent {} is advice, which is not carried out: {remedy}",
            intent.number
        ));
    }
    if intent.state.is_final() {
        return Err(format!(
            "intent {} is {} already",
            intent.number,
            intent.state.word()
        ));
    }
    intent.approved = true;
    Ok(())
}

fn retry(intent: &mut Intent) -> Result<(), String> {
    let Some(next) = intent.retried(now_ms()) else {
        return Err(format!(
            "intent {} is {}: only one that failed is tried again",
            intent.number,
            intent.state.word()
        ));
    };
    intent
        .advance(next, now_ms())
        .map_err(|error| error.to_string())
}
