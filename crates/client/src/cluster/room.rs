//! Sentences about domains whose writes fail because disks are full. `areo status` and the logs of servers have the same ones.

use std::collections::BTreeMap;

/// The name of the root domain: no name of another one.
pub const ROOT_DOMAIN: &str = "@root";

/// A domain whose writes fail because disks are full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainWithoutRoom<'a> {
    /// Its name, or [`ROOT_DOMAIN`].
    pub domain: &'a str,
    /// The names of its members whose disks are full.
    pub full: Vec<String>,
}

/// The name of a domain in a sentence: `the root domain`, or `'photos'`.
pub fn show_domain(domain: &str) -> String {
    match domain {
        ROOT_DOMAIN => "the root domain".into(),
        name => format!("'{name}'"),
    }
}

/// The sentences about writes that fail because disks are full, such as `s2, s3: disk full, writes of 'logs' and 'photos' fail`: one for all domains that
/// fail for the same servers.
pub fn show_lack_of_room<'a>(
    domains: impl IntoIterator<Item = DomainWithoutRoom<'a>>,
) -> Vec<String> {
    let mut by_servers: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for DomainWithoutRoom { domain, mut full } in domains {
        full.sort();
        by_servers
            .entry(full)
            .or_default()
            .push(show_domain(domain));
    }
    let sentence = |(servers, domains): (Vec<String>, Vec<String>)| {
        let (servers, domains) = (servers.join(", "), listed(&domains));
        format!("{servers}: disk full, writes of {domains} fail")
    };
    by_servers.into_iter().map(sentence).collect()
}

/// The names as the object of a sentence.
fn listed(names: &[String]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        names => names.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_that_fail_for_the_same_servers_are_in_one_sentence() {
        let lacking = [
            (ROOT_DOMAIN, ["s3", "s2"].as_slice()),
            ("logs", &["s2", "s3"]),
            ("photos", &["s3", "s2"]),
            ("other", &["s1"]),
        ];
        let lacking = lacking.map(|(domain, full)| DomainWithoutRoom {
            domain,
            full: full.iter().map(|name| (*name).to_owned()).collect(),
        });
        assert_eq!(
            show_lack_of_room(lacking),
            [
                "s1: disk full, writes of 'other' fail",
                "s2, s3: disk full, writes of the root domain, 'logs' and 'photos' fail",
            ]
        );
        assert!(show_lack_of_room([]).is_empty());
    }
}
