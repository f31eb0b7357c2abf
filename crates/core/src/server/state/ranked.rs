//! Ranked registers of a configuration: what [`crate::dap::conditional::register`] decides is carried out and recorded here. The
//! elements are kept as those of other objects are; the versions of a register are those that its record lists.

use super::super::record::{ElementHeader, Header, Ledger};
use super::ConfigurationState;
use super::keeping::{object, take_in};
use crate::config::{Configuration, ConfigurationId};
use crate::dap::conditional::register::{Acceptance, Register};
use crate::dap::versions::StoredVersion;
use crate::element::{Form, Handle};
use crate::instant::Instant;
use crate::message::{
    Ballot, ChosenVersion, Proposal, RankedVersion, RankedVersions, Refusal, Want,
};
use crate::object::Name;
use crate::pointer::Pointer;
use crate::tag::Tag;
use bytes::Bytes;

/// Why there is a register.
const RECORDED: &str = "it was recorded";

/// A register with its record.
#[derive(Default)]
pub(super) struct KeptRegister {
    pub(super) register: Register,
    pub(super) record: Option<Handle>,
    /// The round of repair in which a ballot was promised last, if nothing was here.
    pub(super) promised_in: u64,
    /// The promise waits for the time to go into a floor ([`super::floors`]).
    pub(super) waits: bool,
}

impl ConfigurationState {
    /// True if the object of this name is a ranked register here.
    pub(super) fn is_ranked(&self, name: &Name) -> bool {
        let keeps = |c: &std::sync::Arc<Configuration>| c.is_ranked(name);
        self.configuration().is_some_and(keeps)
    }

    /// True if the object of this name is a ranked register from the next configuration on. Its last version here is settled there,
    /// and no version of it is taken in here any more (`[W-12 becoming-conditional]`).
    pub(in crate::server) fn becomes_ranked(&self, name: &Name) -> bool {
        let mut next = self.next.iter();
        !self.is_ranked(name) && next.any(|pointer| pointer.configuration.is_ranked(name))
    }

    /// True if a proposal at this ballot may be promised or accepted here: an ordinary one while there is no
    /// successor, and a closing one if the object is no register in the successor
    /// (`[W-13 ceasing-to-be-conditional]`).
    fn takes(&self, name: &Name, ballot: Ballot) -> bool {
        let ceases = |pointer: &Pointer| {
            let next = &pointer.configuration;
            !next.is_ranked(name) && !next.dap().is_removal()
        };
        match ballot.is_closing() {
            true => self.next.iter().any(ceases),
            false => self.next.is_empty(),
        }
    }

    /// The versions of the register that are held; with a ballot, that is promised before.
    pub(in crate::server) fn rank(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        ballot: Option<Ballot>,
        (want, have): (Want, Tag),
        ledger: &mut Ledger,
    ) -> Result<RankedVersions, Refusal> {
        if !self.is_ranked(name) {
            return Err(Refusal::Malformed);
        }
        self.sound_register(name)?;
        let mut granted = false;
        if let Some(ballot) = ballot.filter(|ballot| self.takes(name, *ballot)) {
            let (promised, is_new) = self.kept(name).register.promise(ballot);
            granted = promised;
            if is_new {
                self.keep_register(key, name, ledger);
                self.await_folding(name);
            }
            self.drop_unrecorded(name);
        }
        let shown = self.held_register(name, Some((want, have)));
        assert!(
            !granted || Some(shown.promised) == ballot,
            "a promise shows"
        );
        Ok(RankedVersions { granted, ..shown })
    }

    /// Handles an ACCEPT. `Ok(None)`: accepted; otherwise the state of the register.
    pub(in crate::server) fn accept(
        &mut self,
        now: Instant,
        (key, name): (ConfigurationId, &Name),
        (proposal, cap): (Proposal, usize),
        ledger: &mut Ledger,
    ) -> Result<AcceptReply, Refusal> {
        if !self.is_ranked(name) {
            return Err(Refusal::Malformed);
        }
        self.sound_register(name)?;
        if !self.takes(name, proposal.ballot) {
            return Ok(AcceptReply::Refused(Box::new(
                self.held_register(name, None),
            )));
        }
        let tag = proposal.tag;
        assert!(!tag.is_initial(), "it was refused before");
        let stored = self.objects.get(name.as_bytes());
        let has_element = stored.is_some_and(|versions| versions.with_element(tag).is_some());
        let acceptance = self.kept(name).register.accept(&proposal, has_element, cap);
        if !matches!(acceptance, Acceptance::Accept { .. }) {
            self.drop_unrecorded(name);
        }
        let (stores, evicted) = match acceptance {
            Acceptance::Acknowledge => return Ok(AcceptReply::Stored),
            Acceptance::Refuse => {
                return Ok(AcceptReply::Refused(Box::new(
                    self.held_register(name, None),
                )));
            }
            Acceptance::Need => return Ok(AcceptReply::Needed),
            Acceptance::Full => return Err(Refusal::Busy),
            Acceptance::Accept { stores, evicted } => (stores, evicted),
        };
        if stores {
            let element = proposal.element.expect("without it the element is needed");
            let versions = object(&mut self.objects, name);
            let (handle, header) = take_in(key, name, versions, (tag, &element), ledger);
            versions.taken_in_s = now.next_second();
            let header = Header::Element(ElementHeader { ..header });
            ledger.append_element(handle, header, element.payload, element.checksum);
        }
        self.evict(name, &evicted, ledger);
        let held = self.objects.get(name.as_bytes());
        let has_element = held.is_some_and(|held| held.with_element(tag).is_some());
        assert!(has_element, "what is acknowledged can be read");
        self.keep_register(key, name, ledger);
        Ok(AcceptReply::Stored)
    }

