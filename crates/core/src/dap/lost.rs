//! Versions of which too few elements are left to make their value (`docs/spec` `[X-40 named-loss]`). That is proved by what members
//! say, and never concluded from silence: a member that is away may come back with its element.

use super::found::Loss;
use super::kind::of_kind;
use crate::config::Configuration;
use crate::element::Form;
use crate::error::Response;
use crate::message::{HeldVersions, Refusal};
use crate::tag::Tag;

/// A member, as far as the answers show its elements.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    /// The answer of the member.
    Held(&'a HeldVersions),
    /// It abstains, because its record is damaged.
    Abstains,
    /// It may have an element of any version.
    Open(Response),
}

/// The version that a member names as lost: the largest that it lists, without an element. Where members name none, as in
/// [`super::ec::published`], the largest has its element.
pub(crate) fn named(held: &HeldVersions) -> Option<Tag> {
    let (tag, form) = held.stored.last()?;
    (*form == Form::Trimmed).then_some(*tag)
}

/// The version that has to be returned, or a larger one, if none of these can be read by further answers. `members`: by position.
pub(super) fn loss<'a>(c: &Configuration, members: &[Known<'a>]) -> Option<Loss> {
    assert_eq!(members.len(), c.n(), "known of each member");
    let held = |member: &Known<'a>| match member {
        Known::Held(held) => Some(*held),
        Known::Abstains | Known::Open(_) => None,
    };
    let replies: Vec<&HeldVersions> = members.iter().filter_map(held).collect();
    let quorum = c.quorums().quorum();
    if replies.len() < quorum || !of_kind!(c, K => K::NAMES_LOST) {
        return None;
    }
    let open = members.iter().filter(|it| matches!(it, Known::Open(_)));
    let open = open.count();
    let stable = replies.iter().map(|held| held.stable).max()?;
    let listed = replies.iter().flat_map(|held| &held.stored);
    let listed: Vec<Tag> = listed.map(|(tag, _)| *tag).collect();
    let supports = |held: &HeldVersions, tag| of_kind!(c, K => K::supports(held, tag));
    let supporting = |tag: Tag| replies.iter().filter(|held| supports(held, tag)).count();
    let complete = |tag: &Tag| supporting(*tag) >= quorum;
    let complete = listed.iter().copied().filter(complete);
    let tag = complete.chain([stable]).max()?;
    // One that no member supports is not there for readers.
    let above = listed.into_iter();
    let above = above.filter(|above| *above > tag && supporting(*above) > 0);
    let mut newest = above.chain([tag]).map(|tag| Left::of(c, &replies, tag));
    if tag.is_initial() || newest.any(|left| left.found + open >= left.needed) {
        return None;
    }
    let left = Left::of(c, &replies, tag);
    assert!(left.found < left.needed, "what can be read is not lost");
    let response = |member: &Known<'_>| match member {
        Known::Held(held) if named(held).is_none() => Response::Answered,
        Known::Held(_) | Known::Abstains => Response::Refused(Refusal::Damaged),
        Known::Open(response) => *response,
    };
    Some(Loss {
        tag,
        found: left.found,
        // Where nothing is left it is not known what was there.
        needed: match left.found {
            0 => usize::from(c.dap().k()),
            _ => left.needed,
        },
        responses: members.iter().map(response).collect(),
    })
}

/// The elements of a version that are left.
struct Left {
    found: usize,
    /// Elements that make the value: as long as no fragment was named each member may have had a copy.
    needed: usize,
}

impl Left {
    fn of(c: &Configuration, replies: &[&HeldVersions], tag: Tag) -> Left {
        let forms: Vec<Form> = replies
            .iter()
            .filter_map(|held| held.form_of(tag))
            .collect();
        let is_fragment = |form: &Form| matches!(form, Form::Fragment { .. });
        let needed = match !forms.is_empty() && forms.iter().all(is_fragment) {
            true => usize::from(c.dap().k()),
            false => 1,
        };
        let found = forms.len();
        Left { found, needed }
    }
}
