//! Servers in three sites that are far apart: what puts and gets take, in round trips to the server that completes a quorum.
//!
//! Everything runs on one machine. What goes between clients and servers passes a proxy that lets it arrive later, by half
//! the round trip between their sites; what servers say to each other does not, for no operation waits for it.

mod report;

pub use report::{ByRounds, Point, Report};

use crate::cluster::Program;
use crate::error::{RunError, failed};
use crate::failures::Failures;
use crate::load::{Load, Look, Operation, Plan, Popularity};
use crate::proxy::{Effect, Proxy, Rule};
use crate::setup::{Setup, StartedCluster};
use crate::target::AreoCaller;
use areo_client::{Client, Dap, Domain, DomainOptions, Shape};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

/// The sites, by their numbers.
pub const SITES: [&str; 3] = ["A", "B", "C"];
/// The site of each server.
const SERVERS: [usize; 5] = [0, 0, 1, 1, 2];
/// The group of a client that is nowhere: it makes domains, and measures nothing.
const NOWHERE: usize = SITES.len();
/// The least time after which TCP retransmits a packet whose loss no later packet reveals.
const RETRANSMISSION: Duration = Duration::from_millis(200);
/// Beside two round trips, the time for messages that no operation waits for.
const SETTLE: Duration = Duration::from_millis(50);
/// Gets beside a writer, for each get without one: some meet a version that is not everywhere yet, some do not.
const RACES: u32 = 4;
/// Objects of each client: which server is asked for the value of one is another for each.
const OBJECTS: u64 = 8;
/// The sites of the reader and the writer of the shared objects.
const RACE: (usize, usize) = (0, 1);
/// Number of the set of shared objects. The sets before it belong to the clients at each site.
const RACED: usize = SITES.len();

/// A domain: how it keeps values, and on which servers.
struct Layout {
    name: &'static str,
    dap: Dap,
    servers: &'static [usize],
}

const LAYOUTS: [Layout; 3] = [
    Layout {
        name: "three",
        dap: Dap::Abd,
        servers: &[0, 2, 4],
    },
    Layout {
        name: "five",
        dap: Dap::Abd,
        servers: &[0, 1, 2, 3, 4],
    },
    Layout {
        name: "coded",
        dap: Dap::Ec { k: 3 },
        servers: &[0, 1, 2, 3, 4],
    },
];

/// Options of a measurement.
pub struct Options {
    pub program: Program,
    /// The round trip between the first two sites.
    pub near: Duration,
    /// The round trip from each of them to the third.
    pub far: Duration,
    /// Percentage of pieces of data that are held up as if a packet had been lost.
    pub loss_percent: u8,
    /// Puts, and gets, from each site to each domain.
    pub operations: u32,
    /// Bytes of a value; at least 16.
    pub size: usize,
    /// Servers keep nothing on disk.
    pub memory: bool,
    /// The folder for directories of servers.
    pub data: PathBuf,
    /// The longest time that an operation may take.
    pub timeout: Duration,
    /// The command, for the report.
    pub command: String,
}

impl Options {
    /// Between two sites, there and back.
    fn round_trip(&self, one: usize, other: usize) -> Duration {
        match (one, other) {
            (one, other) if one == other => Duration::ZERO,
            (0 | 1, 0 | 1) => self.near,
            _ => self.far,
        }
    }

    /// Round trip from a site to the farthest server of the nearest quorum of the domain.
    fn to_quorum(&self, site: usize, layout: &Layout) -> Duration {
        let servers = layout.servers.iter();
        let mut trips: Vec<Duration> = servers
            .map(|server| self.round_trip(site, SERVERS[*server]))
            .collect();
        trips.sort_unstable();
        trips[layout.shape().quorum() - 1]
    }
}

impl Layout {
    fn shape(&self) -> Shape {
        let shape = Shape::new(self.dap, self.servers.len());
        shape.expect("the layouts can be")
    }

    fn options(&self, names: &[String]) -> DomainOptions {
        let servers = self.servers.iter();
        DomainOptions {
            dap: self.dap,
            servers: servers.map(|server| names[*server].clone()).collect(),
            ..DomainOptions::default()
        }
    }
}

/// Starts the servers and measures; `observe` gets the number of parts so far, and of all parts. Dropping the future
/// ends the processes and removes their files.
///
/// # Errors
/// [`RunError`]: nothing is known then. Operations that failed are no error, but in the [`Report`].
pub async fn run(options: Options, observe: impl Fn(usize, usize)) -> Result<Report, RunError> {
    LocalSet::new().run_until(all(options, observe)).await
}

async fn all(options: Options, observe: impl Fn(usize, usize)) -> Result<Report, RunError> {
    let options = Rc::new(options);
    let (proxy, started) = start(&options).await?;
    for layout in &LAYOUTS {
        let made = started
            .client
            .create_domain(layout.name, layout.options(&started.servers));
        made.await.map_err(failed("make the domain"))?;
    }
    take_apart(&proxy, &options);
    let mut clients = Vec::new();
    for site in 0..SITES.len() {
        proxy.newcomers_are_at(site);
        let client = Client::connect(started.connect.clone()).await;
        clients.push(client.map_err(failed("connect a client"))?);
    }
    let mut report = Report::new(&options);
    for (done, layout) in LAYOUTS.iter().enumerate() {
        observe(2 * done, 2 * LAYOUTS.len());
        let mut seats = Vec::new();
        for (site, client) in clients.iter().enumerate() {
            seats.push(Seat::find(client, layout, site).await?);
        }
        quiet(&mut report, &options, layout, &seats).await;
        observe(2 * done + 1, 2 * LAYOUTS.len());
        race(&mut report, &options, layout, &seats).await;
    }
    Ok(report)
}

