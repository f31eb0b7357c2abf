//! `areo-lab bench`, `nemesis` and `paper`.

use areo::args::{DapWord, DurabilityWord};
use areo::units::{exact_size, parse_size, parse_time, parse_timeout};
use areo_bench::Trouble;
use areo_bench::generator::Popularity;
use areo_bench::paper::{Experiment, Scale};
use areo_bench::peers::Operation;
use areo_bench::target::{Endpoint, Node, TargetName};
use areo_client::limits;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub(crate) enum Bench {
    /// Let as many real servers fail as may, again and again, and measure what readers and writers notice
    ///
    /// A domain is on all servers. For some time nothing happens; then as many servers as may fail are killed at once, and
    /// after the same time they are started again: every set of servers has its turn. Measured are throughput, latency and
    /// the longest time without a success, with and without failures. Ends with 1 if any operation failed.
    Availability(MeasureAvailability),
    /// Measure what this machine can do at most: copy, send, sync and code
    ///
    /// What a store takes for an operation is set against this: nothing that sends bytes through a socket is faster than
    /// that. `docs/benchmarks.md` does it.
    Limits(MeasureLimits),
    /// Put and get at this store and at others, on this machine, and compare
    ///
    /// Each store runs with as many server processes on loopback, started from programs on the PATH: `etcd`, `redis-server`.
    /// They take turns under the same load. Measured are operations per second, latency, CPU time of clients and of all
    /// servers per operation, bytes on the wire and on disk; the first store is set against each of the others, run by run.
    /// With `--kill`, what clients notice of a member that is killed. Ends with 1 if any operation failed, but for those of
    /// that part. `docs/benchmarks.md` says what the fields of `--json` mean.
    Peers(Box<MeasurePeers>),
    /// Draw a page again, from what `areo-lab bench peers`, `areo-lab paper` or `areo-lab bench wide-area` printed with `--json`
    Report(DrawReport),
    /// Reconfigure real servers again and again, and measure what readers and writers notice and what it costs
    ///
    /// A domain of N objects is on all servers but one; every reconfiguration replaces a member by the server that is left
    /// over, and replication and erasure coding take turns. Measured are throughput, latency and the longest time without
    /// a success, with and without reconfigurations; then, with nobody else at work, the time per object if all are in one
    /// domain and if each has one of its own, bytes moved, and reading after 100 configurations. Ends with 1 if any
    /// operation failed. `docs/benchmarks.md` says what the fields of `--json` mean.
    Reconfig(MeasureReconfig),
    /// Put and get at servers that are far apart, and tell latency in round trips
    ///
    /// Three sites: A and B are near each other, C is far from both. Five servers are at A, A, B, B and C; domains are on three
    /// of them, one at each site, and on all, replicated and erasure-coded. A client at each site puts and gets; then one at A
    /// gets what one at B puts all the time. Data between clients and servers passes a proxy that delays it by half a round
    /// trip each way. Counts of rounds are asserted: ends with 1 if one is another than it is on any machine, or if any
    /// operation failed. `docs/benchmarks.md` says what the fields of `--json` mean.
    WideArea(MeasureWideArea),
}

