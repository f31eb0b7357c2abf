//! Messages about ranked registers ([`crate::dap::conditional`]).

use super::Ballot;
use crate::element::{Element, Form, ReplyElement};
use crate::limits;
use crate::tag::Tag;
use std::cmp::Ordering;

/// A version that this one follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ancestor {
    pub tag: Tag,
    /// The request that wrote it; 0 if its caller gave none.
    pub request: u128,
}

/// The origin of a version. It lets a proposer that was overtaken see whether its own version is among the chosen
/// ones (`[W-6 ancestors]`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lineage {
    /// The request that wrote the version; 0 if its caller gave none.
    pub request: u128,
    /// The version that it is based on first; at most [`limits::ANCESTORS`]. Empty of the initial version, and of one that was
    /// written before the domain became conditional.
    pub ancestors: Vec<Ancestor>,
}

impl Lineage {
    /// Lineage of a version that `request` bases on `tag`, which has this lineage.
    #[must_use]
    pub fn followed_by(&self, tag: Tag, request: u128) -> Lineage {
        let base = Ancestor {
            tag,
            request: self.request,
        };
        let ancestors = [base].into_iter().chain(self.ancestors.iter().copied());
        let ancestors: Vec<Ancestor> = ancestors.take(limits::ANCESTORS).collect();
        assert_eq!(ancestors[0].tag, tag, "the base comes first");
        Lineage { request, ancestors }
    }

    /// The version that it is based on.
    pub fn base(&self) -> Tag {
        self.ancestors.first().map_or(Tag::INITIAL, |base| base.tag)
    }

    /// True if it knows all ancestors down to this number.
    pub fn reaches(&self, number: u64) -> bool {
        self.ancestors
            .last()
            .is_none_or(|it| it.tag.number <= number)
    }

    /// Compares a version that was put before the domain became conditional with the largest version of that time,
    /// from which `tag` descends, with this lineage. `put` is not among the ancestors. `None`: the ancestors do not
    /// reach back far enough (`[W-12 becoming-conditional]`).
    pub fn order_of_put(&self, tag: Tag, put: Tag) -> Option<Ordering> {
        let is_among = tag == put || self.ancestors.iter().any(|it| it.tag == put);
        assert!(!is_among, "what is there has no other place");
        let oldest = self.ancestors.last().map_or(tag, |it| it.tag);
        let is_whole = self.ancestors.len() < limits::ANCESTORS;
        // What came before the oldest one has a smaller number still.
        (is_whole || oldest.number < put.number).then(|| put.cmp(&oldest))
    }

    /// True if some execution produces it (`[N-1 bounded-numbers]`).
    pub fn is_possible(&self) -> bool {
        let descends = self
            .ancestors
            .is_sorted_by(|a, b| a.tag.number > b.tag.number);
        let possible = self.ancestors.iter().all(|it| it.tag.is_possible());
        descends && possible && self.ancestors.len() <= limits::ANCESTORS
    }
}

/// A version that is chosen, and the ballot at which it was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ChosenVersion {
    pub ballot: Ballot,
    pub tag: Tag,
}

impl ChosenVersion {
    /// True if some execution produces it (`[N-1 bounded-numbers]`).
    pub fn is_possible(&self) -> bool {
        self.tag.is_possible() && self.ballot.is_possible()
    }
}

/// The content of an ACCEPT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// The ballot of the proposal.
    pub ballot: Ballot,
    pub tag: Tag,
    /// The receiver's element of the version; `None`: the receiver said that it holds one.
    pub element: Option<Element>,
    pub lineage: Lineage,
    /// It was proposed before by another ballot, and is to be known as chosen: taken in however many versions are held.
    pub settles: bool,
    /// The version that it is based on is known to be chosen: others than these two may go (`[W-4 cap]`).
    pub base_chosen: bool,
}

impl Proposal {
    /// True if it brings nothing but a tombstone, a manifest, or no element.
    pub(crate) fn is_small(&self) -> bool {
        let small = |element: &Element| element.deleted || element.form == Form::Manifest;
        self.element.as_ref().is_none_or(small)
    }
}

/// A version that a server holds of a ranked register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankedVersion {
    pub tag: Tag,
    /// The ballot at which it was last accepted.
    pub ballot: Ballot,
    /// The form of its element; [`Form::Trimmed`] if that was lost.
    pub form: Form,
    /// It is a tombstone.
    pub deleted: bool,
    pub lineage: Lineage,
}

/// A snapshot of a server's state of a ranked register.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RankedVersions {
    /// The ballot that was asked for is promised; without one that is false.
    pub granted: bool,
    /// A configuration comes after this one: nothing is promised or accepted here any more.
    pub closed: bool,
    /// The largest ballot promised.
    pub promised: Ballot,
    /// The version known to be chosen at the largest ballot.
    pub chosen: ChosenVersion,
    /// In order of their ballots.
    pub versions: Vec<RankedVersion>,
    /// The element of the last version that has one, where it was wanted.
    pub element: Option<(Tag, ReplyElement)>,
}

impl RankedVersions {
    /// The version of this tag, if it is listed.
    pub fn find(&self, tag: Tag) -> Option<&RankedVersion> {
        self.versions.iter().find(|listed| listed.tag == tag)
    }

    /// True if it lists the version with its element.
    pub fn stores(&self, tag: Tag) -> bool {
        self.find(tag)
            .is_some_and(|listed| listed.form != Form::Trimmed)
    }

    /// True if the server has accepted nothing at this ballot, and never will (`[W-15 conclusive-refusal]`). What it accepts at a ballot goes only
    /// where something is listed, or known to be chosen, at a larger one.
    pub fn never_accepts(&self, ballot: Ballot) -> bool {
        let is_below = |it: &RankedVersion| it.ballot < ballot;
        self.promised > ballot && self.chosen.ballot < ballot && self.versions.iter().all(is_below)
    }

    /// True if some execution produces it (`[N-1 bounded-numbers]`).
    pub fn is_possible(&self) -> bool {
        let listed = self.versions.iter();
        let possible = |it: &RankedVersion| {
            it.tag.is_possible() && it.ballot.is_possible() && it.lineage.is_possible()
        };
        let carried = self.element.iter().all(|(tag, _)| tag.is_possible());
        listed.clone().all(possible)
            && carried
            && self.chosen.is_possible()
            && self.promised.is_possible()
    }
}
