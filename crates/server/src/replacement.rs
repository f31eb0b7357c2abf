//! A server whose log lacks records gives its place up, and another one in its directory takes it (decision record 0067,
//! `[X-37 another-in-its-place]`).
//!
//! What is lost may be a promise, or the acknowledgement of a write that is still under way, so that nothing completes the server
//! again. It abstains until every domain was seen to work without it, for a while. Then its directory becomes that of another server,
//! by one write of `IDENTITY`, which also says what is left to do:
//!
//! ```text
//! IDENTITY      what is done next
//! log_of        log/ and EXTENT are moved aside before anything opens them
//! (no name)     the server joins the cluster, as with --join
//! replaces      it takes the place of these in every domain, as `areo server replace` does, and has them forgotten;
//!               then the log that was moved aside is removed
//! ```
//!
//! Each step can be done again, so that a process which is killed anywhere leaves a directory with which the next one goes on.

use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use areo_client::{
    Access, Client as ClusterClient, ConnectOptions, ForgetError, InvalidChoice, ReconfigError,
    Successor,
};
use areo_core::config::{Configuration, ServerId};
use areo_core::dsm::Client;
use areo_core::manager::without::look_without;
use areo_net::env::NetEnv;
use areo_net::outside::DecideOutside;
use areo_store::{Directory, DirectoryError};
use std::sync::Arc;

use crate::error::ServeError;
use crate::identity::{self, ADDRESSES, Identity, PREDECESSORS, Succession};
use crate::registration::Registrar;
use crate::worker::Worker;

/// The deadline of one operation.
const ATTEMPT: Duration = Duration::from_secs(15);
/// Looks in a row that must find the cluster to work without a server, after the first one.
const LOOKS: u32 = 6;
/// The pause before the obstacle is logged again.
const SAY_AGAIN: Duration = Duration::from_mins(10);
/// The pause before domains that could not be changed are tried again. Failures in a row double it, this often at most.
const RETRY: Duration = Duration::from_secs(1);
const DOUBLINGS: u32 = 8;
/// The directory of the log.
pub(crate) const LOG: &str = "log";

impl Identity {
    /// The identity of another server, which takes the place of this one in its directory.
    fn succeeded_by(
        &self,
        server: ServerId,
        root: Arc<Configuration>,
        mut addresses: Vec<String>,
    ) -> Identity {
        assert!(server != self.server, "another server has another id");
        assert!(!self.memory, "of a server in memory nothing is lost");
        addresses.truncate(ADDRESSES);
        let mut succession = self.succession.clone();
        succession.predecessors.push(self.server);
        let superfluous = succession.predecessors.len().saturating_sub(PREDECESSORS);
        succession.predecessors.drain(..superfluous);
        succession.replaces.push(self.server);
        Identity {
            cluster: self.cluster,
            server,
            name: String::new(),
            starts: areo_core::starts::Starts::NONE,
            memory: false,
            extent: 0,
            root,
            has_trust: self.has_trust,
            succession: Succession {
                log_of: Some(self.server),
                addresses,
                ..succession
            },
        }
    }
}

/// The directory of the log of a server whose place another one takes.
fn aside(server: ServerId) -> String {
    format!("incomplete-log-of-{server}")
}

fn io_failure(path: &Path) -> impl FnOnce(std::io::Error) -> ServeError {
    let path = path.to_owned();
    move |source| ServeError::Directory(DirectoryError::Io { path, source })
}

/// Moves the log of the server before out of the way, if it is still there. Before anything opens the log.
///
/// # Errors
/// [`ServeError`].
pub(crate) fn set_log_aside(
    directory: &Directory,
    mut identity: Identity,
) -> Result<Identity, ServeError> {
    if let Some(before) = identity.succession.log_of {
        let moved = directory.set_aside(LOG, &aside(before));
        moved.map_err(io_failure(directory.path()))?;
        identity.succession.log_of = None;
        identity::write(directory, &identity)?;
    }
    Ok(identity)
}

/// Reads the identity anew: its starts have been counted since it was read first.
fn current(directory: &Directory) -> Result<Identity, ServeError> {
    let identity = identity::read(directory)?;
    Ok(identity.expect("a directory in use has an identity"))
}

