//! `areo-lab bench`, `nemesis` and `paper`.

use areo::args::{DapWord, DurabilityWord};
use areo_bench::Trouble;
use areo_bench::paper::{Experiment, Scale};
use areo_client::limits;
use areo_client::units::{parse_time, parse_timeout};
use areo_lab::shared::size_up_to;
use areo_sim::measure;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub(crate) enum Bench {
    /// Let real servers fail, and measure the effect on readers and writers
    ///
    /// A domain is on all servers. After some time without failures, f servers are killed at once, and restarted after the same
    /// time. This is repeated with another set of f servers each time. Measured are throughput, latency and the longest time
    /// without a success, with and without failures. Ends with 1 if any operation failed.
    Availability(MeasureAvailability),
    /// Measure the limits of this machine: copy, send, sync and code
    ///
    /// They bound every store: no store sends bytes faster than a socket does. See `docs/benchmarks.md`.
    Limits(MeasureLimits),
    /// Draw a page again, from the `--json` output of `areo-peers`, `areo-lab paper` or `areo-lab bench wide-area`
    Report(DrawReport),
    /// Reconfigure real servers, and measure the cost and the effect on readers and writers
    ///
    /// A domain of N objects is on all servers but one. Every reconfiguration replaces a member by the spare server, and
    /// replication and erasure coding alternate. Measured are throughput, latency and the longest time without a success, with
    /// and without reconfigurations. Then, without other clients: the time per object, with all objects in one domain and with a
    /// domain for each; bytes moved; reads after 100 configurations. Ends with 1 if any operation failed. `docs/bench-json.md`
    /// defines the fields of `--json`.
    Reconfig(MeasureReconfig),
    /// Let servers repair themselves, and measure the speed and the effect on readers and writers
    ///
    /// A domain is on all servers. The second one is away while half of the objects are written anew, and comes back; bits flip
    /// on its disk; its disk is lost, and a server that joins takes its place, by a command that is killed half way and run again. Measured are
    /// speed, beside `cp` of the same bytes, bytes that moved, and latency with repair at the usual rate and without. Ends with 1 if
    /// any operation failed. `docs/bench-json.md` defines the fields of `--json`.
    Repair(MeasureRepair),
    /// Put and get at servers that are far apart, and measure latency in round trips
    ///
    /// Sites A and B are near each other, C is far from both. Five servers are at A, A, B, B and C. Domains are on three of them,
    /// one at each site, and on all five, replicated and erasure-coded. A client at each site puts and gets. Then a client at A
    /// gets objects that a client at B puts at the same time. A proxy between clients and servers delays data by half a round
    /// trip in each direction. Counts of rounds are asserted: ends with 1 if a count is wrong or an operation failed.
    /// `docs/bench-json.md` defines the fields of `--json`.
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
    /// Data fragments of erasure coding: any K of the servers make the value [default: servers - 2, so that f = 1]
    #[arg(long, value_name = "K")]
    pub(crate) k: Option<u8>,
    /// Stop the servers instead of killing them: connections stay open, and no answer comes
    #[arg(long)]
    pub(crate) stop: bool,
    /// Number of failures
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) failures: u32,
    /// Measured time before each failure, and after it
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// What an acknowledgement means; `memory` needs --stop
    #[arg(long, default_value = "fsync")]
    pub(crate) durability: DurabilityWord,
    #[command(flatten)]
    pub(crate) load: Load,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureLimits {
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_timeout)]
    pub(crate) time: Duration,
    /// Number of measurements
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Directory on the measured disk [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct DrawReport {
    /// File with the output of `--json`
    #[arg(value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) file: PathBuf,
    /// File for the page
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureReconfig {
    /// Server processes
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(4..=32))]
    pub(crate) servers: u8,
    /// Reconfigurations while clients read and write
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) reconfigurations: u32,
    /// Measured time without reconfigurations; also the most for the part with a domain per object, and for the 100 configurations
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seconds: u64,
    /// Write the history of operations and reconfigurations under load to this file, for `areo-lab check`
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: Option<PathBuf>,
    /// What an acknowledgement means
    #[arg(long, default_value = "memory")]
    pub(crate) durability: DurabilityWord,
    #[command(flatten)]
    pub(crate) load: Load,
}

