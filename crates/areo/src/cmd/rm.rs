//! `areo rm`: deletes objects.

use super::put::stage::{Stage, StageCell, given_up};
use super::put::{Promise, applied};
use super::statistics;
use crate::args;
use crate::exit::{Code, Failure, Outcome};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::{Client, Domain, Statistics};
use serde::Serialize;

/// The output with `--json`.
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
    if args.if_version.is_some() && args.keys.len() > 1 {
        return Err(Failure::usage(
            "--if-version is the version of one object: delete the others by commands of their own",
        ));
    }
    session::run_until(async |interrupt| {
        let (stage, keys) = (StageCell::default(), &args.keys[..]);
        tokio::select! {
            biased;
            outcome = rm(session, args, &stage) => outcome,
            failure = given_up(interrupt, &stage, ("delete", &keys[0])) => Err(match keys {
                [_] => failure,
                _ => Failure::new(Code::Interrupted, "interrupted: some of the objects may be deleted"),
            }),
        }
    })
}

async fn rm(session: &Session, args: &args::Rm, stage: &StageCell) -> Outcome {
    let (client, domain) = session.domain_to_write(args.keep_replaced).await?;
    let mut failures = Vec::new();
    for key in &args.keys {
        match rm_one(session, args, (&client, &domain, stage), key).await {
            Ok(()) => {}
            Err(failure) if args.keys.len() > 1 && failure.code == Code::NotFound => {
                failures.push(failure);
            }
            Err(failure) => {
                failures.push(failure);
                break;
            }
        }
    }
    client.close().await;
    match Failure::together(failures) {
        None => Ok(()),
        Some(failure) => Err(failure),
    }
}

async fn rm_one(
    session: &Session,
    args: &args::Rm,
    (client, domain, stage): (&Client, &Domain, &StageCell),
    key: &str,
) -> Outcome {
    stage.set(Stage::Sent);
    let (domain, statistics) = domain.measured();
    let conditional = args.if_version.is_some();
    let promise = conditional.then(|| Promise::of(&domain, args.require_one_winner));
    let promise = promise.transpose()?;
    let delete = async {
        match (args.if_version, promise) {
            (None, _) => domain.delete(key).await,
            (Some(version), Some(Promise::OneWinner)) => {
                domain.compare_and_delete(key, version).await
            }
            (Some(version), _) => domain.delete_if(key, version).await,
        }
    };
    let version = progress::late(session.out, client, delete).await;
    let version = version.map_err(failure)?;
    stage.set(Stage::Written(version));
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
    let printed = match (out.json, out.terminal) {
        (true, _) => out.object(&deleted),
        (false, true) if out.quiet => Ok(()),
        (false, true) => {
            let promise = promise.map(|promise| format!(": {}", promise.sentence()));
            let promise = promise.unwrap_or_default();
            out.line(&format!("'{}' is deleted{promise}", out.foreign(key)))
        }
        (false, false) => out.line(&deleted.version),
    };
    applied(printed, ("delete", key), version)?;
    Ok(())
}
