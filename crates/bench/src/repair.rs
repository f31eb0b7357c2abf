//! Measuring how servers repair themselves: one that was away while half of the objects were written anew, one whose disk rots, and one
//! that is lost and replaced; beside `cp` of the same bytes, and with clients that read and write.

mod kills;
mod rot;

use crate::cluster::{Cluster, Program};
use crate::error::{RunError, failed, system};
use crate::load::{AnyCaller, FILLERS, Load, Phase, PhaseReport, fill_by};
use crate::setup::{SERVE, Setup, StartedCluster};
use crate::target::AreoCaller;
use crate::target::connected;
pub use kills::Killed;

use areo_client::{Dap, Domain, DomainOptions, Shape};
use serde::Serialize;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::task::{LocalSet, spawn_blocking};
use tokio::time::sleep;

/// The domain that is repaired.
const DOMAIN: &str = "repaired";
/// The member that is away, rots, and is lost.
const MEMBER: usize = 1;
/// The interval at which a server is looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// A rate without a bound.
const UNBOUNDED: &str = "100GiB";
/// Verified in a second, at most: a piece of it is read without a pause.
const VERIFIED: &str = "2GiB";

/// Options of a measurement.
pub struct Options {
    /// Servers, all of them members of the domain, objects and clients; with durability.
    pub setup: Setup,
    /// The number of times that the member is away.
    pub rounds: u32,
    /// The time that readers and writers are measured in each round with repair, and without.
    pub time: Duration,
    /// The number of times that the member is killed while it repairs itself.
    pub kills: u32,
    /// Bits that flip on the member's disk.
    pub flips: u64,
}

/// A measurement. The names of the fields are those of `--json`, and stay.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    /// The shape of the domain, such as `ec [5,3]`.
    pub shape: String,
    /// Objects of the domain.
    pub objects: u64,
    /// Bytes of each object.
    pub size: usize,
    /// Clients that read and wrote.
    pub clients: usize,
    /// Each time that the member was away.
    pub rounds: Vec<Round>,
    /// It was killed while it repaired itself.
    pub killed: Killed,
    /// Rounds in which the member was away.
    pub without: PhaseReport,
    /// A kill of the member while it repaired itself.
    pub with: PhaseReport,
    /// p99 of reads: with repair divided by without.
    pub read_p99_ratio: f64,
    /// The ratio of the p99 of writes.
    pub write_p99_ratio: f64,
    /// Verification of the member's records.
    pub verified: Copied,
    /// Rot of the member's disk.
    pub rot: Rot,
    /// Loss and replacement of the member.
    pub replaced: Replaced,
    /// Objects that are not at all servers after that.
    pub not_full: u64,
    /// Operations of clients that failed, or read a value that was never written.
    pub failed: u64,
    /// The first of them, in sentences.
    pub failures: Vec<String>,
    /// The time that everything took, in milliseconds.
    pub total_ms: u64,
}

/// An amount of bytes, with the time to move them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Copied {
    pub bytes: f64,
    pub seconds: f64,
}

/// A member that was away while half of the objects were written anew.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Round {
    /// Bytes of the elements that it lacked.
    pub share_bytes: f64,
    /// Bytes that came to it until it lacked nothing.
    pub received_bytes: f64,
    /// Its duration from the start of serving on, in seconds: without a bound of the rate, and without clients.
    pub seconds: f64,
    /// `cp` and `sync` of its directory.
    pub cp: Copied,
}

/// A disk on which bits flipped.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rot {
    /// Bits that flipped, each in an element's record, needed or not.
    pub flips: u64,
    /// Elements that were found damaged.
    pub found: f64,
    /// Time from the start of the server until nothing is damaged or lacking and all records are verified, in
    /// seconds.
    pub seconds: f64,
}

/// A member that was lost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replaced {
    /// Objects that were at the new member when the first command was killed.
    pub moved_before: f64,
    /// Time from the first command to the end of the second one under load, in seconds.
    pub seconds: f64,
    /// Bytes that came to the new member, writes of clients included.
    pub received_bytes: f64,
    /// Bytes of its elements.
    pub share_bytes: f64,
}

impl Copied {
    /// Throughput in bytes per second.
    pub fn speed(self) -> f64 {
        self.bytes / self.seconds
    }
}

