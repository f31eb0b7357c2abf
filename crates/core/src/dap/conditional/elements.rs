//! The tally that fetches the elements of one version from members that list it.

use crate::config::Configuration;
use crate::dap::collect::elements::{alike, enough, fits};
use crate::dap::{Scope, single};
use crate::element::{Element, ReplyElement};
use crate::error::Response;
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Body, Refusal};
use crate::object::Name;
use crate::tag::Tag;
use crate::timing;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Fetch {
    c: Arc<Configuration>,
    name: Name,
    tag: Tag,
    scope: Scope,
    /// The holders, by position: whether the member listed the version with its element.
    holders: Vec<bool>,
    /// The states of members, by position.
    members: Vec<State>,
    late: bool,
    /// Ticks for which members that are late are hoped for.
    hope: u32,
}

enum State {
    /// It is not asked yet.
    Spare,
    Asked,
    /// It gives none now; it may have one.
    Refused(Refusal),
    /// It has no element.
    Lacks,
    Given(Element),
}

/// The result of a fetch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// Elements that make the wanted part of the value.
    Elements(Vec<Element>),
    /// The version went for a newer one, or members are late: ask again which is current.
    Again,
    /// Fewer elements are left than make the value, also if each member that has not answered holds one (`[W-18 lost-version]`).
    Lost {
        /// The number of elements that are left, at least.
        found: usize,
        /// The response of each member, by position.
        responses: Vec<Response>,
    },
}

impl Fetch {
    /// `holders`: by position, whether the member listed the version with its element. As many of them are asked first as are
    /// needed; the others when time has passed.
    pub(super) fn new(
        c: &Arc<Configuration>,
        name: &Name,
        (tag, scope): (Tag, Scope),
        (holders, attempt): (&[bool], u32),
    ) -> Fetch {
        assert_eq!(holders.len(), c.n(), "known of each member");
        assert_ne!(scope, Scope::Version, "a tag alone has no elements");
        assert!(!tag.is_initial(), "the initial version has no elements");
        let mut wanted = needed(c, scope);
        let state = |holds: &bool| {
            let asked = *holds && wanted > 0;
            wanted -= usize::from(asked);
            if asked { State::Asked } else { State::Spare }
        };
        Fetch {
            holders: holders.to_vec(),
            members: holders.iter().map(state).collect(),
            c: c.clone(),
            name: name.clone(),
            tag,
            scope,
            late: wanted > 0,
            hope: FETCH_HOPE << attempt.min(MOST_HOPE),
        }
    }

    fn evaluate(&mut self) -> Decision<Fetched> {
        let given = |position: usize| match &self.members[position] {
            State::Given(element) => Some(element),
            _ => None,
        };
        let alike = alike(self.members.len(), given);
        let elements = alike.iter().filter_map(|position| given(*position));
        if enough(&self.c, self.scope, elements.clone()) {
            return Decision::Done(Fetched::Elements(elements.cloned().collect()));
        }
        if self.is_lost(alike.len()) {
            return Decision::Done(Fetched::Lost {
                found: alike.len(),
                responses: self.members.iter().map(State::response).collect(),
            });
        }
        let any = |is: fn(&State) -> bool| self.members.iter().any(is);
        match (any(State::is_asked), any(State::is_spare)) {
            (true, _) if self.hope > 0 => Decision::Pending,
            (false, true) => self.ask_others(),
            _ => Decision::Done(Fetched::Again),
        }
    }

    /// True if the `found` elements and those that silent members may hold are too few. As long as no fragment has come, each member may
    /// hold a copy of the version.
    fn is_lost(&self, found: usize) -> bool {
        let may_have = |it: &&State| !matches!(it, State::Lacks | State::Given(_));
        let open = self.members.iter().filter(may_have).count();
        let needed = match found {
            0 => 1,
            _ => needed(&self.c, self.scope),
        };
        assert!(
            found + open <= self.members.len(),
            "a member has one element"
        );
        found + open < needed
    }

