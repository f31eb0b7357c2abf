//! Waiting until the servers of `areo up` serve, and what is said then.

use super::data::Cluster;
use super::plan::Plan;
use crate::cmd::domain::meaning;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{Column, Output};
use crate::progress;
use crate::session::{self, Target, creation_failure};
use areo_client::cluster_file::Server;
use areo_client::{Client, ClusterStatus, ConnectError, CreateDomainError, DomainOptions};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const DOMAIN: &str = "default";
/// The longest wait until servers serve: opening a million objects takes seconds.
const PATIENCE: Duration = Duration::from_mins(1);
/// The time after which a quorum is enough.
const ALL: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until all servers serve, or long enough and a quorum does; then there is a domain `default`.
pub(super) async fn wait(
    out: Output,
    plan: &Plan,
    cluster: &Cluster,
    timeout: Duration,
) -> Outcome {
    let spinner = progress::spinner(out, "waiting for the servers");
    let client = serving(out, cluster, timeout).await;
    spinner.finish_and_clear();
    let client = client?;
    default_domain(out, plan, cluster, &client).await?;
    client.close().await;
    Ok(())
}

async fn serving(out: Output, cluster: &Cluster, timeout: Duration) -> Outcome<Client> {
    let target = Target::File(cluster.path.clone(), cluster.file.clone());
    let begun = Instant::now();
    let client = connected(&target, timeout, begun).await?;
    let all = cluster.file.servers.len() - cluster.absent.len();
    loop {
        let status = client.status().await;
        let (serving, quorum) = (
            serving_here(&status, cluster),
            status.root.configuration.shape.quorum(),
        );
        if serving >= all {
            return Ok(client);
        }
        if begun.elapsed() >= ALL && serving >= quorum {
            out.note(&format!(
                "{serving} of {all} servers serve; going on with them"
            ));
            return Ok(client);
        }
        if begun.elapsed() >= PATIENCE {
            return Err(Failure::new(
                Code::Unavailable,
                format!(
                    "{serving} of {quorum} needed servers serve after {} s: see server.log in {}",
                    PATIENCE.as_secs(),
                    folder(&cluster.path)
                ),
            ));
        }
        sleep(PAUSE).await;
    }
}

/// Servers that serve where this cluster has them. Of a copy of a cluster that runs, those that serve are elsewhere.
fn serving_here(status: &ClusterStatus, cluster: &Cluster) -> usize {
    let is_here = |address: &str| {
        cluster
            .file
            .servers
            .iter()
            .any(|server| server.address == address)
    };
    let serving = status.servers.iter().filter(|server| {
        let status = server.status.answered();
        status.is_some_and(|status| status.serving) && is_here(&server.server.address)
    });
    serving.count()
}

async fn connected(target: &Target, timeout: Duration, begun: Instant) -> Outcome<Client> {
    loop {
        match Client::connect(target.options(timeout)).await {
            Ok(client) => return Ok(client),
            Err(error @ ConnectError::NoServer { .. }) if begun.elapsed() >= PATIENCE => {
                return Err(session::unreachable(&error, target));
            }
            Err(ConnectError::NoServer { .. }) => sleep(PAUSE).await,
            Err(error) => return Err(session::unreachable(&error, target)),
        }
    }
}

async fn default_domain(out: Output, plan: &Plan, cluster: &Cluster, client: &Client) -> Outcome {
    let dap = plan.dap(cluster.file.servers.len())?;
    let options = DomainOptions {
        dap,
        allow_f0: plan.allow_f0,
        ..DomainOptions::default()
    };
    let shape = match client.create_domain(DOMAIN, options).await {
        Ok(domain) => domain.configuration().shape,
        Err(CreateDomainError::Exists { configuration, .. }) => {
            let (is, asked) = (configuration.shape, plan.dap.is_some() || plan.k.is_some());
            if asked && is.dap() != dap {
                out.note(&format!(
                    "the domain '{DOMAIN}' exists already and stays as it is; `areo domain create` makes others"
                ));
            }
            is
        }
        // Its servers serve; other domains may be in use.
        Err(error) if !cluster.new => {
            let failure = creation_failure(error);
            out.note(&format!("there is no domain '{DOMAIN}' yet: {failure}"));
            return Ok(());
        }
        Err(error) => return Err(creation_failure(error)),
    };
    // Servers that start do not know yet what they missed.
    let held = match cluster.new {
        true => "",
        false => ", once `areo status` says that every server held its part",
    };
    out.note(&format!(
        "domain '{DOMAIN}': {shape}, {}{held}",
        meaning(shape)
    ));
    Ok(())
}

