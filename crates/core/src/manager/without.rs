//! A look at the cluster: does it work without a server (decision record 0067, `[X-37 another-in-its-place]`)?
//!
//! A server whose log lacks records answers for no object, and no reading of other members completes it: what is lost may be a
//! promise, or the acknowledgement of a write that is still under way. Another server takes its place, which is as if it had crashed for
//! good. It does so only where each configuration that names the server has a quorum of others that serve: until then the files
//! of the log, put back, may be what is missing.

use crate::config::{Configuration, Members, ServerId};
use crate::dsm::Client;
use crate::env::Env;
use crate::error::Unavailable;
use crate::gather;
use crate::limits;
use crate::manager::DomainError;
use crate::message::{Reply, Request};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Domains that are asked at once.
const DOMAINS_AT_ONCE: usize = 64;
/// The time for which a look waits for servers that say nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// The name under which the root domain is shown.
const ROOT: &str = "@root";

/// The result of a look at the cluster, as far as it concerns a server that is to be done without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithoutServer {
    /// Domains of which a configuration in use names the server, the root domain included.
    pub named: usize,
    /// Domains among them that do not work without the server, or could not be asked, by name.
    pub need_it: Vec<String>,
    /// The registry has room for another server.
    pub has_room: bool,
}

impl WithoutServer {
    /// Returns true if another server can take the place of the server.
    pub fn works(&self) -> bool {
        self.need_it.is_empty() && self.has_room
    }
}

/// One sentence for people: the obstacles.
impl fmt::Display for WithoutServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.need_it[..], self.has_room) {
            ([], true) => write!(f, "{} domains work without it", self.named),
            ([], false) => f.write_str("the cluster knows as many servers as it can"),
            (need_it, _) => write!(
                f,
                "without it no quorum serves in {} of {} domains: {}",
                need_it.len(),
                self.named,
                need_it.join(", ")
            ),
        }
    }
}

/// Looks at all domains whether they work without this server. `env` makes the world of one operation, with its deadline; `root` is any
/// final configuration of the root domain.
///
/// # Errors
/// The domains, or the servers, could not be listed.
pub async fn look_without<E: Env, F: Fn() -> E>(
    client: &Client<E>,
    env: F,
    root: &Arc<Configuration>,
    server: ServerId,
) -> Result<WithoutServer, DomainError> {
    assert!(
        root.id().domain == client.sequences().start(root).id().domain,
        "a sequence stays in its domain"
    );
    let operation = || client.with(env());
    let servers = operation().root(root).servers().await?;
    let domains = operation().root(root).domains().await?;
    let root = client.sequences().start(root);
    let all = [(ROOT.to_owned(), root)].into_iter().chain(domains);
    let look = all.map(async |(name, known)| (name, operation().domain(&known).path().await));
    let paths = gather::join(DOMAINS_AT_ONCE, look).await;
    let serving = serving(&operation().env, &paths).await;
    let mut found = WithoutServer {
        named: 0,
        need_it: Vec::new(),
        has_room: servers.len() < limits::REGISTERED_SERVERS,
    };
    for (name, path) in paths {
        let needs_it = path.map_or(Some(true), |path| needs(&path, server, &serving));
        found.named += usize::from(needs_it.is_some());
        if needs_it == Some(true) {
            found.need_it.push(name);
        }
    }
    assert!(
        found.need_it.len() <= found.named,
        "a domain that does not name it works without it"
    );
    Ok(found)
}

/// A domain with its configurations in use, or why they are not known.
type Path = (String, Result<Vec<Arc<Configuration>>, Unavailable>);

