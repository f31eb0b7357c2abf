//! EC-DAP as published (`docs/spec` 2.3; the TREAS of Ares): what the papers compare with.
//!
//! A member's list has the elements of the delta + 1 largest versions, and the tags of all: a trimmed version stays in the
//! list without its element. A reader decodes the largest version that k lists have with an element, if it is also the
//! largest that k lists name at all. Nobody says which versions are complete, so that every read writes back.
//!
//! Two weaknesses, for which Areo has something else by default: the tags stay for ever, and every reply names them (a put
//! is refused at [`limits::LISTED_TAGS`]); and a version that more than delta writers passed has lost its element at too
//! many members, so that reads ask again until one of those writers has ended, or their time is over.
//!
//! What travels is less than published: members send their tags, and the elements of the one version that is accepted.
//!
//! | pseudocode | here |
//! |---|---|
//! | get-data: `t* = max{t in k lists}`, `td = max{t in k lists with an element}`, `t* == td` | [`EcPublished::accepted`] |
//! | put-data, server | [`EcPublished::admit`], [`EcPublished::trim`] |

use super::Ec;
use crate::config::Configuration;
use crate::dap::PassedVersions;
use crate::dap::kind::{Confirmation, Kind, Remembers, as_in};
use crate::dap::versions::{Admission, Arrival, Bounds, StoredVersion, Versions};
use crate::element::{Form, Handle};
use crate::limits;
use crate::message::HeldVersions;
use crate::tag::Tag;

/// The rules of EC-DAP as published.
pub(crate) enum EcPublished {}

impl Kind for EcPublished {
    const CONFIRMATION: Confirmation = Confirmation::None;
    /// No naming: in its lists a tag without an element is one that was trimmed.
    const NAMES_LOST: bool = false;
    const REMEMBERS: Remembers = Remembers::Nothing;

    as_in!(Ec: wants decode elements);

    // ---- client half ----

    /// The largest version that k lists have with an element, if no larger one is in k lists (`t* == td`). The initial version
    /// is in every list, and so is, for whoever brought it there, the version that the asker has.
    fn accepted(
        c: &Configuration,
        lists: &[&HeldVersions],
        have: Tag,
        _: &PassedVersions,
    ) -> Option<Tag> {
        assert!(
            lists.len() >= c.quorums().quorum(),
            "the rule judges quorums"
        );
        let listed =
            |list: &&HeldVersions| list.stored.iter().map(|(tag, _)| *tag).collect::<Vec<_>>();
        let mut tags: Vec<Tag> = lists.iter().flat_map(listed).collect();
        // The floor is here what was lost by damage: in the list, but which tag is not known any more.
        tags.extend(lists.iter().map(|list| list.floor));
        tags.sort_unstable();
        let in_k_lists = |is_in: fn(&HeldVersions, Tag) -> bool| {
            let count = |tag: Tag| lists.iter().filter(|list| is_in(list, tag)).count();
            let enough = |tag: &Tag| *tag > have && count(*tag) >= usize::from(c.dap().k());
            tags.iter().copied().rfind(enough).unwrap_or(have)
        };
        let (largest, with_element) = (
            in_k_lists(HeldVersions::supports),
            in_k_lists(HeldVersions::stores),
        );
        assert!(
            have <= with_element,
            "no older version is returned than the asker has"
        );
        (largest == with_element).then_some(with_element)
    }

    // ---- server half ----

    /// Judges a PUT: a listed version is acknowledged; a version that trimming would empty at once is listed without
    /// its element.
    fn admit(versions: &Versions, tag: Tag, _: Arrival, bounds: Bounds) -> Admission {
        let is_larger = |stored: &&StoredVersion| stored.tag > tag && stored.form != Form::Trimmed;
        if versions.find(tag).is_some() {
            Admission::Acknowledge
        } else if versions.stored().len() >= limits::LISTED_TAGS {
            Admission::Full
        } else if versions.stored().iter().filter(is_larger).count() > bounds.delta.into() {
            Admission::StoreTag
        } else {
            Admission::Store
        }
    }

    /// The delta + 1 largest elements stay, and every tag does.
    fn trim(
        versions: &mut Versions,
        delta: u16,
        _: bool,
        draw: impl FnMut() -> Handle,
    ) -> Vec<StoredVersion> {
        versions.trim_elements(usize::from(delta) + 1, draw)
    }
}

#[cfg(test)]
mod tests;
