//! Printing intents: as a table, as sentences, as JSON.

use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::session::failure;
use areo_client::Client;
use areo_client::journal::JournalObjects;
use areo_steward::instance::JournalStore;
use areo_steward::intent::{Intent, State};
use areo_steward::journal::Journal;
use areo_steward::rules::Rules;
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
        sentences(intent)
            .iter()
            .try_for_each(|line| out.line(line))?;
    }
    Ok(())
}

/// An intent for people: what and why, what was seen, what it waits for, what was before.
fn sentences(intent: &Intent) -> Vec<String> {
    let rules = Rules::built_in();
    let what = match &intent.change {
        Some(change) => change.to_string(),
        None => format!("advice: {}", intent.remedy),
    };
    let mut lines = vec![format!(
        "intent {}, {}: {what}",
        intent.number,
        intent.state.word()
    )];
    for reason in &intent.reasons {
        lines.push(format!(
            "  because {} (rule {})",
            reason.sentence,
            reason.rule.word()
        ));
        lines.push(format!("    {}", rules.sentence(reason.rule)));
        lines.extend(reason.evidence.iter().map(|it| {
            format!(
                "    {}: {} at {}, threshold {}",
                it.signal, it.value, it.observer, it.threshold
            )
        }));
    }
    if let Some(change) = &intent.change {
        lines.extend(change.domains.iter().map(|it| {
            let (domain, now, after) = (&it.domain, it.survivable.before, it.survivable.after);
            format!(
                "  '{domain}' survives {now} crashes now and {after} afterwards (f {})",
                it.f.after
            )
        }));
    }
    match &intent.state {
        State::Waiting { waits_for } => {
            lines.extend(waits_for.iter().map(|it| format!("  waits for: {it}")));
        }
        State::Running { step, done, total } => {
            lines.push(format!("  at '{step}', {done} of {total} domains done"));
        }
        State::Done { proof } => lines.push(format!("  {proof}")),
        State::Failed {
            step,
            error,
            tries,
            next_ms,
        } => {
            lines.push(format!("  try {tries} failed at '{step}': {error}"));
            if next_ms.is_none() {
                lines.push(format!(
                    "  `areo autopilot retry {}` tries again",
                    intent.number
                ));
            }
        }
        State::Superseded { by } => lines.push(format!("  {by}")),
        State::Proposed => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_explained_in_sentences() {
        let text = r#"{"number":3,"subject":"s2","reasons":[{"rule":"dead","sentence":"3 of 3 other servers have not reached s2 for 900 s",
            "evidence":[{"signal":"reachable","observer":"s1","value":901.0,"threshold":900.0}]}],
            "change":{"server":"s2","with":"s4","domains":[{"domain":"d","f":{"before":1,"after":1},"survivable":{"before":0,"after":1}}],
            "objects":3,"bytes":10},"remedy":"areo server replace s2 --with s4","approved":false,"found":2,"missing":0,
            "state":"waiting","waits_for":["approval: `areo autopilot approve 3`"],"since_ms":1,"history":[]}"#;
        let intent: Intent = serde_json::from_str(text).unwrap();
        assert_eq!(
            sentences(&intent),
            [
                "intent 3, waiting: replace s2 by s4",
                "  because 3 of 3 other servers have not reached s2 for 900 s (rule dead)",
                "    A server that a majority of the other servers does not reach is replaced by a spare: each further crash would find less redundancy.",
                "    reachable: 901 at s1, threshold 900",
                "  'd' survives 0 crashes now and 1 afterwards (f 1)",
                "  waits for: approval: `areo autopilot approve 3`",
            ]
        );
    }
}
