//! `areo server forget`: takes a server that is in no domain off the list.

use crate::exit::{Code, Failure, Outcome};
use crate::progress;
use crate::session::{self, Session, choice_failure, failure};
use areo_client::{ForgetError, ServerInfo};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct ForgetReport<'a> {
    outcome: &'static str,
    #[serde(flatten)]
    server: &'a ServerInfo,
}

pub(super) fn run(session: &Session, server: &str) -> Outcome {
    session::run(forget(session, server), "")
}

async fn forget(session: &Session, server: &str) -> Outcome {
    let client = session.connect().await?;
    let out = session.out;
    let forgotten = progress::late(out, &client, client.forget_server(server)).await;
    let forgotten = forgotten.map_err(forget_failure)?;
    if out.json {
        out.object(&ForgetReport {
            outcome: "forgotten",
            server: &forgotten,
        })?;
    } else if !out.quiet {
        let name = &forgotten.name;
        out.line(&format!(
            "'{name}' is forgotten: its data directory is of no use any more"
        ))?;
    }
    client.close().await;
    Ok(())
}

fn forget_failure(error: ForgetError) -> Failure {
    match error {
        ForgetError::Choice { error } => choice_failure(&error),
        ForgetError::Named { .. } | ForgetError::Serves { .. } => {
            Failure::new(Code::Precondition, error.to_string())
        }
        ForgetError::Other { error } => failure(error),
        error => Failure::new(Code::Other, error.to_string()),
    }
}
