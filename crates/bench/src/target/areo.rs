//! This store, as a target.

use super::{
    About, Answer, CallError, Caller, Conditional, Cost, Reconfigurer, Target, TargetError,
    TargetName, TargetOptions, start_failed,
};
use crate::cluster::Program;
use crate::error::RunError;
use crate::load::counter;
use crate::setup::{Setup, StartedCluster, connected};
use crate::system;
use areo_client::{
    Change, Client, ConfigurationInfo, ConnectOptions, Counts, Dap, DapKind, Domain, DomainOptions,
    Error, Object, PutOptions, ReconfigError, ReconfigOutcome, Shape, Statistics, Version,
};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The domain that is measured.
pub(super) const DOMAIN: &str = "measured";

/// A cluster of this store with one domain on all of its servers.
pub struct Areo {
    about: About,
    domain: Domain,
    /// Dropped last: the domain talks to it.
    pub(super) started: StartedCluster,
}

impl Areo {
    /// Starts the cluster, and waits until it serves.
    ///
    /// # Errors
    /// [`TargetError::Start`].
    pub async fn start(wanted: &TargetOptions) -> Result<Areo, TargetError> {
        Areo::start_as(TargetName::Areo, wanted.dap, wanted).await
    }

    /// Starts a cluster with keys, and waits until it serves.
    ///
    /// # Errors
    /// [`TargetError::Start`].
    pub async fn start_with_keys(wanted: &TargetOptions) -> Result<Areo, TargetError> {
        Areo::start_as(TargetName::AreoKeys, wanted.dap, wanted).await
    }

    /// Starts a cluster with a conditional domain. As many elements make a value as in the wanted domain.
    ///
    /// # Errors
    /// [`TargetError::Start`].
    pub async fn start_conditional(wanted: &TargetOptions) -> Result<Areo, TargetError> {
        let dap = DapKind::Conditional.with(wanted.dap.k());
        Areo::start_as(TargetName::AreoConditional, dap, wanted).await
    }

    pub(super) async fn start_as(
        target: TargetName,
        dap: Dap,
        wanted: &TargetOptions,
    ) -> Result<Areo, TargetError> {
        let start_failed = start_failed(target);
        let setup = Setup {
            program: Program {
                has_keys: matches!(target, TargetName::AreoKeys | TargetName::AreoS3),
                ..wanted.program.clone()
            },
            servers: wanted.servers,
            objects: 0,
            size: 0,
            clients: 0,
            seed: 0,
            memory: wanted.memory,
            data: wanted.data.clone(),
            timeout: wanted.timeout,
        };
        let shape = Shape::new(dap, wanted.servers);
        let shape = shape.map_err(|error| start_failed(&error))?;
        let started = setup.start().await.map_err(|error| start_failed(&error))?;
        let options = DomainOptions {
            dap,
            servers: started.servers.clone(),
            ..DomainOptions::default()
        };
        let domain = started.client.create_domain(DOMAIN, options).await;
        let about = About {
            target,
            version: env!("CARGO_PKG_VERSION").into(),
            servers: wanted.servers,
            keeps: format!("{shape}, linearizable puts and gets"),
            durability: match wanted.memory {
                true => "memory".into(),
                false => "fsync at a quorum".into(),
            },
            connections: "one to each server, shared by all clients".into(),
        };
        Ok(Areo {
            about,
            domain: domain.map_err(|error| start_failed(&error))?,
            started,
        })
    }
}

impl Target for Areo {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        let caller = AreoCaller::of(&self.domain);
        Box::pin(async move { Ok(Box::new(caller) as Box<dyn Caller>) })
    }

    fn reconfigurer(&self) -> Option<Box<dyn Reconfigurer>> {
        if self.about.target == TargetName::AreoConditional {
            // It has no other kind to take turns with.
            return None;
        }
        let (domain, _) = self.domain.measured();
        Some(Box::new(AreoReconfigurer { domain }))
    }

    fn processes(&self) -> Vec<u32> {
        self.started.cluster.processes()
    }

    fn admins(&self) -> Answer<'_, Vec<String>, TargetError> {
        Box::pin(async {
            let servers = self.started.client.servers().await;
            let servers = servers.map_err(|error| start_failed(self.about.target)(&error))?;
            Ok(servers.into_iter().map(|server| server.admin).collect())
        })
    }

    fn stored(&self) -> u64 {
        system::stored_in(self.started.cluster.folder())
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        Box::pin(async {
            let cluster = &mut self.started.cluster;
            let name = cluster.name(0).to_owned();
            match cluster.kill(0).await {
                true => Ok(format!("{name}: all members are equal")),
                false => Err(TargetError::Kill {
                    target: self.about.target,
                    why: format!("{name} does not run"),
                }),
            }
        })
    }
}

