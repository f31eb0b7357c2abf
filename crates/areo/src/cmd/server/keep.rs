//! `areo server keep`: takes back that a server is to go.

use crate::cmd::reconfig::reconfig_failure;
use crate::exit::{Code, Failure, Outcome};
use crate::progress;
use crate::session::{self, Session};
use areo_client::ServerInfo;
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct KeepReport<'a> {
    outcome: &'static str,
    #[serde(flatten)]
    server: &'a ServerInfo,
}

pub(super) fn run(session: &Session, server: &str) -> Outcome {
    session::run(keep(session, server), "")
}

async fn keep(session: &Session, server: &str) -> Outcome {
    let client = session.connect().await?;
    let mark = client.mark_leaving(server, false);
    let kept = progress::late(session.out, &client, mark).await;
    let kept = kept.map_err(|error| reconfig_failure("@root", error))?;
    let Some(kept) = kept else {
        let reason = format!("'{server}' is in no directory: it has ended for good");
        return Err(Failure::new(Code::NotFound, reason));
    };
    let out = session.out;
    if out.json {
        out.object(&KeepReport {
            outcome: "kept",
            server: &kept,
        })?;
    } else if !out.quiet {
        let name = &kept.name;
        out.line(&format!("'{name}' stays, and may be chosen for domains"))?;
    }
    client.close().await;
    Ok(())
}
