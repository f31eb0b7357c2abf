//! `[X-20 decided-once]`, agreement of Paxos: a decided-once cell has one value. Every server that says it, at any time and
//! in any configuration of its domain, says the same. What comes after a configuration is decided once in each.

use super::{Context, Invariant, Observation};
use crate::truth::{Domain, Truth, domain_of};
use areo_core::consensus::SUCCESSOR_CELL;
use areo_core::dsm::large;
use areo_core::object::Name;
use areo_core::tag::{Tag, Writer};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    decided: BTreeMap<(Domain, u32, Bytes), Bytes>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "decided_once"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::CellShown {
            key, cell, value, ..
        } = observation
        else {
            return None;
        };
        let index = if *cell == SUCCESSOR_CELL {
            key.index
        } else {
            0
        };
        let domain = domain_of(key);
        let first = self.decided.entry((domain, index, (*cell).clone()));
        let first = first.or_insert_with(|| (*value).clone());
        let agrees = first == *value || is_forgotten((domain, cell), [first, value], context);
        (!agrees).then(|| {
            let cell = String::from_utf8_lossy(cell);
            format!("cell {cell} was decided to {first:?} and to {value:?}")
        })
    }
}

/// True if the cell belongs to an upload that was committed and overwritten, or that a register did not choose.
/// Servers may have forgotten such a cell, so that it is decided anew
/// (`docs/decisions/0021-cells-go-with-their-uploads.md`, `[W-11 given-up]`).
fn is_forgotten(
    (domain, cell): (Domain, &Bytes),
    values: [&Bytes; 2],
    context: &Context<'_>,
) -> bool {
    let is_over = |(name, tag): (Name, Tag)| {
        let objects = context.objects.in_domain(domain, name.as_bytes());
        let truths = || context.truths.iter().map(Truth::own);
        let mut newest = objects.flat_map(|object| truths().map(move |it| it.newest(object)));
        newest.any(|newest| newest > tag) || is_not_chosen((domain, &name), tag.writer, context)
    };
    let mut committed = values.into_iter().filter_map(large::committed);
    cell.starts_with(large::PREFIX.as_bytes()) && committed.any(is_over)
}

/// True if the object is a register whose current version is not this upload. A few members may hold versions that
/// were never chosen.
fn is_not_chosen((domain, name): (Domain, &Name), upload: Writer, context: &Context<'_>) -> bool {
    let mut of_domain = context
        .shapes
        .values()
        .filter(|c| domain_of(&c.id()) == domain);
    let mut objects = context.objects.in_domain(domain, name.as_bytes());
    let is_current = |object| {
        context.shape(object).is_some_and(|c| {
            let has = |truth: &Truth| truth.newest(object).writer == upload;
            let members = c.members().iter();
            let holding = members.filter(|member| context.truth(**member).is_some_and(has));
            holding.count() >= c.quorums().quorum()
        })
    };
    of_domain.any(|c| c.is_ranked(name)) && !objects.any(is_current)
}
