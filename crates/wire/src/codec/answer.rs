//! Answers to accesses: each to one of what a request to a configuration asks.

use super::error::DecodeError;
use super::parts::{self, Part};
use super::reader::Reader;
use super::reply::{FLAG_SUCCESSORS, carried, put_kind, unknown, whole};
use super::writer::Sink;
use super::{held, ranked};
use areo_core::message::{Answer, Refusal};
use areo_core::pointer::Successors;

const HELD: u8 = 1;
const FETCHED: u8 = 2;
const EVICTED: u8 = 3;
const STORED: u8 = 4;
const REFUSED: u8 = 5;
const NEEDED: u8 = 6;
const DROPPED: u8 = 7;
const RANKED: u8 = 9;
const LATER: u8 = 10;

pub(super) fn put_answer<S: Sink>(out: &mut S, answer: &Answer) {
    match answer {
        Answer::Held(held) => {
            out.put(&[HELD, held::flags(held)]);
            held::put_held(out, held);
        }
        Answer::Fetched(carried) => {
            out.put(&[FETCHED, 0]);
            parts::put_element(out, whole(carried), Part::Any);
        }
        Answer::Evicted => out.put(&[EVICTED, 0]),
        Answer::Stored => out.put(&[STORED, 0]),
        Answer::Needed => out.put(&[NEEDED, 0]),
        Answer::Dropped => out.put(&[DROPPED, 0]),
        Answer::Ranked(ranked) => {
            out.put(&[RANKED, ranked::answer_flags(ranked)]);
            ranked::put_ranked(out, ranked);
        }
        Answer::Refused(refusal) => {
            out.put(&[REFUSED, 0]);
            out.u16(refusal.code());
        }
        Answer::Later {
            configuration,
            successors,
        } => {
            let next = (!successors.is_empty()).then_some(successors);
            put_kind(out, LATER, 0, next);
            parts::put_configuration_id(out, configuration);
        }
    }
}

pub(super) fn answer(reader: &mut Reader<'_>) -> Result<Answer, DecodeError> {
    let kind = reader.u8()?;
    let known_flags = match kind {
        HELD => held::FLAGS,
        RANKED => ranked::ANSWER_FLAGS,
        LATER => FLAG_SUCCESSORS,
        FETCHED | EVICTED | STORED | REFUSED | NEEDED | DROPPED => 0,
        kind => return Err(unknown("kind of answer", kind.into())),
    };
    let flags = reader.flags("answer", known_flags)?;
    Ok(match kind {
        HELD => Answer::Held(held::held(reader, flags)?),
        FETCHED => Answer::Fetched(carried(reader)?),
        EVICTED => Answer::Evicted,
        STORED => Answer::Stored,
        NEEDED => Answer::Needed,
        DROPPED => Answer::Dropped,
        LATER => {
            let successors = match flags & FLAG_SUCCESSORS {
                0 => Successors::default(),
                _ => parts::successors(reader)?,
            };
            Answer::Later {
                configuration: parts::configuration_id(reader)?,
                successors,
            }
        }
        RANKED => Answer::Ranked(Box::new(ranked::ranked(reader, flags)?)),
        REFUSED => {
            let code = reader.u16()?;
            let refusal = Refusal::from_code(code);
            Answer::Refused(refusal.ok_or(unknown("refusal", code))?)
        }
        _ => unreachable!("the kind was checked with its flags"),
    })
}
