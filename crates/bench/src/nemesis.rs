//! Doing troubles to a cluster, lane by lane, until the time is over.

mod changes;
mod clocks;
mod key_load;
mod trust;

pub(crate) use changes::{Reconfigurers, changes, finish as finish_changes};
pub(crate) use clocks::clocks;
pub(crate) use key_load::KeyRecord;
pub use key_load::KeyRequests;
pub(crate) use trust::{begin_witness, finish_keys, own_domain, trust};

use crate::clock::WallClock;
use crate::cluster::Cluster;
use crate::disk::SmallDisk;
use crate::error::RunError;
use crate::failures::Failures;
use crate::load::History;
use crate::namespace::{Namespaces, Way};
use crate::proxy::{Direction, Effect, Proxy, Rule};
use crate::random::Random;
use crate::trouble::{Schedule, Trouble};
use areo_client::{Domain, Error, Refusal, Response};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Time in which a server must stop: it drains for 5 s at most.
pub(crate) const STOP: Duration = Duration::from_secs(20);
/// Wait of the next trouble for a started server, which others may be unable to reach.
const READY: Duration = Duration::from_secs(5);
/// Wait for a server to report its full disk.
const FILL: Duration = Duration::from_secs(45);
/// Pauses after a full disk. Its server takes no writes for seconds, and with one server fewer every other trouble leaves
/// no quorum: more often, and little would ever succeed.
const DISK_PAUSES: usize = 20;
/// A value that is written meanwhile, to use up the room that the server has set aside.
const BALLAST: Bytes = Bytes::from_static(&[7; 4 << 20]);
/// The longest time for which a change of keys, CAs or clocks is tried again: other troubles may leave no quorum for a while.
const TRY: Duration = Duration::from_mins(2);
/// Pause between two attempts.
const AGAIN: Duration = Duration::from_millis(50);
/// Lines of a log that are shown of a server that ended by itself.
const SHOWN_LINES: usize = 8;

/// Counts of the troubles that happened, and the violations that they showed.
#[derive(Default)]
pub(crate) struct Incidents {
    /// Number of times that each trouble happened.
    fired: RefCell<BTreeMap<Trouble, u64>>,
    kills: Cell<u64>,
    violations: RefCell<Failures>,
}

impl Incidents {
    pub(crate) fn fired(&self, trouble: Trouble) {
        *self.fired.borrow_mut().entry(trouble).or_default() += 1;
    }

    /// Number of times that a trouble happened.
    pub(crate) fn count(&self, trouble: Trouble) -> u64 {
        self.fired.borrow().get(&trouble).copied().unwrap_or(0)
    }

    /// Counts servers that were ended by kill -9.
    pub(crate) fn killed(&self, servers: u64) {
        self.kills.set(self.kills.get() + servers);
    }

    pub(crate) fn kills(&self) -> u64 {
        self.kills.get()
    }

    /// A promise was broken.
    pub(crate) fn violation(&self, sentence: String) {
        self.violations.borrow_mut().add(sentence);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.borrow().first.clone()
    }
}

/// The parts of a run that troubles act on, except the processes.
pub(crate) struct World {
    pub(crate) incidents: Incidents,
    /// The history that reconfigurations are recorded in.
    pub(crate) history: History,
    pub(crate) proxy: Proxy,
    pub(crate) servers: usize,
    /// Time after which no new trouble begins.
    pub(crate) until: Instant,
    /// Between two troubles of a lane, on average.
    pub(crate) pause: Duration,
    pub(crate) disk: Option<Disk>,
    pub(crate) namespaces: Option<Namespaces>,
    /// The clock of all servers.
    pub(crate) clock: Option<WallClock>,
    /// Addresses of the admin ports of all servers.
    pub(crate) admins: Vec<String>,
    /// Requests of keys other than the administrator's.
    pub(crate) keys: Rc<KeyRecord>,
}

/// The small disk of the last server.
pub(crate) struct Disk {
    pub(crate) small: SmallDisk,
    /// A domain that only this server holds.
    pub(crate) domain: Domain,
}

impl World {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    async fn pause(&self, random: &mut Random) {
        let most = 2 * self.pause.as_millis() as u64;
        sleep(random.millis(0..most.max(1))).await;
    }
}

/// Kills, stops and restarts servers; notices those that end by themselves, also when it has nothing else to do.
pub(crate) async fn processes(
    world: &World,
    cluster: &mut Cluster,
    mut schedule: Schedule,
) -> Result<(), RunError> {
    loop {
        notice_deaths(world, cluster)?;
        match schedule.next(world.is_over()) {
            Some(trouble) => trouble_process(world, cluster, trouble, &mut schedule.random).await?,
            None if world.is_over() => return Ok(()),
            None => {}
        }
        world.pause(&mut schedule.random).await;
    }
}

/// Reports servers that ended by themselves, and starts them again.
pub(crate) fn notice_deaths(world: &World, cluster: &mut Cluster) -> Result<(), RunError> {
    while let Some((server, status)) = cluster.ended() {
        let (name, end) = (cluster.name(server), last_lines(&cluster.log(server)));
        world.incidents.violation(format!(
            "{name} ended by itself ({status}); its log ends with: {end}"
        ));
        cluster.start(server)?;
    }
    Ok(())
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join(" | ")
}

