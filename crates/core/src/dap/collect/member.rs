//! The state of one member in a get-data.

use crate::dap::Scope;
use crate::dap::lost::Known;
use crate::element::Element;
use crate::error::Response;
use crate::message::{HeldVersions, Refusal, Want};
use crate::tag::Tag;
use crate::timing;

/// The knowledge of one member.
pub(super) struct Member {
    pub(super) asks: Asks,
    /// Its one answer to the query (`[X-5 single-reply]`: by one single reply).
    pub(super) held: Option<HeldVersions>,
    pub(super) element: Option<(Tag, Element)>,
    /// Ticks for which its answer is waited for. Then it is late: other members are asked as well, and its answer is
    /// still welcome.
    pub(super) patience: u32,
    /// It is waited for although others make a quorum ([`PassedVersions::awaited`](crate::dap::PassedVersions::awaited)).
    pub(super) is_awaited: bool,
    /// It refused or is out of reach: nothing more is to be expected of it, for now.
    pub(super) gone: bool,
    /// Why it did not answer, if it said so.
    pub(super) refused: Option<Refusal>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Query(Want),
    Fetch(Tag),
}

/// Marks a member that refused; it is not asked again in this collection.
pub(super) const REFUSED: Asks = Asks::Fetch(Tag::INITIAL);
/// Ticks after which a member that did not answer a query is late.
pub(super) const QUERY_PATIENCE: u32 = 1;
/// The patience with a fetch: the fetched element is large, or rare.
pub(super) const FETCH_PATIENCE: u32 = 7;
/// The patience with a query to a member that is known to hold the version that the reader needs.
pub(super) const AWAITED_PATIENCE: u32 =
    (timing::HOLDINGS_PATIENCE.as_millis() / timing::HEDGE.as_millis()) as u32;

impl Member {
    pub(super) fn element_of(&self, tag: Tag) -> Option<&Element> {
        let (held, element) = self.element.as_ref()?;
        (*held == tag).then_some(element)
    }

    pub(super) fn has(&self, tag: Tag) -> bool {
        self.element_of(tag).is_some()
    }

    /// True if an element of `tag` may still come without asking for it.
    pub(super) fn will_give(&self, tag: Tag, is_copy: bool, scope: Scope) -> bool {
        if self.gone || self.patience == 0 || self.has(tag) {
            return false;
        }
        match self.asks {
            Asks::Fetch(fetched) => fetched == tag,
            Asks::Query(Want::Tags) => false,
            Asks::Query(Want::Metadata) => self.held.is_none() && scope == Scope::Metadata,
            Asks::Query(Want::Fragment) => self.held.is_none() && !is_copy,
            Asks::Query(Want::Element) => self.held.is_none(),
        }
    }

    /// It lists `tag` as stored, has not given the element, and was not asked for it yet.
    pub(super) fn may_be_asked_for(&self, tag: Tag) -> bool {
        let holds = self.held.as_ref().is_some_and(|held| held.stores(tag));
        holds && !self.has(tag) && !matches!(self.asks, Asks::Fetch(_))
    }

    /// Its answer, as far as it tells which versions cannot be read.
    pub(super) fn known(&self) -> Known<'_> {
        match (&self.held, self.refused) {
            (Some(held), _) => Known::Held(held),
            (None, Some(Refusal::Damaged)) => Known::Abstains,
            (None, Some(refusal)) => Known::Open(Response::Refused(refusal)),
            (None, None) if self.gone => Known::Open(Response::Unreachable),
            (None, None) => Known::Open(Response::Silent),
        }
    }

    /// An answer is to come that it has not given.
    pub(super) fn owes(&self) -> bool {
        match self.asks {
            Asks::Query(_) => self.held.is_none(),
            Asks::Fetch(tag) => !self.has(tag),
        }
    }
}
