//! The envelope: what a server knows of a domain's sequence is put around every answer, and decides what it keeps
//! (`docs/spec` 3.4, 10.4).

use super::record::Header;
use super::state::ConfigurationState;
use super::{Read, Server};
use crate::config::{Collect, Configuration, ConfigurationId};
use crate::instant::Instant;
use crate::limits;
use crate::message::{Answer, Body, Refusal, Reply};
use crate::object::DomainId;
use crate::pointer::{Fork, Pointer, Successors};
use std::sync::Arc;

impl Server {
    /// Handles a request to a configuration: the pointers that come with it are taken in first (`[A-8 closed-get]`),
    /// and the known successors go with the answer. Both are one step, so that the reply is one snapshot
    /// (`[C-2 atomic-snapshot]`).
    pub(super) fn enveloped(
        &mut self,
        now: Instant,
        (id, descriptor, successors): (ConfigurationId, Option<Arc<Configuration>>, Successors),
        body: Body,
        reads: &mut Vec<Read>,
    ) -> Result<Reply, Refusal> {
        if successors.iter().any(|pointer| !pointer.leads_on_from(&id)) {
            return Err(Refusal::Malformed);
        }
        // Below the highest final configuration nothing is created (`[X-13 highest-final]`).
        if self.known(&id).is_none()
            && (self.contradicts(&id).is_some() || self.finals.after(&id).is_none())
        {
            self.admit(id, descriptor)?;
        }
        let is_closed = !successors.is_empty();
        for pointer in successors.iter() {
            self.hear(now, id, pointer)?;
        }
        if let Some(successors) = self.withheld(&id) {
            assert!(
                successors.last_final().is_some(),
                "nothing is withheld before it is elsewhere"
            );
            return Ok(Reply::Next {
                successors,
                reply: None,
            });
        }
        let is_access = matches!(body, Body::Access(_));
        let asked = self.answers_once(&id, &body).then(|| body.clone());
        let mut reply = self.configured(now, id, body, reads)?;
        if let Some(asked) = asked {
            self.answer_for_later(now, id, (&asked, &mut reply), reads);
        }
        let state = &self.states[&id];
        let piggyback = state.configuration().is_some_and(|c| c.options().piggyback);
        let shows = piggyback || is_closed || !is_access || says_closed(&reply);
        if state.next().is_empty() || !shows {
            return Ok(reply);
        }
        Ok(Reply::Next {
            successors: state.next().clone(),
            reply: Some(Box::new(reply)),
        })
    }

    /// The pointers that are all there is to say of the configuration.
    pub(super) fn withheld(&self, id: &ConfigurationId) -> Option<Successors> {
        match self.states.get(id) {
            Some(state) if state.withholds() => Some(state.next().clone()),
            Some(_) => None,
            None => self.finals.after(id).map(|last| Successors::from(&last)),
        }
    }

