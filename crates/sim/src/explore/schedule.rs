//! Schedules as people read them: one line for each thing that happens.

use super::Answers;
use super::clients::Input;
use super::engine::Engine;
use super::env::Message;
use super::state::{State, Step};
use areo_core::message::{Access, Answer, Body, Note, Reply, Request, Want};
use areo_core::tag::Tag;

/// A version, short if it is the initial one.
fn version(tag: &Tag) -> String {
    match tag.is_initial() {
        true => "t0".to_owned(),
        false => tag.to_string(),
    }
}

/// A message in the words of a schedule.
pub(super) fn message(message: &Message) -> String {
    match message {
        Message::Request(Request::Configured { body, .. }) => match body {
            Body::Access(accesses) => {
                let accesses = accesses
                    .iter()
                    .map(|(name, access)| one(name.key(), access));
                accesses.collect::<Vec<_>>().join(", ")
            }
            other => format!("{other:?}"),
        },
        Message::Request(other) => format!("{other:?}"),
        Message::Note(Note::Confirm { name, tag, .. }) => {
            format!("confirm {tag} of {}", name.key())
        }
        Message::Note(other) => format!("{other:?}"),
        Message::Quiet => "quiet time passes".to_owned(),
        Message::Gossip => "it gossips".to_owned(),
        Message::Full => "its disk becomes full".to_owned(),
    }
}

fn one(key: &str, access: &Access) -> String {
    match access {
        Access::Query {
            announced: Some(_), ..
        } => format!("query {key}, announcing a version"),
        Access::Query { want, .. } => match want {
            Want::Tags => format!("query {key}"),
            Want::Metadata => format!("query {key}, with metadata"),
            Want::Fragment => format!("query {key}, with the element if it is a fragment"),
            Want::Element => format!("query {key}, with the element"),
        },
        Access::Fetch { tag, .. } => format!("fetch {tag} of {key}"),
        Access::Put {
            tag, write_back, ..
        } => match write_back {
            true => format!("put {tag} of {key}, writing back"),
            false => format!("put {tag} of {key}"),
        },
        Access::Keep { tag, .. } => format!("keep {tag} of {key}"),
        Access::Adopt(tag) => format!("adopt {tag} of {key}"),
        Access::Fence { upto, .. } => format!("fence off {key} up to {upto}"),
        Access::Drop(tag) => format!("drop {tag} of {key}"),
        Access::Finalize {
            tag,
            complete: true,
            ..
        } => format!("complete {tag} of {key}"),
        Access::Finalize { tag, want, .. } => match want {
            Want::Tags => format!("finalize {tag} of {key}"),
            _ => format!("finalize {tag} of {key}, giving the element"),
        },
        Access::Rank { ballot, .. } => match ballot {
            Some(ballot) => format!("prepare {} of {key}", ballot.number),
            None => format!("rank {key}"),
        },
        Access::Accept(it) => {
            let how = if it.settles { ", settling" } else { "" };
            format!("accept {} of {key} at {}{how}", it.tag, it.ballot.number)
        }
    }
}

/// An answer in the words of a schedule.
pub(super) fn answer(answered: &Answers) -> String {
    match answered {
        Ok(Reply::Access(answers)) => {
            let answers = answers.iter().map(|answer| match answer {
                Answer::Held(held) => {
                    let tags: Vec<String> =
                        held.stored.iter().map(|(tag, _)| version(tag)).collect();
                    let element = match &held.element {
                        Some((tag, _)) => format!(", with the element of {tag}"),
                        None => String::new(),
                    };
                    let (floor, stable) = (version(&held.floor), version(&held.stable));
                    let tags = tags.join(" ");
                    format!("holds [{tags}], floor {floor}, stable {stable}{element}")
                }
                Answer::Fetched(_) => "the element".to_owned(),
                Answer::Evicted => "evicted".to_owned(),
                Answer::Stored => "stored".to_owned(),
                Answer::Needed => "needed".to_owned(),
                Answer::Dropped => "dropped".to_owned(),
                Answer::Later { configuration, .. } => {
                    format!("in configuration {}", configuration.index)
                }
                Answer::Ranked(ranked) => {
                    let listed = ranked.versions.iter();
                    let listed = listed.map(|it| format!("{}@{}", it.tag, it.ballot.number));
                    let listed: Vec<String> = listed.collect();
                    let (promised, chosen) = (ranked.promised.number, ranked.chosen.tag);
                    let granted = if ranked.granted { "grants, " } else { "" };
                    let listed = listed.join(" ");
                    format!("{granted}promised {promised}, lists [{listed}], chosen {chosen}")
                }
                Answer::Refused(refusal) => format!("refused: {refusal}"),
            });
            answers.collect::<Vec<_>>().join(", ")
        }
        Ok(other) => format!("{other:?}"),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

impl Engine {
    /// Adds what happens in the step from `before` to `after`.
    pub(super) fn tell(&self, before: &State, after: &State, step: &Step, lines: &mut Vec<String>) {
        for client in &step.invokes {
            let number = self.seen(before, *client).invoked;
            let label = &self.case.clients[*client][number].label;
            lines.push(format!("client {client} begins: {label}"));
        }
        for (server, taken) in &step.takes {
            for (client, number) in taken {
                let sent = self.seen(after, *client).sent[usize::from(*number)];
                let text = message(self.words.message_of(sent.message));
                lines.push(format!("client {client} -> server {server}: {text}"));
            }
        }
        if let Some(server) = step.crashes {
            lines.push(format!("server {server} stops for ever"));
        }
        if let Some((server, word)) = &step.hears {
            let text = message(self.words.message_of(*word));
            lines.push(format!("server {server} hears: {text}"));
        }
        let Some((client, fed)) = &step.reads else {
            return;
        };
        let seen = self.seen(after, *client);
        for input in fed {
            lines.push(match input {
                Input::Answer(message, number) => {
                    let server = seen.sent[usize::from(*message)].server;
                    let text = answer(self.words.answer_of(*number));
                    format!("server {server} -> client {client}: {text}")
                }
                Input::Tick(_) => format!("client {client} waits no longer"),
                Input::Invoke => unreachable!("beginning is no reading"),
            });
        }
        let known = self.seen(before, *client).ended.len();
        for (number, ended) in seen.ended.iter().enumerate().skip(known) {
            let label = &self.case.clients[*client][number].label;
            lines.push(format!("client {client}: {label} {ended}"));
        }
    }
}
