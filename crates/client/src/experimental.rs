//! Options of a domain that experiments need, and no product should use: the protocol without its optimisations, as the papers compare
//! them, and changes that are left half done. Nothing of it makes anything better, and all of it may go.
//!
//! | key | values | |
//! |---|---|---|
//! | `protocol` | `ares2`, `ares` | both of the next two, as Ares II and as Ares have them |
//! | `piggyback` | `on`, `off` | whether servers show on every reply what comes next; otherwise that takes rounds of its own |
//! | `collect` | `on`, `off`, `paper` | whether servers drop superseded configurations; `paper`: and point from one to the next |
//! | `thrifty` | `off`, `queries`, `on` | which calls ask one quorum, and the others only when that does not decide them; `on`: those that write, too, where copies are kept |
//! | `contact` | `each`, `single` | whether servers answer a read's query for later configurations, too, so that an operation asks each of them once |
//! | `leave-off` | `transferred`, `finalized` | where a change stops, as if the process that makes it died |

use areo_core::config::Options;
use std::str::FromStr;

pub use areo_core::config::{Collect, Thrift};
pub use areo_core::reconfig::LeaveOff;

/// Experimental settings. What is not said is as it should be, or stays as it is.
///
/// ```
/// use areo_client::experimental::{Collect, Experimental};
///
/// let ares: Experimental = "protocol=ares".parse()?;
/// let mixed = ares.and("collect=paper".parse()?);
/// assert_eq!(mixed.piggyback, Some(false));
/// assert_eq!(mixed.collect, Some(Collect::Paper));
/// assert!("collect=never".parse::<Experimental>().is_err());
/// # Ok::<(), areo_client::experimental::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experimental {
    /// Servers show successors on every reply.
    pub piggyback: Option<bool>,
    /// The treatment of superseded configurations.
    pub collect: Option<Collect>,
    /// The calls that ask one quorum first.
    pub thrift: Option<Thrift>,
    /// Servers answer queries for later configurations, too.
    pub single_contact: Option<bool>,
    /// The step at which a change stops. The first configuration of a domain is no change.
    pub leave_off: Option<LeaveOff>,
}

impl Experimental {
    /// Ares, without the optimisations of Ares II.
    pub const ARES: Experimental = Experimental {
        piggyback: Some(Options::ARES.piggyback),
        collect: Some(Options::ARES.collect),
        thrift: None,
        single_contact: None,
        leave_off: None,
    };

    /// Joins these settings with later ones, which win.
    #[must_use]
    pub fn and(self, later: Experimental) -> Experimental {
        Experimental {
            piggyback: later.piggyback.or(self.piggyback),
            collect: later.collect.or(self.collect),
            thrift: later.thrift.or(self.thrift),
            single_contact: later.single_contact.or(self.single_contact),
            leave_off: later.leave_off.or(self.leave_off),
        }
    }

    /// Replaces the options that these settings name.
    pub(crate) fn of(self, options: Options) -> Options {
        Options {
            piggyback: self.piggyback.unwrap_or(options.piggyback),
            collect: self.collect.unwrap_or(options.collect),
            thrift: self.thrift.unwrap_or(options.thrift),
            single_contact: self.single_contact.unwrap_or(options.single_contact),
        }
    }

    /// The options of these that are not as they should be.
    pub(crate) fn in_options(options: Options) -> Experimental {
        let usual = Options::default();
        let (piggyback, collect) = (options.piggyback, options.collect);
        Experimental {
            piggyback: (piggyback != usual.piggyback).then_some(piggyback),
            collect: (collect != usual.collect).then_some(collect),
            thrift: (options.thrift != usual.thrift).then_some(options.thrift),
            single_contact: options.single_contact.then_some(true),
            leave_off: None,
        }
    }

    /// Each setting as `KEY=VALUE`.
    pub fn settings(self) -> Vec<String> {
        let piggyback = self.piggyback.map(|it| word(PIGGYBACK, it));
        let collect = self.collect.map(|it| word(COLLECT, it));
        let thrifty = self.thrift.map(|it| word(THRIFTY, it));
        let contact = self.single_contact.map(|it| word(CONTACT, it));
        let leave_off = self.leave_off.map(|it| word(LEAVE_OFF, it));
        let all = [
            ("piggyback", piggyback),
            ("collect", collect),
            ("thrifty", thrifty),
            ("contact", contact),
            ("leave-off", leave_off),
        ];
        let setting = |(key, word): (_, Option<_>)| word.map(|word| format!("{key}={word}"));
        all.into_iter().filter_map(setting).collect()
    }
}

