//! Thresholds of rules and guards, and a sentence for people for each rule: data, built in and overridden by a file.

use serde::{Deserialize, Serialize};

/// The built-in rules, as a file has them.
pub const BUILT_IN: &str = include_str!("../rules.toml");

/// The name of a rule. Rules are in the order of the risk that they see.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum RuleName {
    /// A majority of the other servers does not reach it.
    Dead,
    /// Its disk fails, or is about to.
    Disk,
    /// It answers or syncs far slower than its peers.
    Slow,
    /// A sync does not end.
    Stall,
    /// Its disk is nearly full.
    Filling,
    /// Objects are not at all of their servers.
    Redundancy,
    /// One pair of servers does not see each other.
    Link,
    /// More members are in a zone than the domain can lose.
    Zone,
    /// An operator labelled it to be emptied.
    Class,
    /// Some servers hold far more than others.
    Unbalanced,
    /// A large domain keeps copies.
    Grow,
}

impl RuleName {
    /// Every rule, in the order of risk.
    pub const ALL: [RuleName; 11] = [
        RuleName::Dead,
        RuleName::Disk,
        RuleName::Slow,
        RuleName::Stall,
        RuleName::Filling,
        RuleName::Redundancy,
        RuleName::Link,
        RuleName::Zone,
        RuleName::Class,
        RuleName::Unbalanced,
        RuleName::Grow,
    ];

    /// The word for it in files, intents and output.
    pub fn word(self) -> &'static str {
        match self {
            RuleName::Dead => "dead",
            RuleName::Disk => "disk",
            RuleName::Slow => "slow",
            RuleName::Stall => "stall",
            RuleName::Filling => "filling",
            RuleName::Redundancy => "redundancy",
            RuleName::Link => "link",
            RuleName::Zone => "zone",
            RuleName::Class => "class",
            RuleName::Unbalanced => "unbalanced",
            RuleName::Grow => "grow",
        }
    }

    /// The rule improves a cluster that lacks nothing: it has a budget.
    pub fn is_background(self) -> bool {
        self >= RuleName::Zone
    }
}

/// The thresholds of all rules and guards.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "rules.toml describes each of them")]
pub struct Rules {
    pub dead: Dead,
    pub slow: Slow,
    pub link: Link,
    pub stall: Stall,
    pub disk: Disk,
    pub prediction: Prediction,
    pub filling: Filling,
    pub redundancy: Redundancy,
    pub class: Class,
    pub zone: Plain,
    pub grow: Grow,
    pub unbalanced: Unbalanced,
    pub guards: Guards,
}

