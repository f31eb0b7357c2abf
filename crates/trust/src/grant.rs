//! Grants: what a key may do, and the check that each server makes for each request.
//!
//! A grant has verbs, and where they count. On objects and domains: `read,write:photos/2024/` for keys of the domain `photos` that begin
//! with `2024/`, `read:photos-*` for all domains whose names begin so, `list:*` for all domains. On the whole cluster: `status,trace`.
//! No verb contains another one. What concerns a domain as a whole needs a grant without a prefix.

mod text;

use std::fmt;

use areo_core::limits;
use areo_core::manager::domains::check_domain_name;

pub use text::GrantError;

use crate::id::KeyId;

/// Grants of one key: a ticket with all of them has to fit into the first message of a connection.
pub const MAX_GRANTS: usize = 32;
/// Bytes of the text forms of all grants of one key.
pub const MAX_GRANT_BYTES: usize = 2048;

/// An effect of a request. The order is that of the text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads of objects.
    Read,
    /// Writes of objects.
    Write,
    /// Listings of objects.
    List,
    /// Removals of objects.
    Delete,
    /// Creates, changes and removes domains.
    Admin,
    /// Sees servers, domains and metrics.
    Status,
    /// Reconfigures the root domain, drains, replaces and forgets servers.
    Reconfig,
    /// Makes and revokes keys, and rotates the CA.
    Keys,
    /// Makes tokens for servers that join.
    Join,
    /// Sees traces of operations of others.
    Trace,
    /// Verifies signatures of other keys, and acts with their grants: a gateway.
    Gateway,
}

/// Verbs that count in domains.
pub const DOMAIN_VERBS: [Verb; 5] = [
    Verb::Read,
    Verb::Write,
    Verb::List,
    Verb::Delete,
    Verb::Admin,
];
/// Verbs that count for the whole cluster.
pub const CLUSTER_VERBS: [Verb; 6] = [
    Verb::Status,
    Verb::Reconfig,
    Verb::Keys,
    Verb::Join,
    Verb::Trace,
    Verb::Gateway,
];
/// Verbs for the whole cluster that a gateway has on behalf of a key that has them. All others are for the key itself alone, so that
/// a gateway cannot change who may do what.
const BEHALF_CLUSTER_VERBS: [Verb; 1] = [Verb::Status];

/// Verbs that callers without a key may have.
const PUBLIC_VERBS: [Verb; 2] = [Verb::Read, Verb::List];

impl Verb {
    /// The word for the verb in a grant.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::List => "list",
            Verb::Delete => "delete",
            Verb::Admin => "admin",
            Verb::Status => "status",
            Verb::Reconfig => "reconfig",
            Verb::Keys => "keys",
            Verb::Join => "join",
            Verb::Trace => "trace",
            Verb::Gateway => "gateway",
        }
    }

    fn parse(word: &str) -> Option<Verb> {
        let mut all = DOMAIN_VERBS.into_iter().chain(CLUSTER_VERBS);
        all.find(|verb| verb.word() == word)
    }

    fn is_of_domains(self) -> bool {
        self <= Verb::Admin
    }
}

/// A set of verbs, all of domains or all of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verbs(u16);

impl Verbs {
    fn of(verbs: impl IntoIterator<Item = Verb>) -> Verbs {
        Verbs(
            verbs
                .into_iter()
                .fold(0, |set, verb| set | 1 << verb as u16),
        )
    }

    fn has(self, verb: Verb) -> bool {
        self.0 & 1 << verb as u16 != 0
    }

    fn only(self, others: Verbs) -> Verbs {
        Verbs(self.0 & others.0)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The domains that a grant is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Domains {
    /// The one with this name.
    Named(String),
    /// All whose names begin so; with nothing, all.
    Beginning(String),
}

impl Domains {
    fn has(&self, name: &str) -> bool {
        match self {
            Domains::Named(only) => only == name,
            Domains::Beginning(start) => name.starts_with(start.as_str()),
        }
    }
}

/// Verbs, and where they count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    verbs: Verbs,
    scope: Scope,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Cluster,
    Domains { domains: Domains, prefix: String },
}

impl Grant {
    fn allows(&self, need: &Need<'_>) -> bool {
        self.verbs.has(need.verb)
            && match (&self.scope, need.place) {
                (Scope::Cluster, Place::Cluster) => true,
                (Scope::Domains { domains, prefix }, Place::Keys { domain, start }) => {
                    domains.has(domain) && start.starts_with(prefix.as_str())
                }
                (Scope::Domains { domains, .. }, Place::Anywhere { domain }) => domains.has(domain),
                _ => false,
            }
    }

    fn has_prefix(&self) -> bool {
        matches!(&self.scope, Scope::Domains { prefix, .. } if !prefix.is_empty())
    }
}

/// The place where a request has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place<'a> {
    Cluster,
    Keys { domain: &'a str, start: &'a str },
    Anywhere { domain: &'a str },
}

/// The one grant that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<'a> {
    verb: Verb,
    place: Place<'a>,
}

