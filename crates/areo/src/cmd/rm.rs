//! `areo rm`: deletes an object.

use super::put::Promise;
use super::statistics;
use crate::args;
use crate::exit::Outcome;
use crate::session::{self, Session, failure};
use areo_client::Statistics;
use serde::Serialize;

/// What is printed with `--json`.
#[derive(Serialize)]
struct RemovalReport<'a> {
    domain: &'a str,
    key: &'a str,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<Promise>,
    #[serde(flatten)]
    cost: Option<&'a Statistics>,
}

pub(super) fn run(session: &Session, args: &args::Rm) -> Outcome {
    let key = &args.key;
    let interrupted = format!("interrupted: the delete of '{key}' may have been applied");
    session::run(rm(session, args), &interrupted)
}

async fn rm(session: &Session, args: &args::Rm) -> Outcome {
    let key = &args.key;
    let (client, domain) = session.domain_to_write(args.keep_replaced).await?;
    let (domain, statistics) = domain.measured();
    let (version, promise) = match args.if_version {
        None => (domain.delete(key).await, None),
        Some(version) => {
            let promise = Promise::of(&domain, args.require_one_winner)?;
            let deleted = match promise {
                Promise::OneWinner => domain.compare_and_delete(key, version).await,
                Promise::Coverable => domain.delete_if(key, version).await,
            };
            (deleted, Some(promise))
        }
    };
    let version = version.map_err(failure)?;
    let out = session.out;
    let deleted = RemovalReport {
        domain: domain.name(),
        key,
        version: version.to_string(),
        promise,
        cost: args.stats.stats.then_some(&*statistics),
    };
    if !out.json {
        statistics::print(out, deleted.cost);
    }
    match (out.json, out.terminal) {
        (true, _) => out.object(&deleted)?,
        (false, true) if out.quiet => {}
        (false, true) => {
            let promise = promise.map(|promise| format!(": {}", promise.sentence()));
            let promise = promise.unwrap_or_default();
            out.line(&format!("'{}' is deleted{promise}", out.foreign(key)))?;
        }
        (false, false) => out.line(&deleted.version)?,
    }
    client.close().await;
    Ok(())
}