async fn trouble_process(
    world: &World,
    cluster: &mut Cluster,
    trouble: Trouble,
    random: &mut Random,
) -> Result<(), RunError> {
    let victim = random.index(world.servers);
    match trouble {
        Trouble::Kill => {
            if cluster.kill(victim).await {
                world.incidents.fired(trouble);
                world.incidents.killed(1);
            }
            sleep(random.millis(0..300)).await;
            start(cluster, victim).await?;
        }
        Trouble::KillAll => {
            let mut killed = 0;
            for server in 0..world.servers {
                killed += u64::from(cluster.kill(server).await);
            }
            world.incidents.killed(killed);
            if killed == world.servers as u64 {
                world.incidents.fired(trouble);
            }
            sleep(random.millis(0..300)).await;
            cluster.start_all()?;
            for server in 0..world.servers {
                start(cluster, server).await?;
            }
        }
        Trouble::Restart => {
            let ended = cluster.terminate(victim, STOP).await;
            check_stopped(&world.incidents, cluster.name(victim), ended);
            world.incidents.fired(trouble);
            start(cluster, victim).await?;
        }
        Trouble::Stop => {
            if cluster.stop(victim) {
                world.incidents.fired(trouble);
            }
            sleep(random.millis(200..2_000)).await;
            cluster.resume(victim);
        }
        other => unreachable!("{other} is not of this lane"),
    }
    Ok(())
}

/// A server that gets the signal to stop ends with exit code 0.
pub(crate) fn check_stopped(incidents: &Incidents, name: &str, ended: Option<ExitStatus>) {
    match ended {
        Some(status) if status.success() => {}
        Some(status) => incidents.violation(format!("{name} did not stop cleanly: {status}")),
        None => incidents.violation(format!("{name} did not stop within {} s", STOP.as_secs())),
    }
}

async fn start(cluster: &mut Cluster, server: usize) -> Result<(), RunError> {
    cluster.start(server)?;
    // One that does not come up in time goes on trying; that it ends is noticed.
    let _ = cluster.ready(server, READY).await;
    Ok(())
}

/// Runs the troubles of links, through the proxy.
pub(crate) async fn links(world: &World, mut schedule: Schedule) {
    while let Some(trouble) = schedule.next(world.is_over()) {
        let random = &mut schedule.random;
        // Some callers may have nothing to say just then; all of them together always have.
        for callers in [Some(random.next()), None] {
            let rule = link_rule(trouble, world.servers, callers.unwrap_or(u64::MAX), random);
            let active = world.proxy.apply(rule);
            sleep(random.millis(200..1_200)).await;
            world.proxy.lift(&active);
            if active.touched() > 0 {
                world.incidents.fired(trouble);
                break;
            }
        }
        world.pause(random).await;
    }
}

fn link_rule(trouble: Trouble, servers: usize, callers: u64, random: &mut Random) -> Rule {
    let f = (servers - 1) / 2;
    let any = 1 + random.index(servers);
    let few = 1 + random.index(f.max(1));
    let (count, callers, effect) = match trouble {
        Trouble::Cut => (any, callers, Effect::Close),
        Trouble::OneWay => (any, callers, Effect::Hold),
        Trouble::Partition => (few, u64::MAX, Effect::Hold),
        Trouble::Majority => (servers - f, u64::MAX, Effect::Hold),
        Trouble::Delay => (any, callers, Effect::Delay(random.millis(2..60))),
        Trouble::Slow => (any, callers, Effect::Slow((20 + random.below(500)) << 10)),
        Trouble::Reset => (any, callers, Effect::Reset),
        other => unreachable!("{other} is not of this lane"),
    };
    let ways = [Direction::ToServer, Direction::ToCaller];
    let way = ways[random.index(2)];
    Rule {
        servers: random.subset(count, servers),
        callers,
        direction: [Trouble::OneWay, Trouble::Reset]
            .contains(&trouble)
            .then_some(way),
        effect,
    }
}

/// Drops packets of servers that have network namespaces of their own.
pub(crate) async fn packets(world: &World, mut schedule: Schedule) -> Result<(), String> {
    let Some(namespaces) = &world.namespaces else {
        return Ok(());
    };
    while let Some(trouble) = schedule.next(world.is_over()) {
        let random = &mut schedule.random;
        let server = random.index(world.servers);
        let ways = [&[Way::In][..], &[Way::Out], &[Way::In, Way::Out]][random.index(3)];
        let percent = match trouble {
            Trouble::Silence => 100,
            _ => 5 + random.below(40),
        };
        for way in ways {
            namespaces.drop_packets(server, *way, percent).await?;
        }
        sleep(random.millis(300..1_500)).await;
        if namespaces.mend(server).await? > 0 {
            world.incidents.fired(trouble);
        }
        world.pause(random).await;
    }
    Ok(())
}

/// Fills the small disk until its server says so, and gives the room back.
pub(crate) async fn disk(world: &World, mut schedule: Schedule) -> io::Result<()> {
    let Some(disk) = &world.disk else {
        return Ok(());
    };
    while let Some(trouble) = schedule.next(world.is_over()) {
        disk.small.fill()?;
        let begun = Instant::now();
        while begun.elapsed() < FILL {
            if says_full(&disk.domain).await {
                world.incidents.fired(trouble);
                break;
            }
        }
        sleep(schedule.random.millis(200..1_000)).await;
        disk.small.free()?;
        for _ in 0..DISK_PAUSES {
            world.pause(&mut schedule.random).await;
        }
    }
    Ok(())
}

/// True if the server of this domain refuses a write because its disk is full.
async fn says_full(domain: &Domain) -> bool {
    let full = Response::Refused(Refusal::Full);
    match domain.put("ballast", BALLAST).await {
        Err(Error::Unavailable { call } | Error::Unknown { call }) => {
            call.servers.iter().any(|server| server.response == full)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
