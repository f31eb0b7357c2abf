//! Ranked registers on their way (`[W-10 configuration-first]`): the transfer is a proposer like any other.
//!
//! It reads closed answers of the source, prepares in the target, and has the source's current version chosen there, also if
//! that is known to be chosen in the source: no ballot is taken along. Where something is chosen in the target already, that goes
//! before it; so of several sources the last one comes first. Once this is done for every register that a source lists, an
//! operation that starts in the target misses nothing.
//!
//! Where the domain ceases to be conditional, the source's last version is decided first, and then put
//! (`[W-13 ceasing-to-be-conditional]`).
//!
//! Sources that are not conditional come last, all at once: of each object the largest version that one of them holds
//! (`[W-12 becoming-conditional]`).

use super::objects::MovedObject;
use super::{Progress, Source, Stop, stop};
use crate::dap::conditional::closing;
use crate::dap::conditional::{
    self, AcceptOutcome, Answers, CurrentVersion, ProposedVersion, SurveyOutcome, Wanted,
};
use crate::dap::{self, Scope, listing};
use crate::element::Value;
use crate::env::{Env, Work};
use crate::error::{CallError, Unavailable};
use crate::gather::{self, Visit};
use crate::limits;
use crate::message::{Ballot, ChosenVersion, ListRequest};
use crate::object::{Kind, Name};
use crate::tag::{ClientId, NumbersUsedUp, Tag, Writer};
use crate::timing::BackOff;

/// A version with the value that is proposed.
struct MovedVersion {
    current: CurrentVersion,
    value: Value,
    /// Members of the target that hold it.
    holders: Vec<bool>,
}