/// Starts a cluster and measures; `observe` gets the name of the next step. Dropping the future ends the processes
/// and removes their files.
///
/// # Errors
/// [`RunError`]: nothing is known then; also if a server does not come to hold what it should. Operations of clients that failed are no
/// error, but in the [`Report`].
pub async fn run(options: Options, observe: impl Fn(&str)) -> Result<Report, RunError> {
    LocalSet::new().run_until(all(&options, observe)).await
}

async fn all(options: &Options, observe: impl Fn(&str)) -> Result<Report, RunError> {
    let begun = Instant::now();
    let setup = &options.setup;
    assert!(!setup.memory, "a server in memory does not come back");
    let dap = Dap::Ec {
        k: Shape::default_k(setup.servers),
    };
    let shape = Shape::new(dap, setup.servers).map_err(failed("make the domain"))?;
    observe("objects are written");
    let mut started = setup.start().await?;
    let domain = DomainOptions {
        dap,
        servers: started.servers.clone(),
        ..DomainOptions::default()
    };
    let content = (setup.size, setup.objects);
    let domain = started.domain(DOMAIN, domain, content, None).await?;
    let trial = Trial {
        options,
        domain,
        element_bytes: setup.size as f64 / f64::from(dap.k()),
    };
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        observe(&format!("away, {round} of {}", options.rounds));
        rounds.push(trial.away(&mut started.cluster).await?);
    }
    observe("kills");
    let killed = trial.kill_often(&mut started.cluster).await?;
    observe("verification");
    let verified = trial.verify(&mut started.cluster).await?;
    observe("rot");
    let rot = trial.rot(&mut started.cluster).await?;

    let clients = started.callers(DOMAIN, setup.clients).await?;
    let load = Load::of(clients, &setup.plan(), None);
    sleep(setup.plan().warm_up).await;
    for round in 1..=options.rounds {
        observe(&format!("clients, {round} of {}", options.rounds));
        trial.disturb(&mut started.cluster, &load).await?;
    }
    observe("replacement");
    let replaced = trial.replace(&mut started.cluster).await?;
    let ended = load.stop().await;
    let not_full = left(&started).await?;
    let (without, with) = (ended.still.fared(), ended.disturbed.fared());
    Ok(Report {
        seed: setup.seed,
        shape: shape.to_string(),
        objects: setup.objects,
        size: setup.size,
        clients: setup.clients,
        rounds,
        killed,
        read_p99_ratio: with.read.p99_us / without.read.p99_us,
        write_p99_ratio: with.write.p99_us / without.write.p99_us,
        without,
        with,
        verified,
        rot,
        replaced,
        not_full,
        failed: ended.failures.count,
        failures: ended.failures.first,
        total_ms: begun.elapsed().as_millis() as u64,
    })
}

/// The number of objects that are not at all servers in the end. The last writes may have come to a quorum only, and are brought to the others;
/// servers that were busy may be late.
async fn left(started: &StartedCluster) -> Result<u64, RunError> {
    // A client that connects now knows the new member.
    let (_client, domain) = connected(&started.connect, DOMAIN).await?;
    let begun = Instant::now();
    loop {
        let looked = domain.repair(|_| {}).await;
        let is_late = begun.elapsed() > SERVE;
        match looked.map(|looked| looked.below()) {
            Ok(below) if below == 0 || is_late => return Ok(below),
            Err(error) if is_late => return Err(failed("look at the objects")(error)),
            // Servers write what clients have written in the last seconds.
            Ok(_) | Err(_) => sleep(Duration::from_secs(1)).await,
        }
    }
}

/// The state that all parts need.
struct Trial<'a> {
    options: &'a Options,
    domain: Domain,
    /// Bytes of one element.
    element_bytes: f64,
}

