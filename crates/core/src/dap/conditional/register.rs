//! The server half: what one server remembers of one ranked register, and what it answers. It keeps the elements of the
//! versions that are listed here ([`crate::dap::versions`]); which of these go is said here.

use crate::limits;
use crate::message::{Ballot, ChosenVersion, Lineage, Proposal};
use crate::tag::Tag;

/// The memory of a server of a ranked register, but for elements. Durable before it answers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Register {
    /// Counts its changes: of two records the later one is true.
    pub turn: u64,
    /// The largest ballot promised.
    pub promised: Ballot,
    /// The version known to be chosen at the largest ballot. The initial version is chosen at ballot 0.
    pub chosen: ChosenVersion,
    /// In order of their ballots.
    pub accepted: Vec<AcceptedVersion>,
}

/// The promises that a server remembers for registers of which it has nothing else (`[W-16 ballot-floor]`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BallotFloor {
    /// A turn not below that of any of these registers, so that a later record of one counts as later.
    pub turn: u64,
    /// A ballot not below the promises of any of them.
    pub promised: Ballot,
}

impl BallotFloor {
    /// True if this floor is at or above the other one.
    pub fn says(&self, other: BallotFloor) -> bool {
        self.turn >= other.turn && self.promised >= other.promised
    }

    /// The lowest floor that is at or above both.
    #[must_use]
    pub fn max(self, other: BallotFloor) -> BallotFloor {
        BallotFloor {
            turn: self.turn.max(other.turn),
            promised: self.promised.max(other.promised),
        }
    }
}

/// A version that a server has accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcceptedVersion {
    pub tag: Tag,
    /// The ballot at which it was last accepted.
    pub ballot: Ballot,
    /// It is a tombstone.
    pub deleted: bool,
    /// The lineage that it comes from.
    pub lineage: Lineage,
}

/// The outcome of an ACCEPT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acceptance {
    /// The version is accepted at this ballot already.
    Acknowledge,
    /// A larger ballot was promised.
    Refuse,
    /// The element is needed.
    Need,
    /// The server holds as many versions as it may (`[W-4 cap]`).
    Full,
    /// It is accepted now.
    Accept {
        /// Its element is to be stored.
        stores: bool,
        /// Elements of these versions go.
        evicted: Vec<Tag>,
    },
}

impl Register {
    /// True if the server has accepted the version.
    pub fn lists(&self, tag: Tag) -> bool {
        self.accepted.iter().any(|it| it.tag == tag)
    }

    /// The version that a listing shows of it: the version with the largest ballot, or else the one that is known to be chosen, of which nothing is
    /// here. `None`: it was never written, as far as is known here (`[X-19 regular-listing]`).
    pub fn listed(&self) -> Option<Tag> {
        let chosen = Some(self.chosen.tag).filter(|tag| !tag.is_initial());
        self.accepted.last().map(|it| it.tag).or(chosen)
    }

    /// A register of which nothing is here.
    pub fn above(floor: BallotFloor) -> Register {
        Register {
            turn: floor.turn,
            promised: floor.promised,
            ..Register::default()
        }
    }

    /// Its promised ballot, and the number of its changes.
    pub fn floor(&self) -> BallotFloor {
        BallotFloor {
            turn: self.turn,
            promised: self.promised,
        }
    }

    /// True if the register holds nothing but a promise, and one that does no harm to other names. Promising more is always safe, but a
    /// ballot that is far from all clocks would use up the ballots of all names of its bucket (`[W-16 ballot-floor]`).
    pub fn is_foldable(&self) -> bool {
        let is_untouched = self.accepted.is_empty() && self.chosen == ChosenVersion::default();
        is_untouched && self.promised.number <= limits::REMEMBERED_BALLOT
    }

    /// True if some execution produces it (`[N-1 bounded-numbers]`).
    pub fn is_possible(&self) -> bool {
        let accepted = |it: &AcceptedVersion| {
            it.tag.is_possible() && it.ballot.is_possible() && it.lineage.is_possible()
        };
        self.chosen.is_possible()
            && self.promised.is_possible()
            && self.accepted.iter().all(accepted)
    }

    /// PREPARE: promises to take no smaller ballot, unless a larger one is promised, or the proposal of this one is here already
    /// (`[W-1 promise]`). Returns whether it is promised, and whether that is new.
    pub fn promise(&mut self, ballot: Ballot) -> (bool, bool) {
        let is_new = ballot > self.promised;
        let is_resent =
            ballot == self.promised && self.accepted.iter().all(|it| it.ballot != ballot);
        if is_new {
            self.promised = ballot;
            self.turn += 1;
        }
        assert!(self.promised >= ballot, "it is promised, or a larger one");
        (is_new || is_resent, is_new)
    }