#[derive(Args, Debug)]
pub(crate) struct MeasureAvailability {
    /// Server processes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(3..=16))]
    pub(crate) servers: u8,
    /// How the domain keeps values
    #[arg(long, default_value = "ec")]
    pub(crate) dap: DapWord,
    /// Fragments that make a value, of erasure coding [default: as many as one failure allows]
    #[arg(long, value_name = "K")]
    pub(crate) k: Option<u8>,
    /// Stop the servers instead of killing them: connections to them stay, and nobody answers
    #[arg(long)]
    pub(crate) stop: bool,
    /// How often servers fail
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) failures: u32,
    /// How long is measured before each failure, and after it
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// What an acknowledgement means; in memory servers can only be stopped
    #[arg(long, default_value = "fsync")]
    pub(crate) durability: DurabilityWord,
    #[command(flatten)]
    pub(crate) load: Load,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureLimits {
    /// How long each measurement is
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_timeout)]
    pub(crate) time: Duration,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Directory on the disk that is measured [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct MeasurePeers {
    /// The stores: areo, etcd, redis, redis-wait, whose puts wait for a majority (WAIT); and of what is there:
    /// s3=http://HOST:PORT/BUCKET, with the credentials of the AWS_* variables, cassandra=HOST:PORT,HOST:PORT,..., asked at QUORUM,
    /// and cassandra-serial=HOST:PORT,..., with lightweight transactions
    #[arg(
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        default_value = "areo,etcd,redis,redis-wait"
    )]
    pub(crate) targets: Vec<TargetWord>,
    /// Sizes of values, from 16 to 64MiB
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "1KiB", value_parser = parse_peers_size)]
    pub(crate) size: Vec<usize>,
    /// Numbers of clients that work at the same time
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,16,64", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) clients: Vec<u16>,
    /// What clients do
    #[arg(
        long,
        value_name = "put,get",
        value_delimiter = ',',
        default_value = "put,get"
    )]
    pub(crate) operations: Vec<Operation>,
    /// Server processes of each store
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) servers: u8,
    /// How Areo keeps values; the others replicate
    #[arg(long, default_value = "abd")]
    pub(crate) dap: DapWord,
    /// Fragments that make a value, of erasure coding [default: as many as one failure allows]
    #[arg(long, value_name = "K")]
    pub(crate) k: Option<u8>,
    /// What an acknowledgement means; the report says what it means to each store
    #[arg(long, default_value = "memory")]
    pub(crate) durability: DurabilityWord,
    /// Objects of each size [default: 1000, or 256MiB of them, but at least 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) objects: Option<u64>,
    /// Which objects are wanted: uniform, or zipf:EXPONENT
    #[arg(long, default_value = "uniform")]
    pub(crate) popularity: Popularity,
    /// Operations in a second of all clients together, however long they take: latency then counts from when each was due
    /// [default: each client begins its next when its last has ended]
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rate: Option<u32>,
    /// Each client waits a random time of at most this between its operations
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "rate", value_parser = parse_time)]
    pub(crate) wait: Duration,
    /// Clients that reconfigure Areo while it is measured, beside the others: replication and erasure coding take turns, on
    /// the same servers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=100))]
    pub(crate) reconfigurers: u16,
    /// Each reconfigurer waits a random time of at most this between its changes
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_time)]
    pub(crate) reconfigure_wait: Duration,
    /// Record what all clients do and see in this file, as `areo-lab check` reads it, each store as a domain; values are made and
    /// looked at byte by byte then, which takes time of the clients
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: Option<PathBuf>,
    /// How long each measurement is
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_timeout)]
    pub(crate) time: Duration,
    /// What is not measured before each
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(crate) warm_up: Duration,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// In the end kill a member of each store (kill -9) under load: the one that leads, where there is one. Half of the
    /// largest number of clients get, the others put; completions per 10 ms are taken down for so long before and after it
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "5s", value_parser = parse_timeout)]
    pub(crate) kill: Option<Duration>,
    /// What everything is drawn from [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write every run into this file, a line each
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page with tables and plots into this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// Directory in which the servers' data is kept for the time of the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

/// A store, and where it is if it runs already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TargetWord {
    /// One that is started here.
    Started(TargetName),
    /// A bucket that is there.
    S3(Endpoint),
    /// A cluster that is there, asked in one of its ways, and the first of its nodes.
    Cassandra(TargetName, Node),
    /// One more node of the cluster before it.
    Node(Node),
}