impl Registrar {
    /// Gives the directory of a server that abstains to another server, once the cluster was seen to work without this one for as
    /// long as `settle`. Nothing is written before.
    ///
    /// # Errors
    /// [`ServeError`] if that could not be written.
    pub(crate) async fn give_up_place(
        &self,
        (identity, worker): (&Identity, &Rc<Worker>),
        directory: &Directory,
        settle: Duration,
    ) -> Result<(), ServeError> {
        let mut looks = 0;
        let mut said: Option<(String, Instant)> = None;
        while looks <= LOOKS {
            if looks > 0 || said.is_some() {
                tokio::time::sleep(settle / LOOKS).await;
            }
            let obstacle = self.obstacle((identity, worker), directory).await;
            looks = if obstacle.is_none() { looks + 1 } else { 0 };
            let is_news = |(before, at): &(String, Instant), now: &str| {
                before != now || at.elapsed() >= SAY_AGAIN
            };
            let now = obstacle.unwrap_or_default();
            if said.as_ref().is_none_or(|before| is_news(before, &now)) {
                say(&now, settle);
                said = Some((now, Instant::now()));
            }
        }
        let root = self.access.last();
        let addresses = self.addresses_of_others(&root).await;
        let next = current(directory)?.succeeded_by(ServerId(identity::random()), root, addresses);
        tracing::warn!(before = %identity.name, id = %next.server, "another server takes the place of this one, in this directory");
        identity::write(directory, &next)
    }

    /// Returns the reason why no other server can take the place of this one now. `None`: one can.
    async fn obstacle(
        &self,
        (identity, worker): (&Identity, &Rc<Worker>),
        directory: &Directory,
    ) -> Option<String> {
        self.learn_addresses(identity, worker).await;
        if !directory.may_set_aside(LOG) {
            return Some("its log is on another disk than its directory".into());
        }
        let network = self.network().clone();
        let env = move || -> NetEnv { network.env(ATTEMPT) };
        let client = Client::new(env());
        client.sequences().learn(&self.access.last());
        match look_without(&client, env, &self.access.root, identity.server).await {
            Ok(found) => (!found.works()).then(|| found.to_string()),
            Err(_) => Some("without it no quorum serves in the root domain".into()),
        }
    }

    /// The addresses of other servers, members of the root domain first.
    async fn addresses_of_others(&self, root: &Arc<Configuration>) -> Vec<String> {
        let client = self.access.client(self.network().env(ATTEMPT));
        let servers = client.root(root).servers().await.unwrap_or_default();
        let own = &self.record;
        let mut others: Vec<_> = servers.into_values().collect();
        others.retain(|it| {
            it.id != own.id
                && !it.is_forgotten()
                && it.address != own.address
                && it.generation.is_none()
        });
        others.sort_by_key(|it| root.position(it.id).is_none());
        let known = others.into_iter().map(|it| it.address);
        known.chain(self.seeds.all.iter().cloned()).collect()
    }

    /// Takes the places of the servers to which the directory belonged before, and then does nothing more.
    pub(crate) async fn take_places(
        &self,
        identity: &Identity,
        directory: &Directory,
        decide_outside: Option<DecideOutside>,
    ) -> Infallible {
        let mut failures = 0;
        while !identity.succession.replaces.is_empty() {
            match self
                .take_places_once(identity, directory, decide_outside)
                .await
            {
                Ok(()) => break,
                Err(reason) => {
                    tracing::warn!(name = %identity.name, %reason, "the place of the server before is not taken everywhere yet");
                    tokio::time::sleep(RETRY * (1 << failures)).await;
                    failures = DOUBLINGS.min(failures + 1);
                }
            }
        }
        std::future::pending().await
    }

