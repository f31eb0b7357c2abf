//! The crashes that domains survive now: one number for people.

use super::triggers;
use crate::records::Records;
use crate::rules::{RuleName, Rules};
use std::collections::{BTreeMap, BTreeSet};

/// For each domain f without the members that are dead or whose disks are at risk. 0: the next crash stops it. Below 0: more are bad than it can lose.
pub fn spare_crashes(rules: &Rules, records: &Records, now_ms: u64) -> BTreeMap<String, isize> {
    let triggers = triggers::all(rules, records, now_ms);
    let is_risk = |it: &&triggers::Trigger| it.reason.rule == RuleName::Disk;
    let at_risk = triggers.iter().filter(is_risk).map(|it| it.subject.clone());
    let mut bad = triggers::dead_servers(rules, records, now_ms);
    bad.extend(at_risk);
    let bad: BTreeSet<&str> = bad.iter().map(String::as_str).collect();
    let spare = |f: usize, bad: usize| f.cast_signed() - bad.cast_signed();
    let domains = records.domains.iter();
    domains
        .map(|it| (it.name.clone(), spare(it.f(), it.members_in(&bad))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NOW_MS, cluster};

    #[test]
    fn the_dead_and_those_at_risk_are_subtracted_once_each() {
        let spare = |records: &Records| spare_crashes(&Rules::built_in(), records, NOW_MS)["d"];
        let mut records = cluster();
        assert_eq!(spare(&records), 1);
        records.edit("s1").io_errors = 1;
        assert_eq!(spare(&records), 0);
        records.kill("s1", 900);
        assert_eq!(spare(&records), 0, "s1 is one server");
        records.kill("s2", 900);
        assert_eq!(spare(&records), -1);
        // The spare is no member.
        records.edit("s4").io_errors = 1;
        assert_eq!(spare(&records), -1);
    }
}