impl FromStr for TargetWord {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetWord, String> {
        let (name, place) = match text.split_once('=') {
            Some((name, place)) => (name.parse()?, Some(place)),
            None if text.contains(':') => return Node::parse(text).map(TargetWord::Node),
            None => (text.parse()?, None),
        };
        let missing = |how: &str| Err(format!("where it is is missing: write {name}={how}"));
        match (name, place) {
            (TargetName::S3, Some(url)) => Endpoint::parse(url).map(TargetWord::S3),
            (TargetName::S3, None) => missing("http://HOST:PORT/BUCKET"),
            (TargetName::Cassandra | TargetName::CassandraSerial, Some(node)) => {
                Ok(TargetWord::Cassandra(name, Node::parse(node)?))
            }
            (TargetName::Cassandra | TargetName::CassandraSerial, None) => {
                missing("HOST:PORT[,HOST:PORT...]")
            }
            (_, None) => Ok(TargetWord::Started(name)),
            (_, Some(_)) => Err(format!("{name} is started here, and takes no address")),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DrawReport {
    /// What was printed
    #[arg(value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) file: PathBuf,
    /// Where the page goes
    #[arg(long, value_name = "FILE", required_unless_present = "svg", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// Write each plot into a file of its own in this directory; the names begin with that of what was printed
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureReconfig {
    /// Server processes
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(4..=32))]
    pub(crate) servers: u8,
    /// Reconfigurations while clients read and write
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) reconfigurations: u32,
    /// How long is measured without reconfigurations, and at most with one domain per object, and for getting
    /// configurations behind a domain
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seconds: u64,
    /// Keep the history of operations and reconfigurations under load in this file, as `areo-lab check` reads it
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: Option<PathBuf>,
    /// What an acknowledgement means
    #[arg(long, default_value = "memory")]
    pub(crate) durability: DurabilityWord,
    #[command(flatten)]
    pub(crate) load: Load,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureWideArea {
    /// Round trip between A and B
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_timeout)]
    pub(crate) near: Duration,
    /// Round trip from A and B to C
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_timeout)]
    pub(crate) far: Duration,
    /// Of a hundred pieces of data that travel, how many are held up as by a lost packet: for 200 ms and a round trip, with
    /// all that follow on their connection
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) loss: u8,
    /// Puts, and gets, from each site to each domain
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) operations: u32,
    /// Bytes of a value, from 16 to 4MiB: larger ones are put in blocks
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_piece_size)]
    pub(crate) size: usize,
    /// What an acknowledgement means
    #[arg(long, default_value = "memory")]
    pub(crate) durability: DurabilityWord,
    /// Write a page with tables and plots into this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// Directory in which the servers' data is kept for the time of the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Paper {
    /// The experiment, such as E7, or `list`
    #[arg(value_name = "EXPERIMENT", value_parser = parse_paper)]
    pub(crate) experiment: PaperWord,
    /// How large: quick (seconds), default (minutes on two cores), full (as published)
    #[arg(long, value_name = "SCALE", default_value = "default")]
    pub(crate) scale: Scale,
    /// Write all figures to this file, too, as comma-separated values
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page with plots and tables into this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// What contents and waits are drawn from [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Directory in which data of servers and readers is kept for the time of the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

/// What is wanted of the papers' experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PaperWord {
    /// Which there are.
    List,
    /// One of them.
    Experiment(Experiment),
}

fn parse_paper(text: &str) -> Result<PaperWord, String> {
    match text {
        "list" => Ok(PaperWord::List),
        text => text.parse().map(PaperWord::Experiment),
    }
}

/// Objects, and who reads and writes them.
#[derive(Args, Debug)]
pub(crate) struct Load {
    /// Objects of the domain
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) objects: u64,
    /// Bytes of each object, from 16 to 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_bench_size)]
    pub(crate) size: usize,
    /// Clients that read and write at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) clients: u16,
    /// What everything is drawn from: keys, kinds of operations, servers that fail [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Directory in which the servers' data is kept for the time of the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

/// Bytes of an object: values are told from each other by their first 16.
fn parse_bench_size(text: &str) -> Result<usize, String> {
    size_up_to(16 << 20, text)
}

/// The same of stores that are compared.
fn parse_peers_size(text: &str) -> Result<usize, String> {
    size_up_to(64 << 20, text)
}

/// Bytes of an object that is put in one piece: not in blocks.
fn parse_piece_size(text: &str) -> Result<usize, String> {
    size_up_to(limits::DEFAULT_BLOCK_BYTES.into(), text)
}

fn size_up_to(most: u64, text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        bytes if (16..=most).contains(&bytes) => Ok(bytes as usize),
        _ => {
            let most = exact_size(most);
            Err(format!("objects have 16 bytes to {most} here, not {text}"))
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Nemesis {
    /// How long there is trouble, in seconds; every kind has its turn once, however short that is
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seconds: u64,
    /// Server processes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(3..=32))]
    pub(crate) servers: u8,
    /// Clients that work at the same time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) clients: u16,
    /// What schedule and clients are drawn from [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Keep the history in this file, as `areo-lab check` reads it [default: kept only if a promise was broken]
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: Option<PathBuf>,
    /// Kinds of trouble, such as kill,stop,partition [default: all]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) kinds: Vec<Trouble>,
    /// Pause between two troubles of the same sort, on average
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(crate) pause: Duration,
    /// Directory in which the servers' data is kept for the time of the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}
