//! The text form of a grant: `read,write:DOMAIN[/PREFIX]` or `status,trace`. One grant has one canonical text.

use std::fmt;
use std::str::FromStr;

use super::{
    CLUSTER_VERBS, DOMAIN_VERBS, Domains, Grant, MAX_GRANT_BYTES, MAX_GRANTS, Scope, Verb, Verbs,
    check_domain_name, limits,
};

/// A text that is no grant, or too many of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// A word is no verb.
    #[error("'{}' is no verb of a grant: for a domain there are {}, for the cluster {}", .word.escape_debug(), words(&DOMAIN_VERBS), words(&CLUSTER_VERBS))]
    Verb { word: String },
    /// A verb of domains without one.
    #[error("'{}' counts in a domain: write '{}:DOMAIN', or '{}:*' for all domains", .verb.word(), .verb.word(), .verb.word())]
    NoDomain { verb: Verb },
    /// A verb of the cluster with a domain.
    #[error("'{}' counts for the whole cluster: write it as a grant of its own, without a domain", .verb.word())]
    NotOfDomains { verb: Verb },
    /// The part for the domain is no name and no beginning of one.
    #[error("'{}' is no domain of a grant: write the name of a domain, the beginning of names with '*' behind it, or '*' for all", .pattern.escape_debug())]
    Domain { pattern: String },
    /// The prefix is longer than a key.
    #[error(
        "the prefix of a grant has {bytes} bytes, and keys have at most {}",
        limits::KEY_BYTES
    )]
    Prefix {
        /// Length of the prefix.
        bytes: usize,
    },
    /// A key has too many.
    #[error(
        "a key has at most {MAX_GRANTS} grants with {MAX_GRANT_BYTES} bytes of text together, and these are {count} with {bytes} bytes: make several keys"
    )]
    TooMany {
        /// Number of the grants.
        count: usize,
        /// Length of their text.
        bytes: usize,
    },
}

fn words(verbs: &[Verb]) -> String {
    let words: Vec<&str> = verbs.iter().map(|verb| verb.word()).collect();
    words.join(", ")
}

impl FromStr for Grant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Grant, GrantError> {
        let (words, place) = match text.split_once(':') {
            Some((words, place)) => (words, Some(place)),
            None => (text, None),
        };
        let mut verbs = Vec::new();
        for word in words.split(',') {
            let verb = Verb::parse(word).ok_or_else(|| GrantError::Verb {
                word: word.chars().take(limits::NAME_BYTES).collect(),
            })?;
            match (verb.is_of_domains(), place) {
                (true, None) => return Err(GrantError::NoDomain { verb }),
                (false, Some(_)) => return Err(GrantError::NotOfDomains { verb }),
                _ => verbs.push(verb),
            }
        }
        Ok(Grant {
            verbs: Verbs::of(verbs),
            scope: place.map_or(Ok(Scope::Cluster), domains)?,
        })
    }
}

fn domains(place: &str) -> Result<Scope, GrantError> {
    let (pattern, prefix) = place.split_once('/').unwrap_or((place, ""));
    let domains = match pattern.strip_suffix('*') {
        Some(start) => Domains::Beginning(start.to_owned()),
        None => Domains::Named(pattern.to_owned()),
    };
    let is_valid = match &domains {
        Domains::Beginning(start) => start.is_empty() || check_domain_name(start).is_ok(),
        Domains::Named(name) => check_domain_name(name).is_ok(),
    };
    if !is_valid {
        let pattern = pattern.chars().take(limits::NAME_BYTES + 1).collect();
        return Err(GrantError::Domain { pattern });
    }
    if prefix.len() > limits::KEY_BYTES {
        let bytes = prefix.len();
        return Err(GrantError::Prefix { bytes });
    }
    let prefix = prefix.to_owned();
    Ok(Scope::Domains { domains, prefix })
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = DOMAIN_VERBS.into_iter().chain(CLUSTER_VERBS);
        let verbs: Vec<Verb> = all.filter(|verb| self.verbs.has(*verb)).collect();
        let words: Vec<&str> = verbs.iter().map(|verb| verb.word()).collect();
        f.write_str(&words.join(","))?;
        let Scope::Domains { domains, prefix } = &self.scope else {
            return Ok(());
        };
        match domains {
            Domains::Named(name) => write!(f, ":{name}")?,
            Domains::Beginning(start) => write!(f, ":{start}*")?,
        }
        if prefix.is_empty() {
            Ok(())
        } else {
            write!(f, "/{prefix}")
        }
    }
}
