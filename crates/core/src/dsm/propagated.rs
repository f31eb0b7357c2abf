//! The versions that a client brought to a quorum itself: a read that finds one need not write it back (`[F-2 own-puts]`,
//! `[F-6 puts-not-reads]`). EC-DAPopt keeps the pair, so that it is not sent again either (`prop`, `docs/spec` 2.4).

use crate::config::{Configuration, ConfigurationId};
use crate::dap::CachedVersion;
use crate::dap::kind::{Remembers, of_kind};
use crate::element::Value;
use crate::object::Name;
use crate::tag::Tag;
use std::collections::BTreeMap;

/// Objects that are remembered; more are forgotten, which costs a write-back.
const OBJECTS: usize = 4096;
/// Bytes of values that are remembered; a value that has no room is sent again.
const BYTES: u64 = 64 << 20;

/// Versions by configuration and object, because a put says nothing of any other configuration.
#[derive(Default)]
pub(super) struct PropagatedVersions {
    pairs: BTreeMap<(ConfigurationId, Name), (Tag, Option<Value>)>,
    /// Bytes of the values.
    bytes: u64,
}

impl PropagatedVersions {
    /// True if this tag, or a larger one, was put there.
    pub(super) fn has(&self, c: &Configuration, name: &Name, tag: Tag) -> bool {
        let pair = self.pairs.get(&(c.id(), name.clone()));
        pair.is_some_and(|(done, _)| *done >= tag)
    }

    /// The last pair that was put there, if it is kept.
    pub(super) fn last(&self, c: &Configuration, name: &Name) -> Option<CachedVersion> {
        if of_kind!(c, K => K::REMEMBERS) != Remembers::Pairs {
            return None;
        }
        let (tag, value) = self.pairs.get(&(c.id(), name.clone()))?;
        let value = Some(value.clone()?);
        Some(CachedVersion { tag: *tag, value })
    }

    /// A put completed there.
    pub(super) fn remember(&mut self, c: &Configuration, name: &Name, (tag, value): (Tag, &Value)) {
        let remembers = of_kind!(c, K => K::REMEMBERS);
        if remembers == Remembers::Nothing {
            return;
        }
        let key = (c.id(), name.clone());
        if self.pairs.get(&key).is_some_and(|(done, _)| *done >= tag) {
            return;
        }
        if self.pairs.len() >= OBJECTS
            && let Some((_, forgotten)) = self.pairs.pop_first()
        {
            self.bytes -= bytes(&forgotten);
        }
        let keeps = remembers == Remembers::Pairs;
        let room = BYTES.saturating_sub(self.bytes);
        let kept = (keeps && value.content_bytes() <= room).then(|| value.clone());
        self.bytes += kept.as_ref().map_or(0, Value::content_bytes);
        if let Some(replaced) = self.pairs.insert(key, (tag, kept)) {
            self.bytes -= bytes(&replaced);
        }
        assert!(
            self.pairs.len() <= OBJECTS,
            "so many objects are remembered"
        );
        assert!(self.bytes <= BYTES, "values have so much room");
    }
}

fn bytes((_, value): &(Tag, Option<Value>)) -> u64 {
    value.as_ref().map_or(0, Value::content_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::remembering;
    use crate::tag::Writer;
    use bytes::Bytes;

    fn tag(number: u64) -> Tag {
        Tag {
            number,
            writer: Writer::default(),
        }
    }

    fn value(length: u64) -> Value {
        Value::new(Bytes::new(), vec![7; length as usize].into())
    }

    #[test]
    fn each_form_remembers_what_it_has_a_use_for() {
        let name = Name::user("k").unwrap();
        let [tags, nothing, pairs] = remembering();
        for (c, tags, pairs) in [
            (tags, true, false),
            (nothing, false, false),
            (pairs, true, true),
        ] {
            let mut propagated = PropagatedVersions::default();
            propagated.remember(&c, &name, (tag(2), &value(9)));
            propagated.remember(&c, &name, (tag(1), &value(8)));
            assert_eq!(propagated.has(&c, &name, tag(2)), tags, "{c:?}");
            assert!(!propagated.has(&c, &name, tag(3)));
            let last = propagated.last(&c, &name);
            let expected = pairs.then(|| CachedVersion {
                tag: tag(2),
                value: Some(value(9)),
            });
            assert_eq!(last, expected, "{c:?}");
            assert_eq!(propagated.bytes, if pairs { 9 } else { 0 });
        }
    }

    #[test]
    fn values_have_so_much_room_and_no_more() {
        let ([_, _, c], mut propagated) = (remembering(), PropagatedVersions::default());
        let large = value(BYTES - 1);
        let [a, b] = ["a", "b"].map(|key| Name::user(key).unwrap());
        propagated.remember(&c, &a, (tag(1), &large));
        propagated.remember(&c, &b, (tag(1), &value(2)));
        assert!(propagated.last(&c, &b).is_none() && propagated.has(&c, &b, tag(1)));
        propagated.remember(&c, &a, (tag(2), &value(1)));
        assert_eq!(propagated.bytes, 1);
        propagated.remember(&c, &b, (tag(2), &value(2)));
        assert!(propagated.last(&c, &b).is_some());
    }
}