    /// ACCEPT (`[W-2 accept]`). `has_element`: the element of the version is here. With `cap` versions a new one takes the place of
    /// others, or none (`[W-4 cap]`).
    pub fn accept(&mut self, proposal: &Proposal, has_element: bool, cap: usize) -> Acceptance {
        let Proposal { ballot, tag, .. } = *proposal;
        let listed = self.accepted.iter().position(|it| it.tag == tag);
        assert!(
            listed.is_some() || !has_element,
            "elements are of versions that were accepted"
        );
        let is_here = listed.is_some_and(|place| self.accepted[place].ballot == ballot);
        if is_here && (has_element || proposal.element.is_none()) {
            return Acceptance::Acknowledge;
        }
        if ballot < self.promised {
            return Acceptance::Refuse;
        }
        if !has_element && proposal.element.is_none() {
            return Acceptance::Need;
        }
        let mut evicted = Vec::new();
        if listed.is_none() && self.accepted.len() >= cap {
            let Some(kept) = kept_at_cap(proposal) else {
                return Acceptance::Full;
            };
            let ancestors = proposal.lineage.ancestors.iter().take(kept);
            let ancestors: Vec<Tag> = ancestors.map(|it| it.tag).collect();
            let is_dropped = |it: &mut AcceptedVersion| !ancestors.contains(&it.tag);
            let gone = self.accepted.extract_if(.., is_dropped);
            evicted.extend(gone.map(|it| it.tag));
        }
        let version = match listed {
            Some(place) => self.accepted.remove(place),
            None => AcceptedVersion {
                tag,
                ballot,
                deleted: proposal.element.as_ref().is_some_and(|it| it.deleted),
                lineage: proposal.lineage.clone(),
            },
        };
        self.promised = ballot;
        self.insert(AcceptedVersion { ballot, ..version });
        assert!(!evicted.contains(&tag), "what is accepted stays");
        Acceptance::Accept {
            stores: !has_element,
            evicted,
        }
    }

    /// CONFIRM: versions accepted at smaller ballots go, but for the chosen one, whose ballot rises (`[W-3 chosen]`). Returns what
    /// went; `None`: nothing changed.
    pub fn choose(&mut self, chosen: ChosenVersion) -> Option<Vec<Tag>> {
        if chosen.ballot <= self.chosen.ballot {
            return None;
        }
        self.chosen = chosen;
        self.promised = self.promised.max(chosen.ballot);
        let older = |it: &AcceptedVersion| it.ballot < chosen.ballot && it.tag != chosen.tag;
        let gone = self.accepted.extract_if(.., |it| older(it));
        let gone = gone.map(|it| it.tag).collect();
        let held = self.accepted.iter().position(|it| it.tag == chosen.tag);
        match held {
            Some(place) if self.accepted[place].ballot < chosen.ballot => {
                let mut version = self.accepted.remove(place);
                version.ballot = chosen.ballot;
                self.insert(version);
            }
            _ => self.turn += 1,
        }
        let newer = |it: &AcceptedVersion| it.ballot >= chosen.ballot;
        assert!(self.accepted.iter().all(newer), "what is older went");
        assert!(
            self.promised >= chosen.ballot,
            "nothing is chosen above a promise"
        );
        Some(gone)
    }

    fn insert(&mut self, version: AcceptedVersion) {
        assert!(
            version.ballot <= self.promised,
            "accepting is a promise, too"
        );
        let place = |it: &AcceptedVersion| (it.ballot, it.tag) < (version.ballot, version.tag);
        let place = self.accepted.partition_point(place);
        self.accepted.insert(place, version);
        self.turn += 1;
        assert!(
            self.accepted.len() <= limits::RANKED_VERSIONS + 1,
            "versions of a register are bounded"
        );
    }
}

/// Ancestors of a version that stay where it takes the place of others; `None`: it does not (`[W-4 cap]`).
///
/// What goes is accepted below the proposal's ballot, which a quorum has promised. So what of it is not chosen by now is never chosen below
/// that ballot, and of what is chosen one version alone must stay: the one that was chosen last, v. The others were the base of another
/// one, which is found in their place.
///
/// A new version is based on v itself where that is known to be chosen: then all but the base goes.
///
/// A version that is settled is v, or follows v: the proposer found it current at a ballot above v's (`[W-5 current-version]`). When
/// it was proposed first, its base or the base of that was known to be chosen ([`super::CurrentVersion::may_be_followed`]). So v, which was chosen no
/// earlier than that one, is the version itself, its base, or the base of that. These stay, although no member may know which of them is
/// v: the settled version is not yet at a quorum. A member that drops v for it too early, and others that list v alone, together list
/// neither of them often enough.
fn kept_at_cap(proposal: &Proposal) -> Option<usize> {
    match (proposal.settles, proposal.base_chosen) {
        (true, _) => Some(limits::UNSETTLED_ANCESTORS),
        (false, true) => Some(1),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests;