/// Servers behind a proxy; nothing is far as yet.
async fn start(options: &Options) -> Result<(Proxy, StartedCluster), RunError> {
    let setup = Setup {
        program: options.program.clone(),
        servers: SERVERS.len(),
        objects: 0,
        size: options.size,
        clients: 0,
        seed: 0,
        memory: options.memory,
        data: options.data.clone(),
        timeout: options.timeout,
    };
    setup.start_behind_proxy(Some(NOWHERE)).await
}

/// Takes the sites apart from now on.
fn take_apart(proxy: &Proxy, options: &Options) {
    for site in 0..SITES.len() {
        for (server, at) in SERVERS.iter().enumerate() {
            let link = |effect| Rule {
                servers: 1 << server,
                callers: 1 << site,
                direction: None,
                effect,
            };
            let trip = options.round_trip(site, *at);
            if trip.is_zero() {
                continue;
            }
            proxy.apply(link(Effect::Latency(trip / 2)));
            if let Some(one_in) = 100_u64.checked_div(options.loss_percent.into()) {
                let time = RETRANSMISSION + trip;
                proxy.apply(link(Effect::Stall { one_in, time }));
            }
        }
    }
}

/// A client of a domain, at a site.
#[derive(Clone)]
struct Seat {
    site: usize,
    domain: Domain,
}

/// The operation of a client, and its number; `None`: until it is stopped.
type Work = (Operation, Option<u64>);

impl Seat {
    async fn find(client: &Client, layout: &Layout, site: usize) -> Result<Seat, RunError> {
        let domain = client.domain(layout.name).await;
        let domain = domain.map_err(failed("find the domain"))?;
        Ok(Seat { site, domain })
    }

    /// One operation after the other on the objects of this number.
    fn load(&self, options: &Options, objects: usize, (operation, operations): Work) -> Load {
        let count = |wanted| usize::from(operation == wanted);
        let plan = Plan {
            readers: count(Operation::Get),
            writers: count(Operation::Put),
            objects: OBJECTS,
            first_object: objects as u64 * OBJECTS,
            popularity: Popularity::InTurn,
            size: options.size,
            look: Look::Bytes,
            operations,
            keeps_samples: true,
            ..Plan::default()
        };
        Load::of(vec![Box::new(AreoCaller::of(&self.domain))], &plan, None)
    }

    /// Runs unmeasured operations: connections are made, and written versions arrive everywhere. Returns the
    /// failures.
    async fn settle(&self, options: &Options, objects: usize) -> Failures {
        let all = (Operation::Put, Some(OBJECTS));
        let ended = self.load(options, objects, all).finish().await;
        let held_up = RETRANSMISSION * u32::from(options.loss_percent > 0);
        sleep(2 * options.far + held_up + SETTLE).await;
        ended.failures
    }
}

/// Puts and then gets, from all sites at once, of an object each: no client gets an object while another puts it.
async fn quiet(report: &mut Report, options: &Rc<Options>, layout: &Layout, seats: &[Seat]) {
    for operation in [Operation::Put, Operation::Get] {
        let mut workers = JoinSet::new();
        for seat in seats.iter().cloned() {
            let options = options.clone();
            workers.spawn_local(async move {
                let failures = seat.settle(&options, seat.site).await;
                let work = (operation, Some(options.operations.into()));
                let mut ended = seat.load(&options, seat.site, work).finish().await;
                ended.failures.merge(failures);
                (seat.site, ended)
            });
        }
        let mut by_site = BTreeMap::new();
        while let Some(ended) = workers.join_next().await {
            let (site, ended) = ended.expect("clients do not panic");
            by_site.insert(site, ended);
        }
        for (site, ended) in by_site {
            let trip = options.to_quorum(site, layout);
            report.add(layout, (site, None, operation), trip, ended);
        }
    }
}

/// Gets of objects that are put at another site all the time.
async fn race(report: &mut Report, options: &Options, layout: &Layout, seats: &[Seat]) {
    let (reader, writer) = (&seats[RACE.0], &seats[RACE.1]);
    report.failed_with(writer.settle(options, RACED).await);
    let puts = writer.load(options, RACED, (Operation::Put, None));
    let enough = u64::from(RACES * options.operations);
    let gets = reader.load(options, RACED, (Operation::Get, Some(enough)));
    let got = gets.finish().await;
    report.failed_with(puts.stop().await.failures);
    let who = (reader.site, Some(writer.site), Operation::Get);
    report.add(layout, who, options.to_quorum(reader.site, layout), got);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_quorum_is_as_far_as_its_farthest_member() {
        let options = Options {
            program: Program::new(|| unreachable!("nothing is started")),
            near: Duration::from_millis(20),
            far: Duration::from_millis(200),
            loss_percent: 0,
            operations: 1,
            size: 16,
            memory: true,
            data: PathBuf::new(),
            timeout: Duration::from_secs(1),
            command: String::new(),
        };
        let trips = |layout: &Layout| {
            let of = |site| options.to_quorum(site, layout).as_millis();
            [of(0), of(1), of(2)]
        };
        let [three, five, coded] = LAYOUTS;
        assert_eq!((three.shape().quorum(), trips(&three)), (2, [20, 20, 200]));
        assert_eq!((five.shape().quorum(), trips(&five)), (3, [20, 20, 200]));
        assert_eq!((coded.shape().quorum(), trips(&coded)), (4, [20, 20, 200]));
    }
}
