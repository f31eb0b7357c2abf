//! This store, as a target.

mod caller;

pub(crate) use caller::{AreoCaller, connected};

use super::{
    About, Answer, Caller, Reconfigurer, Target, TargetError, TargetName, TargetOptions,
    start_failed,
};
use crate::cluster::Program;
use crate::setup::{Setup, StartedCluster};
use crate::system;
use areo_client::{
    Change, Dap, DapKind, Domain, DomainOptions, ReconfigError, ReconfigOutcome, Shape,
};

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