    /// Takes in a successor of a configuration; drops state that becomes superfluous. Of two configurations that
    /// contradict each other the server keeps the one that it knows, and refuses the other.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        key: ConfigurationId,
        pointer: &Pointer,
    ) -> Result<(), Refusal> {
        assert!(pointer.index() > key.index, "others are refused");
        self.fits(&key, pointer)?;
        if pointer.is_final() {
            self.finish(&pointer.configuration);
        }
        let Some(state) = self.states.get_mut(&key) else {
            return Ok(());
        };
        if !state.next().says(pointer) {
            let mut known = state.next().clone();
            let rises = known.insert(pointer.clone());
            assert_eq!(rises, Ok(true), "it fits, and is new");
            // More than can be shown at once ([R-25 whole-sets]).
            if known.len() > limits::SUCCESSORS {
                return Err(Refusal::Full);
            }
            let header = Header::Pointer {
                key,
                pointer: pointer.clone(),
            };
            let handle = self.ledger.append(header);
            state.point(now, (pointer.clone(), handle), &mut self.ledger);
            assert!(state.next().says(pointer), "what is recorded is known");
            self.collect(key);
        }
        Ok(())
    }

    /// Checks that the server's part of the sequence allows for the pointer, which stands at the configuration of
    /// this key.
    fn fits(&self, after: &ConfigurationId, pointer: &Pointer) -> Result<(), Refusal> {
        let c = &pointer.configuration;
        let id = c.id();
        let next = self.states.get(after).map(ConfigurationState::next);
        let last = self.finals.of(id.domain, id.partition);
        let last = last.map(Pointer::finalized);
        let known = [self.known(after), self.contradicts(&id)];
        let mut known = known.into_iter().flatten();
        let fits = next.map_or(Ok(()), |next| next.check(pointer));
        fits.and_then(|()| last.map_or(Ok(()), |last| Fork::check(&last, pointer)))
            .and_then(|()| known.try_for_each(|known| Fork::check_order(known, c)))
            .map_err(|fork| {
                tracing::error!(%fork, "two configurations contradict each other: the first is kept");
                Refusal::Forked
            })
    }

    /// Hears of a final configuration. What comes before it in the domain is superseded.
    fn finish(&mut self, c: &Arc<Configuration>) {
        if !self.finals.raise(c, &mut self.ledger) {
            return;
        }
        let earlier = self.states.range(c.id().earlier());
        let earlier: Vec<ConfigurationId> = earlier.map(|(key, _)| *key).collect();
        for key in earlier {
            self.collect(key);
        }
    }

    /// Drops state that the configuration need not keep (`[A-11 drop-when-final]`). Everything goes if a later configuration of its domain is final,
    /// unless the configuration's options keep superseded state and the domain was not removed. Otherwise its state goes if its own pointer
    /// is final.
    pub(super) fn collect(&mut self, key: ConfigurationId) {
        let Some(state) = self.states.get_mut(&key) else {
            return;
        };
        let collect = state.configuration().map(|c| c.options().collect);
        let is_remembered = collect.is_none_or(|collect| collect == Collect::On);
        let goes = |last: Pointer| is_remembered || last.configuration.dap().is_removal();
        if self.finals.after(&key).is_some_and(goes) {
            let state = self.states.remove(&key).expect("it is there");
            state.drop_all(&mut self.ledger);
        } else if state.withholds() {
            state.empty(&mut self.ledger);
        }
    }

    /// The latest configuration of a domain; takes in the one that the asker knows first (`[X-21 directory-join]`).
    pub(super) fn latest(
        &mut self,
        domain: DomainId,
        partition: u32,
        known: Option<Arc<Configuration>>,
    ) -> Result<Reply, Refusal> {
        if !self.serving {
            return Err(Refusal::Starting);
        }
        if self.unreadable {
            return Err(Refusal::Damaged);
        }
        if let Some(known) = known {
            let id = known.id();
            if (id.domain, id.partition) != (domain, partition) {
                return Err(Refusal::Malformed);
            }
            self.fits(&id, &Pointer::finalized(&known))?;
            self.finish(&known);
        }
        Ok(Reply::Latest(self.finals.of(domain, partition).cloned()))
    }

    pub(super) fn known(&self, id: &ConfigurationId) -> Option<&Arc<Configuration>> {
        self.states
            .get(id)
            .and_then(ConfigurationState::configuration)
    }

    /// True if a request with these parts would tell the server nothing about configurations: it knows them, or refuses the request.
    /// `successors` is `None` where the described configuration is said to be final.
    pub fn has_heard(
        &self,
        id: &ConfigurationId,
        descriptor: Option<&Arc<Configuration>>,
        successors: Option<&Successors>,
    ) -> bool {
        let is_reached = |c: &Arc<Configuration>| {
            let highest = self.finals.of(c.id().domain, c.id().partition);
            highest.is_some_and(|highest| !highest.precedes(c))
        };
        let Some(successors) = successors else {
            return descriptor.is_none_or(is_reached);
        };
        if self.known(id).is_none() && self.finals.after(id).is_none() {
            let is_refused = descriptor.is_none() || self.contradicts(id).is_some();
            let is_root = descriptor == Some(&self.identity.root);
            return is_refused || is_root && successors.is_empty();
        }
        let next = self.states.get(id).map(ConfigurationState::next);
        successors.iter().all(|pointer| {
            let is_known = next.is_none_or(|next| next.says(pointer));
            is_known && (!pointer.is_final() || is_reached(&pointer.configuration))
        })
    }

    /// The configuration of this id, if the server has heard of it.
    pub fn configuration(&self, id: &ConfigurationId) -> Option<&Arc<Configuration>> {
        self.known(id)
    }

    /// The highest final configuration of the domain of this one, if the server has heard of one.
    pub fn latest_of(&self, id: &ConfigurationId) -> Option<&Arc<Configuration>> {
        self.finals.of(id.domain, id.partition)
    }

    /// True if a pointer that the server knows leads to this configuration, or it is the highest final one of its domain, or the first root.
    pub fn points_to(&self, c: &Arc<Configuration>) -> bool {
        let id = c.id();
        let mut states = self.states.values();
        self.identity.root == *c
            || self.finals.of(id.domain, id.partition) == Some(c)
            || states.any(|state| state.next().iter().any(|it| it.configuration == *c))
    }

    /// The configuration that has this one's place in the sequence: this one, or another if what decides forgot.
    pub(super) fn of_its_place(&self, id: &ConfigurationId) -> Option<&Arc<Configuration>> {
        let mut known = self.states.range(id.of_its_place());
        known.find_map(|(_, state)| state.configuration())
    }

    /// The other configuration in this one's place, unless the two may be beside each other ([`Configuration::branches`]).
    fn contradicts(&self, id: &ConfigurationId) -> Option<&Arc<Configuration>> {
        self.of_its_place(id).filter(|known| !known.branches())
    }

    /// Knows the configuration afterwards, or refuses: state for an unknown one is created only from its descriptor.
    fn admit(
        &mut self,
        id: ConfigurationId,
        descriptor: Option<Arc<Configuration>>,
    ) -> Result<(), Refusal> {
        assert!(self.known(&id).is_none(), "it is admitted once");
        if let Some(known) = self.contradicts(&id) {
            // Another configuration of the same index: its descriptor would not help ([X-13 highest-final]).
            let (known, other) = (known.id().digest, id.digest);
            tracing::error!(index = id.index, known = %format_args!("{known:016x}"), other = %format_args!("{other:016x}"), "another configuration of a known index");
            return Err(Refusal::Forked);
        }
        let descriptor = descriptor.filter(|descriptor| descriptor.id() == id);
        let configuration = descriptor.ok_or(Refusal::UnknownConfiguration)?;
        configuration
            .position(self.identity.id)
            .ok_or(Refusal::WrongServer)?;
        let handle = self
            .ledger
            .append(Header::Configuration(configuration.clone()));
        self.states
            .entry(id)
            .or_default()
            .describe(configuration, handle, &mut self.ledger);
        assert!(self.known(&id).is_some(), "what is admitted is known");
        Ok(())
    }
}

/// True if the reply refuses because of a successor: then the successor is shown, also without piggybacking.
fn says_closed(reply: &Reply) -> bool {
    let is_closed = |answer: &Answer| matches!(answer, Answer::Ranked(ranked) if ranked.closed);
    let answers = reply.answers();
    answers.is_some_and(|answers| answers.iter().any(is_closed))
}
