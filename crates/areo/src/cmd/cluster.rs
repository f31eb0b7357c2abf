//! `areo cluster finalize`: the end of an upgrade.

use crate::args::Cluster;
use crate::exit::{Code, Failure, Outcome};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::{FinalizeError, LevelChange};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct FinalizeReport {
    outcome: &'static str,
    level: u32,
}

pub(super) fn run(session: &Session, command: Cluster) -> Outcome {
    match command {
        Cluster::Finalize => session::run(finalize(session), ""),
    }
}

async fn finalize(session: &Session) -> Outcome {
    let (out, client) = (session.out, session.connect().await?);
    let finalized = progress::late(out, &client, client.finalize()).await;
    let LevelChange { level, before } = finalized.map_err(|error| match error {
        FinalizeError::Behind { .. } => Failure::new(Code::Precondition, error.to_string()),
        FinalizeError::Other { error } => failure(error),
    })?;
    let (outcome, sentence) = if level > before {
        let sentence = "no program that does not know it starts a server any more";
        ("finalized", format!("level {level} is final: {sentence}"))
    } else {
        let sentence = "no server knows a higher one: there is nothing to do";
        (
            "unchanged",
            format!("level {level} is final already, and {sentence}"),
        )
    };
    if out.json {
        out.object(&FinalizeReport { outcome, level })?;
    } else if !out.quiet {
        out.line(&sentence)?;
    }
    client.close().await;
    Ok(())
}
