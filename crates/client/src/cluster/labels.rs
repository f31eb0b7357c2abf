//! Labels of servers, and maintenance, as people write and read them.

use crate::units::show_time;
use areo_core::limits;
use areo_core::message::Labels;
use serde::Serialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// The label that says where a server stands.
pub(crate) const ZONE: &str = "zone";
/// The label that says which machine or disk a server has.
pub const CLASS: &str = "class";
/// The label of a server that is to be emptied: `yes`.
pub(super) const EMPTY: &str = "empty";
/// The label of a server in maintenance: milliseconds since 1970, and perhaps a reason.
const MAINTENANCE: &str = "maintenance";
/// Bytes of a reason, beside the time.
const REASON_BYTES: usize = limits::LABEL_TEXT_BYTES - 21;

/// A change of one label of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelChange {
    key: String,
    text: String,
}

/// A text that is no change of a label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// It has no key.
    #[error("a label is written KEY=TEXT, and without a text it is removed: `zone=a`, `zone=`")]
    NoKey,
    /// The key has other characters, or too many.
    #[error(
        "the key of a label has 1 to {} letters a to z, digits and '-', not '{key}'",
        limits::LABEL_KEY_BYTES
    )]
    Key {
        /// The key that was given.
        key: String,
    },
    /// Another command changes it.
    #[error("`areo server maintain` changes the label 'maintenance'")]
    Maintenance,
    /// The text is too long.
    #[error("the text of a label has at most {limit} bytes, not {bytes}")]
    TooLong {
        /// The bytes that it has.
        bytes: usize,
        /// The bytes that it may have.
        limit: usize,
    },
    /// The text has a control character.
    #[error("the text of a label has no control characters")]
    Control,
    /// The text begins or ends with a space.
    #[error("the text of a label begins and ends without a space")]
    Space,
    /// The label has other words.
    #[error(
        "a server is to be emptied with `empty=yes`, and no longer with `empty=`, not with '{text}'"
    )]
    Empty {
        /// The text that was given.
        text: String,
    },
}

impl FromStr for LabelChange {
    type Err = InvalidLabel;

    fn from_str(change: &str) -> Result<LabelChange, InvalidLabel> {
        let (key, text) = change.split_once('=').ok_or(InvalidLabel::NoKey)?;
        let is_part = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let is_key = (1..=limits::LABEL_KEY_BYTES).contains(&key.len()) && key.bytes().all(is_part);
        match key {
            "" => return Err(InvalidLabel::NoKey),
            MAINTENANCE => return Err(InvalidLabel::Maintenance),
            key if !is_key => return Err(InvalidLabel::Key { key: key.into() }),
            _ => check_text(text, limits::LABEL_TEXT_BYTES)?,
        }
        if key == EMPTY && !["", "yes"].contains(&text) {
            return Err(InvalidLabel::Empty { text: text.into() });
        }
        Ok(LabelChange {
            key: key.into(),
            text: text.into(),
        })
    }
}

fn check_text(text: &str, limit: usize) -> Result<(), InvalidLabel> {
    let bytes = text.len();
    if bytes > limit {
        return Err(InvalidLabel::TooLong { bytes, limit });
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidLabel::Control);
    }
    match text.trim() == text {
        true => Ok(()),
        false => Err(InvalidLabel::Space),
    }
}

impl LabelChange {
    /// The key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its new text; empty: it is removed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The change by which a server is in maintenance; `None`: by which that ends.
    pub(crate) fn of_maintenance(maintenance: Option<&Maintenance>) -> LabelChange {
        let text = maintenance.map_or_else(String::new, |it| match it.reason.as_str() {
            "" => it.until_ms.to_string(),
            reason => format!("{} {reason}", it.until_ms),
        });
        LabelChange {
            key: MAINTENANCE.into(),
            text,
        }
    }
}

/// The maintenance of a server: until then the autopilot does not replace it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Maintenance {
    /// Its end, in milliseconds since 1970.
    until_ms: u64,
    /// The reason that the operator gave; perhaps empty.
    reason: String,
}

impl Maintenance {
    /// The longest maintenance: one that is forgotten ends.
    pub const LONGEST: Duration = Duration::from_hours(7 * 24);

