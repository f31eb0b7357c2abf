//! Redis, as a target: a master and replicas, with and without `WAIT`.

mod resp;

use super::process::{Foreign, Started};
use super::{
    About, Answer, Caller, Cost, Target, TargetError, TargetName, Wanted, in_time, start_failed,
};
use crate::cluster::loopback_hosts;
use crate::system;
use bytes::Bytes;
use resp::{Connection, Reply};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

const PORT: u16 = 6379;
/// How long replicas may take to be in step.
const SERVE: Duration = Duration::from_secs(30);

/// A master with its replicas.
pub(super) struct Redis {
    about: About,
    master: String,
    /// Replicas that a writer waits for.
    wait_for: u32,
    timeout: Duration,
    servers: Vec<Started>,
    folder: TempDir,
}

fn foreign(target: TargetName) -> Foreign {
    Foreign {
        target,
        program: "redis-server",
        package: "redis-server",
    }
}

/// Everything that a server is told.
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

impl Redis {
    pub(super) async fn start(wanted: &Wanted, waits: bool) -> Result<Redis, TargetError> {
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
            let data = data.display().to_string();
            let arguments = arguments(&data, host, master, wanted.memory);
            servers.push(foreign(target).start(folder.path(), &name, &arguments)?);
        }
        let wait_for = if waits { wanted.servers as u32 / 2 } else { 0 };
        let mut redis = Redis {
            about: about(target, wanted, wait_for),
            master: format!("{}:{PORT}", hosts[0]),
            wait_for,
            timeout: wanted.timeout,
            servers,
            folder,
        };
        redis.about.version = redis.in_step(target).await?;
        Ok(redis)
    }

    /// Waits until every replica is in step with the master, and tells the version.
    async fn in_step(&mut self, target: TargetName) -> Result<String, TargetError> {
        let begun = Instant::now();
        let replicas = self.servers.len() - 1;
        loop {
            for server in &mut self.servers {
                server.check()?;
            }
            let told = match Connection::open(&self.master).await {
                Ok(mut connection) => connection.information().await.unwrap_or_default(),
                Err(_) => String::new(),
            };
            let in_step = told.matches("state=online").count();
            if !told.is_empty() && in_step == replicas {
                let version = told
                    .lines()
                    .find_map(|line| line.strip_prefix("redis_version:"));
                return Ok(version.unwrap_or("unknown").trim().to_owned());
            }
            if begun.elapsed() > SERVE {
                let why = format!("{in_step} of {replicas} replicas are in step");
                return Err(start_failed(target)(&why));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn about(target: TargetName, wanted: &Wanted, wait_for: u32) -> About {
    let replicas = wanted.servers - 1;
    About {
        target,
        version: String::new(),
        servers: wanted.servers,
        keeps: match wait_for {
            0 => format!(
                "a master and {replicas} replicas; puts and gets at the master, which waits for nobody"
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
        connections: "one for each client, to the master".into(),
    }
}

impl Target for Redis {
    fn about(&self) -> &About {
        &self.about
    }

    fn caller(&self) -> Answer<'_, Box<dyn Caller>, TargetError> {
        Box::pin(async {
            let connection = Connection::open(&self.master).await;
            let connection = connection.map_err(|error| start_failed(self.about.target)(&error))?;
            Ok(Box::new(RedisCaller {
                connection,
                wait_for: self.wait_for,
                timeout: self.timeout,
            }) as Box<dyn Caller>)
        })
    }

    fn processes(&self) -> Vec<u32> {
        self.servers.iter().map(Started::id).collect()
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
    connection: Connection,
    wait_for: u32,
    timeout: Duration,
}

impl RedisCaller {
    async fn write(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        let connection = &mut self.connection;
        connection.ask(&[b"SET", key.as_bytes(), value]);
        if self.wait_for > 0 {
            let replicas = self.wait_for.to_string();
            let patience = self.timeout.as_millis().to_string();
            connection.ask(&[b"WAIT", replicas.as_bytes(), patience.as_bytes()]);
        }
        connection.send().await.map_err(|error| error.to_string())?;
        connection.reply().await?;
        if self.wait_for > 0 {
            match connection.reply().await? {
                Reply::Number(have) if have >= self.wait_for.into() => {}
                other => return Err(format!("not as many replicas have it: {other:?}")),
            }
        }
        Ok(())
    }

    async fn read(&mut self, key: &str) -> Result<Option<Bytes>, String> {
        self.connection.ask(&[b"GET", key.as_bytes()]);
        let sent = self.connection.send().await;
        sent.map_err(|error| error.to_string())?;
        match self.connection.reply().await? {
            Reply::Bytes(value) => Ok(Some(value)),
            Reply::Nothing => Ok(None),
            other => Err(format!("an answer that is no value: {other:?}")),
        }
    }
}

impl Caller for RedisCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, String> {
        Box::pin(async move {
            in_time(self.timeout, self.write(key, &value)).await?;
            Ok(Cost::default())
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), String> {
        Box::pin(async move {
            let value = in_time(self.timeout, self.read(key)).await?;
            Ok((value, Cost::default()))
        })
    }
}
