//! I2 of section 1.1, `[C-4 unique-writers]`, `[X-7 writer-per-write]`: a tag belongs to one value. All elements of a
//! version are made from it: they have one length, and two of the same form are the same bytes.

use super::{Context, Invariant, Observation};
use crate::random::digest;
use crate::truth::ObjectId;
use areo_core::element::Form;
use areo_core::tag::Tag;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    versions: BTreeMap<(ObjectId, Tag), Version>,
}

struct Version {
    length: u64,
    deleted: bool,
    /// Hashes of the payloads, by form.
    payloads: BTreeMap<Form, u64>,
}

impl Invariant for Rule {
    fn name(&self) -> &'static str {
        "one_value_per_tag"
    }

    fn observe(&mut self, observation: &Observation<'_>, context: &Context<'_>) -> Option<String> {
        let Observation::Submitted {
            object,
            tag,
            element,
        } = *observation
        else {
            return None;
        };
        let version = self
            .versions
            .entry((object, tag))
            .or_insert_with(|| Version {
                length: element.length,
                deleted: element.deleted,
                payloads: BTreeMap::new(),
            });
        let hash = digest(&element.payload);
        let known = *version.payloads.entry(element.form).or_insert(hash);
        let same =
            (version.length, version.deleted, known) == (element.length, element.deleted, hash);
        (!same).then(|| {
            let object = context.objects.describe(object);
            format!("two values have the tag {tag} of {object}")
        })
    }
}
