//! The tally that fetches the elements of one version from members that list it.

use crate::config::Configuration;
use crate::dap::collect::elements::{alike, enough, fits};
use crate::dap::{Scope, single};
use crate::element::{Element, ReplyElement};
use crate::gather::{ConfiguredTally, Decision, Event};
use crate::message::{Access, Answer, Body};
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
    /// By position: whether the member listed the version with its element.
    holders: Vec<bool>,
    /// By position.
    members: Vec<State>,
    late: bool,
}

enum State {
    /// It is not asked yet.
    Spare,
    Asked,
    Refused,
    Given(Element),
}

impl Fetch {
    /// `holders`: by position, whether the member listed the version with its element. As many of them are asked first as are
    /// needed; the others when time has passed.
    pub(super) fn new(
        c: &Arc<Configuration>,
        name: &Name,
        (tag, scope): (Tag, Scope),
        holders: &[bool],
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
        }
    }

    fn evaluate(&mut self) -> Decision<Option<Vec<Element>>> {
        let given = |position: usize| match &self.members[position] {
            State::Given(element) => Some(element),
            _ => None,
        };
        let alike = alike(self.members.len(), given);
        let elements = alike.iter().filter_map(|position| given(*position));
        if enough(&self.c, self.scope, elements.clone()) {
            return Decision::Done(Some(elements.cloned().collect()));
        }
        let is_open = |member: &State| matches!(member, State::Spare | State::Asked);
        match self.members.iter().any(is_open) {
            true => Decision::Pending,
            // It went for a newer one: ask again which is current.
            false => Decision::Done(None),
        }
    }

    fn ask_others(&mut self) -> Decision<Option<Vec<Element>>> {
        let mut spare = Vec::new();
        for (position, member) in self.members.iter_mut().enumerate() {
            if matches!(member, State::Spare) {
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

impl ConfiguredTally for Fetch {
    type Output = Option<Vec<Element>>;

    fn needed(&self) -> usize {
        usize::from(self.c.dap().k())
    }

    fn ask(&mut self, position: usize) -> Option<Body> {
        if self.late && matches!(self.members[position], State::Spare) {
            self.members[position] = State::Asked;
        }
        let access = Access::Fetch {
            tag: self.tag,
            payload: self.scope == Scope::Whole,
        };
        let is_asked = matches!(self.members[position], State::Asked);
        is_asked.then(|| Body::Access(vec![(self.name.clone(), access)]))
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        let answer = match event {
            Event::Unreachable => return self.ask_others(),
            Event::Refused(_) => None,
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
            Some(Answer::Evicted) if self.holders[from] => Decision::Done(None),
            _ => {
                self.members[from] = State::Refused;
                self.ask_others()
            }
        }
    }

    fn tick(&mut self) -> Decision<Self::Output> {
        self.ask_others()
    }

    fn patience(&self) -> Option<Duration> {
        let has_spare = self
            .members
            .iter()
            .any(|member| matches!(member, State::Spare));
        has_spare.then_some(timing::HEDGE)
    }
}

/// How many elements of one form make what is wanted of a value.
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
        let mut fetch = Fetch::new(&c, &name, (tag, Scope::Whole), &[true; 4]);
        let mut give = |from: usize, elements: &[Element]| {
            let element = ReplyElement::Whole(elements[from].clone());
            let reply = Reply::Access(vec![Answer::Fetched(element)]);
            fetch.add(from, Event::Reply(reply))
        };
        let (shorter, elements) = (of(40), of(100));
        assert_eq!(give(0, &shorter), Decision::Pending);
        assert_eq!(give(1, &elements), Decision::Pending);
        let found = elements[1..3].to_vec();
        assert_eq!(give(2, &elements), Decision::Done(Some(found)));
    }
}