    async fn take_places_once(
        &self,
        identity: &Identity,
        directory: &Directory,
        decide_outside: Option<DecideOutside>,
    ) -> Result<(), String> {
        let own = [self.record.address.clone()].into_iter();
        let client = ClusterClient::connect(ConnectOptions {
            addresses: own.chain(self.seeds.all.iter().cloned()).collect(),
            cluster: Some(areo_client::ClusterId(identity.cluster)),
            decide_outside,
            // Under the certificate of this server.
            access: self.network().tls().cloned().map(Access::Certificate),
            ..ConnectOptions::default()
        });
        let client = client.await.map_err(|error| error.to_string())?;
        let cluster = ClusterOfServer {
            client,
            name: &identity.name,
            own: identity.server,
        };
        let ended = take_all(&cluster, directory).await;
        cluster.client.close().await;
        ended
    }
}

/// Logs the obstacle that the replacement waits for; empty: only time has to pass.
fn say(obstacle: &str, settle: Duration) {
    match obstacle {
        "" => tracing::warn!(
            "all domains work without this server: if that is so for {} s more, another one takes its place and its log goes; to put \
             files back, stop it before",
            settle.as_secs()
        ),
        obstacle => tracing::error!(
            %obstacle,
            "records are missing from the log, and no other server can take the place of this one yet: put the files back, or start \
             the other servers"
        ),
    }
}

/// The steps in the cluster for a server that is gone. Each can be done again.
trait PlaceTaking {
    /// Marks the server as one that is to go.
    async fn mark(&self, old: ServerId) -> Result<(), String>;
    /// Takes its place in every domain that names it.
    async fn take(&self, old: ServerId) -> Result<(), String>;
    /// Has it forgotten, if no domain names it.
    async fn forget(&self, old: ServerId) -> Result<(), String>;
}

/// Takes the places of all servers that the directory lists as replaced, and removes their logs.
async fn take_all(cluster: &impl PlaceTaking, directory: &Directory) -> Result<(), String> {
    let failed = |error: ServeError| error.to_string();
    loop {
        let mut identity = current(directory).map_err(failed)?;
        let Some(old) = identity.succession.replaces.first().copied() else {
            return Ok(());
        };
        cluster.mark(old).await?;
        cluster.take(old).await?;
        cluster.forget(old).await?;
        // No domain needs it any more, and no person could start it again.
        let removed = directory.remove_aside(&aside(old));
        removed.map_err(|error| failed(io_failure(directory.path())(error)))?;
        identity.succession.replaces.remove(0);
        if identity.succession.replaces.is_empty() {
            identity.succession.addresses.clear();
        }
        identity::write(directory, &identity).map_err(failed)?;
    }
}

/// The cluster, as a client of this server sees it.
struct ClusterOfServer<'a> {
    client: ClusterClient,
    /// Name of this server.
    name: &'a str,
    own: ServerId,
}

impl PlaceTaking for ClusterOfServer<'_> {
    async fn mark(&self, old: ServerId) -> Result<(), String> {
        match self.client.mark_leaving(&old.to_string(), true).await {
            Ok(_) => Ok(()),
            Err(error) if is_unknown(&error) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn take(&self, old: ServerId) -> Result<(), String> {
        let successor = Successor::Preferred(self.own);
        let departures = match self.client.departures(&old.to_string(), &successor).await {
            Ok(departures) => departures,
            Err(error) if is_unknown(&error) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let (all, mut done, mut failed) = (departures.len(), 0, None);
        for departure in departures {
            let domain = departure.domain().name().to_owned();
            match departure.run(|_| {}).await {
                Ok(_) => {
                    done += 1;
                    let name = self.name;
                    tracing::info!(%domain, "{name} took the place of server {old} in {done} of {all} domains");
                }
                // The others do not wait for it.
                Err(error) => failed = failed.or(Some(format!("'{domain}': {error}"))),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn forget(&self, old: ServerId) -> Result<(), String> {
        match self.client.forget_server(&old.to_string()).await {
            Ok(_) => {
                tracing::info!(%old, "{} has taken the place of the server before, which is forgotten", self.name);
                Ok(())
            }
            Err(ForgetError::Choice {
                error: InvalidChoice::UnknownServer { .. },
            }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The server is forgotten, and no domain names it.
fn is_unknown(error: &ReconfigError) -> bool {
    matches!(
        error,
        ReconfigError::Choice {
            error: InvalidChoice::UnknownServer { .. }
        }
    )
}

#[cfg(test)]
mod tests;
