//! Questions to several configurations at once (`[R-20 answers-for-later]`).

use super::{Access, Body};
use crate::object::Name;

impl Body {
    /// The object that a query is about, if this is one about one object.
    pub fn queried(&self) -> Option<&Name> {
        match self {
            Body::Access(accesses) => match accesses.as_slice() {
                [(name, Access::Query { .. })] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}
