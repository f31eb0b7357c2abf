//! `areo rm`: deletes an object.

use crate::exit::Outcome;
use crate::session::{self, Session, failure};
use serde::Serialize;

/// What is printed with `--json`.
#[derive(Serialize)]
struct Deleted<'a> {
    domain: &'a str,
    key: &'a str,
    version: String,
}

pub(super) fn run(session: &Session, key: &str) -> Outcome {
    let interrupted = format!("interrupted: the delete of '{key}' may have been applied");
    session::run(rm(session, key), &interrupted)
}

async fn rm(session: &Session, key: &str) -> Outcome {
    let (client, domain) = session.domain().await?;
    let version = domain.delete(key).await.map_err(failure)?;
    let out = session.out;
    let deleted = Deleted {
        domain: domain.name(),
        key,
        version: version.to_string(),
    };
    match (out.json, out.terminal) {
        (true, _) => out.object(&deleted)?,
        (false, true) if out.quiet => {}
        (false, true) => out.line(&format!("'{}' is deleted", out.foreign(key)))?,
        (false, false) => out.line(&deleted.version)?,
    }
    client.close().await;
    Ok(())
}
