//! The tally of get-tag for a new version: a quorum of members that have room for it (`[X-3 unconfirmed-cap]`). A put that
//! would be refused for lack of room is not sent, so that it leaves nothing behind.

use super::single;
use crate::config::Configuration;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Announcement, Answer, Body, HeldVersions, Refusal, Reply, Want};
use crate::object::Name;
use crate::tag::Tag;
use std::time::Duration;

pub(super) struct Offer {
    name: Name,
    announced: Announcement,
    quorum: usize,
    /// The tag that counts of an answer.
    largest_of: fn(&HeldVersions) -> Tag,
    largest: Tag,
    members: Vec<State>,
    /// The time that members that are silent are waited for once one is busy. After it they are late, and no quorum is hoped for of which they would
    /// be part: they may be down, and then only room at the busy ones helps.
    grace: Duration,
    late: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Asked,
    HasRoom,
    Busy,
    Refused,
}

/// The answer of members to a version that is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferOutcome {
    /// A quorum has room for it; the largest tag of that quorum.
    Room(Tag),
    /// No quorum is left: too many members hold too many unconfirmed versions, or have not answered for long.
    Busy,
}

impl Offer {
    pub(super) fn new(
        c: &Configuration,
        name: &Name,
        announced: Announcement,
        grace: Duration,
    ) -> Offer {
        Offer {
            name: name.clone(),
            announced,
            quorum: c.quorums().quorum(),
            largest_of: super::largest_of(c),
            largest: Tag::INITIAL,
            members: vec![State::Asked; c.n()],
            grace,
            late: false,
        }
    }

    fn count(&self, state: State) -> usize {
        self.members.iter().filter(|it| **it == state).count()
    }

    fn evaluate(&self) -> Decision<OfferOutcome> {
        let (silent, busy) = (self.count(State::Asked), self.count(State::Busy));
        assert!(
            self.quorum <= self.members.len(),
            "members can make a quorum"
        );
        let have_room = self.count(State::HasRoom);
        if have_room >= self.quorum {
            return Decision::Done(OfferOutcome::Room(self.largest));
        }
        let is_hoped_for = busy == 0 || !self.late;
        if is_hoped_for && have_room + silent >= self.quorum {
            return Decision::Pending;
        }
        match busy {
            0 => Decision::Impossible,
            _ => Decision::Done(OfferOutcome::Busy),
        }
    }

    fn reply(&mut self, reply: Reply) -> State {
        match single(reply) {
            Some(Answer::Held(held)) => {
                self.largest = (self.largest_of)(&held).max(self.largest);
                State::HasRoom
            }
            Some(Answer::Refused(Refusal::Busy)) => State::Busy,
            _ => State::Refused,
        }
    }
}

impl ConfiguredTally for Offer {
    type Output = OfferOutcome;

    fn needed(&self) -> usize {
        self.quorum
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        let query = Access::Query {
            want: Want::Tags,
            have: Tag::INITIAL,
            announced: Some(self.announced),
        };
        let is_asked = self.members[position] != State::HasRoom;
        is_asked.then(|| Body::Access(vec![(self.name.clone(), query)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<OfferOutcome> {
        let state = match event {
            Event::Unreachable => return self.evaluate(),
            Event::Refused(_) => State::Refused,
            Event::Reply(reply) => self.reply(reply),
        };
        // An answer stands: what is said after it does not take it back.
        if self.members[from] != State::HasRoom {
            self.members[from] = state;
        }
        self.evaluate()
    }

    fn tick(&mut self) -> Decision<OfferOutcome> {
        self.late = true;
        self.evaluate()
    }

    fn patience(&self) -> Option<Duration> {
        let waits = !self.late && self.count(State::Busy) > 0;
        waits.then_some(self.grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Dap, Descriptor, ServerId};
    use crate::object::DomainId;
    use crate::tag::Writer;
    use crate::timing;

    /// Every order in which members answer, each in one of three ways or not at all: decided as soon as it can be, and never otherwise.
    #[test]
    fn a_version_is_announced_until_a_quorum_has_room_or_none_can_have() {
        let members = (1..=4).map(ServerId).collect();
        let descriptor = Descriptor::new(DomainId(1), members, Dap::Ec { k: 2 });
        let c = Configuration::new(descriptor).unwrap();
        let name = Name::user("k").unwrap();
        let announced = Announcement {
            length: 9,
            element_bytes: 5,
        };
        let tag = |number| Tag {
            number,
            writer: Writer::default(),
        };
        let quorum = c.quorums().quorum();
        for answers in 0..4_usize.pow(4) {
            let answer = |member: usize| answers / 4_usize.pow(member as u32) % 4;
            let mut tally = Offer::new(&c, &name, announced, timing::ROOM_GRACE);
            let mut decided = false;
            for member in 0..4 {
                let event = match answer(member) {
                    0 => Event::Reply(Reply::Access(vec![Answer::Held(HeldVersions {
                        stable: tag(member as u64),
                        ..HeldVersions::default()
                    })])),
                    1 => Event::Reply(Reply::Access(vec![Answer::Refused(Refusal::Busy)])),
                    2 => Event::Refused(Refusal::Full),
                    _ => Event::Unreachable,
                };
                let decision = tally.add(member, event);
                let said = |kind| {
                    (0..=member)
                        .filter(|member| answer(*member) == kind)
                        .count()
                };
                let (room, busy, full) = (said(0), said(1), said(2));
                let expected = if room >= quorum {
                    Decision::Done(OfferOutcome::Room(tag((0..=member)
                        .rfind(|it| answer(*it) == 0)
                        .unwrap()
                        as u64)))
                } else if 4 - busy - full >= quorum {
                    Decision::Pending
                } else if busy > 0 {
                    Decision::Done(OfferOutcome::Busy)
                } else {
                    Decision::Impossible
                };
                assert_eq!(decision, expected, "{answers} {member}");
                decided |= decision != Decision::Pending;
                if decided {
                    break;
                }
            }
            // Silent members are given up where room at a busy one helps.
            let is_busy = (0..4).any(|it| answer(it) == 1);
            assert!(decided || tally.patience().is_some() == is_busy);
            let expected = match is_busy {
                true => Decision::Done(OfferOutcome::Busy),
                false => Decision::Pending,
            };
            assert!(decided || tally.tick() == expected, "{answers}");
        }
    }
}
