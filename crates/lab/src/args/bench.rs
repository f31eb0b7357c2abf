//! `areo-lab bench`, `nemesis` and `paper`.

use areo::args::{DapWord, DurabilityWord};
use areo::units::{parse_time, parse_timeout};
use areo_bench::Trouble;
use areo_bench::paper::{Experiment, Scale};
use areo_client::limits;
use areo_lab::shared::size_up_to;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
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
    /// that: `docs/benchmarks.md`.
    Limits(MeasureLimits),
    /// Draw a page again, from what `areo-peers`, `areo-lab paper` or `areo-lab bench wide-area` printed with `--json`
    Report(DrawReport),
    /// Reconfigure real servers again and again, and measure what readers and writers notice and what it costs
    ///
    /// A domain of N objects is on all servers but one; every reconfiguration replaces a member by the server that is left
    /// over, and replication and erasure coding take turns. Measured are throughput, latency and the longest time without
    /// a success, with and without reconfigurations; then, with no other client at work, the time per object if all are in one
    /// domain and if each has one of its own, bytes moved, and reading after 100 configurations. Ends with 1 if any
    /// operation failed. `docs/bench-json.md` says what the fields of `--json` mean.
    Reconfig(MeasureReconfig),
    /// Put and get at servers that are far apart, and tell latency in round trips
    ///
    /// Three sites: A and B are near each other, C is far from both. Five servers are at A, A, B, B and C; domains are on three
    /// of them, one at each site, and on all, replicated and erasure-coded. A client at each site puts and gets; then one at A
    /// gets what one at B puts all the time. Data between clients and servers passes a proxy that delays it by half a round
    /// trip each way. Counts of rounds are asserted: ends with 1 if one is another than it is on any machine, or if any
    /// operation failed. `docs/bench-json.md` says what the fields of `--json` mean.
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
    /// Stop the servers instead of killing them: connections to them stay open, and no answer comes
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
pub(crate) struct DrawReport {
    /// What was printed
    #[arg(value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) file: PathBuf,
    /// Where the page goes
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
    Experiment(&'static Experiment),
}

fn parse_paper(text: &str) -> Result<PaperWord, String> {
    match text {
        "list" => Ok(PaperWord::List),
        text => Experiment::find(text).map(PaperWord::Experiment),
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
