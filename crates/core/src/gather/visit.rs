//! Visits: the envelope around what is asked of a configuration. Pointers are put on requests and taken off replies here
//! and nowhere else (`docs/spec` 3.4).

use super::contact::{self, EarlyAnswers};
use super::{ConfiguredTally, Decision, Event, Tally};
use crate::config::Configuration;
use crate::limits;
use crate::message::{Body, Refusal, Reply, Request};
use crate::pointer::{Fork, Pointer, Successors};
use crate::timing;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A visit of an operation to one configuration: it sends the requests there, and hears of the configuration's
/// successors, so that no algorithm below the operations mentions pointers. Clones are one visit.
#[derive(Clone)]
pub struct Visit(Rc<Place>);

struct Place {
    configuration: Arc<Configuration>,
    /// Go with every request, so that only servers that know them answer (`[A-8 closed-get]`).
    closing: Successors,
    heard: RefCell<SuccessorView>,
    /// The answers of members that were asked in other configurations.
    early: EarlyAnswers,
}

/// The knowledge of successors.
#[derive(Default)]
struct SuccessorView {
    best: Successors,
    /// A quorum said all of that, or something larger.
    at_quorum: bool,
    /// Two successors contradict each other: nothing more is asked here.
    fork: Option<Fork>,
}

impl Visit {
    /// A visit to this configuration.
    pub fn new(configuration: &Arc<Configuration>) -> Visit {
        Visit::within(configuration, &EarlyAnswers::default())
    }

    /// A visit of an operation that goes through several configurations. Members that have answered for this one are not asked again
    /// (`[R-20 answers-for-later]`).
    pub fn within(configuration: &Arc<Configuration>, early: &EarlyAnswers) -> Visit {
        Visit::make(configuration, Successors::default(), early)
    }

    /// A visit that closes the configuration: every server that answers knows these pointers by then, and says so
    /// (`[A-8 closed-get]`).
    pub fn closing(configuration: &Arc<Configuration>, known: impl Into<Successors>) -> Visit {
        let closing = known.into();
        let leads_on = |pointer: &Pointer| pointer.leads_on_from_known(configuration);
        assert!(
            !closing.is_empty() && closing.iter().all(leads_on),
            "pointers lead upwards"
        );
        Visit::make(configuration, closing, &EarlyAnswers::default())
    }

    fn make(
        configuration: &Arc<Configuration>,
        closing: Successors,
        early: &EarlyAnswers,
    ) -> Visit {
        Visit(Rc::new(Place {
            configuration: configuration.clone(),
            closing,
            heard: RefCell::default(),
            early: early.clone(),
        }))
    }

    pub fn c(&self) -> &Arc<Configuration> {
        &self.0.configuration
    }

    /// True if a quorum knows the pointer because it went with the requests of this visit.
    pub fn has_closed(&self, pointer: &Pointer) -> bool {
        self.0.closing.says(pointer)
    }

    /// The nearest of the pointers that the replies showed so far: in a sequence the largest.
    pub fn next(&self) -> Option<Pointer> {
        self.0.heard.borrow().best.nearest().cloned()
    }

    /// All that the replies showed so far.
    pub fn successors(&self) -> Successors {
        self.0.heard.borrow().best.clone()
    }

    /// True if the member has answered already.
    pub(super) fn has_early(&self, position: usize) -> bool {
        self.0
            .early
            .has(self.c().id(), self.c().members()[position])
    }

    /// True if no reply showed a pointer so far (`[F-4 last-configuration]`, `[F-5 clean-confirm]`).
    pub fn is_last(&self) -> bool {
        self.0.heard.borrow().best.is_empty()
    }

    /// True if a quorum has shown all that any reply showed, so that no member needs to hear of it.
    pub fn is_agreed(&self) -> bool {
        self.0.heard.borrow().at_quorum
    }

    /// Takes in the pointers that the members showed in one call, by position.
    fn hear<'a>(&self, shown: impl Iterator<Item = &'a Successors> + Clone) {
        let mut heard = self.0.heard.borrow_mut();
        let heard = &mut *heard;
        for successors in shown.clone() {
            match heard.best.join(successors) {
                Ok(false) => {}
                Ok(true) => heard.at_quorum = false,
                Err(fork) => drop(heard.fork.get_or_insert(fork)),
            }
        }
        if heard.best.is_empty() {
            return;
        }
        let mut best = heard.best.iter();
        let leads_on = best.all(|pointer| pointer.leads_on_from_known(self.c()));
        assert!(leads_on, "others were left out of the replies");
        let agreeing = shown.filter(|shown| shown.cover(&heard.best)).count();
        assert!(agreeing <= self.c().n(), "each member says it once");
        if agreeing >= self.c().quorums().quorum() {
            heard.at_quorum = true;
        }
    }
}