impl<'a> Need<'a> {
    /// For the whole cluster.
    ///
    /// # Panics
    /// If the verb is one of domains.
    pub fn cluster(verb: Verb) -> Need<'a> {
        assert!(!verb.is_of_domains(), "{} is of domains", verb.word());
        Need {
            verb,
            place: Place::Cluster,
        }
    }

    /// For one object, or for all objects of a listing, whose keys begin with `start`.
    ///
    /// # Panics
    /// If the verb is one of the cluster.
    pub fn keys(verb: Verb, domain: &'a str, start: &'a str) -> Need<'a> {
        assert!(verb.is_of_domains(), "{} is of the cluster", verb.word());
        Need {
            verb,
            place: Place::Keys { domain, start },
        }
    }

    /// For a domain as a whole.
    ///
    /// # Panics
    /// If the verb is one of the cluster.
    pub fn domain(verb: Verb, domain: &'a str) -> Need<'a> {
        Need::keys(verb, domain, "")
    }

    /// For any keys of a domain: a grant with a prefix is enough.
    ///
    /// # Panics
    /// If the verb is one of the cluster.
    pub fn anywhere(verb: Verb, domain: &'a str) -> Need<'a> {
        assert!(verb.is_of_domains(), "{} is of the cluster", verb.word());
        Need {
            verb,
            place: Place::Anywhere { domain },
        }
    }
}

/// The grant that would be enough, as its text form: for a whole domain, since no key is given one with a prefix.
impl fmt::Display for Need<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.word())?;
        match self.place {
            Place::Cluster => Ok(()),
            Place::Keys { domain, .. } | Place::Anywhere { domain } => write!(f, ":{domain}"),
        }
    }
}

/// A key lacks a grant: nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "key {key} lacks the grant '{grant}', and nothing was done: use a key that has it, or have one made with `areo key create NAME --grant {grant}`"
)]
pub struct MissingGrant {
    pub key: KeyId,
    /// The grant that would be enough.
    pub grant: String,
}

/// A grant with a prefix, which no key is given: blocks of large values have names that no prefix covers, so that it would guard keys and
/// not their content (`docs/decisions/0072-servers-check-what-clients-saw.md`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no key is given the grant '{grant}', because a prefix does not guard the content of large objects: make a domain of their own for those objects with `areo domain create`, and leave out everything from '/' on"
)]
pub struct PrefixedGrant {
    /// The grant in text form.
    pub grant: String,
}

/// A grant that callers without a key are not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key 'anonymous' stands for every caller without a key, and is not given the grant '{grant}': 'read' and 'list' of domains are possible"
)]
pub struct NotPublicGrant {
    /// The grant in text form.
    pub grant: String,
}

/// All grants of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

impl Grants {
    /// Takes grants.
    ///
    /// # Errors
    /// [`GrantError::TooMany`].
    pub fn new(grants: Vec<Grant>) -> Result<Grants, GrantError> {
        let bytes: usize = grants.iter().map(|grant| grant.to_string().len()).sum();
        if grants.len() > MAX_GRANTS || bytes > MAX_GRANT_BYTES {
            let count = grants.len();
            return Err(GrantError::TooMany { count, bytes });
        }
        Ok(Grants(grants))
    }

    /// All verbs everywhere: the key with which a cluster begins.
    pub fn of_administrator() -> Grants {
        Grants(vec![
            Grant {
                verbs: Verbs::of(DOMAIN_VERBS),
                scope: Scope::Domains {
                    domains: Domains::Beginning(String::new()),
                    prefix: String::new(),
                },
            },
            Grant {
                verbs: Verbs::of(CLUSTER_VERBS),
                scope: Scope::Cluster,
            },
        ])
    }

    /// Grants of a server under its own certificate: servers repair, transfer, sweep and grow the root domain. They
    /// make no keys and no tokens.
    pub fn of_server() -> Grants {
        let mut grants = Grants::of_administrator();
        grants.0[1].verbs = Verbs::of([Verb::Status, Verb::Reconfig]);
        grants
    }

    /// The grants that a gateway has on behalf of the key of these: all of domains, and of the whole cluster `status` alone.
    #[must_use]
    pub fn on_behalf(&self) -> Grants {
        let reduced = |grant: &Grant| {
            let verbs = match grant.scope {
                Scope::Domains { .. } => grant.verbs,
                Scope::Cluster => grant.verbs.only(Verbs::of(BEHALF_CLUSTER_VERBS)),
            };
            let scope = grant.scope.clone();
            (!verbs.is_empty()).then_some(Grant { verbs, scope })
        };
        Grants(self.0.iter().filter_map(reduced).collect())
    }

    pub fn all(&self) -> &[Grant] {
        &self.0
    }

    /// Demands that none of them has a prefix.
    ///
    /// # Errors
    /// [`PrefixedGrant`].
    pub fn demand_whole_domains(&self) -> Result<(), PrefixedGrant> {
        match self.0.iter().find(|grant| grant.has_prefix()) {
            None => Ok(()),
            Some(grant) => Err(PrefixedGrant {
                grant: grant.to_string(),
            }),
        }
    }

    /// Demands that they are such as callers without a key may have: to read and list objects of domains.
    ///
    /// # Errors
    /// [`NotPublicGrant`].
    pub fn demand_public(&self) -> Result<(), NotPublicGrant> {
        let public = Verbs::of(PUBLIC_VERBS);
        let is_public = |grant: &&Grant| grant.verbs.only(public) == grant.verbs;
        match self.0.iter().find(|grant| !is_public(grant)) {
            None => Ok(()),
            Some(grant) => Err(NotPublicGrant {
                grant: grant.to_string(),
            }),
        }
    }

    /// True if one of them is enough.
    pub fn allow(&self, need: &Need<'_>) -> bool {
        self.0.iter().any(|grant| grant.allows(need))
    }

    /// Demands that one of them is enough.
    ///
    /// # Errors
    /// [`MissingGrant`].
    pub fn demand(&self, key: KeyId, need: &Need<'_>) -> Result<(), MissingGrant> {
        if self.allow(need) {
            Ok(())
        } else {
            let grant = need.to_string();
            Err(MissingGrant { key, grant })
        }
    }
}

#[cfg(test)]
mod tests;
