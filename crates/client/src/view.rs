//! The serialised form of infos and reports: the JSON that the command line prints, and that a console or a gateway can show. The
//! types derive it where they stand; their documentation names keys that differ from the fields.

use serde::Serializer;
use serde::ser::SerializeMap;
use std::fmt::Display;
use std::ops::Range;

/// Serialises a value as the text that people read.
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serialises a range as `[start, end]`.
pub(crate) fn range<S: Serializer>(range: &Range<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq([range.start, range.end])
}

/// Pairs as an object, in the order of their names; of two with one name the later.
pub(crate) fn pairs<S: Serializer>(
    pairs: &[(String, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let sorted: std::collections::BTreeMap<&str, &str> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let mut map = serializer.serialize_map(Some(sorted.len()))?;
    for (name, value) in sorted {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
