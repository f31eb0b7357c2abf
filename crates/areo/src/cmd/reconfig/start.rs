//! `areo reconfig start`: does it, live.

use super::moved::{TransferReport, follow};
use super::{plan, reconfig_failure};
use crate::args;
use crate::cmd::domain;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Output, visible};
use crate::progress;
use crate::session::{Session, failure};
use areo_client::units::{show_count, show_size};
use areo_client::{
    Client, ConfigurationInfo, Domain, LostObject, ReconfigError, ReconfigOutcome, Statistics,
};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct ReconfigReport<'a> {
    domain: &'a str,
    outcome: &'static str,
    /// The configuration that is final now; nothing if nothing was pending.
    configuration: Option<&'a ConfigurationInfo>,
    /// Objects that this process moved, without those that another process moved before.
    objects: u64,
    bytes: u64,
    #[serde(flatten)]
    cost: &'a Statistics,
}

pub(super) async fn run(session: &Session, args: &args::Start) -> Outcome {
    let name = &args.change.name;
    let client = session.connect().await?;
    let domain = session.find(&client, name).await?;
    if args.resume {
        resume(session.out, name, (&client, &domain), args).await?;
    } else {
        start(session.out, name, (&client, &domain), args).await?;
    }
    client.close().await;
    Ok(())
}

async fn resume(
    out: Output,
    name: &str,
    (client, domain): (&Client, &Domain),
    args: &args::Start,
) -> Outcome {
    let (domain, moved) = TransferReport::measured(domain);
    let bar = progress::spinner(out, "resuming");
    let resume = async || {
        let resume = domain.resume(follow(&bar, &moved));
        progress::naming(&bar, client, resume).await
    };
    let mut resumed = resume().await;
    let mut left = Vec::new();
    while let Err(error) = &resumed
        && leave(out, &domain, (error, &mut left), args).await?
    {
        resumed = resume().await;
    }
    bar.finish_and_clear();
    let resumed = resumed.map_err(|error| reconfig_failure(name, error))?;
    let (outcome, sentence) = match &resumed {
        Some(c) => ("resumed", format!("'{name}' is {} now", called(c))),
        None => (
            "nothing-pending",
            format!("nothing is pending in '{name}': there is nothing to resume"),
        ),
    };
    report(out, name, outcome, resumed.as_ref(), &moved)?;
    say(out, &sentence)
}

async fn start(
    out: Output,
    name: &str,
    (client, domain): (&Client, &Domain),
    args: &args::Start,
) -> Outcome {
    let change = args.change.change();
    let failed = |error| reconfig_failure(name, error);
    let planned = progress::late(out, client, domain.plan(&change)).await;
    let planned = planned.map_err(failed)?;
    let (domain, moved) = TransferReport::measured(domain);
    if planned.unchanged && planned.pending.is_empty() {
        report(out, name, "unchanged", Some(&planned.old), &moved)?;
        return say(
            out,
            &format!("'{name}' has this configuration already: nothing was done"),
        );
    }
    if out.terminal && !args.yes {
        plan::print(out, name, &planned)?;
        if !out.confirmed(&format!("\nchange '{name}'?"))? {
            return Err(Failure::new(Code::Interrupted, "nothing was done"));
        }
    }
    let bar = progress::count(out, "starting", planned.objects.max(1));
    let reconfigure = async || {
        let reconfigure = domain.reconfigure(&change, follow(&bar, &moved));
        progress::naming(&bar, client, reconfigure).await
    };
    let mut ended = reconfigure().await;
    let mut left = Vec::new();
    while let Err(error) = &ended
        && leave(out, &domain, (error, &mut left), args).await?
    {
        let resume = domain.resume(follow(&bar, &moved));
        ended = match progress::naming(&bar, client, resume).await {
            Ok(Some(c)) => Ok(ReconfigOutcome::Installed(c)),
            Ok(None) => reconfigure().await,
            Err(error) => Err(error),
        };
    }
    bar.finish_and_clear();
    conclude(out, name, &ended.map_err(failed)?, &moved)
}

/// Leaves the objects unreadable that keep the change from its end, if that is wanted. False: there are none that were not left before, or
/// it is not.
async fn leave(
    out: Output,
    domain: &Domain,
    (error, left): (&ReconfigError, &mut Vec<LostObject>),
    args: &args::Start,
) -> Outcome<bool> {
    let lost = error.lost_objects().iter();
    let lost: Vec<&LostObject> = lost.filter(|object| !left.contains(object)).collect();
    if !args.leave_unreadable || lost.is_empty() {
        return Ok(false);
    }
    left.extend(lost.iter().map(|object| (*object).clone()));
    for object in lost {
        let (key, about) = (visible(&object.key), visible(&object.to_string()));
        match domain.leave_unreadable(object).await.map_err(failure)? {
            true => out.note(&format!("'{key}' is left unreadable: {about}")),
            false => out.note(&format!(
                "'{key}' has another version, or is readable again"
            )),
        }
    }
    Ok(true)
}

fn conclude(out: Output, name: &str, ended: &ReconfigOutcome, moved: &TransferReport) -> Outcome {
    let (outcome, c) = match ended {
        ReconfigOutcome::Installed(c) => ("installed", c),
        ReconfigOutcome::Unchanged(c) => ("unchanged", c),
        ReconfigOutcome::Superseded(c) => ("superseded", c),
        ReconfigOutcome::LeftOff(c) => ("left-off", c),
    };
    report(out, name, outcome, Some(c), moved)?;
    match ended {
        ReconfigOutcome::Installed(_) => {
            let (objects, bytes) = moved.sums();
            let size = show_size(bytes);
            say(
                out,
                &format!(
                    "'{name}' is {} now; {} moved, {size}",
                    called(c),
                    show_count(objects, "object")
                ),
            )
        }
        ReconfigOutcome::Unchanged(_) => say(
            out,
            &format!("'{name}' has this configuration already, {}", called(c)),
        ),
        ReconfigOutcome::LeftOff(_) => say(
            out,
            &format!(
                "the change of '{name}' to {} is left pending: `areo reconfig start {name} --resume` finishes it",
                called(c)
            ),
        ),
        ReconfigOutcome::Superseded(_) => say(
            out,
            &format!(
                "the change of '{name}' was made, and others went on from it, to {}",
                called(c)
            ),
        ),
    }
}

/// `configuration 3, ec [5,3] on s1,s2,s3,s4,s5`.
fn called(c: &ConfigurationInfo) -> String {
    format!(
        "configuration {}, {} on {}",
        c.index,
        c.shape,
        domain::names(c)
    )
}

fn report(
    out: Output,
    name: &str,
    outcome: &'static str,
    c: Option<&ConfigurationInfo>,
    moved: &TransferReport,
) -> Outcome {
    if !out.json {
        return Ok(());
    }
    let (objects, bytes) = moved.sums();
    out.object(&ReconfigReport {
        domain: name,
        outcome,
        configuration: c,
        objects,
        bytes,
        cost: &moved.cost,
    })
}

/// The result as a sentence, where it was not printed as an object.
fn say(out: Output, sentence: &str) -> Outcome {
    if out.json || out.quiet {
        Ok(())
    } else {
        out.line(sentence)
    }
}