/// Prints the endpoints, and commands to try next.
pub(super) fn announce(
    out: Output,
    plan: &Plan,
    cluster: &Cluster,
    pid: impl Fn(&str) -> Option<u32>,
) -> Outcome {
    let file = &cluster.file;
    if file.memory() {
        out.note("nothing is kept on disk: when the servers stop, everything is gone");
    }
    if file.key.is_none() {
        out.note("this cluster was made without keys: each user of this machine may use it, and a copy of its objects in a new one has keys");
    }
    if out.json {
        for server in &file.servers {
            out.object(&endpoint(server, pid(&server.name)))?;
        }
        let cluster_id = format!("{:032x}", file.cluster);
        let path = cluster.path.display().to_string();
        let event = serde_json::json!({
            "event": "ready", "cluster": cluster_id, "file": path, "new": cluster.new, "durability": file.durability,
        });
        return out.object(&event);
    }
    let columns = [
        Column::Text("server"),
        Column::Text("address"),
        Column::Text("admin"),
        Column::Number("process"),
        Column::Text("data"),
    ];
    let row = |server: &Server| {
        let data = cluster.directory(server).display().to_string();
        vec![
            server.name.clone(),
            server.address.clone(),
            server.admin.clone(),
            pid(&server.name).map_or("-".into(), |pid| pid.to_string()),
            data,
        ]
    };
    let rows: Vec<_> = file.servers.iter().map(row).collect();
    out.table(&columns, &rows)?;
    let this = std::env::args().next().unwrap_or_else(|| "areo".into());
    out.note(&advice(&this, plan, cluster));
    if let Some(listen) = &plan.s3 {
        out.note(&s3_advice(&this, plan, cluster, listen));
    }
    Ok(())
}

fn endpoint(server: &Server, pid: Option<u32>) -> serde_json::Value {
    serde_json::json!({
        "event": "server", "server": server.name, "id": format!("{:032x}", server.id),
        "address": server.address, "admin": server.admin, "pid": pid,
    })
}

/// The option that names a cluster which commands do not find by themselves.
fn cluster_flag(plan: &Plan, cluster: &Cluster) -> String {
    let elsewhere = plan.data != Path::new("./areo-data") && plan.data != Path::new("areo-data");
    match elsewhere {
        true => format!(" --cluster {}", cluster.path.display()),
        false => String::new(),
    }
}

/// The endpoint of S3, the id of the key, and three commands to try. The secret stays in the cluster file.
fn s3_advice(this: &str, plan: &Plan, cluster: &Cluster, listen: &str) -> String {
    let flag = cluster_flag(plan, cluster);
    let id = cluster.file.key.as_ref().map(|key| key.id.to_string());
    let id = id.unwrap_or_default();
    format!(
        "S3 at http://{listen}, access key {id}, region us-east-1. Try:\n  \
         eval \"$({this} key env{flag})\"; export AWS_ENDPOINT_URL=http://{listen} AWS_DEFAULT_REGION=us-east-1\n  \
         aws s3 mb s3://photos\n  \
         echo hello | aws s3 cp - s3://photos/greeting"
    )
}

/// Three commands to try, as they have to be typed here.
fn advice(this: &str, plan: &Plan, cluster: &Cluster) -> String {
    let flag = cluster_flag(plan, cluster);
    format!(
        "\nThe cluster serves. Try, in another terminal:\n  \
         echo hello | {this} put greeting{flag}\n  \
         {this} get greeting{flag}\n  \
         {this} status{flag}\n\
         Ctrl-C stops the cluster; the same command brings it back."
    )
}

fn folder(path: &Path) -> String {
    path.parent().unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::up::plan::tests::plan;
    use areo_client::cluster_file::ClusterFile;

    fn cluster(data: &str) -> Cluster {
        let server = Server {
            name: "s1".into(),
            id: 1,
            address: "127.0.0.1:7400".into(),
            admin: "127.0.0.1:7490".into(),
        };
        Cluster {
            path: Path::new(data).join("cluster.toml"),
            file: ClusterFile::new(1, false, 1 << 20, vec![server]),
            absent: Vec::new(),
            new: true,
        }
    }

    #[test]
    fn advice_can_be_typed() {
        let here = advice("areo", &plan("./areo-data"), &cluster("./areo-data"));
        assert!(here.contains("\n  areo get greeting\n"), "{here}");
        let there = advice("./areo", &plan("/data"), &cluster("/data"));
        assert!(
            there.contains("\n  ./areo status --cluster /data/cluster.toml\n"),
            "{there}"
        );
    }

    #[test]
    fn endpoints_have_stable_keys() {
        assert_eq!(
            endpoint(&cluster("x").file.servers[0], Some(7)),
            serde_json::json!({
                "event": "server", "server": "s1", "id": "00000000000000000000000000000001",
                "address": "127.0.0.1:7400", "admin": "127.0.0.1:7490", "pid": 7,
            })
        );
    }
}
