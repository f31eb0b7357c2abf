//! `areo reconfig plan|start|status`.

pub(super) mod moved;
mod plan;
mod start;

use super::domain;
use crate::args::Reconfig;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, choice_failure, failure};
use areo_client::{ReconfigError, SequenceEntry};

pub(super) fn run(session: &Session, command: Reconfig) -> Outcome {
    match command {
        Reconfig::Plan { change } => session::run(plan::run(session, &change), ""),
        Reconfig::Start(args) => {
            let name = &args.change.name;
            let interrupted = format!(
                "interrupted: a change of '{name}' may be pending; {}",
                how_to_go_on(name)
            );
            session::run(start::run(session, &args), &interrupted)
        }
        Reconfig::Status { name } => session::run(status(session, &name), ""),
    }
}

/// Runs `areo reconfig status`.
async fn status(session: &Session, name: &str) -> Outcome {
    let client = session.connect().await?;
    let domain = session.find(&client, name).await?;
    let sequence = progress::late(session.out, &client, domain.sequence()).await;
    let sequence = sequence.map_err(failure)?;
    print(session.out, &sequence)?;
    if sequence.len() > 1 {
        session.out.note(&how_to_go_on(name));
    }
    client.close().await;
    Ok(())
}

fn print(out: Output, sequence: &[SequenceEntry]) -> Outcome {
    if out.json {
        return sequence.iter().try_for_each(|entry| out.object(entry));
    }
    let columns = [
        Column::Number("configuration"),
        Column::Text("status"),
        Column::Text("dap"),
        Column::Number("quorum"),
        Column::Number("f"),
        Column::Text("servers"),
    ];
    let rows: Vec<_> = sequence.iter().map(row).collect();
    out.table(&columns, &rows)
}

fn row(entry: &SequenceEntry) -> Vec<String> {
    let c = &entry.configuration;
    vec![
        c.index.to_string(),
        entry.status().into(),
        c.shape.to_string(),
        c.shape.quorum().to_string(),
        c.shape.f().to_string(),
        domain::names(c),
    ]
}

/// The advice about a change that is pending.
fn how_to_go_on(name: &str) -> String {
    format!(
        "`areo reconfig status {name}` tells, `areo reconfig start {name} --resume` finishes what is pending"
    )
}

/// The failure of the process for a change that did not come to its end.
pub(super) fn reconfig_failure(name: &str, error: ReconfigError) -> Failure {
    match error {
        ReconfigError::Choice { error } => choice_failure(&error),
        ReconfigError::Conflict { .. } => Failure::new(Code::Precondition, error.to_string()),
        ReconfigError::Unreachable { .. } | ReconfigError::NotBegun { .. } => {
            Failure::new(Code::Unavailable, error.to_string())
        }
        ReconfigError::Pending { .. } if !error.lost_objects().is_empty() => {
            let way_out =
                "write what is named again, remove it, or leave it unreadable (--leave-unreadable)";
            let after = how_to_go_on(name);
            let sentence = format!("{error}; everything else was moved: {way_out}; {after}");
            Failure::new(Code::Unknown, sentence)
        }
        ReconfigError::Pending { .. } => {
            Failure::new(Code::Unknown, format!("{error}: {}", how_to_go_on(name)))
        }
        ReconfigError::Other { error } => failure(error),
        error => Failure::new(Code::Other, error.to_string()),
    }
}
