//! The elements that a member can have, and the sets of them that make a value.

use crate::config::Configuration;
use crate::dap::Scope;
use crate::element::{Element, Form};
use crate::object::Name;

/// True if this is an element that the member at this position can hold (`[EC-2 self-describing-elements]`), and as long as it must be.
pub(in crate::dap) fn fits(
    c: &Configuration,
    name: &Name,
    from: usize,
    element: &Element,
    scope: Scope,
) -> bool {
    let Ok(length) = usize::try_from(element.length) else {
        return false;
    };
    let bytes = match element.form {
        Form::Copy => length,
        Form::Manifest => 0,
        Form::Trimmed => return false,
        Form::Fragment { n, k, index } => {
            let hash = name.placement_hash(c.descriptor().domain);
            let ours = (n, k) == (c.code().n(), c.dap().k());
            if !c.dap().is_coded() || !ours || index != c.element_index(from, hash) {
                return false;
            }
            match index < k {
                true => c.code().data_range(length, index).len(),
                false => c.code().fragment_length(length),
            }
        }
    };
    scope == Scope::Metadata || element.payload.len() == bytes
}

/// The largest set of elements that can be of one value ([`Element::is_alike`]), among the elements of one version that `n` members
/// gave. In an execution all of them are alike. A member whose element differs is out of order, and must not keep others from reading
/// the value.
pub(in crate::dap) fn alike<'a>(
    n: usize,
    given: impl Fn(usize) -> Option<&'a Element>,
) -> Vec<usize> {
    let mut alike: Vec<usize> = (0..n).filter(|it| given(*it).is_some()).collect();
    let are_alike = |a: usize, b: usize| match (given(a), given(b)) {
        (Some(a), Some(b)) => a.is_alike(b),
        _ => false,
    };
    if alike.iter().all(|position| are_alike(alike[0], *position)) {
        return alike;
    }
    let like = |position: &usize| alike.iter().filter(|it| are_alike(**it, *position)).count();
    let most = alike.iter().copied().max_by_key(like);
    alike.retain(|position| most.is_some_and(|most| are_alike(most, *position)));
    alike
}

/// True if these elements of one value are enough for the scope: one element of any form for the metadata; for the value one copy, or k
/// distinct fragments of this configuration's form.
pub(in crate::dap) fn enough<'a>(
    c: &Configuration,
    scope: Scope,
    alike: impl Iterator<Item = &'a Element>,
) -> bool {
    let needed = match scope {
        Scope::Metadata => 1,
        Scope::Whole | Scope::Version => usize::from(c.dap().k()),
    };
    let (mut count, mut is_copy) = (0, false);
    for element in alike {
        (count, is_copy) = (count + 1, is_copy || element.form.is_whole());
    }
    count >= needed || is_copy
}