/// Declares the section of a rule: its sentence, whether it acts, and thresholds.
macro_rules! section {
    ($(#[$about:meta])* $name:ident { $($field:ident: $kind:ty),* }) => {
        $(#[$about])*
        #[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs, reason = "rules.toml describes each of them")]
        pub struct $name { pub sentence: String, pub act: bool, $(pub $field: $kind),* }
    };
}

section!(
    /// Thresholds of the rule *dead*.
    Dead { unreachable_seconds: u64, spare_stable_seconds: u64 }
);
section!(
    /// Thresholds of the rule *slow*.
    Slow { ratio: f64, least_ms: f64, windows: u32, peers: usize, again_seconds: u64 }
);
section!(
    /// Thresholds of the rule *link*.
    Link { unreachable_seconds: u64 }
);
section!(
    /// Thresholds of the rule *stall*.
    Stall { sync_seconds: u64 }
);
section!(
    /// Thresholds of the rule *disk at risk*.
    Disk { io_errors: u64, corrupted: u64, smart_rises: u32, wear_percent: u8 }
);
section!(
    /// Thresholds of the rule *filling*.
    Filling { used_percent: u64, hours_left: u64 }
);
section!(
    /// Thresholds of the rule *below redundancy*.
    Redundancy { below_seconds: u64 }
);
section!(
    /// The rule *zone*, which has no thresholds.
    Plain {}
);
section!(
    /// Classes of the rule *class*, whose servers are emptied as if each had the label.
    Class { empty: Vec<String> }
);
section!(
    /// Thresholds of the rule *grow*.
    Grow { servers: usize, gibibytes: u64 }
);
section!(
    /// Thresholds of the rule *unbalanced*.
    Unbalanced { ratio: f64, gibibytes: u64 }
);

/// The use of the model of [`crate::prediction`] by the rule *disk at risk*.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "rules.toml describes each of them")]
pub struct Prediction {
    pub on: bool,
    pub probability: f64,
}

/// Thresholds of the guards, and of what holds for all rules.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "rules.toml describes each of them")]
pub struct Guards {
    pub hysteresis: u32,
    pub observer_seconds: u64,
    pub between_changes_seconds: u64,
    pub target_percent: u64,
    pub background_bytes_per_day: u64,
    pub tries: u32,
    pub retry_seconds: u64,
    pub lease_seconds: u64,
    pub view_seconds: u64,
    pub suspicion: f64,
}

/// The reason why a file is no set of rules.
#[derive(thiserror::Error, Clone, PartialEq, Debug)]
#[error("{reason}")]
pub struct InvalidRules {
    /// The place and the reason, as the parser gives them.
    pub reason: String,
}

impl Rules {
    /// The built-in rules, without a file.
    pub fn built_in() -> Rules {
        toml::from_str(BUILT_IN).expect("the built-in rules are tested")
    }

    /// The built-in rules with the keys of this file in place of theirs.
    ///
    /// # Errors
    /// [`InvalidRules`]: it is no TOML, has a key that no rule has, or a value of another kind.
    pub fn overridden(file: &str) -> Result<Rules, InvalidRules> {
        let invalid = |error: toml::de::Error| InvalidRules {
            reason: error.to_string().trim_end().to_owned(),
        };
        let mut all: toml::Table = toml::from_str(BUILT_IN).expect("the built-in rules are tested");
        for (section, value) in toml::from_str::<toml::Table>(file).map_err(invalid)? {
            match (all.get_mut(&section), value) {
                (Some(toml::Value::Table(known)), toml::Value::Table(given)) => known.extend(given),
                // The struct refuses it by name.
                (_, value) => drop(all.insert(section, value)),
            }
        }
        let rules: Rules = all.try_into().map_err(invalid)?;
        rules.check()
    }

    /// These rules for reasons that do not have to last: an instance that has just begun to watch does not know for how long they have.
    pub(crate) fn at_once(&self) -> Rules {
        let mut rules = self.clone();
        rules.dead.unreachable_seconds = 0;
        rules.link.unreachable_seconds = 0;
        rules.redundancy.below_seconds = 0;
        rules.slow.windows = 1;
        rules
    }

    /// The class of a server, if all servers of it are to be emptied.
    pub(crate) fn emptied_class<'a>(&self, class: Option<&'a str>) -> Option<&'a str> {
        let class = class?;
        let mut emptied = self.class.empty.iter();
        emptied.any(|it| it == class).then_some(class)
    }

    fn check(self) -> Result<Rules, InvalidRules> {
        let refused = |reason: &str| {
            let reason = reason.into();
            Err(InvalidRules { reason })
        };
        let is_ratio = |ratio: f64| ratio.is_finite() && ratio >= 1.0;
        if self.guards.hysteresis == 0 || self.guards.tries == 0 {
            return refused("`guards.hysteresis` and `guards.tries` are at least 1");
        }
        if self.guards.lease_seconds == 0 || self.guards.view_seconds == 0 {
            return refused("`guards.lease_seconds` and `guards.view_seconds` are at least 1");
        }
        if !is_ratio(self.slow.ratio) || !is_ratio(self.unbalanced.ratio) {
            return refused("`slow.ratio` and `unbalanced.ratio` are numbers of at least 1");
        }
        let counts = [
            ("slow.windows", u64::from(self.slow.windows)),
            ("slow.peers", self.slow.peers as u64),
            ("stall.sync_seconds", self.stall.sync_seconds),
            ("disk.io_errors", self.disk.io_errors),
            ("disk.corrupted", self.disk.corrupted),
            ("disk.smart_rises", u64::from(self.disk.smart_rises)),
            ("disk.wear_percent", u64::from(self.disk.wear_percent)),
        ];
        // A sound server has none of them: it would be found bad.
        if let Some((name, _)) = counts.iter().find(|(_, least)| *least == 0) {
            return refused(&format!("`{name}` is at least 1"));
        }
        if !self.slow.least_ms.is_finite() || self.slow.least_ms <= 0.0 {
            return refused("`slow.least_ms` is a number above 0");
        }
        if !(self.prediction.probability > 0.0 && self.prediction.probability <= 1.0) {
            return refused("`prediction.probability` is above 0 and at most 1");
        }
        if !self.guards.suspicion.is_finite() || self.guards.suspicion <= 0.0 {
            return refused("`guards.suspicion` is a number above 0");
        }
        Ok(self)
    }

    /// The sentence about a rule, for people.
    pub fn sentence(&self, rule: RuleName) -> &str {
        match rule {
            RuleName::Dead => &self.dead.sentence,
            RuleName::Disk => &self.disk.sentence,
            RuleName::Slow => &self.slow.sentence,
            RuleName::Stall => &self.stall.sentence,
            RuleName::Filling => &self.filling.sentence,
            RuleName::Redundancy => &self.redundancy.sentence,
            RuleName::Link => &self.link.sentence,
            RuleName::Zone => &self.zone.sentence,
            RuleName::Class => &self.class.sentence,
            RuleName::Unbalanced => &self.unbalanced.sentence,
            RuleName::Grow => &self.grow.sentence,
        }
    }

    /// True if the rule changes the cluster by itself at level `act`.
    pub fn acts(&self, rule: RuleName) -> bool {
        match rule {
            RuleName::Dead => self.dead.act,
            RuleName::Disk => self.disk.act,
            RuleName::Slow => self.slow.act,
            RuleName::Stall => self.stall.act,
            RuleName::Filling => self.filling.act,
            RuleName::Redundancy => self.redundancy.act,
            RuleName::Link => self.link.act,
            RuleName::Zone => self.zone.act,
            RuleName::Class => self.class.act,
            RuleName::Unbalanced => self.unbalanced.act,
            RuleName::Grow => self.grow.act,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_a_sentence_and_thresholds_of_its_own() {
        let rules = Rules::built_in();
        for rule in RuleName::ALL {
            let sentence = rules.sentence(rule);
            assert!(
                sentence.ends_with('.') && sentence.len() > 40,
                "{rule:?}: {sentence}"
            );
        }
        assert_eq!(rules.dead.unreachable_seconds, 15 * 60);
        assert!(rules.acts(RuleName::Dead) && !rules.acts(RuleName::Grow));
        let mut sorted = RuleName::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, RuleName::ALL, "the order is that of risk");
    }

    #[test]
    fn a_file_overrides_single_thresholds() {
        let rules =
            Rules::overridden("[dead]\nunreachable_seconds = 3\n[guards]\nhysteresis = 1\n");
        let rules = rules.unwrap();
        assert_eq!(
            (rules.dead.unreachable_seconds, rules.guards.hysteresis),
            (3, 1)
        );
        assert_eq!(rules.dead.sentence, Rules::built_in().dead.sentence);
        assert_eq!(Rules::overridden(""), Ok(Rules::built_in()));
        assert_eq!(Rules::overridden(BUILT_IN), Ok(Rules::built_in()));
    }

    #[test]
    fn a_wrong_file_is_refused_by_name() {
        for (file, named) in [
            ("[dead]\nunreachable = 3\n", "unreachable"),
            ("[deed]\n", "deed"),
            ("dead = 1\n", "invalid type"),
            ("[dead]\nunreachable_seconds = -1\n", "-1"),
            ("[guards]\nhysteresis = 0\n", "at least 1"),
            ("[slow]\nratio = 0.5\n", "slow.ratio"),
            ("[slow]\nratio = nan\n", "slow.ratio"),
            ("[slow]\npeers = 0\n", "slow.peers"),
            ("[slow]\nleast_ms = 0.0\n", "slow.least_ms"),
            ("[disk]\nio_errors = 0\n", "disk.io_errors"),
            ("[class]\nempty = \"hdd\"\n", "empty"),
            (
                "[prediction]\nprobability = nan\n",
                "prediction.probability",
            ),
            ("[dead\n", "dead"),
        ] {
            let refused = Rules::overridden(file).unwrap_err();
            assert!(refused.reason.contains(named), "{file}: {refused}");
        }
    }
}