/// The members of these configurations that serve.
async fn serving<E: Env>(env: &E, paths: &[Path]) -> BTreeSet<ServerId> {
    let configurations = paths.iter().flat_map(|(_, path)| path.iter().flatten());
    let members = configurations.flat_map(|c| c.members().iter().copied());
    let members: BTreeSet<ServerId> = members.collect();
    let members: Members = members.into_iter().collect();
    let replies = gather::survey_for(env, &members, Request::Status, Some(PATIENCE)).await;
    assert_eq!(replies.len(), members.len(), "each is asked once");
    let serves = |(id, reply): (&ServerId, Option<Reply>)| match reply {
        Some(Reply::Status(status)) if status.serving => Some(*id),
        _ => None,
    };
    members.iter().zip(replies).filter_map(serves).collect()
}

/// Returns true if a domain with these configurations needs the server. `None`: it does not name it.
fn needs(
    path: &[Arc<Configuration>],
    server: ServerId,
    serving: &BTreeSet<ServerId>,
) -> Option<bool> {
    let last = path.last().expect("a sequence has an end");
    let mut naming = path
        .iter()
        .filter(|c| c.position(server).is_some())
        .peekable();
    if last.dap().is_removal() || naming.peek().is_none() {
        return None;
    }
    let serves = |id: &&ServerId| **id != server && serving.contains(id);
    let lacks =
        |c: &Arc<Configuration>| c.members().iter().filter(serves).count() < c.quorums().quorum();
    Some(naming.any(lacks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Descriptor;
    use crate::config::testing::{coded, replicated};

    fn of_members(members: &[u128]) -> Arc<Configuration> {
        let members = members.iter().map(|id| ServerId(*id)).collect();
        let descriptor = replicated(3).descriptor().clone();
        Configuration::new(Descriptor {
            members,
            ..descriptor
        })
        .expect("it is valid")
    }

    fn set(ids: impl IntoIterator<Item = u128>) -> BTreeSet<ServerId> {
        ids.into_iter().map(ServerId).collect()
    }

    /// Every set of serving servers, of domains of all sizes: a domain works without the server exactly if a quorum of others serves.
    #[test]
    fn a_domain_works_without_a_server_if_a_quorum_of_others_serves() {
        for c in [1, 2, 3, 5]
            .map(replicated)
            .into_iter()
            .chain([coded(4, 2), coded(5, 3)])
        {
            let n = c.n() as u128;
            assert_eq!(c.position(ServerId(1)), Some(0), "it names the server");
            for bits in 0_u32..1 << n {
                let serving = set((1..=n).filter(|id| bits >> (id - 1) & 1 == 1));
                let others = serving.iter().filter(|id| id.0 != 1).count();
                let found = needs(std::slice::from_ref(&c), ServerId(1), &serving);
                assert_eq!(
                    found,
                    Some(others < c.quorums().quorum()),
                    "{n}: {serving:?}"
                );
            }
            assert_eq!(
                needs(&[c], ServerId(99), &set([])),
                None,
                "it does not name it"
            );
        }
    }

    /// A change that is pending, or that came before, counts by itself: each configuration in use must have its quorum.
    #[test]
    fn each_configuration_in_use_counts() {
        let old = of_members(&[1, 2, 3]);
        let new = of_members(&[2, 3, 4]);
        let path = [old.clone(), new.clone()];
        assert_eq!(needs(&path, ServerId(1), &set([2, 3])), Some(false));
        assert_eq!(needs(&path, ServerId(1), &set([3, 4])), Some(true));
        let both = [old.clone(), of_members(&[1, 4, 5])];
        assert_eq!(needs(&both, ServerId(1), &set([2, 3])), Some(true));
        assert_eq!(needs(&both, ServerId(1), &set([2, 3, 4, 5])), Some(false));
        let path = [new, old];
        assert_eq!(needs(&path, ServerId(1), &set([3, 4])), Some(true));
    }

    #[test]
    fn what_is_waited_for_is_said() {
        let mut found = WithoutServer {
            named: 3,
            need_it: vec!["@root".into(), "a".into()],
            has_room: true,
        };
        assert!(!found.works());
        let said = "without it no quorum serves in 2 of 3 domains: @root, a";
        assert_eq!(found.to_string(), said);
        found.need_it.clear();
        assert!(found.works());
        found.has_room = false;
        assert!(!found.works());
    }
}