/// Replication and erasure coding take turns, on the same servers.
struct AreoReconfigurer {
    domain: Domain,
}

impl Reconfigurer for AreoReconfigurer {
    fn reconfigure(&mut self) -> Answer<'_, bool, String> {
        Box::pin(async {
            let dap = match self.domain.configuration().shape.dap() {
                Dap::Abd => DapKind::Ec,
                _ => DapKind::Abd,
            };
            let change = Change {
                dap: Some(dap),
                allow_f0: true,
                ..Change::default()
            };
            match self.domain.reconfigure(&change, |_| {}).await {
                Ok(done) => Ok(matches!(done, ReconfigOutcome::Installed(_))),
                // Another one has changed it at the same time.
                Err(ReconfigError::Conflict { .. }) => Ok(false),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

/// A client of one domain.
pub(crate) struct AreoCaller {
    domain: Domain,
    statistics: Arc<Statistics>,
    /// For each object with conditional writes the version that it wrote or read last; `None`: the object was absent.
    versions: HashMap<String, Option<Version>>,
    /// The client of the domain, if it does not share connections with other callers. It is kept until the caller
    /// ends.
    _client: Option<Client>,
}

impl AreoCaller {
    /// A caller that shares the connections of the domain.
    pub(crate) fn of(domain: &Domain) -> AreoCaller {
        let (domain, statistics) = domain.measured();
        AreoCaller {
            domain,
            statistics,
            versions: HashMap::new(),
            _client: None,
        }
    }

    /// A caller with connections of its own.
    pub(crate) async fn connect(
        connect: &ConnectOptions,
        domain: &str,
    ) -> Result<AreoCaller, RunError> {
        let (client, found) = connected(connect, domain).await?;
        Ok(AreoCaller {
            _client: Some(client),
            ..AreoCaller::of(&found)
        })
    }

    fn since(&self, before: Counts, version: Option<Version>) -> Cost {
        Cost {
            counts: self.statistics.since(before),
            version,
            ..Cost::default()
        }
    }
}

impl Caller for AreoCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let put = self.domain.put(key, value);
            let version = put.await?;
            Ok(self.since(before, Some(version)))
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let object = found(self.domain.get(key).await)?;
            let version = object.as_ref().map(|object| object.version);
            let value = object.map(Object::into_bytes);
            Ok((value, self.since(before, version)))
        })
    }

    fn delete<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let version = found(self.domain.delete(key).await)?;
            Ok(self.since(before, version))
        })
    }

    fn write_on<'a>(
        &'a mut self,
        key: &'a str,
        value: Option<Bytes>,
        on: Option<Version>,
    ) -> Answer<'a, Conditional, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let options = PutOptions::default();
            let done = match (value, on) {
                (Some(value), on) => self.domain.compare_and_put(key, value, on, options).await,
                (None, Some(on)) => self.domain.compare_and_delete(key, on).await,
                (None, None) => unreachable!("what is absent is not deleted"),
            };
            match done {
                Ok(version) => Ok(Conditional::Won(self.since(before, Some(version)))),
                Err(Error::VersionConflict { latest, .. }) => Ok(Conditional::Lost(latest)),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn has_one_winner(&self) -> bool {
        self.domain.has_one_winner()
    }

    fn put_if<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let known = match self.versions.remove(key) {
                Some(known) => known,
                None => found(self.domain.get(key).await)?.map(|object| object.version),
            };
            let options = PutOptions::default();
            let put = self.domain.compare_and_put(key, value, known, options);
            let version = put.await?;
            self.versions.insert(key.to_owned(), Some(version));
            Ok(self.since(before, Some(version)))
        })
    }

    fn increment<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let next = |object: Option<&Object>| {
                let value = object.map(|object| object.clone().into_bytes());
                Some(counter::value(counter::count(value.as_deref()) + 1))
            };
            match self.domain.update(key, next).await {
                Ok(version) => Ok(self.since(before, version)),
                Err(error @ Error::VersionConflict { .. }) => {
                    Err(CallError::NotApplied(error.to_string()))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.domain = self.domain.with_timeout(timeout);
    }

    fn configuration(&self) -> Option<ConfigurationInfo> {
        Some(self.domain.configuration())
    }
}

/// Turns the error of an absent object into `None`.
fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::NotFound { key: Some(_), .. }) => Ok(None),
        answer => answer.map(Some),
    }
}