/// A setting that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// It is no `KEY=VALUE`.
    #[error("an experimental setting is KEY=VALUE, which '{setting}' is not")]
    NoValue {
        /// The text without a `=`.
        setting: String,
    },
    /// No setting has this key.
    #[error(
        "there is no experimental setting '{key}': there are protocol, piggyback, collect, thrifty, contact and leave-off"
    )]
    UnknownKey {
        /// The unknown key.
        key: String,
    },
    /// The key has no such value.
    #[error("the experimental setting {key} is {}, and not '{value}'", .values.join(" or "))]
    UnknownValue {
        /// Key of the setting.
        key: String,
        /// The unknown value.
        value: String,
        /// The values that the key has.
        values: Vec<&'static str>,
    },
}

/// The words of a key, with their meanings.
type Words<T> = &'static [(&'static str, T)];

const PROTOCOL: Words<Options> = &[("ares2", Options::ARES_2), ("ares", Options::ARES)];
const PIGGYBACK: Words<bool> = &[("on", true), ("off", false)];
const THRIFTY: Words<Thrift> = &[
    ("off", Thrift::Off),
    ("queries", Thrift::Queries),
    ("on", Thrift::Calls),
];
const COLLECT: Words<Collect> = &[
    ("on", Collect::On),
    ("off", Collect::Off),
    ("paper", Collect::Paper),
];
const CONTACT: Words<bool> = &[("each", false), ("single", true)];
const LEAVE_OFF: Words<LeaveOff> = &[
    ("transferred", LeaveOff::Transferred),
    ("finalized", LeaveOff::Finalized),
];

fn word<T: Copy + PartialEq>(words: Words<T>, meaning: T) -> &'static str {
    let found = words.iter().find(|(_, known)| *known == meaning);
    found.expect("each meaning has a word").0
}

fn meaning<T: Copy>(key: &str, value: &str, words: Words<T>) -> Result<Option<T>, InvalidSetting> {
    match words.iter().find(|(word, _)| *word == value) {
        Some((_, meaning)) => Ok(Some(*meaning)),
        None => Err(InvalidSetting::UnknownValue {
            key: key.into(),
            value: value.into(),
            values: words.iter().map(|(word, _)| *word).collect(),
        }),
    }
}

/// Parses one setting, `KEY=VALUE`.
impl FromStr for Experimental {
    type Err = InvalidSetting;

    fn from_str(setting: &str) -> Result<Experimental, InvalidSetting> {
        let Some((key, value)) = setting.split_once('=') else {
            let setting = setting.into();
            return Err(InvalidSetting::NoValue { setting });
        };
        let mut said = Experimental::default();
        match key {
            "protocol" => {
                let options = meaning(key, value, PROTOCOL)?;
                said.piggyback = options.map(|options| options.piggyback);
                said.collect = options.map(|options| options.collect);
            }
            "piggyback" => said.piggyback = meaning(key, value, PIGGYBACK)?,
            "collect" => said.collect = meaning(key, value, COLLECT)?,
            "thrifty" => said.thrift = meaning(key, value, THRIFTY)?,
            "contact" => said.single_contact = meaning(key, value, CONTACT)?,
            "leave-off" => said.leave_off = meaning(key, value, LEAVE_OFF)?,
            _ => return Err(InvalidSetting::UnknownKey { key: key.into() }),
        }
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_they_are_written_as() {
        let written = [
            "piggyback=off",
            "collect=paper",
            "thrifty=queries",
            "contact=single",
            "leave-off=finalized",
        ];
        let parse = |setting: &str| setting.parse::<Experimental>().unwrap();
        let all = written.map(parse);
        let all = all
            .into_iter()
            .fold(Experimental::default(), Experimental::and);
        assert_eq!(all.settings(), written);
        assert_eq!(
            parse("protocol=ares").settings(),
            ["piggyback=off", "collect=off"]
        );
        assert_eq!(parse("protocol=ares").of(Options::default()), Options::ARES);
        assert_eq!(
            parse("protocol=ares2").of(Options::ARES),
            Options::default()
        );
        assert_eq!(Experimental::in_options(Options::ARES), Experimental::ARES);
        let usual = Experimental::in_options(Options::default());
        assert_eq!(usual, Experimental::default());
    }

    #[test]
    fn a_wrong_setting_is_told_in_one_sentence() {
        for (setting, sentence) in [
            (
                "piggyback",
                "an experimental setting is KEY=VALUE, which 'piggyback' is not",
            ),
            (
                "ec=published",
                "there is no experimental setting 'ec': there are protocol, piggyback, collect, thrifty, contact and leave-off",
            ),
            (
                "collect=never",
                "the experimental setting collect is on or off or paper, and not 'never'",
            ),
        ] {
            let refused = setting.parse::<Experimental>().unwrap_err();
            assert_eq!(refused.to_string(), sentence);
        }
    }
}