impl Visit {
    /// Checks that the pointer, those that were shown and those that are known here can be of one domain.
    fn check<'a>(
        &self,
        mut shown: impl Iterator<Item = &'a Successors>,
        new: &Pointer,
    ) -> Result<(), Fork> {
        let heard = self.0.heard.borrow();
        self.0.closing.check(new)?;
        heard.best.check(new)?;
        shown.try_for_each(|known| known.check(new))
    }

    pub(super) fn fork(&self) -> Option<Fork> {
        self.0.heard.borrow().fork.clone()
    }

    fn is_forked(&self) -> bool {
        self.0.heard.borrow().fork.is_some()
    }
}

/// Puts the envelope around a tally's bodies, and takes it off the replies.
pub(super) struct AddressedTally<T> {
    at: Visit,
    /// The members, by position.
    members: Vec<Member>,
    /// Positions to ask again at the next tick.
    again: Vec<usize>,
    /// Time has passed since a final pointer was shown.
    hurried: bool,
    tally: T,
}

/// The state of a call with one member.
#[derive(Clone, Default)]
struct Member {
    /// It needs the descriptor.
    describe: bool,
    /// It refused the successor that it was sent: it is asked for the one that it knows.
    forked: bool,
    /// It answered, also without the answer.
    replied: bool,
    /// The successors that it showed.
    shown: Successors,
}

impl<T: ConfiguredTally> AddressedTally<T> {
    pub(super) fn new(at: &Visit, tally: T) -> AddressedTally<T> {
        AddressedTally {
            at: at.clone(),
            members: vec![Member::default(); at.c().n()],
            again: Vec::new(),
            hurried: false,
            tally,
        }
    }

    /// True if the object is in a later configuration: a final pointer is a safe place to go on from, whoever showed it.
    fn has_successor(&self) -> bool {
        self.shown()
            .any(|successors| successors.last_final().is_some())
    }

    /// The successors that each member showed.
    fn shown(&self) -> impl Iterator<Item = &Successors> + Clone {
        self.members.iter().map(|member| &member.shown)
    }

    /// True if the visit may go on from the pointer that one member showed, although no other answers. Not while a final pointer is written: the
    /// first server that takes it shows it, and only the quorum that has it makes sure that later operations see it.
    fn one_is_enough(&self) -> bool {
        self.at.0.closing.last_final().is_none() && self.has_successor()
    }

    /// True if the visit goes there: a quorum answered, so that the others may know it too; or nobody else answers, because a configuration with a
    /// final successor may have been switched off.
    fn moved(&self) -> bool {
        let replied = self.members.iter().filter(|member| member.replied).count();
        let quorum = self.at.c().quorums().quorum();
        replied >= quorum && self.has_successor() || self.hurried
    }

    /// The decision of the tally, or `None` if the requested state is in another configuration.
    fn conclude(&self, decision: Decision<T::Output>) -> Decision<Option<T::Output>> {
        let decision = match decision {
            _ if self.at.is_forked() || self.moved() => Decision::Done(None),
            // The others refuse for good; one who knows where to go on is enough.
            Decision::Impossible if self.one_is_enough() => Decision::Done(None),
            Decision::Pending => Decision::Pending,
            Decision::Ask(positions) => Decision::Ask(positions),
            Decision::Done(output) => Decision::Done(Some(output)),
            Decision::Impossible => Decision::Impossible,
        };
        if let Decision::Done(output) = &decision {
            assert!(
                output.is_some() || self.has_successor() || self.at.is_forked(),
                "a call without an answer ends where a successor is known"
            );
            self.at.hear(self.shown());
        }
        decision
    }

    /// True if all that is known with these can go with one request (`[R-25 whole-sets]`).
    fn can_be_shown(&self, new: &Successors) -> bool {
        let mut all = self.at.successors();
        let known = [&self.at.0.closing, new].into_iter().chain(self.shown());
        known.for_each(|known| drop(all.join(known)));
        all.len() <= limits::SUCCESSORS
    }

