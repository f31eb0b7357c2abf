//! I3 of section 1.1, (C1) of section 2, `[F-1 quorum-agrees]` to `[F-3 confirmed-tag]`: when an operation ends with a
//! version, a quorum holds that or a newer one on its disks; and some such version can be put together from elements that
//! are not damaged, whichever servers answer. Of the domain's configurations that is true of one that comes not before the
//! highest that any server knows to be final: an operation that starts there must miss nothing (O4 of section 8, the
//! hand-over of 3.4). Where a round finalizes versions, a quorum knows so on its disks (`[CAS-1 durable-marks]`).

use super::{Context, Invariant, Observation, at, final_index};
use crate::truth::{ObjectId, Truth, domain_of};
use areo_core::config::Configuration;
use areo_core::dap;
use areo_core::element::Form;
use areo_core::tag::Tag;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Rule {
    newest: Vec<Tag>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "quorum_holds"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::Completed { homes, tag } = *observation else {
            return None;
        };
        let (first, _) = homes.first()?;
        let newest = at(&mut self.newest, *first);
        *newest = tag.max(*newest);
        let tag = *newest;
        if tag.is_initial() {
            return None;
        }
        let domain = domain_of(&context.objects.key(*first));
        let start = final_index(context.truths, domain);
        let from_start = homes.iter().filter(|(_, c)| c.id().index >= start);
        let mut broken = None;
        for (object, c) in from_start {
            broken = Some(missing(*object, c, tag, context)?);
        }
        broken
    }
}

/// The parts of the version that are missing in one configuration, in a sentence; `None` if it is there.
fn missing(object: ObjectId, c: &Configuration, tag: Tag, context: &Context<'_>) -> Option<String> {
    let members = c.members().iter().map(|member| context.truth(*member));
    // A server that is gone, or whose disk is harmed, once had it: what it has lost is the other rule's business.
    let holds = |truth: Option<&Truth>| {
        truth.is_none_or(|truth| truth.is_harmed() || truth.newest(object) >= tag)
    };
    let holders = members.clone().filter(|truth| holds(*truth)).count();
    let needed = c.quorums().quorum();
    if holders < needed {
        let object = context.objects.describe(object);
        return Some(format!(
            "{tag} is complete, and {holders} of {needed} needed servers hold it or a newer version of {object}"
        ));
    }
    let marks = |truth: Option<&Truth>| {
        truth.is_none_or(|truth| truth.is_harmed() || truth.mark(object) >= tag)
    };
    let marked = members.clone().filter(|truth| marks(*truth)).count();
    if dap::has_durable_marks(c) && marked < needed {
        let object = context.objects.describe(object);
        return Some(format!(
            "{tag} is complete, and {marked} of {needed} needed servers know durably that it is, or a newer version of {object}"
        ));
    }
    let elements = members
        .flatten()
        .filter(|truth| !truth.is_harmed())
        .map(|truth| truth.sound_from(object, tag));
    (!is_decodable(c, &elements.flatten().collect())).then(|| {
        let object = context.objects.describe(object);
        format!("{tag} is complete, and the disks have no version from it on of {object}")
    })
}

/// Some version has a full copy, or k distinct fragments.
fn is_decodable(c: &Configuration, elements: &BTreeSet<(Tag, Form)>) -> bool {
    let mut fragments: BTreeMap<Tag, usize> = BTreeMap::new();
    for (tag, form) in elements {
        match form {
            Form::Copy | Form::Manifest => return true,
            Form::Fragment { .. } => *fragments.entry(*tag).or_default() += 1,
            Form::Trimmed => {}
        }
    }
    let k = usize::from(c.dap().k());
    fragments.into_values().any(|count| count >= k)
}
