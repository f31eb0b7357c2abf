//! The decisions of a kind. Procedures of clients ([`super`]), tallies and servers are the same for all kinds; where kinds differ
//! they ask the type that the kind's row names ([`of_kind`]; the rows are in `config::dap`). Nothing else depends on the kind.
//!
//! | procedure | what the kind decides |
//! |---|---|
//! | get-data | [`Kind::wants`], [`Kind::supports`], [`Kind::accepted`], [`Kind::fetches`], [`Kind::finish`], [`Kind::decode`] |
//! | put-data | [`Kind::elements`], [`Kind::seal`] |
//! | get-tag | [`Kind::largest`] |
//! | CONFIRM, FIN, FIN2 | [`Kind::CONFIRMATION`], [`Kind::is_complete`], [`Kind::REMEMBERS`] |
//! | QUERY, at a server | [`Kind::held`] |
//! | PUT, at a server | [`Kind::admit`], [`Kind::trim`] |
//! | LIST, at a server | [`Kind::listed`] |
//! | notes between servers | [`Kind::GOSSIPS`] |
//! | FENCE, DROP | [`Kind::FENCES`], [`Kind::is_busy`] |

#[cfg(test)]
pub(crate) mod toy;

use super::found::CollectedVersion;
use super::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use super::{PassedVersions, Scope};
use crate::config::Configuration;
use crate::element::{Element, Handle, Value};
use crate::env::Env;
use crate::error::CallError;
use crate::gather::Visit;
use crate::message::{HeldVersions, Want};
use crate::object::Name;
use crate::tag::Tag;

/// The memory of a client of versions that it brought to a quorum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remembers {
    /// No version. Reads do not tell members either which version the client has.
    Nothing,
    /// Tags: a read that finds one need not write it back (`[F-2 own-puts]`).
    Tags,
    /// Pairs: the value of such a tag is not sent again either.
    Pairs,
}

/// The way in which members learn that a version is at a quorum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Confirmation {
    /// They do not learn it: every read is written back, to all of them.
    None,
    /// Notes of clients, which judge it by answers (`[F-1 quorum-agrees]`, `[F-3 confirmed-tag]`).
    Notes,
    /// Rounds of clients, durably ([`super::cas`]): a version is there for reads and listings from the first of them on, and
    /// not before.
    Rounds,
}

/// The decisions of one kind.
pub(crate) trait Kind {
    /// The way in which members learn that a version is at a quorum.
    const CONFIRMATION: Confirmation = Confirmation::Notes;
    /// True if members tell each other which versions are at a quorum, take FIN2, and agree on the end of abstentions ([`super::casss`]).
    const GOSSIPS: bool = false;
    /// True if a cap refuses new versions, so that some can be fenced off and dropped (`[X-3 unconfirmed-cap]`).
    const FENCES: bool = false;
    /// Naming of losses: a member that has lost the element of a version, and knows its tag, names it and speaks for the object
    /// (`[X-40 named-loss]`). Without, it abstains.
    const NAMES_LOST: bool = true;
    /// The memory of clients.
    const REMEMBERS: Remembers = Remembers::Tags;

    // ---- client half ----

    /// True if a member that answers this may have acknowledged a put of the tag (`[EC-11 acceptance-test]`, `[X-1 support-threshold]`).
    fn supports(held: &HeldVersions, tag: Tag) -> bool {
        held.supports(tag)
    }

    /// The wish of get-data to each member at this attempt, counted from 0; by position.
    fn wants<E: Env>(
        env: &E,
        c: &Configuration,
        name: &Name,
        scope: Scope,
        attempt: u32,
    ) -> Vec<Want>;

    /// The version that the answers of a quorum allow get-data to return; `None`: none yet.
    fn accepted(
        c: &Configuration,
        held: &[&HeldVersions],
        have: Tag,
        passed: &PassedVersions,
    ) -> Option<Tag>;

    /// True if get-data fetches the elements that are missing; otherwise [`Kind::finish`] brings them.
    fn fetches(_: &PassedVersions) -> bool {
        Self::CONFIRMATION != Confirmation::Rounds
    }

    /// The last round of get-data, where it fetches nothing. False: too few elements are left, and the reader has to ask again.
    async fn finish<E: Env>(
        _: &E,
        _: &Visit,
        _: &Name,
        _: (Scope, u32),
        _: &mut CollectedVersion,
    ) -> Result<bool, CallError> {
        Ok(true)
    }

    /// The rounds of put-data after a quorum holds the elements: they make the versions known there, durably.
    async fn seal<E: Env>(_: &E, _: &Visit, _: &[(&Name, Tag)]) -> Result<(), CallError> {
        Ok(())
    }

    /// True if the answers of a quorum show that this version, which they allow to return, is at a quorum (`[F-1 quorum-agrees]`,
    /// `[F-3 confirmed-tag]`).
    fn is_complete(c: &Configuration, held: &[&HeldVersions], tag: Tag) -> bool {
        let holders = held.iter().filter(|held| held.stores(tag)).count();
        holders >= c.quorums().quorum() || held.iter().any(|held| held.stable >= tag)
    }

    /// The tag that get-tag takes from an answer.
    fn largest(held: &HeldVersions) -> Tag {
        held.max_tag()
    }

    /// The value, of elements that are enough for it.
    fn decode<E: Env>(env: &E, c: &Configuration, elements: Vec<Element>) -> Value;

    /// The element that put-data brings each member, by position.
    fn elements(c: &Configuration, name: &Name, value: &Value) -> Vec<Element>;

