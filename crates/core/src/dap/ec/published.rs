//! EC-DAP as published (`docs/spec` 2.3; the TREAS of Ares), and with the optimisation of `CoAres` (2.4, EC-DAPopt): what
//! the papers compare with. Chosen by [`EcDap`]; never the default.
//!
//! A member's list has the elements of the delta + 1 largest versions, and the tags of all: a trimmed version stays in the
//! list without its element. A reader decodes the largest version that k lists have with an element, if it is also the
//! largest that k lists name at all. Nobody says which versions are complete, so that every read writes back.
//!
//! Two weaknesses, for which Areo has something else by default: the tags stay for ever, and every reply names them (a put
//! is refused at [`limits::LISTED_TAGS`]); and a version that more than delta writers passed has lost its element at too
//! many members, so that reads ask again until one of those writers has ended, or their time is over.
//!
//! EC-DAPopt differs at the client, which remembers the last pair that it brought to a quorum (`prop`): it names that pair's
//! tag when it asks, members answer with what is newer ([`newer_than`]), and a pair that it has brought there it does not
//! write back.
//!
//! What travels is less than published: members send their tags, and the elements of the one version that is accepted.
//!
//! | pseudocode | here |
//! |---|---|
//! | get-data: `t* = max{t in k lists}`, `td = max{t in k lists with an element}`, `t* == td` | [`decodable`] |
//! | put-data, server | [`admit`], [`trim`] |
//! | `prop` | `dsm::propagated`; server: [`newer_than`] |

use crate::config::{Configuration, EcDap};
use crate::dap::Passed;
use crate::dap::versions::{Admission, Stored, Versions};
use crate::element::{Form, Handle};
use crate::limits;
use crate::message::Held;
use crate::tag::Tag;

/// The largest version that k lists have with an element, if no larger one is in k lists (`t* == td`). The initial version
/// is in every list, and so is, for whoever brought it there, the version that the asker has.
pub(in crate::dap) fn decodable(
    c: &Configuration,
    held: &[Option<Held>],
    have: Tag,
    _: &Passed,
) -> Option<Tag> {
    let lists: Vec<&Held> = held.iter().flatten().collect();
    assert!(
        lists.len() >= c.quorums().quorum(),
        "the rule judges quorums"
    );
    let listed = |list: &&Held| list.stored.iter().map(|(tag, _)| *tag).collect::<Vec<_>>();
    let mut tags: Vec<Tag> = lists.iter().flat_map(listed).collect();
    // The floor is here what was lost by damage: in the list, but which tag is not known any more.
    tags.extend(lists.iter().map(|list| list.floor));
    tags.sort_unstable();
    let in_k_lists = |is_in: fn(&Held, Tag) -> bool| {
        let count = |tag: Tag| lists.iter().filter(|list| is_in(list, tag)).count();
        let enough = |tag: &Tag| *tag > have && count(*tag) >= usize::from(c.dap().k());
        tags.iter().copied().rfind(enough).unwrap_or(have)
    };
    let (largest, with_element) = (in_k_lists(Held::supports), in_k_lists(Held::stores));
    (largest == with_element).then_some(with_element)
}

// ---- server half ----------------------------------------------------------------------------------------------------

/// PUT: what is listed is acknowledged; what trimming would empty at once is listed without its element.
pub fn admit(versions: &Versions, tag: Tag, delta: u16) -> Admission {
    let is_larger = |stored: &&Stored| stored.tag > tag && stored.form != Form::Trimmed;
    if versions.find(tag).is_some() {
        Admission::Acknowledge
    } else if versions.stored().len() >= limits::LISTED_TAGS {
        Admission::Full
    } else if versions.stored().iter().filter(is_larger).count() > delta.into() {
        Admission::StoreTag
    } else {
        Admission::Store
    }
}

/// The delta + 1 largest elements stay, and every tag does. Returns the versions whose elements went.
pub fn trim(versions: &mut Versions, delta: u16, draw: impl FnMut() -> Handle) -> Vec<Stored> {
    versions.trim_elements(usize::from(delta) + 1, draw)
}

/// EC-DAPopt: who says what it brought to a quorum is told what is newer, and whether that is here (HAVE).
pub fn newer_than(c: &Configuration, have: Tag, held: &mut Held) {
    if c.baseline() == Some(EcDap::Optimized) {
        held.stored.retain(|(tag, _)| *tag >= have);
    }
}

#[cfg(test)]
mod tests;