impl Trial<'_> {
    /// Half of the objects are written anew without the member.
    async fn overwrite_half(&self, cluster: &mut Cluster) -> Result<(), RunError> {
        cluster.kill(MEMBER).await;
        let setup = &self.options.setup;
        let fillers = (0..FILLERS).map(|_| Box::new(AreoCaller::of(&self.domain)) as AnyCaller);
        let half = (setup.size, setup.objects / 2);
        fill_by(fillers.collect(), half, None).await
    }

    /// Bytes of the member's elements of half of the objects.
    fn half_share(&self) -> f64 {
        (self.options.setup.objects / 2) as f64 * self.element_bytes
    }

    async fn away(&self, cluster: &mut Cluster) -> Result<Round, RunError> {
        self.overwrite_half(cluster).await?;
        let cp = copy(&cluster.data(MEMBER), cluster.folder()).await?;
        serve(cluster, &["--repair-rate", UNBOUNDED]).await?;
        let begun = Instant::now();
        until_whole(cluster, MEMBER).await?;
        Ok(Round {
            share_bytes: self.half_share(),
            received_bytes: metric(cluster, MEMBER, RECEIVED).await?,
            seconds: begun.elapsed().as_secs_f64(),
            cp,
        })
    }

    /// Readers and writers: for a while without repair, and for as long with repair at the usual rate.
    async fn disturb(&self, cluster: &mut Cluster, load: &Load) -> Result<(), RunError> {
        let time = self.options.time;
        self.overwrite_half(cluster).await?;
        for (phase, rate) in [
            (Phase::Still, &["--repair-rate", "0"][..]),
            (Phase::Disturbed, &[]),
        ] {
            cluster.kill(MEMBER).await;
            serve(cluster, rate).await?;
            // That is when it begins.
            sleep(Duration::from_secs(1)).await;
            load.enter(phase);
            let begun = Instant::now();
            while begun.elapsed() < time
                && !(phase == Phase::Disturbed && is_whole(cluster).await?)
            {
                sleep(GLANCE).await;
            }
            load.enter(Phase::Unmeasured);
        }
        until_whole(cluster, MEMBER).await?;
        Ok(())
    }

    async fn verify(&self, cluster: &mut Cluster) -> Result<Copied, RunError> {
        cluster.kill(MEMBER).await;
        // From the first record on.
        let _ = std::fs::remove_file(cluster.data(MEMBER).join("SCRUB"));
        serve(cluster, &["--scrub-rate", VERIFIED, "--repair-rate", "0"]).await?;
        let begun = Instant::now();
        until(cluster, MEMBER, ALL_VERIFIED).await?;
        Ok(Copied {
            bytes: metric(cluster, MEMBER, "areo_store_scrubbed_bytes_total").await?,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    async fn rot(&self, cluster: &mut Cluster) -> Result<Rot, RunError> {
        let (data, flips) = (cluster.data(MEMBER), self.options.flips);
        let seed = self.options.setup.seed;
        cluster.terminate(MEMBER, SERVE).await;
        let _ = std::fs::remove_file(data.join("SCRUB"));
        let flipped = spawn_blocking(move || rot::flip(&data, flips, seed)).await;
        let flipped = flipped.expect("flipping does not panic");
        flipped.map_err(system("flip bits"))?;
        let begun = Instant::now();
        serve(
            cluster,
            &["--scrub-rate", VERIFIED, "--repair-rate", UNBOUNDED],
        )
        .await?;
        until(cluster, MEMBER, ALL_VERIFIED).await?;
        until(cluster, MEMBER, NONE_DAMAGED).await?;
        until_whole(cluster, MEMBER).await?;
        Ok(Rot {
            flips,
            found: metric(cluster, MEMBER, "areo_store_repaired_objects_total").await?,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    /// The member's disk is lost; the command that replaces it is killed half way, and run again.
    async fn replace(&self, cluster: &mut Cluster) -> Result<Replaced, RunError> {
        let spare = cluster.join()?;
        if !cluster.ready(spare, SERVE).await {
            return Err(failed("start a server that joins")(
                "it does not serve in time",
            ));
        }
        cluster.kill(MEMBER).await;
        let removed = std::fs::remove_dir_all(cluster.data(MEMBER));
        removed.map_err(system("remove the directory of a server"))?;
        let before = metric(cluster, spare, RECEIVED).await?;
        let addresses = cluster.addresses().join(",");
        let name = cluster.name(MEMBER).to_owned();
        let folder = cluster.folder().to_owned();
        let command = |program: &Program| {
            let mut command = (program.server)();
            command.args(["--cluster", &addresses, "--config", "", "--json"]);
            command.args(["server", "replace", &name, "--yes"]);
            // What it remembers goes with the folder.
            command
                .env("XDG_STATE_HOME", &folder)
                .env("XDG_CACHE_HOME", &folder);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            command
        };
        let begun = Instant::now();
        let mut first = command(&self.options.setup.program).spawn();
        let first = first.as_mut().map_err(|error| not_run(error))?;
        let mut moved_before = 0.0;
        while moved_before < (self.options.setup.objects / 2) as f64
            && first.try_wait().map_err(|error| not_run(&error))?.is_none()
        {
            moved_before = metric(cluster, spare, "areo_store_objects").await?;
        }
        // It may have ended.
        let _ = first.kill();
        first.wait().map_err(|error| not_run(&error))?;
        let mut second = command(&self.options.setup.program);
        let ended = spawn_blocking(move || second.output()).await;
        let ended = ended.expect("waiting does not panic");
        let ended = ended.map_err(|error| not_run(&error))?;
        if !ended.status.success() {
            let error = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Err(failed("replace the server")(error));
        }
        let seconds = begun.elapsed().as_secs_f64();
        until_whole(cluster, spare).await?;
        Ok(Replaced {
            moved_before,
            seconds,
            received_bytes: metric(cluster, spare, RECEIVED).await? - before,
            share_bytes: self.options.setup.objects as f64 * self.element_bytes,
        })
    }
}

fn not_run(error: &std::io::Error) -> RunError {
    failed("run `areo server replace`")(error)
}

/// Starts the member, and waits until it serves.
async fn serve(cluster: &mut Cluster, options: &[&str]) -> Result<(), RunError> {
    cluster.start_with(MEMBER, options)?;
    match cluster.ready(MEMBER, SERVE).await {
        true => Ok(()),
        false => Err(failed("start a server again")("it does not serve in time")),
    }
}

async fn metric(cluster: &Cluster, server: usize, series: &str) -> Result<f64, RunError> {
    let begun = Instant::now();
    loop {
        // A busy server may be late.
        if let Some(value) = cluster.metric(server, series).await {
            return Ok(value);
        }
        if begun.elapsed() > SERVE {
            let what = format!("look at {series} of {}", cluster.name(server));
            return Err(failed(what)("it does not answer in time"));
        }
        sleep(GLANCE).await;
    }
}

/// Waits until a metric is as wanted, however long that takes.
async fn until(
    cluster: &Cluster,
    server: usize,
    (series, is_it): (&str, fn(f64) -> bool),
) -> Result<(), RunError> {
    while !is_it(metric(cluster, server, series).await?) {
        sleep(GLANCE).await;
    }
    Ok(())
}

const ALL_VERIFIED: (&str, fn(f64) -> bool) =
    ("areo_store_oldest_unscrubbed_seconds", |age| age >= 0.0);
const NONE_DAMAGED: (&str, fn(f64) -> bool) = ("areo_store_damaged_objects", |count| count < 1.0);
const PROVEN: (&str, fn(f64) -> bool) = ("areo_repair_proven_seconds", |age| age >= 0.0);
const NONE_LACKING: (&str, fn(f64) -> bool) = ("areo_repair_lacking_objects", |count| count < 1.0);
const RECEIVED: &str = "areo_server_received_bytes_total";

async fn is_whole(cluster: &Cluster) -> Result<bool, RunError> {
    let proven = metric(cluster, MEMBER, PROVEN.0).await?;
    let lacking = metric(cluster, MEMBER, NONE_LACKING.0).await?;
    Ok(PROVEN.1(proven) && NONE_LACKING.1(lacking))
}

/// Waits until the server has gone over all objects, and lacks none.
async fn until_whole(cluster: &Cluster, server: usize) -> Result<(), RunError> {
    until(cluster, server, PROVEN).await?;
    until(cluster, server, NONE_LACKING).await
}

/// `cp` and `sync` of a server's log, which does not run.
async fn copy(data: &Path, folder: &Path) -> Result<Copied, RunError> {
    let (from, to) = (data.join("log"), folder.join("copy"));
    let copied = spawn_blocking(move || {
        std::fs::create_dir(&to)?;
        let begun = Instant::now();
        let mut bytes = 0;
        for entry in std::fs::read_dir(&from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            bytes += std::fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        std::fs::remove_dir_all(&to)?;
        std::io::Result::Ok(Copied {
            bytes: bytes as f64,
            seconds,
        })
    });
    let copied = copied.await.expect("copying does not panic");
    copied.map_err(system("copy the directory of a server"))
}
