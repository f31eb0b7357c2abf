//! One operation on a register: what it asks, proposes and settles, attempt by attempt.

mod base;
mod fate;
mod looking;

use super::super::Domain;
use super::super::newest::SettledVersion;
use super::{Condition, UploadCommit, Wish};
use crate::config::Configuration;
use crate::dap::conditional::closing::LastVersion;
use crate::dap::conditional::{
    self, AcceptOutcome, CurrentVersion, ProposedVersion, SurveyOutcome, Wanted,
};
use crate::dap::{CachedVersion, FoundVersion, Scope};
use crate::env::Env;
use crate::error::{CallError, Unavailable};
use crate::gather::Visit;
use crate::message::{Ballot, ChosenVersion, Lineage};
use crate::object::Name;
use crate::reconfig::walk::{Step, WalkOutcome};
use crate::tag::{Tag, Writer};
use crate::timing::BackOff;
use base::{Base, Inheritance};
pub(super) use fate::Fate;
use std::sync::Arc;

/// The aim of a proposer.
#[derive(Clone, Copy)]
pub(super) enum Aim<'a> {
    Read {
        scope: Scope,
        known: Option<&'a CachedVersion>,
    },
    Write(Wish<'a>),
    /// Has the current version chosen once more, so that all members that answer have their elements.
    Again,
}

/// A client's operation on a ranked register, over all its attempts.
pub(super) struct Proposer<'a, E> {
    pub(super) domain: &'a Domain<E>,
    pub(super) name: &'a Name,
    pub(super) aim: Aim<'a>,
    /// The fate that the cell of its upload decides before it proposes, if it writes a manifest.
    upload: Option<UploadCommit<'a>>,
    writer: Writer,
    /// The writer in its ballots: unique to this proposer, also where several proposers write the upload of one writer.
    ballots_of: Writer,
    /// The largest number of a ballot that it used, or heard of, for this object.
    heard: u64,
    /// The versions that it put or proposed and that may be chosen yet, in order: one is at most.
    pub(super) own: Vec<OwnVersion>,
    /// The one of them that it put before the domain became conditional.
    put: Option<Tag>,
    /// The largest version that it put or proposed.
    largest: Tag,
    /// The visit at which the last attempt proposed, or would have.
    last: Option<Visit>,
    /// True if a version that it put or proposed was handed to a connection.
    pub(super) sent: bool,
    /// Members were at the cap: it proposes nothing any more on a version that is not known to be chosen.
    met_cap: bool,
    /// Attempts that came to nothing.
    attempts: u32,
}

/// A version that an operation put or proposed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OwnVersion {
    pub(super) tag: Tag,
    /// The number of times that the domain had ceased to be conditional.
    pub(super) era: u32,
    /// The ballot at which it was proposed; 0 of one that was put.
    pub(super) ballot: Ballot,
}

/// The last version of a register that its domain has left, where one of the operation's own is that or an ancestor of it.
pub(super) struct LastOwn {
    pub(super) tag: Tag,
    pub(super) replaced: Tag,
    pub(super) last: LastVersion,
    /// The configuration that it is to be brought to.
    pub(super) next: Arc<Configuration>,
}

/// The end of a proposer.
pub(super) enum ProposalEnd {
    /// The version that a read returns, or that is there in place of the condition.
    Found(FoundVersion, Lineage),
    Written {
        tag: Tag,
        replaced: Tag,
    },
    /// The fate of this version of its own cannot be known any more.
    Outrun(Tag),
    /// It has written its version, in a domain that has ceased to be conditional by now.
    Last(Box<LastOwn>),
    /// The domain has ceased to be conditional; a version that it proposed may have been applied.
    Left,
    /// A sweep has given up the blocks of its value: the value is no version, and never will be.
    GivenUp,
}

/// The end of an attempt.
pub(super) enum Turn {
    Ended(ProposalEnd),
    /// The attempt had no result: begin the next one.
    Again,
    /// Another proposer uses this ballot.
    Overtaken(Ballot),
}

