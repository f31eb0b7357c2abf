//! `areo server label`, `maintain` and `ls`: labels of servers, their maintenance, and the servers with both.

use crate::args::Maintain;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Session, choice_failure, failure};
use areo_client::journal::now_ms;
use areo_client::{LabelChange, LabelError, Maintenance, ServerInfo};
use serde::Serialize;

/// The output with `--json`.
#[derive(Serialize)]
struct LabelReport<'a> {
    outcome: &'static str,
    #[serde(flatten)]
    server: &'a ServerInfo,
}

/// Changes labels of a server.
pub(super) fn label(session: &Session, server: &str, changes: &[LabelChange]) -> Outcome {
    session::run(change_labels(session, server, changes), "")
}

async fn change_labels(session: &Session, server: &str, changes: &[LabelChange]) -> Outcome {
    let client = session.connect().await?;
    let work = client.label_server(server, changes);
    let labelled = progress::late(session.out, &client, work).await;
    let labelled = labelled.map_err(label_failure)?;
    let (out, name) = (session.out, &labelled.name);
    let sentence = match show_labels(&labelled) {
        labels if labels == "-" => format!("'{name}' has no labels"),
        labels => format!("'{name}' has the labels {labels}"),
    };
    report(out, "labelled", &labelled, &sentence)?;
    client.close().await;
    Ok(())
}

/// Begins or ends the maintenance of a server.
pub(super) fn maintain(session: &Session, args: &Maintain) -> Outcome {
    session::run(change_maintenance(session, args), "")
}

async fn change_maintenance(session: &Session, args: &Maintain) -> Outcome {
    let reason = args.reason.as_deref().unwrap_or_default();
    let begin = |time| Maintenance::new(now_ms(), time, reason);
    let maintenance = args.time.map(begin).transpose();
    let maintenance = maintenance.map_err(|error| Failure::usage(format!("--reason: {error}")))?;
    let client = session.connect().await?;
    let work = client.maintain_server(&args.server, maintenance.as_ref());
    let maintained = progress::late(session.out, &client, work).await;
    let maintained = maintained.map_err(label_failure)?;
    let (out, name) = (session.out, &maintained.name);
    let (outcome, sentence) = maintenance.as_ref().map_or_else(
        || {
            let sentence = format!("'{name}' is in maintenance no longer");
            ("maintenance-ended", sentence)
        },
        |it| {
            let until = it.until();
            let sentence = format!(
                "'{name}' is in maintenance until {until}: the autopilot does not replace it"
            );
            ("in-maintenance", sentence)
        },
    );
    report(out, outcome, &maintained, &sentence)?;
    client.close().await;
    Ok(())
}

/// Lists the servers with their labels.
pub(super) fn ls(session: &Session) -> Outcome {
    session::run(list(session), "")
}

async fn list(session: &Session) -> Outcome {
    let client = session.connect().await?;
    let servers = progress::late(session.out, &client, client.servers()).await;
    let (out, servers) = (session.out, servers.map_err(failure)?);
    if out.json {
        servers.iter().try_for_each(|it| out.object(it))?;
    } else {
        let columns = [
            Column::Text("name"),
            Column::Text("address"),
            Column::Text("labels"),
            Column::Text("plans"),
        ];
        let row = |it: &ServerInfo| {
            vec![
                it.name.clone(),
                it.address.clone(),
                out.foreign(&show_labels(it)),
                out.foreign(&show_state(it)),
            ]
        };
        let rows: Vec<_> = servers.iter().map(row).collect();
        out.table(&columns, &rows)?;
    }
    client.close().await;
    Ok(())
}

fn report(out: Output, outcome: &'static str, server: &ServerInfo, sentence: &str) -> Outcome {
    if out.json {
        return out.object(&LabelReport { outcome, server });
    }
    match out.quiet {
        true => Ok(()),
        false => out.line(&out.foreign(sentence)),
    }
}

/// The labels of a server: `class=hdd zone=a`.
pub(in crate::cmd) fn show_labels(server: &ServerInfo) -> String {
    let labels = server.labels.iter();
    let labels: Vec<String> = labels.map(|(key, text)| format!("{key}={text}")).collect();
    match labels.is_empty() {
        true => "-".into(),
        false => labels.join(" "),
    }
}

/// The plans that operators have with a server.
pub(in crate::cmd) fn show_state(server: &ServerInfo) -> String {
    let leaving = server.leaving.then(|| "is to go".to_owned());
    let maintenance = server.maintenance.as_ref().filter(|it| it.holds(now_ms()));
    let maintenance = maintenance.map(|it| match it.reason() {
        "" => format!("in maintenance until {}", it.until()),
        reason => format!("in maintenance until {}: {reason}", it.until()),
    });
    let plans: Vec<String> = leaving.into_iter().chain(maintenance).collect();
    match plans.is_empty() {
        true => "-".into(),
        false => plans.join(", "),
    }
}

fn label_failure(error: LabelError) -> Failure {
    match error {
        LabelError::Choice { error } => choice_failure(&error),
        LabelError::Twice { .. } => Failure::usage(error.to_string()),
        LabelError::Overtaken { .. } | LabelError::TooMany { .. } => {
            Failure::new(Code::Precondition, error.to_string())
        }
        LabelError::Other { error } => failure(error),
        error => Failure::new(Code::Other, error.to_string()),
    }
}
