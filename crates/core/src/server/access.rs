//! Accesses to one object: each access goes to the object's part of the state, and becomes an answer.

use super::{Read, Server};
use crate::config::ConfigurationId;
use crate::dap::versions::Arrival;
use crate::element::{Element, Form};
use crate::instant::Instant;
use crate::message::{Access, Answer, RankedVersions, Refusal, Want};
use crate::object::Name;
use crate::tag::Tag;

impl Server {
    pub(super) fn access(
        &mut self,
        now: Instant,
        key: ConfigurationId,
        name: &Name,
        access: Access,
        (answer, reads): (usize, &mut Vec<Read>),
    ) -> Answer {
        let announced = match &access {
            Access::Query { announced, .. } => announced.map_or(0, |it| it.length),
            _ => 0,
        };
        if !access.is_possible() || announced > self.identity.max_value_bytes {
            return Answer::Refused(Refusal::TooLarge);
        }
        let of = (key, name);
        let max_unconfirmed = self.identity.max_unconfirmed;
        let state = self.states.get_mut(&key).expect("admitted");
        let read = |tag| Read::of_element(answer, of, tag);
        match access {
            Access::Query {
                want,
                have,
                announced,
            } => match state.query(name, (want, have), announced.map(|_| max_unconfirmed)) {
                Ok(held) => {
                    reads.extend(held.element.as_ref().map(|(tag, _)| read(*tag)));
                    Answer::Held(held)
                }
                Err(refusal) => Answer::Refused(refusal),
            },
            Access::Fetch { tag, payload } => match state.fetch(name, tag, payload) {
                Ok(Some(carried)) => {
                    reads.push(read(tag));
                    Answer::Fetched(carried)
                }
                Ok(None) => Answer::Evicted,
                Err(refusal) => Answer::Refused(refusal),
            },
            Access::Put {
                tag,
                element,
                write_back,
            } => {
                let arrival = match write_back {
                    true => Arrival::WriteBack,
                    false => Arrival::New,
                };
                self.put(now, of, (tag, element), arrival)
            }
            Access::Keep { tag, element } => self.put(now, of, (tag, element), Arrival::Kept),
            Access::Fence { upto, spared } => {
                let held = state.fence(of, (upto, spared), &mut self.ledger);
                held.map_or_else(Answer::Refused, Answer::Held)
            }
            Access::Finalize {
                tag,
                want,
                complete,
            } => self.finalize(now, of, (tag, complete), want, (answer, reads)),
            Access::Drop(tag) => {
                let dropped = state.drop_version(of, tag, &mut self.ledger);
                dropped.map_or_else(Answer::Refused, |()| Answer::Dropped)
            }
            ranked @ (Access::Rank { .. } | Access::Accept(_)) => {
                self.ranked(now, of, ranked, (answer, reads))
            }
            // What can be adopted came here as a put.
            Access::Adopt(tag) => match state.supersedes(name, tag) {
                Ok(true) => Answer::Stored,
                Ok(false) => Answer::Needed,
                Err(refusal) => Answer::Refused(refusal),
            },
        }
    }

    fn put(
        &mut self,
        now: Instant,
        (key, name): (ConfigurationId, &Name),
        (tag, element): (Tag, Element),
        arrival: Arrival,
    ) -> Answer {
        // What a manifest stands for came in blocks.
        let is_here = element.form != Form::Manifest;
        let too_large = is_here && element.length > self.identity.max_value_bytes;
        if too_large || tag.is_initial() {
            return Answer::Refused(Refusal::TooLarge);
        }
        let arrival = (arrival, self.identity.max_unconfirmed);
        let state = self.states.get_mut(&key).expect("admitted");
        if state.becomes_ranked(name) {
            return Answer::Ranked(Box::new(RankedVersions {
                closed: true,
                ..RankedVersions::default()
            }));
        }
        match state.put(now, (key, name), (tag, element, arrival), &mut self.ledger) {
            Ok(newest) => {
                if state.gossips() {
                    self.has_changed(key, name);
                }
                self.await_quiet(now, key, name, newest);
                Answer::Stored
            }
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    fn finalize(
        &mut self,
        now: Instant,
        (key, name): (ConfigurationId, &Name),
        (tag, complete): (Tag, bool),
        want: Want,
        (answer, reads): (usize, &mut Vec<Read>),
    ) -> Answer {
        if tag.is_initial() {
            // Of no write, so that there is nothing to finalize.
            return Answer::Refused(Refusal::TooLarge);
        }
        let state = self.states.get_mut(&key).expect("admitted");
        let newest = match state.finalize((key, name), (tag, complete), &mut self.ledger) {
            Ok(newest) => newest,
            Err(refusal) => return Answer::Refused(refusal),
        };
        let carried = state.given(name, tag, want);
        if state.gossips() {
            self.has_changed(key, name);
        }
        self.await_quiet(now, key, name, newest);
        let Some(carried) = carried else {
            return Answer::Stored;
        };
        let read = Read::of_element(answer, (key, name), tag);
        reads.push(Read {
            acknowledges: true,
            ..read
        });
        Answer::Fetched(carried)
    }
}