impl<'a, E: Env> Proposer<'a, E> {
    pub(super) fn new(domain: &'a Domain<E>, name: &'a Name, aim: Aim<'a>) -> Proposer<'a, E> {
        let proposer = domain.client.next_writer();
        let writer = match aim {
            Aim::Write(wish) => wish.writer,
            Aim::Read { .. } | Aim::Again => proposer,
        };
        Proposer {
            domain,
            name,
            aim,
            upload: None,
            writer,
            ballots_of: proposer,
            heard: 0,
            own: Vec::new(),
            put: None,
            largest: Tag::INITIAL,
            last: None,
            sent: false,
            met_cap: false,
            attempts: 0,
        }
    }

    /// A proposer of a manifest, whose upload has this to commit.
    pub(super) fn of_upload(self, upload: UploadCommit<'a>) -> Proposer<'a, E> {
        let upload = Some(upload);
        Proposer { upload, ..self }
    }

    /// A proposer of an operation that put this version before the domain became conditional.
    pub(super) fn after(self, put: Option<Tag>) -> Proposer<'a, E> {
        assert!(self.own.is_empty(), "it has proposed nothing yet");
        let (era, ballot) = (0, Ballot::default());
        let own = put.map(|tag| OwnVersion { tag, era, ballot });
        Proposer {
            own: own.into_iter().collect(),
            sent: put.is_some(),
            largest: put.unwrap_or_default(),
            put,
            ..self
        }
    }

    /// True if the upload of its value is committed.
    pub(super) fn is_committed(&self) -> bool {
        self.upload.is_some_and(|upload| upload.is_decided)
    }

    fn env(&self) -> &E {
        &self.domain.client.env
    }

    /// The part of a value that is asked for with a promise, and the version that the caller has.
    fn wanted(&self) -> Wanted {
        let (scope, have) = match self.aim {
            Aim::Read { scope, known } => (scope, known.map_or(Tag::INITIAL, |known| known.tag)),
            Aim::Write(_) | Aim::Again => (Scope::Version, Tag::INITIAL),
        };
        let attempt = self.attempts;
        Wanted {
            scope,
            have,
            attempt,
        }
    }

    /// The current version, and where it comes from. `None`: the domain has ceased to be conditional.
    pub(super) async fn read(mut self) -> Result<Option<(FoundVersion, Lineage)>, Unavailable> {
        if let Some(found) = self.read_patiently().await? {
            return Ok(Some(found));
        }
        match self.run().await? {
            ProposalEnd::Found(found, lineage) => Ok(Some((found, lineage))),
            ProposalEnd::Left => Ok(None),
            _ => {
                unreachable!("a read writes no version")
            }
        }
    }

    /// Re-proposes the current version at a new ballot ([`Aim::Again`]). `None`: the object is a register no longer.
    pub(super) async fn choose_again(mut self) -> Result<Option<SettledVersion>, Unavailable> {
        assert!(matches!(self.aim, Aim::Again), "others need not choose it");
        match self.run().await? {
            ProposalEnd::Found(found, _) => {
                let last = self.last.expect("it was chosen somewhere");
                Ok(Some(SettledVersion { found, last }))
            }
            ProposalEnd::Left => Ok(None),
            _ => {
                unreachable!("it writes no version")
            }
        }
    }

    /// Attempts until it is decided.
    pub(super) async fn run(&mut self) -> Result<ProposalEnd, Unavailable> {
        let mut back_off = BackOff::new(self.env().now());
        loop {
            let client = &self.domain.client;
            let ballot = client.next_ballot(self.ballots_of, self.heard);
            self.heard = ballot.number;
            if ballot.is_closing() {
                let largest = Tag {
                    number: ballot.number,
                    writer: self.writer,
                };
                return Err(crate::tag::NumbersUsedUp { largest }.into());
            }
            match self.attempt(ballot).await? {
                Turn::Ended(ended) => return Ok(ended),
                Turn::Again => {}
                Turn::Overtaken(by) => self.hear_of(by),
            }
            if let Some(ended) = self.back_off(&mut back_off).await? {
                return Ok(ended);
            }
            back_off.begin(self.env().now());
            self.attempts += 1;
        }
    }

    /// Notes the place of another proposer's ballot, so that the next own ballot is above it. A closing ballot counts
    /// as the ordinary one with the same place.
    fn hear_of(&mut self, by: Ballot) {
        self.heard = self.heard.max(by.place());
        self.domain.client.remember_ballot(by.place());
    }

    async fn attempt(&mut self, ballot: Ballot) -> Result<Turn, Unavailable> {
        let domain = self.domain;
        let mut inherited: Option<Base> = None;
        // It has left a configuration that is closed.
        let mut has_left = false;
        let visit = async |at: &Visit| {
            if !at.c().is_ranked(self.name) {
                // Nothing is proposed there ([W-12 becoming-conditional]).
                has_left = true;
                return self.leave_unranked(at, &mut inherited).await;
            }
            let (asked, wanted) = ((Some(ballot), false), self.wanted());
            let prepared = conditional::survey(self.env(), at, self.name, asked, wanted).await;
            let turn = match prepared {
                Ok(SurveyOutcome::Overtaken(by)) if has_left => {
                    let found = self.read_beyond(at, inherited.take()).await?;
                    found.map_or(Turn::Overtaken(by), Turn::Ended)
                }
                Ok(SurveyOutcome::Overtaken(by)) => Turn::Overtaken(by),
                Ok(SurveyOutcome::Closed) => match self.leave_or_inherit(at).await {
                    Ok(Inheritance::Left(turn)) => *turn,
                    Ok(Inheritance::Nothing) => Turn::Again,
                    Ok(Inheritance::Base(base)) => {
                        has_left = true;
                        if !base.current.tag.is_initial() {
                            inherited = Some(*base);
                        }
                        return Ok(Step::GoOn);
                    }
                    Err(failed) => {
                        inherited = None;
                        return Err(failed);
                    }
                },
                Ok(SurveyOutcome::Answered(answers)) => {
                    let base = match inherited.take() {
                        // [W-10 configuration-first]: what is here goes before it.
                        Some(base) if answers.current.tag.is_initial() => base.moved_to(at.c()),
                        _ => Base::of(answers),
                    };
                    self.propose(at, ballot, base).await?
                }
                Err(failed) => {
                    // What moved on has everything that came before it.
                    inherited = None;
                    return Err(failed);
                }
            };
            Ok(Step::End(turn))
        };
        match domain.walk().until(visit).await? {
            WalkOutcome::Ended(turn) => Ok(turn),
            WalkOutcome::ToTheEnd(_) => Ok(Turn::Again),
        }
    }

    /// Everything from the promise of a quorum of the last configuration on.
    async fn propose(
        &mut self,
        at: &Visit,
        ballot: Ballot,
        mut base: Base,
    ) -> Result<Turn, CallError> {
        assert_eq!(base.holders.len(), at.c().n(), "known of each member");
        self.last = Some(at.clone());
        let Aim::Write(wish) = self.aim else {
            return self.conclude(at, ballot, base).await;
        };
        match self.fate(&base.current, wish.request, at.c()) {
            Fate::Applied(tag) => {
                // Being listed is not being chosen ([W-6 ancestors]).
                let replaced = base.current.before(tag);
                return Ok(match self.settle(at, ballot, &mut base).await? {
                    Some(turn) => turn,
                    None => Turn::Ended(ProposalEnd::Written { tag, replaced }),
                });
            }
            Fate::Unknown => {
                let lost = self.own.last().expect("it proposed something");
                return Ok(Turn::Ended(ProposalEnd::Outrun(lost.tag)));
            }
            Fate::NotApplied => {}
        }
        if !wish.condition.holds(&base.current) {
            return self.conclude(at, ballot, base).await;
        }
        let is_settled = base.current.chosen.is_some();
        if !is_settled && (self.met_cap || !base.current.may_be_followed()) {
            // [W-4 cap]
            let turn = self.settle(at, ballot, &mut base).await?;
            return Ok(turn.unwrap_or(Turn::Again));
        }
        if !self.keeps_blocks().await? {
            // What it proposed before must not be chosen any more.
            let turn = self.settle(at, ballot, &mut base).await?;
            return Ok(turn.unwrap_or(Turn::Ended(ProposalEnd::GivenUp)));
        }
        self.write(at, ballot, &base.current, wish).await
    }

    /// True if the value has no blocks, or its blocks stay (`[W-11 given-up]`). To be called between the promises of a
    /// quorum and the proposal: a client that gives the upload up afterwards then makes a later proposal.
    async fn keeps_blocks(&mut self) -> Result<bool, Unavailable> {
        match &mut self.upload {
            None => Ok(true),
            Some(upload) if !upload.is_decided => {
                let commit = self.domain.commit_upload(self.writer, upload.commit);
                upload.is_decided = Box::pin(commit).await?;
                Ok(upload.is_decided)
            }
            Some(_) => Ok(!Box::pin(self.domain.is_given_up(self.writer)).await?),
        }
    }

    /// Proposes a new version.
    async fn write(
        &mut self,
        at: &Visit,
        ballot: Ballot,
        current: &CurrentVersion,
        wish: Wish<'_>,
    ) -> Result<Turn, CallError> {
        // Another number in every attempt, so that a version has one base.
        let tag = self.largest.max(current.tag).next(self.writer);
        let tag = tag.map_err(|used_up| CallError::Unavailable(used_up.into()))?;
        assert!(tag > current.tag, "a version follows its base");
        assert!(
            self.own.iter().all(|own| own.tag != tag),
            "each attempt has a version of its own"
        );
        let era = at.c().era();
        self.own.push(OwnVersion { tag, era, ballot });
        self.largest = tag;
        let proposed = ProposedVersion {
            ballot,
            tag,
            lineage: current.lineage.followed_by(current.tag, wish.request),
            value: Some(wish.value),
            holders: &[],
            base_chosen: current.chosen.is_some(),
        };
        let accepted = conditional::accept(self.env(), at, self.name, proposed).await;
        self.sent |= match &accepted {
            Err(CallError::Unavailable(unavailable)) => unavailable.handed_over,
            _ => true,
        };
        Ok(match accepted? {
            AcceptOutcome::Chosen => {
                let chosen = ChosenVersion { ballot, tag };
                conditional::confirm(self.env(), at, self.name, chosen);
                let replaced = current.tag;
                Turn::Ended(ProposalEnd::Written { tag, replaced })
            }
            AcceptOutcome::Void(by) => {
                self.own.pop();
                self.sent &= !self.own.is_empty();
                Turn::Overtaken(by)
            }
            AcceptOutcome::Overtaken(by) => Turn::Overtaken(by),
            AcceptOutcome::Again => {
                self.met_cap = true;
                Turn::Again
            }
            AcceptOutcome::Closed => Turn::Again,
        })
    }

    /// Ends with the current version, after settling it (`[W-5 current-version]`).
    async fn conclude(
        &self,
        at: &Visit,
        ballot: Ballot,
        mut base: Base,
    ) -> Result<Turn, CallError> {
        if let Some(turn) = self.settle(at, ballot, &mut base).await? {
            return Ok(turn);
        }
        let found = self.found(at, &mut base).await?;
        let lineage = base.current.lineage;
        let ended = |found| Turn::Ended(ProposalEnd::Found(found, lineage));
        Ok(found.map_or(Turn::Again, ended))
    }

    /// Has the current version chosen by this ballot, unless it is known to be chosen, and that is enough. `None`: it is; otherwise
    /// how the attempt ends.
    async fn settle(
        &self,
        at: &Visit,
        ballot: Ballot,
        base: &mut Base,
    ) -> Result<Option<Turn>, CallError> {
        if base.current.tag.is_initial() {
            // Nothing is here that could be chosen above what it proposed.
            let lost = self.own.last();
            return Ok(lost.map(|own| Turn::Ended(ProposalEnd::Outrun(own.tag))));
        }
        // Others may have what it proposed at a larger ballot chosen ([W-6 ancestors]).
        let chosen = base.current.chosen;
        let is_chosen = chosen.is_some_and(|ballot| ballot >= self.proposed_at());
        if is_chosen && !matches!(self.aim, Aim::Again) {
            return Ok(None);
        }
        if !self.read_value(at, base, Scope::Whole).await? {
            return Ok(Some(Turn::Again));
        }
        let proposed = ProposedVersion {
            ballot,
            tag: base.current.tag,
            lineage: base.current.lineage.clone(),
            value: base.value.as_ref().map(|(value, _)| value),
            holders: &base.holders,
            base_chosen: false,
        };
        Ok(
            match conditional::accept(self.env(), at, self.name, proposed).await? {
                AcceptOutcome::Chosen => {
                    self.confirm(at, &base.current, Some(ballot));
                    None
                }
                AcceptOutcome::Overtaken(by) | AcceptOutcome::Void(by) => Some(Turn::Overtaken(by)),
                AcceptOutcome::Closed | AcceptOutcome::Again => Some(Turn::Again),
            },
        )
    }

    fn confirm(&self, at: &Visit, current: &CurrentVersion, ballot: Option<Ballot>) {
        let ballot = ballot.expect("it is chosen at some ballot");
        let chosen = ChosenVersion {
            ballot,
            tag: current.tag,
        };
        conditional::confirm(self.env(), at, self.name, chosen);
    }
}
