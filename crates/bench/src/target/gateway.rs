//! This store behind its S3 gateway, as a target. Its callers are in `peers/`, as those of each other S3 endpoint.

use super::{Areo, TargetError, TargetName, TargetOptions, start_failed};
use crate::cluster::loopback_hosts;
use crate::process::ProcessGuard;
use crate::setup::SERVE;
use areo_client::{Access, DapKind};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::sleep;

const PORT: u16 = 7480;
/// The pause between two looks for the gateway.
const GLANCE: Duration = Duration::from_millis(10);

/// A cluster with keys, one domain of the kind that a gateway gives new buckets, and a gateway.
pub struct AreoGateway {
    /// The address of the gateway: `http://HOST:PORT`.
    pub endpoint: String,
    /// The domain, as a bucket.
    pub bucket: &'static str,
    /// The access key id that it takes.
    pub key: String,
    /// The secret access key.
    pub secret: String,
    /// The process of the gateway. It is killed before the cluster ends.
    gateway: ProcessGuard,
    /// The cluster that the gateway is a client of.
    pub areo: Areo,
}

impl AreoGateway {
    /// Starts the cluster and the gateway, and waits until both serve.
    ///
    /// # Errors
    /// [`TargetError::Start`].
    pub async fn start(wanted: &TargetOptions) -> Result<AreoGateway, TargetError> {
        let failed = start_failed(TargetName::AreoS3);
        let dap = DapKind::Conditional.with(wanted.dap.k());
        let areo = Areo::start_as(TargetName::AreoS3, dap, wanted).await?;
        let Some(Access::Key(key)) = areo.started.connect.access.clone() else {
            return Err(failed(&"its cluster has no access key"));
        };
        let address = format!("{}:{PORT}", loopback_hosts(1)[0]);
        let mut command = (wanted.program.server)();
        let cluster = areo.started.connect.addresses.join(",");
        command
            .args([
                "--config",
                "",
                "--cluster",
                &cluster,
                "s3",
                "--listen",
                &address,
            ])
            .env("AREO_KEY", key.expose_text().as_str());
        let log = areo.started.cluster.folder().join("gateway.log");
        let gateway = ProcessGuard::start(command, &log, Stdio::null());
        let mut gateway = gateway.map_err(|error| failed(&error))?;
        let begun = Instant::now();
        while TcpStream::connect(&address).await.is_err() {
            if gateway.ended().is_some() || begun.elapsed() > SERVE {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(failed(&format!(
                    "its gateway does not serve; it wrote: {said}"
                )));
            }
            sleep(GLANCE).await;
        }
        Ok(AreoGateway {
            endpoint: format!("http://{address}"),
            bucket: super::areo::DOMAIN,
            key: key.id.to_string(),
            secret: key.secret.expose_text().to_string(),
            gateway,
            areo,
        })
    }

    /// The processes of servers and gateway.
    pub fn processes(&self) -> Vec<u32> {
        let servers = self.areo.started.cluster.processes();
        servers.into_iter().chain([self.gateway.id()]).collect()
    }
}
