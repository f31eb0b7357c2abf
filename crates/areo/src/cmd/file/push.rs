//! `areo file push`.

use super::{base, chunking, file_failure, keep, open};
use crate::args;
use crate::cmd::put::stage::{Stage, StageCell, given_up, interrupted};
use crate::cmd::statistics;
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, failure};
use areo_client::Statistics;
use areo_client::file::{Conflict, Progress, PushOptions, PushReport};
use areo_client::units::{show_count, show_size};
use serde::Serialize;
use std::cell::Cell;
use std::ops::ControlFlow;

#[derive(Serialize)]
struct Report<'a> {
    domain: &'a str,
    name: &'a str,
    #[serde(flatten)]
    pushed: &'a PushReport,
    #[serde(flatten)]
    cost: Option<&'a Statistics>,
}

pub(super) fn run(session: &Session, args: &args::file::Push) -> Outcome {
    session::run_until(async |interrupt| {
        let (stage, what) = (StageCell::default(), ("push", &*args.name));
        let push = async {
            match push(session, args, &interrupt, &stage).await {
                Err(failure) if failure.code != Code::Interrupted && interrupt.is_asked() => {
                    Err(interrupted(stage.get(), what))
                }
                ended => ended,
            }
        };
        tokio::select! {
            biased;
            outcome = push => outcome,
            failure = given_up(interrupt.clone(), &stage, what) => Err(failure),
        }
    })
}

async fn push(
    session: &Session,
    args: &args::file::Push,
    interrupt: &Interrupt,
    stage: &StageCell,
) -> Outcome {
    let out = session.out;
    let (client, domain, _) = open(session, &args.name).await?;
    let (domain, costs) = domain.measured();
    let file = domain.file(&args.name).map_err(failure)?;
    let (place, known) = base(&domain, &args.name, &args.path);
    let known = known.filter(|_| !args.fresh);
    let options = PushOptions {
        chunking: Some(chunking(&args.cut, known.as_ref())?),
        needs_base: !args.fresh,
    };
    let total = std::fs::metadata(&args.path).map_or(0, |metadata| metadata.len());
    let (reading, sending) = (
        progress::bar(out, "reading", total),
        progress::spinner(out, "comparing"),
    );
    let sent = Cell::new(0);
    let (bar, spinner) = (reading.clone(), sending.clone());
    let (told_of, at) = (interrupt.clone(), stage.clone());
    // Once the command is interrupted, what was sent is taken back, as when the local file changes.
    let told = move |progress| {
        match progress {
            Progress::Scanned { bytes, .. } => bar.inc(bytes),
            Progress::Sending { bytes } => {
                sent.set(sent.get() + bytes);
                spinner.set_message(format!("sending {}", show_size(sent.get())));
            }
            Progress::Linking | Progress::Received { .. } => {}
        }
        if told_of.is_asked() {
            return ControlFlow::Break(());
        }
        match progress {
            Progress::Sending { .. } if at.get() == Stage::Begun => {
                at.set(Stage::Reading);
                tracing::debug!("the first block is read");
            }
            Progress::Linking => {
                at.set(Stage::Sent);
                tracing::debug!("new blocks are there, and links to them are sent");
            }
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let push = file.push(&args.path, known.as_ref(), options, told);
    let pushed = progress::naming(&sending, &client, push).await;
    reading.finish_and_clear();
    sending.finish_and_clear();
    let pushed = pushed.map_err(file_failure)?;
    keep(out, &pushed.base, place.as_deref());
    let cost = args.stats.stats.then_some(&*costs);
    report(out, domain.name(), &args.name, &pushed, cost)?;
    client.close().await;
    match interrupt.is_asked() {
        true => Err(interrupted_late(&args.name, &pushed)),
        false => ending(&args.name, pushed),
    }
}

/// The end of a push that was interrupted when parts of it had been sent already.
fn interrupted_late(name: &str, pushed: &PushReport) -> Failure {
    let became = match (pushed.written, &pushed.failed) {
        (_, None) if pushed.conflicts.is_empty() => "was applied",
        (0, None) => "was not applied",
        _ => "may have been applied in part: push it again",
    };
    let sentence = format!("interrupted: the push of '{name}' {became}");
    Failure::new(Code::Interrupted, sentence)
}

fn report(
    out: Output,
    domain: &str,
    name: &str,
    pushed: &PushReport,
    cost: Option<&Statistics>,
) -> Outcome {
    if out.json {
        return out.object(&Report {
            domain,
            name,
            pushed,
            cost,
        });
    }
    statistics::print(out, cost);
    if !pushed.conflicts.is_empty() {
        let columns = ["block", "based on", "newest"].map(Column::Text);
        let row = |lost: &Conflict| {
            let newest = if lost.removed {
                "removed".to_owned()
            } else {
                lost.newest.to_string()
            };
            vec![lost.block.clone(), lost.version.to_string(), newest]
        };
        let rows: Vec<Vec<String>> = pushed.conflicts.iter().map(row).collect();
        out.table(&columns, &rows)?;
    }
    let (name, size) = (out.foreign(name), show_size(pushed.bytes));
    let sent = show_size(pushed.written_bytes);
    let (written, blocks) = (pushed.written, show_count(pushed.blocks as u64, "block"));
    if out.quiet {
        Ok(())
    } else {
        out.line(&format!(
            "'{name}': {size} in {blocks}, {written} written ({sent})"
        ))
    }
}

fn ending(name: &str, pushed: PushReport) -> Outcome {
    if let Some(error) = pushed.failed {
        return Err(failure(error));
    }
    let (lost, ratio) = (pushed.conflicts.len(), 100.0 * pushed.success_ratio);
    if lost == 0 {
        return Ok(());
    }
    let sentence = if pushed.conflicts.iter().all(|conflict| conflict.removed) {
        format!("'{name}' was removed: push it again with --fresh to make it anew")
    } else {
        format!(
            "another client has changed {lost} of the blocks that were changed here, {ratio:.0} % of the push was written: pull '{name}' to another place, take over what is missing, and push that"
        )
    };
    Err(Failure::new(Code::Precondition, sentence))
}
