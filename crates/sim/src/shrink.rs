//! Makes a run that breaks a rule smaller, by running it again without some of what it does: fewer operations, without
//! kinds of faults, without single strikes. What is left is what the violation needs, or nearly so.

use crate::fault::{Fault, Restriction};
use crate::options::Options;
use crate::run::{Outcome, restricted};
use std::collections::BTreeSet;

/// Runs that a search takes at most.
pub const RUNS: u64 = 500;

/// A violation with little around it.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The run, with its schedule.
    pub outcome: Outcome,
    /// Operations that it was given.
    pub operations: u64,
    /// The faults that the shrunk run leaves out.
    pub restriction: Restriction,
    /// Runs that the search took.
    pub runs: u64,
}

/// Looks for the smallest run of the seed that breaks the same rule as `broken` does; `progress` is told of every run.
pub fn shrink(options: &Options, broken: &Outcome, progress: impl FnMut()) -> Option<Shrunk> {
    let rule = rule_of(broken.violation.as_deref()?);
    let mut search = Search {
        seed: broken.seed,
        options: *options,
        rule: rule.to_owned(),
        restriction: Restriction::default(),
        strikes: broken.strikes.clone(),
        runs: 0,
        progress,
    };
    // Before the first one begins there is work, too: domains are made.
    search.fewer_operations(broken.operations.max(1));
    search.fewer_kinds();
    let mut together = search.strikes.len().div_ceil(2);
    loop {
        let before = (search.options.operations, search.restriction.clone());
        search.fewer_strikes(together);
        search.fewer_operations(search.options.operations / 2);
        if before == (search.options.operations, search.restriction.clone()) {
            break;
        }
        // What could not be left out together hardly ever can later; but with less around it each alone may not be needed.
        together = 1;
    }
    let outcome = restricted(broken.seed, &search.options, &search.restriction, true);
    assert_eq!(
        outcome.violation.as_deref().map(rule_of),
        Some(rule),
        "a run is a function of its seed and of what it leaves out"
    );
    Some(Shrunk {
        outcome,
        operations: search.options.operations,
        restriction: search.restriction,
        runs: search.runs,
    })
}

/// The rule that a violation is of: its first word.
fn rule_of(violation: &str) -> &str {
    violation.split(':').next().unwrap_or(violation)
}

struct Search<P: FnMut()> {
    seed: u64,
    /// The smallest run so far: its options, and its restriction.
    options: Options,
    restriction: Restriction,
    /// Strikes of the smallest run so far.
    strikes: Vec<(Fault, u64)>,
    rule: String,
    runs: u64,
    progress: P,
}

impl<P: FnMut()> Search<P> {
    /// Takes this over if it breaks the same rule.
    fn attempt(&mut self, options: Options, restriction: Restriction) -> bool {
        if self.runs == RUNS {
            return false;
        }
        self.runs += 1;
        (self.progress)();
        let outcome = restricted(self.seed, &options, &restriction, false);
        let is_same = outcome.violation.as_deref().map(rule_of) == Some(self.rule.as_str());
        if is_same {
            self.strikes = outcome.strikes;
            self.options = options;
            self.restriction = restriction;
        }
        is_same
    }

    /// Tries to run only the operations that began before the rule was broken. If these are too few, it halves the
    /// distance to a number that breaks the rule.
    fn fewer_operations(&mut self, began: u64) {
        let (mut too_few, mut wanted) = (0, began);
        while too_few < wanted && wanted < self.options.operations {
            let options = Options {
                operations: wanted,
                ..self.options
            };
            if !self.attempt(options, self.restriction.clone()) {
                too_few = wanted;
            }
            wanted = too_few.midpoint(self.options.operations);
        }
    }

    fn fewer_kinds(&mut self) {
        let kinds: BTreeSet<Fault> = self.strikes.iter().map(|(fault, _)| *fault).collect();
        let mut none = self.restriction.clone();
        none.without.extend(kinds.iter().copied());
        if self.attempt(self.options, none) {
            return;
        }
        for fault in kinds {
            let mut restriction = self.restriction.clone();
            restriction.without.insert(fault);
            self.attempt(self.options, restriction);
        }
    }

    /// Leaves out ever smaller groups of strikes, beginning with groups of this size.
    fn fewer_strikes(&mut self, together: usize) {
        let mut size = together;
        while size > 0 {
            let mut from = 0;
            while from < self.strikes.len() {
                let to = (from + size).min(self.strikes.len());
                let mut restriction = self.restriction.clone();
                restriction.skipped.extend(&self.strikes[from..to]);
                // If it was taken over, others stand in their place now.
                if !self.attempt(self.options, restriction) {
                    from = to;
                }
                if self.runs == RUNS {
                    return;
                }
            }
            size = match size {
                1 => 0,
                _ => size.div_ceil(2),
            };
        }
    }
}

/// The events of a schedule that concern a violation: those of the servers and of the key that it names, and those that
/// name no server at all. A violation that names none is everybody's.
pub fn concerning(violation: &str, schedule: &[String]) -> Vec<String> {
    let servers = numbered(violation, "server ");
    let keys = numbered(violation, "key-");
    let is_near = |line: &&String| {
        let named = numbered(line, "server ");
        let of_server = servers.is_empty() || named.is_empty() || !named.is_disjoint(&servers);
        let named = numbered(line, "key-");
        let of_key = keys.is_empty() || named.is_empty() || !named.is_disjoint(&keys);
        let is_about_cells = !keys.is_empty() && line.contains(" Cell");
        of_server && of_key && !is_about_cells
    };
    schedule.iter().filter(is_near).cloned().collect()
}

/// All numbers that follow a word.
fn numbered(text: &str, word: &str) -> BTreeSet<u64> {
    let parts = text.split(word).skip(1);
    let digits = parts.map(|part| {
        let end = part.find(|letter: char| !letter.is_ascii_digit());
        &part[..end.unwrap_or(part.len())]
    });
    digits.filter_map(|digits| digits.parse().ok()).collect()
}