    fn ask_others(&mut self) -> Decision<Fetched> {
        let mut spare = Vec::new();
        for (position, member) in self.members.iter_mut().enumerate() {
            if member.is_spare() {
                *member = State::Asked;
                spare.push(position);
            }
        }
        match spare.is_empty() {
            true => self.evaluate(),
            false => Decision::Ask(spare),
        }
    }
}

impl State {
    fn is_spare(&self) -> bool {
        matches!(self, State::Spare)
    }

    fn is_asked(&self) -> bool {
        matches!(self, State::Asked)
    }

    fn response(&self) -> Response {
        match self {
            State::Spare | State::Asked => Response::NotAwaited,
            State::Refused(refusal) => Response::Refused(*refusal),
            State::Lacks => Response::Refused(Refusal::Damaged),
            State::Given(_) => Response::Answered,
        }
    }
}

/// Ticks for which members that are late are hoped for in the first attempt; each further one hopes twice as long.
const FETCH_HOPE: u32 = 64;
/// The attempt with which that ends.
const MOST_HOPE: u32 = 8;

impl ConfiguredTally for Fetch {
    type Output = Fetched;

    fn needed(&self) -> usize {
        usize::from(self.c.dap().k())
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        if self.late && self.members[position].is_spare() {
            self.members[position] = State::Asked;
        }
        let access = Access::Fetch {
            tag: self.tag,
            payload: self.scope == Scope::Whole,
        };
        self.members[position]
            .is_asked()
            .then(|| Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        let answer = match event {
            Event::Unreachable => return self.ask_others(),
            Event::Refused(refusal) => Some(Answer::Refused(refusal)),
            Event::Reply(reply) => single(reply),
        };
        match answer {
            Some(Answer::Fetched(ReplyElement::Whole(element)))
                if fits(&self.c, &self.name, from, &element, self.scope) =>
            {
                self.members[from] = State::Given(element);
                self.evaluate()
            }
            _ if matches!(self.members[from], State::Given(_)) => Decision::Pending,
            // It went for one that was chosen later: members that are silent need not be waited for.
            Some(Answer::Evicted) if self.holders[from] => Decision::Done(Fetched::Again),
            Some(Answer::Refused(refusal)) if refusal != Refusal::Damaged => {
                self.members[from] = State::Refused(refusal);
                self.ask_others()
            }
            _ => {
                self.members[from] = State::Lacks;
                self.ask_others()
            }
        }
    }

    fn tick(&mut self) -> Decision<Self::Output> {
        self.hope = self.hope.saturating_sub(1);
        self.ask_others()
    }

    fn patience(&self) -> Option<Duration> {
        (self.hope > 0).then_some(timing::HEDGE)
    }
}

/// The number of elements of one form that make the wanted part of a value.
pub(super) fn needed(c: &Configuration, scope: Scope) -> usize {
    match scope {
        Scope::Whole => usize::from(c.dap().k()),
        Scope::Metadata | Scope::Version => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Dap;
    use crate::config::testing::configuration;
    use crate::element::Value;
    use crate::message::Reply;
    use crate::tag::Writer;
    use bytes::Bytes;

    /// A member that states another length than the others of a version does not keep it from being read.
    #[test]
    fn elements_that_state_something_else_are_left_out() {
        let c = configuration(4, Dap::Conditional { k: 2 });
        let name = Name::user("key").expect("it is short");
        let writer = Writer::default();
        let tag = Tag { number: 1, writer };
        let of = |length: usize| {
            let value = Value::new(Bytes::new(), Bytes::from(vec![3; length]));
            crate::dap::elements(&c, &name, &value)
        };
        let mut fetch = Fetch::new(&c, &name, (tag, Scope::Whole), (&[true; 4], 0));
        let mut give = |from: usize, elements: &[Element]| {
            let element = ReplyElement::Whole(elements[from].clone());
            let reply = Reply::Access(vec![Answer::Fetched(element)]);
            fetch.add(from, Event::Reply(reply))
        };
        let (shorter, elements) = (of(40), of(100));
        assert_eq!(give(0, &shorter), Decision::Pending);
        assert_eq!(give(1, &elements), Decision::Ask(vec![2, 3]));
        let found = elements[1..3].to_vec();
        assert_eq!(give(2, &elements), Decision::Done(Fetched::Elements(found)));
    }
}