    /// A maintenance from now on.
    ///
    /// # Errors
    /// The reason cannot be kept.
    pub fn new(now_ms: u64, time: Duration, reason: &str) -> Result<Maintenance, InvalidLabel> {
        check_text(reason, REASON_BYTES)?;
        let time = time.min(Maintenance::LONGEST).as_millis();
        Ok(Maintenance {
            until_ms: now_ms.saturating_add(u64::try_from(time).unwrap_or(u64::MAX)),
            reason: reason.into(),
        })
    }

    fn of(text: &str) -> Option<Maintenance> {
        let (until, reason) = text.split_once(' ').unwrap_or((text, ""));
        Some(Maintenance {
            until_ms: until.parse().ok()?,
            reason: reason.into(),
        })
    }

    /// True before its end. One that would last for longer than the longest was made by a clock that is wrong, and counts for nothing.
    pub fn holds(&self, now_ms: u64) -> bool {
        let left_ms = u128::from(self.until_ms.saturating_sub(now_ms));
        (1..=Maintenance::LONGEST.as_millis()).contains(&left_ms)
    }

    /// Its end, for people.
    pub fn until(&self) -> String {
        show_time(self.until_ms)
    }

    /// The reason that the operator gave; perhaps empty.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The labels that a server has, without that of its maintenance.
pub(super) fn shown(labels: &Labels) -> BTreeMap<String, String> {
    let given = labels
        .all()
        .filter(|(key, label)| *key != MAINTENANCE && !label.text.is_empty());
    given
        .map(|(key, label)| (key.to_owned(), label.text.clone()))
        .collect()
}

/// The last maintenance of a server, which may be over.
pub(super) fn maintenance(labels: &Labels) -> Option<Maintenance> {
    labels.get(MAINTENANCE).and_then(Maintenance::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn labels_are_written_in_one_way() {
        let parse = |text: &str| text.parse::<LabelChange>();
        let change = parse("zone=rack 7 = left").unwrap();
        assert_eq!((change.key(), change.text()), ("zone", "rack 7 = left"));
        assert_eq!(parse("zone=").unwrap().text(), "");
        let long = "x".repeat(limits::LABEL_TEXT_BYTES + 1);
        for (wrong, sentence) in [
            ("zone", "KEY=TEXT"),
            ("=a", "KEY=TEXT"),
            ("Zone=a", "not 'Zone'"),
            ("zo ne=a", "not 'zo ne'"),
            (&format!("{}=a", "k".repeat(33)), "1 to 32"),
            (&format!("note={long}"), "at most 128 bytes, not 129"),
            ("note=a\u{1b}[2J", "control characters"),
            ("note=a\nb", "control characters"),
            ("note= a", "without a space"),
            ("empty=no", "`empty=yes`"),
            ("maintenance=5", "areo server maintain"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains(sentence), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_maintenance_is_read_as_it_was_written() {
        let labels = |it: &Maintenance| {
            let change = LabelChange::of_maintenance(Some(it));
            Labels::default().changed([(change.key(), change.text()), (ZONE, "a")])
        };
        for reason in ["", "new disk"] {
            let made = Maintenance::new(5 * HOUR_MS, Duration::from_hours(2), reason).unwrap();
            let labels = labels(&made);
            assert_eq!(maintenance(&labels), Some(made));
            assert_eq!(shown(&labels), BTreeMap::from([(ZONE.into(), "a".into())]));
        }
        let reason = "x".repeat(REASON_BYTES);
        let longest = Maintenance::new(u64::MAX, Duration::MAX, &reason).unwrap();
        let change = LabelChange::of_maintenance(Some(&longest));
        assert!(change.text().len() <= limits::LABEL_TEXT_BYTES);
        assert!(Maintenance::new(0, Duration::MAX, &format!("{reason}x")).is_err());
        assert!(Maintenance::new(0, Duration::MAX, "a\tb").is_err());
    }

    #[test]
    fn a_maintenance_ends_and_none_lasts_for_ever() {
        let made = Maintenance::new(5 * HOUR_MS, Duration::from_hours(2), "").unwrap();
        assert!(made.holds(5 * HOUR_MS) && made.holds(7 * HOUR_MS - 1));
        assert!(!made.holds(7 * HOUR_MS));
        let forever = Maintenance::new(500 * HOUR_MS, Duration::MAX, "").unwrap();
        assert!(forever.holds(500 * HOUR_MS));
        assert!(
            !forever.holds(499 * HOUR_MS),
            "by a clock that is an hour behind"
        );
    }
}
