//! Redis, through `redis`: a master and replicas, with and without `WAIT`.

use areo_bench::cluster::loopback_hosts;
use areo_bench::foreign::{Foreign, StartedProcess};
use areo_bench::system;
use areo_bench::target::{
    About, Answer, CallError, Caller, Cost, Target, TargetError, TargetName, TargetOptions,
    start_failed,
};
use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

const PORT: u16 = 6379;
/// Time in which replicas must catch up with their master.
const SERVE: Duration = Duration::from_secs(30);

/// A master with its replicas.
pub(crate) struct Cluster {
    about: About,
    client: Client,
    /// Replicas that a writer waits for.
    wait_for: usize,
    timeout: Duration,
    servers: Vec<StartedProcess>,
    folder: TempDir,
}

fn foreign(target: TargetName) -> Foreign {
    Foreign {
        target,
        program: "redis-server",
        source: "the package redis-server",
    }
}

/// The command line of a server.
fn arguments(data: &str, host: &str, master: Option<&str>, memory: bool) -> Vec<String> {
    let port = PORT.to_string();
    let words = [
        ("--bind", host),
        ("--port", &port),
        ("--dir", data),
        ("--save", ""),
        ("--appendonly", if memory { "no" } else { "yes" }),
        ("--appendfsync", "always"),
        ("--repl-diskless-sync-delay", "0"),
        ("--loglevel", "warning"),
    ];
    let mut arguments: Vec<String> = words
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_owned()])
        .collect();
    // A replica that is slower than large values come stays one: its limit would end the connection.
    let unlimited = ["--client-output-buffer-limit", "replica", "0", "0", "0"];
    arguments.extend(unlimited.map(str::to_owned));
    if let Some(master) = master {
        arguments.extend(["--replicaof".into(), master.into(), port]);
    }
    arguments
}

/// Starts the servers, and waits until every replica is in step; `waits`: a put waits for a majority.
pub(crate) async fn start(wanted: &TargetOptions, waits: bool) -> Result<Cluster, TargetError> {
    let target = match waits {
        true => TargetName::RedisWait,
        false => TargetName::Redis,
    };
    let start_failed = start_failed(target);
    let folder = tempfile::Builder::new()
        .prefix("areo-redis-")
        .tempdir_in(&wanted.data);
    let folder = folder.map_err(|error| start_failed(&error))?;
    let hosts = loopback_hosts(wanted.servers);
    let mut servers = Vec::new();
    for (number, host) in (1..).zip(&hosts) {
        let name = format!("r{number}");
        let data = folder.path().join(&name);
        std::fs::create_dir(&data).map_err(|error| start_failed(&error))?;
        let master = (number > 1).then_some(hosts[0].as_str());
        let arguments = arguments(&data.display().to_string(), host, master, wanted.memory);
        servers.push(foreign(target).start(folder.path(), &name, &arguments)?);
    }
    let client = Client::open(format!("redis://{}:{PORT}/", hosts[0]));
    let wait_for = if waits { wanted.servers / 2 } else { 0 };
    let mut cluster = Cluster {
        about: about(target, wanted, wait_for),
        client: client.map_err(|error| start_failed(&error))?,
        wait_for,
        timeout: wanted.timeout,
        servers,
        folder,
    };
    cluster.about.version = cluster.in_step().await?;
    Ok(cluster)
}

fn about(target: TargetName, wanted: &TargetOptions, wait_for: usize) -> About {
    let replicas = wanted.servers - 1;
    About {
        target,
        version: String::new(),
        servers: wanted.servers,
        keeps: match wait_for {
            0 => format!(
                "a master and {replicas} replicas; puts and gets at the master, which does not wait"
            ),
            _ => format!(
                "a master and {replicas} replicas; a put waits for {wait_for} (WAIT), a get reads the master"
            ),
        },
        durability: match (wanted.memory, wait_for) {
            (true, _) => "memory".into(),
            (false, 0) => "fsync at the master".into(),
            // WAIT counts replicas that have received, not those that have synced.
            (false, _) => "fsync at the master, memory at the replicas waited for".into(),
        },
        connections: "redis-rs: one for each client, to the master".into(),
    }
}

impl Cluster {
    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connect = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        connect.await
    }

    /// Waits until every replica is in step with the master, and returns the version.
    async fn in_step(&mut self) -> Result<String, TargetError> {
        let begun = Instant::now();
        let replicas = self.servers.len() - 1;
        loop {
            for server in &mut self.servers {
                server.check()?;
            }
            let told: RedisResult<String> = match self.connect().await {
                Ok(mut connection) => redis::cmd("INFO").query_async(&mut connection).await,
                Err(error) => Err(error),
            };
            let told = told.unwrap_or_default();
            let in_step = told.matches("state=online").count();
            if !told.is_empty() && in_step == replicas {
                let mut lines = told.lines();
                let version = lines.find_map(|line| line.strip_prefix("redis_version:"));
                return Ok(version.unwrap_or("unknown").trim().to_owned());
            }
            if begun.elapsed() > SERVE {
                let why = format!("{in_step} of {replicas} replicas are in step");
                return Err(start_failed(self.about.target)(&why));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Target for Cluster {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        Box::pin(async {
            let connection = self.connect().await;
            let connection = connection.map_err(|error| start_failed(self.about.target)(&error))?;
            Ok(Box::new(RedisCaller {
                connection,
                wait_for: self.wait_for,
                timeout: self.timeout,
            }) as Box<dyn Caller>)
        })
    }

    fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(StartedProcess::id).collect()
    }

    fn stored(&self) -> u64 {
        system::stored_in(self.folder.path())
    }

    fn kill(&mut self) -> Answer<'_, String, TargetError> {
        // Dropping it kills its process. It was started first.
        self.servers.remove(0);
        let victim = "r1, the master: no replica takes its place by itself";
        Box::pin(async move { Ok(victim.to_owned()) })
    }
}

struct RedisCaller {
    connection: MultiplexedConnection,
    wait_for: usize,
    timeout: Duration,
}

impl RedisCaller {
    async fn write(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        let mut set = redis::cmd("SET");
        set.arg(key).arg(value);
        let written: RedisResult<()> = match self.wait_for {
            0 => set.query_async(&mut self.connection).await,
            wanted => {
                let mut both = redis::pipe();
                both.add_command(set).ignore();
                both.cmd("WAIT")
                    .arg(wanted)
                    .arg(self.timeout.as_millis() as u64);
                let have: RedisResult<(usize,)> = both.query_async(&mut self.connection).await;
                match have {
                    Ok((have,)) if have < wanted => {
                        return Err(format!("{have} of {wanted} replicas have it"));
                    }
                    other => other.map(drop),
                }
            }
        };
        written.map_err(|error| error.to_string())
    }
}

impl Caller for RedisCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            self.write(key, &value).await?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move {
            let mut get = redis::cmd("GET");
            let got = get.arg(key).query_async(&mut self.connection).await;
            let value: Option<Vec<u8>> = got.map_err(|error| error.to_string())?;
            Ok((value.map(Bytes::from), Cost::default()))
        })
    }
}