#[derive(Args, Debug)]
pub(crate) struct MeasureRepair {
    /// Server processes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(3..=32))]
    pub(crate) servers: u8,
    /// The number of times that a server is away
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// Measured time with repair in each round, at most, and without
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// The number of times that a server is killed while it repairs itself
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) kills: u32,
    /// Bits that flip
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) flips: u64,
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
    /// Percentage of pieces of data that are delayed as by a lost packet: by 200 ms and a round trip, with all that follow on
    /// their connection
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) loss: u8,
    /// Number of puts, and of gets, from each site to each domain
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) operations: u32,
    /// Size of a value, from 16 to 4MiB: larger ones would be put in blocks
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_piece_size)]
    pub(crate) size: usize,
    /// What an acknowledgement means
    #[arg(long, default_value = "memory")]
    pub(crate) durability: DurabilityWord,
    /// Write a page with tables and plots into this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// Directory for the servers' data during the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Paper {
    /// The experiment, such as E7, or `list`
    #[arg(value_name = "EXPERIMENT", value_parser = parse_paper)]
    pub(crate) experiment: PaperWord,
    /// Scale: quick (seconds), default (minutes on two cores), full (as published)
    #[arg(long, value_name = "SCALE", default_value = "default")]
    pub(crate) scale: Scale,
    /// Write all figures to this file as comma-separated values
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page with plots and tables into this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// Round trip to each server, by a proxy [default: that of loopback]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) round_trip: Option<Duration>,
    /// Seed of contents and waits [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Directory for the data of servers and readers during the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

/// The argument of `areo-lab bench paper`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PaperWord {
    /// List the experiments.
    List,
    /// Run this experiment.
    Experiment(&'static Experiment),
    /// One with changes of the servers at the same time.
    Changes(&'static measure::Experiment),
}

fn parse_paper(text: &str) -> Result<PaperWord, String> {
    match text {
        "list" => Ok(PaperWord::List),
        text => match measure::Experiment::find(text) {
            Some(changes) => Ok(PaperWord::Changes(changes)),
            None => Experiment::find(text).map(PaperWord::Experiment),
        },
    }
}

/// Objects, and who reads and writes them.
#[derive(Args, Debug)]
pub(crate) struct Load {
    /// Objects of the domain
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) objects: u64,
    /// Size of each object, from 16 to 16MiB
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_bench_size)]
    pub(crate) size: usize,
    /// Clients that read and write at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) clients: u16,
    /// Seed of keys, kinds of operations and failing servers [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Directory for the servers' data during the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

/// Bytes of an object: the first 16 identify a value.
fn parse_bench_size(text: &str) -> Result<usize, String> {
    size_up_to(16 << 20, text)
}

/// Bytes of an object that is put in one piece: not in blocks.
fn parse_piece_size(text: &str) -> Result<usize, String> {
    size_up_to(limits::DEFAULT_BLOCK_BYTES.into(), text)
}

#[derive(Args, Debug)]
pub(crate) struct Nemesis {
    /// Duration of the trouble, in seconds; every kind happens at least once
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seconds: u64,
    /// Server processes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(3..=32))]
    pub(crate) servers: u8,
    /// Clients that work at the same time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) clients: u16,
    /// Seed of the schedule and of the clients [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write the history to this file, for `areo-lab check` [default: kept only if a promise was broken]
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: Option<PathBuf>,
    /// Kinds of trouble, such as kill,stop,partition [default: all]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) kinds: Vec<Trouble>,
    /// Average pause between two troubles of the same sort
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(crate) pause: Duration,
    /// Directory for the servers' data during the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}
