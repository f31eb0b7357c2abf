//! Labels of a server: texts by key that operators give it (`[X-47 server-labels]`).

use crate::limits;
use std::collections::BTreeMap;

/// A label as it was changed last. The order is that of changes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Label {
    /// Counts its changes, from 1.
    pub changes: u64,
    /// Its text; empty once it was removed.
    pub text: String,
}

/// The labels of a server, those included that were removed: a join would bring them back otherwise.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Labels(BTreeMap<String, Label>);

impl Labels {
    /// The text of a label; `None`: the server does not have it.
    pub fn get(&self, key: &str) -> Option<&str> {
        let text = self.0.get(key).map(|label| label.text.as_str());
        text.filter(|text| !text.is_empty())
    }

    /// All labels, those that were removed included, in the order of their keys.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (&str, &Label)> {
        self.0.iter().map(|(key, label)| (key.as_str(), label))
    }

    /// True if none was ever set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the label in: of two with one key the one that was changed more often stays, after as many changes that with the larger text.
    pub fn join(&mut self, key: &str, label: Label) {
        match self.0.get_mut(key) {
            Some(known) if *known < label => *known = label,
            Some(_) => {}
            None => drop(self.0.insert(key.to_owned(), label)),
        }
    }

    /// These changes alone, each of which takes the place of the label that it changes. A change to an empty text removes the label.
    #[must_use]
    pub fn changed<'a>(&self, changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Labels {
        let change = |(key, text): (&str, &str)| {
            let before = self.0.get(key).map_or(0, |label| label.changes);
            let label = Label {
                changes: before + 1,
                text: text.to_owned(),
            };
            (key.to_owned(), label)
        };
        Labels(changes.into_iter().map(change).collect())
    }

    /// Joins the labels of each key.
    pub(super) fn join_all(&mut self, other: Labels) {
        for (key, label) in other.0 {
            self.join(&key, label);
        }
    }

    /// A number that rises with each change of one label, whichever text it has.
    pub(crate) fn changes(&self) -> u128 {
        self.0.values().map(|it| u128::from(it.changes)).sum()
    }

    /// True if a register keeps so many labels of this length (`[N-1 bounded-numbers]`).
    pub fn are_bounded(&self) -> bool {
        let is_bounded = |(key, label): (&String, &Label)| {
            let is_key = (1..=limits::LABEL_KEY_BYTES).contains(&key.len());
            let is_change = (1..limits::NUMBER).contains(&label.changes);
            is_key && is_change && label.text.len() <= limits::LABEL_TEXT_BYTES
        };
        self.0.len() <= limits::JOINED_LABELS && self.0.iter().all(is_bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(&str, u64, &str)]) -> Labels {
        let mut labels = Labels::default();
        for (key, changes, text) in all {
            let text = (*text).to_owned();
            let changes = *changes;
            labels.join(key, Label { changes, text });
        }
        labels
    }

    #[test]
    fn of_a_label_the_last_change_stays_in_any_order() {
        let one = labels(&[("zone", 1, "a"), ("class", 2, "")]);
        let other = labels(&[("zone", 1, "b"), ("class", 1, "hdd"), ("note", 1, "x")]);
        let mut joined = one.clone();
        joined.join_all(other.clone());
        let mut reverse = other.clone();
        reverse.join_all(one.clone());
        assert_eq!(joined, reverse);
        assert_eq!(joined.get("zone"), Some("b"));
        assert_eq!(joined.get("class"), None, "it was removed afterwards");
        assert_eq!(joined.get("note"), Some("x"));
        joined.join_all(one);
        assert_eq!(joined, reverse);
    }

    #[test]
    fn a_change_counts_on_and_names_no_other_label() {
        let before = labels(&[("zone", 3, "a"), ("class", 1, "hdd")]);
        let changed = before.changed([("zone", ""), ("note", "x")]);
        assert_eq!(changed, labels(&[("zone", 4, ""), ("note", 1, "x")]));
    }

    #[test]
    fn what_is_too_long_or_too_often_changed_is_out_of_bounds() {
        let long = "x".repeat(limits::LABEL_TEXT_BYTES);
        assert!(labels(&[("zone", 1, &long)]).are_bounded());
        assert!(!labels(&[("zone", 1, &format!("{long}x"))]).are_bounded());
        assert!(!labels(&[("zone", 0, "a")]).are_bounded());
        assert!(!labels(&[("zone", limits::NUMBER, "a")]).are_bounded());
        assert!(!labels(&[("", 1, "a")]).are_bounded());
        let long = "x".repeat(limits::LABEL_KEY_BYTES + 1);
        assert!(!labels(&[(&long, 1, "a")]).are_bounded());
        let keys: Vec<String> = (0..=limits::JOINED_LABELS)
            .map(|key| key.to_string())
            .collect();
        let many = |count: usize| {
            let all: Vec<_> = keys[..count]
                .iter()
                .map(|key| (key.as_str(), 1, "a"))
                .collect();
            labels(&all).are_bounded()
        };
        assert!(many(limits::JOINED_LABELS) && !many(limits::JOINED_LABELS + 1));
    }
}
