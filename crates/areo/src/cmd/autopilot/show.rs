//! Printing intents: as a table, as sentences, as JSON.

use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::session::failure;
use areo_client::Client;
use areo_client::journal::JournalObjects;
use areo_steward::instance::JournalStore;
use areo_steward::intent::Intent;
use areo_steward::journal::Journal;
use serde::Serialize;

/// The first line of `areo autopilot status --json`.
#[derive(Serialize)]
struct StatusReport<'a> {
    /// An instance has run in this cluster.
    began: bool,
    paused: bool,
    /// The instance that acts, as far as the journal shows.
    instance: Option<&'a str>,
    open: usize,
}

async fn read(store: Option<JournalObjects>) -> Outcome<(Option<JournalObjects>, Journal)> {
    match store {
        None => Ok((None, Journal::default())),
        Some(mut store) => {
            let journal = store.read().await?;
            Ok((Some(store), journal))
        }
    }
}

/// Prints whether it is paused, which instance acts, and what is open.
pub(super) async fn status(out: Output, store: Option<JournalObjects>) -> Outcome {
    let (store, journal) = read(store).await?;
    let open: Vec<Intent> = journal.open().cloned().collect();
    let lease = store.as_ref().and_then(JournalObjects::lease);
    if out.json {
        out.object(&StatusReport {
            began: store.is_some(),
            paused: journal.paused,
            instance: lease.map(|it| it.holder.as_str()),
            open: open.len(),
        })?;
    } else if !out.quiet {
        out.line(&match lease {
            None => "no autopilot has run in this cluster: `areo autopilot` runs one".to_owned(),
            Some(_) if journal.paused => {
                "paused: `areo autopilot pause --off` ends that".to_owned()
            }
            Some(lease) => format!("the last instance that acted is {}", lease.holder),
        })?;
    }
    intents(out, &open)
}

/// Prints the intents that are open.
pub(super) async fn open(out: Output, store: Option<JournalObjects>) -> Outcome {
    let (_, journal) = read(store).await?;
    let open: Vec<Intent> = journal.open().cloned().collect();
    intents(out, &open)
}

/// Prints all intents, finished ones too.
pub(super) async fn journal(out: Output, store: Option<JournalObjects>) -> Outcome {
    let (_, journal) = read(store).await?;
    intents(out, &journal.intents)
}

/// Prints that the autopilot is paused, or no longer.
pub(super) fn paused(out: Output, paused: bool) -> Outcome {
    if out.json {
        return out.object(&serde_json::json!({ "paused": paused }));
    }
    match paused {
        true => out.line("paused: nothing is changed until `areo autopilot pause --off`"),
        false => out.line("no longer paused"),
    }
}

/// Prints these intents, one on a line.
pub(super) fn intents(out: Output, intents: &[Intent]) -> Outcome {
    if out.json {
        return intents.iter().try_for_each(|intent| out.object(intent));
    }
    if intents.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::Number("intent"),
        Column::Text("about"),
        Column::Text("rule"),
        Column::Text("state"),
        Column::Text("change"),
        Column::Text("why"),
    ];
    let row = |intent: &Intent| {
        vec![
            intent.number.to_string(),
            out.foreign(&intent.subject),
            intent.rule().word().to_owned(),
            intent.state.word().to_owned(),
            intent
                .change
                .as_ref()
                .map_or("-".into(), ToString::to_string),
            intent.reasons[0].sentence.clone(),
        ]
    };
    let rows: Vec<_> = intents.iter().map(row).collect();
    out.table(&columns, &rows)
}

/// Prints why this server or domain is to be changed, and what a change waits for.
pub(super) async fn explain(
    out: Output,
    client: &Client,
    store: Option<JournalObjects>,
    subject: &str,
) -> Outcome {
    let (_, journal) = read(store).await?;
    let concerns = |it: &&Intent| {
        let change = it.change.as_ref();
        let is_part = change.is_some_and(|it| it.server == subject || it.with == subject);
        it.subject == subject || is_part || it.domains().any(|domain| domain == subject)
    };
    let about: Vec<&Intent> = journal.intents.iter().filter(concerns).collect();
    if about.is_empty() {
        let servers = client.servers().await.map_err(failure)?;
        let domains = client.domains().await.map_err(failure)?;
        let is_known = servers.iter().any(|it| it.name == subject)
            || domains.iter().any(|it| it.name == subject);
        if !is_known {
            let sentence = format!("there is no server and no domain '{subject}'");
            return Err(Failure::new(Code::NotFound, sentence));
        }
        if !out.json && !out.quiet {
            out.line(&format!("no intent concerns '{subject}'"))?;
        }
        return Ok(());
    }
    if out.json {
        return about.iter().try_for_each(|intent| out.object(intent));
    }
    for intent in about {
        intent
            .explain()
            .iter()
            .try_for_each(|line| out.line(line))?;
    }
    Ok(())
}