    fn replied(&mut self, from: usize, reply: Reply) -> Decision<T::Output> {
        // No execution produces what it says: it is damaged there ([N-1 bounded-numbers]).
        if !reply.is_possible() {
            return self.tally.add(from, Event::Refused(Refusal::Damaged));
        }
        let (shown, mut reply) = reply.open();
        self.keep_early(from, reply.as_mut());
        let shown = shown.above(self.at.c());
        for pointer in shown.iter() {
            if let Err(fork) = self.at.check(self.shown(), pointer) {
                self.at.0.heard.borrow_mut().fork = Some(fork);
                return Decision::Pending;
            }
        }
        if self.members[from].forked {
            return self.tally.add(from, Event::Refused(Refusal::Forked));
        }
        if !shown.is_empty() && !self.can_be_shown(&shown) {
            return self.tally.add(from, Event::Refused(Refusal::Full));
        }
        // A withheld answer comes with a final pointer; a closed request is answered with what closed it.
        let is_sound = match &reply {
            None => shown.last_final().is_some(),
            Some(_) => shown.cover(&self.at.0.closing),
        };
        if !is_sound {
            return self.tally.add(from, Event::Refused(Refusal::Malformed));
        }
        let member = &mut self.members[from];
        member.replied = true;
        member.shown.join(&shown).expect("it was checked");
        match reply {
            Some(reply) if reply.restarts() => self.later(from),
            Some(reply) => self.tally.add(from, Event::Reply(reply)),
            None => Decision::Pending,
        }
    }

    /// Keeps the member's answers for later configurations.
    fn keep_early(&mut self, from: usize, reply: Option<&mut Reply>) {
        let later = reply.map(contact::split).unwrap_or_default();
        if later.is_empty() {
            return;
        }
        if let Some(body) = self.tally.ask(from)
            && let Some(name) = body.queried()
        {
            let server = self.at.c().members()[from];
            for answer in later {
                self.at.0.early.keep(server, name, answer);
            }
        }
    }

    /// The member is asked again after a while, and the others do not wait for it.
    fn later(&mut self, from: usize) -> Decision<T::Output> {
        if !self.again.contains(&from) {
            self.again.push(from);
        }
        assert!(self.again.len() <= self.members.len(), "each once");
        self.tally.add(from, Event::Unreachable)
    }
}

impl<T: ConfiguredTally> Tally for AddressedTally<T> {
    type Output = Option<T::Output>;

    fn needed(&self) -> usize {
        self.tally.needed()
    }

    fn known(&mut self) -> Vec<(usize, Reply)> {
        let early = &self.at.0.early;
        let (id, members) = (self.at.c().id(), self.at.c().members());
        let mut known = Vec::new();
        for (position, server) in members.iter().enumerate() {
            if early.has(id, *server)
                && let Some(body) = self.tally.ask(position)
                && let Some(name) = body.queried()
                && let Some(reply) = early.take(id, *server, name)
            {
                known.push((position, reply));
            }
        }
        known
    }

    fn ask(&mut self, position: usize) -> Option<Request> {
        let (body, successors) = match self.members[position].forked {
            true => (Body::ReadConfig, Successors::default()),
            false => (self.tally.ask(position)?, self.at.0.closing.clone()),
        };
        let configuration = self.at.c();
        Some(Request::Configured {
            configuration: configuration.id(),
            descriptor: self.members[position]
                .describe
                .then(|| configuration.clone()),
            successors,
            body,
        })
    }

    fn add(&mut self, from: usize, event: Event) -> Decision<Self::Output> {
        let decision = match event {
            // A late one is an answer to what was asked before: the descriptor is under way.
            Event::Refused(Refusal::UnknownConfiguration) if self.members[from].describe => {
                Decision::Pending
            }
            Event::Refused(Refusal::UnknownConfiguration) => {
                self.members[from].describe = true;
                Decision::Ask(vec![from])
            }
            Event::Refused(Refusal::Forked) if !self.members[from].forked => {
                self.members[from].forked = true;
                Decision::Ask(vec![from])
            }
            Event::Refused(refusal) if refusal.may_pass() => self.later(from),
            Event::Reply(reply) => self.replied(from, reply),
            event => self.tally.add(from, event),
        };
        self.conclude(decision)
    }

    fn tick(&mut self) -> Decision<Self::Output> {
        self.hurried |= self.one_is_enough();
        let mut again = std::mem::take(&mut self.again);
        let decision = match self.tally.tick() {
            Decision::Ask(more) => {
                again.extend(more);
                again.sort_unstable();
                again.dedup();
                Decision::Ask(again)
            }
            Decision::Pending if !again.is_empty() => Decision::Ask(again),
            decision => decision,
        };
        self.conclude(decision)
    }

    fn patience(&self) -> Option<Duration> {
        let again = (!self.again.is_empty()).then_some(timing::ASK_AGAIN);
        let hurry = self.one_is_enough().then_some(timing::SUCCESSOR_GRACE);
        let patience = [self.tally.patience(), again, hurry];
        patience.into_iter().flatten().min()
    }
}