    /// Handles a CONFIRM: the version is chosen at this ballot.
    pub(in crate::server) fn choose(
        &mut self,
        (key, name): (ConfigurationId, &Name),
        chosen: ChosenVersion,
        ledger: &mut Ledger,
    ) {
        // Of a register that is not here, what the note says is said by the quorum that accepted the version.
        let is_here = self.registers.contains_key(name.as_bytes());
        if !is_here || !chosen.is_possible() || self.sound_register(name).is_err() {
            return;
        }
        // It has not heard yet that it is closed, and would keep others waiting who have not, either.
        if chosen.ballot.is_closing() && self.next.is_empty() {
            return;
        }
        if let Some(evicted) = self.kept(name).register.choose(chosen) {
            self.evict(name, &evicted, ledger);
            self.keep_register(key, name, ledger);
            // It is listed, also where nothing of it was put.
            object(&mut self.objects, name);
        }
    }

    /// The record of an element turned out to be damaged. The version stays accepted: only its element is not here any more. False:
    /// it was not here before.
    pub(super) fn lose_element(
        &mut self,
        (name, tag): (&Name, Tag),
        is_lost: impl Fn(&StoredVersion) -> bool,
        ledger: &mut Ledger,
    ) -> bool {
        let versions = self.objects.get_mut(name.as_bytes());
        let versions = versions.filter(|versions| versions.find(tag).is_some_and(is_lost));
        let lost = versions.and_then(|versions| versions.take(tag));
        let was_here = lost.is_some();
        ledger.supersede(lost.map(|lost| lost.handle));
        was_here
    }

    /// Refuses a register whose record no execution produces: it is damaged, and its promises are not known, so that
    /// it abstains (`[N-1 bounded-numbers]`, `[X-11 damage-abstains]`).
    fn sound_register(&self, name: &Name) -> Result<(), Refusal> {
        let is_possible = match self.registers.get(name.as_bytes()) {
            Some(kept) => kept.register.is_possible(),
            None => self.absent_register(name).is_possible(),
        };
        is_possible.then_some(()).ok_or(Refusal::Damaged)
    }

    fn kept(&mut self, name: &Name) -> &mut KeptRegister {
        // The name came as a part of the request's frame; what stays is a copy of its own.
        if !self.registers.contains_key(name.as_bytes()) {
            let register = self.absent_register(name);
            let name = Bytes::copy_from_slice(name.as_bytes());
            let kept = KeptRegister {
                register,
                ..KeptRegister::default()
            };
            self.registers.insert(name, kept);
        }
        let kept = self.registers.get_mut(name.as_bytes());
        kept.expect("it was put there")
    }

    /// Nothing stays of a register of which nothing was recorded.
    fn drop_unrecorded(&mut self, name: &Name) {
        let kept = self.registers.get(name.as_bytes());
        if kept.is_some_and(|kept| kept.record.is_none()) {
            self.registers.remove(name.as_bytes());
        }
    }

    /// A ballot was promised: if that is all there is of the register it goes into a floor later.
    fn await_folding(&mut self, name: &Name) {
        let (name, _) = self
            .registers
            .get_key_value(name.as_bytes())
            .expect(RECORDED);
        let name = name.clone();
        let kept = self.registers.get_mut(&name).expect(RECORDED);
        if kept.register.is_foldable() {
            self.floors.wait(&name, kept);
        }
    }