impl<E: Env> Source<'_, E> {
    /// Moves all registers. `later`: if this source is not conditional yet, those of the others that come after it.
    pub(super) async fn registers(&self, later: &[Source<'_, E>]) -> Result<(), Stop> {
        assert!(
            self.target.dap().is_conditional(),
            "they are registers there"
        );
        self.each(async |name| self.register(name, later).await)
            .await
    }

    /// Moves the last versions of all registers to where they are none (`[W-13 ceasing-to-be-conditional]`).
    pub(super) async fn last_versions(&self) -> Result<(), Stop> {
        assert!(
            !self.target.dap().is_conditional(),
            "they are no registers there"
        );
        self.each(async |name| self.last_version(name).await).await
    }

    /// Moves the listed objects that are registers in a conditional domain.
    async fn each(&self, moves: impl AsyncFn(&Name) -> Result<u64, Stop>) -> Result<(), Stop> {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_register()) {
            self.each_of(kind, &moves).await?;
        }
        Ok(())
    }

    async fn each_of(
        &self,
        kind: Kind,
        moves: &impl AsyncFn(&Name) -> Result<u64, Stop>,
    ) -> Result<(), Stop> {
        assert!(kind.is_register(), "others are moved as they are");
        let mut after = String::new();
        loop {
            let request = ListRequest {
                after,
                ..ListRequest::new(kind, "")
            };
            let at = self.closed();
            let listed = listing::list(self.env, &at, &request).await;
            let page = listed.map_err(|failed| stop(failed, &at))?;
            let keys = page.entries.iter().map(|entry| &entry.key);
            let moves = keys.map(async |key| {
                let name = Name::new(kind, key).expect("a server listed it");
                moves(&name).await
            });
            let moved = gather::join(limits::TRANSFER_WINDOW, moves).await;
            let moved = moved.into_iter().collect::<Result<Vec<u64>, Stop>>()?;
            self.env.progressed();
            (self.progress)(Progress::Transferring {
                objects: moved.len() as u64,
                bytes: moved.iter().sum(),
            });
            match page.horizon {
                Some(horizon) => {
                    assert!(!horizon.is_empty(), "a page that was cut has an entry");
                    after = horizon;
                }
                None => return Ok(()),
            }
        }
    }

    /// Has a version of the register chosen in the target. Returns the bytes of its value.
    pub(super) async fn register(&self, name: &Name, later: &[Source<'_, E>]) -> Result<u64, Stop> {
        if self.lost.has(name) {
            // What an earlier source holds is older.
            return Ok(0);
        }
        let current = match self.c.dap().is_conditional() {
            true => self.current(name).await,
            false => self.largest_put(name, later).await,
        };
        match current {
            Ok(None) => Ok(0),
            Ok(Some(source)) => self.choose(name, Ok(source)).await,
            Err(Stop::Unavailable(failed)) if failed.is_lost() => {
                self.written_over(name, failed).await
            }
            Err(stop) => Err(stop),
        }
    }

    /// Moves nothing of an object that cannot be read here. If the object was overwritten or removed since the source
    /// was closed, the target has the new version, based on the lost one (`[W-18 lost-version]`).
    async fn written_over(&self, name: &Name, failed: Unavailable) -> Result<u64, Stop> {
        assert!(failed.is_lost(), "otherwise it is asked for again");
        let to = Visit::new(self.target);
        let (asked, wanted) = ((None, false), Wanted::new(Scope::Version));
        let there = conditional::survey(self.env, &to, name, asked, wanted).await;
        match there.map_err(|failed| stop(failed, &to))? {
            SurveyOutcome::Answered(answers) if answers.current.tag.is_initial() => {
                self.lost.add(name, Tag::INITIAL, failed).map(|()| 0)
            }
            SurveyOutcome::Answered(_) => self.choose(name, Err(failed)).await,
            SurveyOutcome::Overtaken(_) => unreachable!("nothing is promised"),
            SurveyOutcome::Closed => Err(Stop::Overtaken),
        }
    }

    /// Has this version chosen in the target, unless something may be chosen there: then that. Without one the object is lost.
    async fn choose(
        &self,
        name: &Name,
        source: Result<MovedVersion, Unavailable>,
    ) -> Result<u64, Stop> {
        let (mut above, mut attempt) = (0, 0);
        let mut back_off = BackOff::new(self.env.now());
        loop {
            let to = Visit::new(self.target);
            // Ballots need to be unique, nothing else.
            let proposer = Writer {
                client: ClientId(self.env.random()),
                counter: self.env.random(),
            };
            let number = (above + 1).max(self.env.clock_us());
            let ballot = Ballot { number, proposer };
            if ballot.is_closing() {
                let writer = proposer;
                let used_up = NumbersUsedUp {
                    largest: Tag { number, writer },
                };
                return Err(stop(CallError::Unavailable(used_up.into()), &to));
            }
            let wanted = Wanted::new(Scope::Version).again(attempt);
            let asked = (Some(ballot), false);
            let prepared = conditional::survey(self.env, &to, name, asked, wanted).await;
            match prepared.map_err(|failed| stop(failed, &to))? {
                SurveyOutcome::Closed => return Err(Stop::Overtaken),
                SurveyOutcome::Overtaken(by) => above = by.place(),
                SurveyOutcome::Answered(answers) => {
                    let there = &answers.current;
                    if there.chosen.is_some() && !there.tag.is_initial() {
                        return Ok(0);
                    }
                    let source = match &source {
                        Err(failed) if there.tag.is_initial() => {
                            let failed = failed.clone();
                            return self.lost.add(name, Tag::INITIAL, failed).map(|()| 0);
                        }
                        source => source.as_ref().ok(),
                    };
                    if let Some(moved) = self.proposed(&to, name, (source, answers)).await? {
                        match self.propose(&to, name, ballot, &moved).await? {
                            AcceptOutcome::Chosen => return Ok(moved.value.content_bytes()),
                            AcceptOutcome::Closed => return Err(Stop::Overtaken),
                            AcceptOutcome::Overtaken(by) | AcceptOutcome::Void(by) => {
                                above = by.place();
                            }
                            AcceptOutcome::Again => {}
                        }
                    }
                }
            }
            self.env.back_off(&mut back_off).await;
            attempt += 1;
        }
    }

    /// Has the last version of the register decided here, and brings it to the target. Returns the bytes of its value.
    pub(super) async fn last_version(&self, name: &Name) -> Result<u64, Stop> {
        let ends = false;
        let (at, closed) = closing::close(self.env, (self.c, &self.pointer), name, ends).await;
        let last = match closed.map_err(|failed| stop(failed, &at)) {
            Ok(Some(last)) => last,
            Ok(None) => return Ok(0),
            Err(Stop::Unavailable(failed)) if failed.is_lost() => {
                return self.lost.add(name, Tag::INITIAL, failed).map(|()| 0);
            }
            Err(stop) => return Err(stop),
        };
        let to = Visit::new(self.target);
        let moved = MovedObject {
            name,
            tag: last.current.tag,
            value: Some(last.value),
            holders: vec![false; self.target.n()],
        };
        // Of a value in blocks those are counted.
        let bytes = moved.value.as_ref().map_or(0, Value::content_bytes);
        self.count_sent(std::slice::from_ref(&moved));
        if self.put_data(&to, &moved).await? && to.is_last() {
            dap::confirm(self.env, &to, name, moved.tag);
        }
        Ok(bytes)
    }

    /// The current version of the source, for the target. `None`: it was never written.
    async fn current(&self, name: &Name) -> Result<Option<MovedVersion>, Stop> {
        let (mut attempt, mut back_off) = (0, BackOff::new(self.env.now()));
        loop {
            let at = self.closed();
            let wanted = Wanted::new(Scope::Whole).again(attempt);
            let asked = conditional::survey(self.env, &at, name, (None, true), wanted).await;
            let SurveyOutcome::Answered(answers) = asked.map_err(|failed| stop(failed, &at))?
            else {
                unreachable!("nothing is promised, and it is closed")
            };
            if answers.current.tag.is_initial() {
                return Ok(None);
            }
            let value = conditional::value_of(self.env, &at, name, &answers, Scope::Whole).await;
            if let Some((value, _)) = value.map_err(|failed| stop(failed, &at))? {
                return Ok(Some(MovedVersion {
                    current: answers.current,
                    value,
                    holders: vec![false; self.target.n()],
                }));
            }
            self.env.back_off(&mut back_off).await;
            attempt += 1;
        }
    }

    /// The largest version that this source or a later one holds, none of which is conditional yet
    /// (`[W-12 becoming-conditional]`). `None`: it was never written.
    async fn largest_put(
        &self,
        name: &Name,
        later: &[Source<'_, E>],
    ) -> Result<Option<MovedVersion>, Stop> {
        let mut largest = self.get_data(name, Scope::Whole).await?;
        for source in later {
            let found = match source.get_data(name, Scope::Whole).await {
                // What it held is in a source that is asked after it.
                Err(Stop::Final(next)) if later.iter().any(|it| *it.c == next) => continue,
                found => found?,
            };
            if found.tag > largest.tag {
                largest = found;
            }
        }
        assert!(
            largest.value.is_some() || largest.tag.is_initial(),
            "a version that was put has a value"
        );
        let current = CurrentVersion::put(largest.tag, largest.value.as_ref());
        Ok(largest.value.map(|value| MovedVersion {
            current,
            value,
            holders: vec![false; self.target.n()],
        }))
    }

    /// The version to be chosen in the target: the one that may be chosen there already, otherwise the source's.
    /// `None`: ask again.
    async fn proposed(
        &self,
        to: &Visit,
        name: &Name,
        (source, answers): (Option<&MovedVersion>, Answers),
    ) -> Result<Option<MovedVersion>, Stop> {
        if answers.current.tag.is_initial() {
            let source = source.expect("otherwise the object is lost");
            return Ok(Some(MovedVersion {
                current: source.current.clone(),
                value: source.value.clone(),
                holders: source.holders.clone(),
            }));
        }
        let value = conditional::value_of(self.env, to, name, &answers, Scope::Whole).await;
        let value = value.map_err(|failed| stop(failed, to))?;
        Ok(value.map(|(value, _)| MovedVersion {
            current: answers.current,
            value,
            holders: answers.holders,
        }))
    }

    async fn propose(
        &self,
        to: &Visit,
        name: &Name,
        ballot: Ballot,
        moved: &MovedVersion,
    ) -> Result<AcceptOutcome, Stop> {
        let tag = moved.current.tag;
        assert!(!tag.is_initial(), "there is something to move");
        let elements = moved.holders.iter().filter(|holds| !**holds).count() as u64;
        let bytes = elements * dap::element_bytes(self.target, moved.value.content_bytes());
        self.env.count(Work::Moved { elements, bytes });
        let proposed = ProposedVersion {
            ballot,
            tag,
            lineage: moved.current.lineage.clone(),
            value: Some(&moved.value),
            holders: &moved.holders,
            base_chosen: false,
        };
        let accepted = conditional::accept(self.env, to, name, proposed).await;
        let accepted = accepted.map_err(|failed| stop(failed, to))?;
        if accepted == AcceptOutcome::Chosen {
            conditional::confirm(self.env, to, name, ChosenVersion { ballot, tag });
        }
        Ok(accepted)
    }
}