    // ---- server half ----

    /// The answer to QUERY(want, have).
    fn held(versions: &Versions, want: Want, have: Tag, _: Bounds) -> HeldVersions {
        versions.held(want, have)
    }

    /// The version that a listing shows, and the stored part of it.
    fn listed(versions: &Versions) -> Option<(Tag, Option<&StoredVersion>)> {
        let largest = versions.largest()?;
        Some((largest.tag, Some(largest)))
    }

    /// The admission of PUT(tag).
    fn admit(versions: &Versions, tag: Tag, arrival: Arrival, bounds: Bounds) -> Admission;

    /// Evicts versions, or their elements, which then have records of their own under handles that are drawn. Returns what
    /// went. `quiet`: the object was not written for a while.
    fn trim(
        versions: &mut Versions,
        delta: u16,
        quiet: bool,
        draw: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion>;

    /// True if a new version would be refused for those that are not confirmed.
    fn is_busy(_: &Versions, _: Bounds) -> bool {
        false
    }
}

/// Calls a function of the configuration's kind: `of_kind!(c, K => K::admit(...))`. It is the one place that matches
/// on the kind.
macro_rules! of_kind {
    ($c:expr, $decides:ident => $call:expr) => {
        $crate::config::kinds!(of_kind!([$c] [$decides] [$call]))
    };
    (
        ([$c:expr] [$decides:ident] [$call:expr]) $(
            $(#[$only:meta])? $doc:literal
            $kind:ident $({ $k:ident })?, $quorums:expr, $field:literal, $word:literal, $($file:ident)::+;
        )*
    ) => {{
        #[allow(unused_imports)]
        use $crate::dap::kind::Kind as _;
        match $c.dap() {
            $(
                $(#[$only])?
                $crate::config::Dap::$kind $({ $k: _ })? => {
                    type $decides = $crate::dap::$($file)::+;
                    $call
                }
            )*
        }
    }};
}
pub(crate) use of_kind;

/// The decisions that a kind takes as another one does: `as_in!(Ec: wants decode elements)`.
macro_rules! as_in {
    ($of:ty: $($decision:ident)+) => { $($crate::dap::kind::as_in!(@$decision $of);)+ };
    (@wants $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, wants[E](
            env: &E, c: &$crate::config::Configuration, name: &$crate::object::Name, scope: $crate::dap::Scope, attempt: u32
        ) -> Vec<$crate::message::Want>);
    };
    (@supports $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, supports(
            held: &$crate::message::HeldVersions, tag: $crate::tag::Tag
        ) -> bool);
    };
    (@accepted $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, accepted(
            c: &$crate::config::Configuration, held: &[&$crate::message::HeldVersions], have: $crate::tag::Tag,
            passed: &$crate::dap::PassedVersions
        ) -> Option<$crate::tag::Tag>);
    };
    (@is_complete $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, is_complete(
            c: &$crate::config::Configuration, held: &[&$crate::message::HeldVersions], tag: $crate::tag::Tag
        ) -> bool);
    };
    (@largest $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, largest(held: &$crate::message::HeldVersions) -> $crate::tag::Tag);
    };
    (@finish $of:ty) => {
        async fn finish<E: $crate::env::Env>(
            env: &E, at: &$crate::gather::Visit, name: &$crate::object::Name, wanted: ($crate::dap::Scope, u32),
            collected: &mut $crate::dap::found::CollectedVersion
        ) -> Result<bool, $crate::error::CallError> {
            <$of>::finish(env, at, name, wanted, collected).await
        }
    };
    (@decode $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, decode[E](
            env: &E, c: &$crate::config::Configuration, elements: Vec<$crate::element::Element>
        ) -> $crate::element::Value);
    };
    (@elements $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, elements(
            c: &$crate::config::Configuration, name: &$crate::object::Name, value: &$crate::element::Value
        ) -> Vec<$crate::element::Element>);
    };
    (@held $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, held(
            versions: &$crate::dap::versions::Versions, want: $crate::message::Want, have: $crate::tag::Tag,
            bounds: $crate::dap::versions::Bounds
        ) -> $crate::message::HeldVersions);
    };
    (@listed $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, listed(
            versions: &$crate::dap::versions::Versions
        ) -> Option<($crate::tag::Tag, Option<&$crate::dap::versions::StoredVersion>)>);
    };
    (@admit $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, admit(
            versions: &$crate::dap::versions::Versions, tag: $crate::tag::Tag, arrival: $crate::dap::versions::Arrival,
            bounds: $crate::dap::versions::Bounds
        ) -> $crate::dap::versions::Admission);
    };
    (@trim $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, trim(
            versions: &mut $crate::dap::versions::Versions, delta: u16, quiet: bool,
            draw: impl FnMut() -> $crate::element::Handle
        ) -> Vec<$crate::dap::versions::StoredVersion>);
    };
    (@is_busy $of:ty) => {
        $crate::dap::kind::as_in!(@fn $of, is_busy(
            versions: &$crate::dap::versions::Versions, bounds: $crate::dap::versions::Bounds
        ) -> bool);
    };
    (@fn $of:ty, $decision:ident $([$world:ident])? ($($given:ident: $type:ty),*) -> $returned:ty) => {
        fn $decision$(<$world: $crate::env::Env>)?($($given: $type),*) -> $returned {
            <$of>::$decision($($given),*)
        }
    };
}
pub(crate) use as_in;
