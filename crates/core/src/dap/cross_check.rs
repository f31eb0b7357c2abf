//! Checks that the elements of a version belong together: a checksum shows that an element is the one that was put, not that it is an element
//! of that value (`[X-29 cross-check]`).

use super::abd::copy_value;
use super::ec::joined;
use crate::config::Configuration;
use crate::element::{Element, Form};
use crate::limits;
use crate::object::Name;

/// The verdict of the elements of a version on one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrossCheck {
    /// The element and enough others belong to one value: together they are more than the value needs.
    Sound,
    /// The other elements belong to one value, and are more than it needs; this element does not belong to it.
    Differs,
    /// No value explains more elements than make one, although there are more: which of them are wrong is not known.
    Contradicting,
    /// There are not more elements than make a value.
    TooFew,
}

/// Judges the element at `own` by making values of the others, and all elements of these. `found`: what members hold of one version,
/// by position.
pub fn cross_check(
    c: &Configuration,
    name: &Name,
    found: &[Option<Element>],
    own: usize,
) -> CrossCheck {
    assert_eq!(found.len(), c.n(), "known of each member, or not");
    assert!(own < c.n(), "it is a member");
    let Some(judged) = &found[own] else {
        return CrossCheck::TooFew;
    };
    let mut differs = false;
    for first in (0..c.n()).filter(|at| *at != own) {
        let Some(basis) = basis(c, name, found, own, first) else {
            continue;
        };
        assert!(
            basis.iter().all(|it| it.is_alike(&basis[0])),
            "they may be of one value"
        );
        let needed = basis.len();
        let value = match &basis[..] {
            [whole] if whole.form.is_whole() => copy_value(whole.clone()),
            fragments => joined(c, fragments),
        };
        let expected = super::elements(c, name, &value);
        assert_eq!(expected.len(), found.len(), "an element for each member");
        let agrees = |at: &usize| found[*at].as_ref().is_some_and(|it| is(it, &expected[*at]));
        if (0..c.n()).filter(agrees).count() > needed {
            if agrees(&own) {
                return CrossCheck::Sound;
            }
            differs = true;
        }
    }
    if differs {
        return CrossCheck::Differs;
    }
    match found.iter().flatten().count() > needed(c, judged) {
        true => CrossCheck::Contradicting,
        false => CrossCheck::TooFew,
    }
}

/// The number of elements of this form that make a value.
fn needed(c: &Configuration, element: &Element) -> usize {
    match element.form.is_whole() {
        true => 1,
        false => usize::from(c.dap().k()),
    }
}

/// Enough elements for the value, the first of them at `first`, without the element at `own`. `None`: too few
/// elements can belong to one value.
fn basis(
    c: &Configuration,
    name: &Name,
    found: &[Option<Element>],
    own: usize,
    first: usize,
) -> Option<Vec<Element>> {
    let model = found[first].as_ref()?;
    let is_usable = |at: usize| {
        let element = found[at].as_ref().filter(|_| at != own)?;
        let is_one = element.is_alike(model) && is_well_formed(c, name, at, element);
        is_one.then(|| element.clone())
    };
    let needed = needed(c, model);
    let from_first = (0..c.n()).map(|offset| (first + offset) % c.n());
    let elements: Vec<Element> = from_first.filter_map(is_usable).take(needed).collect();
    let is_enough = elements.len() == needed && elements.iter().all(|it| is_like(it, model));
    is_enough.then_some(elements)
}

fn is_like(element: &Element, model: &Element) -> bool {
    element.form.is_whole() == model.form.is_whole()
}

/// True if an element of this form and length may be at that position: only such make a value.
fn is_well_formed(c: &Configuration, name: &Name, position: usize, element: &Element) -> bool {
    let bytes = element.payload.len();
    if element.length > limits::VALUE_BYTES {
        return false;
    }
    let length = usize::try_from(element.length).expect("values fit into memory");
    let Form::Fragment { index, .. } = element.form else {
        return element.form == Form::Manifest && bytes == 0
            || element.form == Form::Copy && bytes == length;
    };
    if element.form != super::form(c, name, position, (element.length, element.deleted)) {
        return false;
    }
    bytes
        == match index < c.dap().k() {
            true => c.code().data_range(length, index).len(),
            false => c.code().fragment_length(length),
        }
}

/// True if the two are the same element, however their checksums are known.
fn is(one: &Element, other: &Element) -> bool {
    one.form == other.form && one.is_alike(other) && one.payload == other.payload
}

#[cfg(test)]
mod tests;