    /// Records the register as it is.
    fn keep_register(&mut self, key: ConfigurationId, name: &Name, ledger: &mut Ledger) {
        let kept = self.kept(name);
        assert!(
            kept.register.is_possible(),
            "recovery takes in what is recorded"
        );
        let handle = ledger.append(Header::Register {
            key,
            name: name.clone(),
            register: Box::new(kept.register.clone()),
        });
        ledger.supersede(kept.record.replace(handle));
    }

    fn evict(&mut self, name: &Name, tags: &[Tag], ledger: &mut Ledger) {
        let Some(versions) = self.objects.get_mut(name.as_bytes()) else {
            return;
        };
        let gone = tags.iter().filter_map(|tag| versions.take(*tag));
        let gone: Vec<Handle> = gone.map(|stored| stored.handle).collect();
        assert!(gone.len() <= tags.len(), "a version has one element");
        ledger.trimmed += gone.len() as u64;
        ledger.supersede(gone);
    }

    /// The versions of the register that are held, with an element if some is wanted.
    fn held_register(&self, name: &Name, wanted: Option<(Want, Tag)>) -> RankedVersions {
        let none = self.absent_register(name);
        let kept = self.registers.get(name.as_bytes());
        let register = kept.map_or(&none, |kept| &kept.register);
        let stored = self.objects.get(name.as_bytes());
        let with_element = |tag| stored.and_then(|versions| versions.with_element(tag));
        let versions = register.accepted.iter().map(|it| RankedVersion {
            tag: it.tag,
            ballot: it.ballot,
            form: with_element(it.tag).map_or(Form::Trimmed, |stored| stored.form),
            deleted: it.deleted,
            lineage: it.lineage.clone(),
        });
        let mut newest = register.accepted.iter().rev();
        let newest = newest.find_map(|it| with_element(it.tag));
        let element = newest.zip(wanted).and_then(|(newest, (want, have))| {
            let carried = newest.carried(want).filter(|_| newest.tag != have);
            carried.map(|carried| (newest.tag, carried))
        });
        let is_listed = element.as_ref().is_none_or(|it| register.lists(it.0));
        assert!(is_listed, "elements are of versions that are listed");
        RankedVersions {
            granted: false,
            closed: !self.next.is_empty(),
            promised: register.promised,
            chosen: register.chosen,
            versions: versions.collect(),
            element,
        }
    }

    // ---- recovery ----

    pub(in crate::server) fn recover_register(
        &mut self,
        name: &Name,
        found: Register,
        handle: Handle,
        ledger: &mut Ledger,
    ) {
        // Floors come in any order with it.
        let name = Bytes::copy_from_slice(name.as_bytes());
        let kept = self.registers.entry(name).or_default();
        let is_later = kept.record.is_none() || found.turn > kept.register.turn;
        let (abstains, known_abstains) = (!found.is_possible(), !kept.register.is_possible());
        if abstains || (is_later && !known_abstains) {
            kept.register = found;
            ledger.supersede(kept.record.replace(handle));
        } else {
            ledger.supersede([handle]);
        }
        assert!(kept.record.is_some(), "one of the records stays");
    }

    /// After the last record: elements of versions that no register lists go. They were accepted by an ACCEPT that was never
    /// answered, or they were dropped and came back.
    pub(super) fn recovered_registers(&mut self, ledger: &mut Ledger) {
        let Some((c, _)) = &self.configuration else {
            return;
        };
        if !c.dap().is_conditional() {
            return;
        }
        for (bytes, versions) in &mut self.objects {
            let name = Name::from_bytes(bytes.clone()).expect("it was a name before");
            if !c.is_ranked(&name) {
                continue;
            }
            let kept = self.registers.get(bytes);
            let lists = |tag| kept.is_some_and(|kept| kept.register.lists(tag));
            let stored = versions.stored().iter().map(|stored| stored.tag);
            let unlisted: Vec<Tag> = stored.filter(|tag| !lists(*tag)).collect();
            let gone = unlisted.iter().filter_map(|tag| versions.take(*tag));
            let gone: Vec<Handle> = gone.map(|stored| stored.handle).collect();
            assert_eq!(gone.len(), unlisted.len(), "each was there");
            ledger.supersede(gone);
        }
        self.recovered_promises(ledger);
        // A register of which no element is left is listed all the same.
        let lists = |kept: &KeptRegister| kept.register.listed().is_some();
        for (name, _) in self.registers.iter().filter(|(_, kept)| lists(kept)) {
            self.objects.entry(name.clone()).or_default();
        }
    }
}

/// The outcome of an ACCEPT.
pub(in crate::server) enum AcceptReply {
    /// The version is accepted.
    Stored,
    /// The element is needed.
    Needed,
    /// A larger ballot was promised, or a configuration comes next.
    Refused(Box<RankedVersions>),
}
