//! Changes of the labels of a server.

use crate::choice::{self, InvalidChoice};
use crate::cluster::{LabelChange, ServerInfo};
use crate::error::Error;
use crate::session::Context;
use areo_core::limits;
use areo_core::message::ServerRecord;
use std::collections::BTreeSet;

/// Labels that were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// There is no such server, or there are several.
    #[error("{error}")]
    Choice {
        /// The reason why no single server was found.
        error: InvalidChoice,
    },
    /// One label is to have two texts.
    #[error("the label '{key}' is given twice")]
    Twice {
        /// The key of the label.
        key: String,
    },
    /// The server would have too many.
    #[error(
        "'{server}' would have {count} labels, those that were removed included: a server has at most {}",
        limits::LABELS
    )]
    TooMany {
        /// Name of the server.
        server: String,
        /// The labels that it would have.
        count: usize,
    },
    /// Another operator changed a label at the same time, and that change stayed.
    #[error("another operator changed the label '{key}' of '{server}' at the same time: {}", now_is(.text.as_deref()))]
    Overtaken {
        /// Name of the server.
        server: String,
        /// The key of the label.
        key: String,
        /// The text that it has now; `None`: it was removed.
        text: Option<String>,
    },
    /// It is not known if a quorum took note.
    #[error("{error}")]
    Other {
        /// The error of the call.
        error: Error,
    },
}

fn now_is(text: Option<&str>) -> String {
    text.map_or_else(|| "it is removed".into(), |text| format!("it is '{text}'"))
}

impl From<InvalidChoice> for LabelError {
    fn from(error: InvalidChoice) -> LabelError {
        LabelError::Choice { error }
    }
}

impl From<Error> for LabelError {
    fn from(error: Error) -> LabelError {
        LabelError::Other { error }
    }
}

/// Changes labels of a server, and looks which changes stayed.
pub(crate) async fn label(
    context: &Context,
    server: &str,
    changes: &[LabelChange],
) -> Result<ServerInfo, LabelError> {
    let names = context.servers().await?;
    let record = choice::member(server, &names)?;
    let changes = changes_of(record, changes)?;
    if !changes.is_empty() {
        let labelled = context.root_handle().label(record, &changes).await;
        labelled.map_err(|failed| context.unknown(&failed))?;
    }
    let names = context.servers().await?;
    let now = choice::member(&record.id.to_string(), &names)?;
    match changes.into_iter().find(|it| text_of(now, it.0) != it.1) {
        None => Ok(now.into()),
        Some((key, _)) => Err(LabelError::Overtaken {
            server: now.name.clone(),
            key: key.into(),
            text: now.labels.get(key).map(ToOwned::to_owned),
        }),
    }
}

/// The changes that change something.
fn changes_of<'a>(
    record: &ServerRecord,
    changes: &'a [LabelChange],
) -> Result<Vec<(&'a str, &'a str)>, LabelError> {
    let mut keys: BTreeSet<&str> = record.labels.all().map(|(key, _)| key).collect();
    let mut named = BTreeSet::new();
    let mut real = Vec::new();
    for change in changes {
        let (key, text) = (change.key(), change.text());
        if !named.insert(key) {
            return Err(LabelError::Twice { key: key.into() });
        }
        if text_of(record, key) != text {
            keys.insert(key);
            real.push((key, text));
        }
    }
    match keys.len() <= limits::LABELS {
        true => Ok(real),
        false => Err(LabelError::TooMany {
            server: record.name.clone(),
            count: keys.len(),
        }),
    }
}

fn text_of<'a>(record: &'a ServerRecord, key: &str) -> &'a str {
    record.labels.get(key).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use areo_core::config::ServerId;

    fn changes(texts: &[&str]) -> Vec<LabelChange> {
        let changes = texts.iter().map(|text| text.parse().unwrap());
        changes.collect()
    }

    #[test]
    fn changes_that_change_nothing_are_left_out_and_too_many_are_refused() {
        let mut record = ServerRecord::at_address(ServerId(1), "host:1".into());
        record.labels = record.labels.changed([("zone", "a"), ("note", "")]);
        let given = changes(&["zone=a", "class=", "note=", "rack=7"]);
        assert_eq!(changes_of(&record, &given), Ok(vec![("rack", "7")]));
        let twice = changes(&["rack=7", "rack=7"]);
        let key = "rack".into();
        assert_eq!(changes_of(&record, &twice), Err(LabelError::Twice { key }));
        let keys: Vec<String> = (0..limits::LABELS).map(|i| format!("k{i}=x")).collect();
        let all: Vec<&str> = keys.iter().map(String::as_str).collect();
        // Zone and note are there.
        assert!(changes_of(&record, &changes(&all[2..])).is_ok());
        let many = changes_of(&record, &changes(&all[1..])).unwrap_err();
        assert!(many.to_string().contains("17 labels"), "{many}");
    }
}
