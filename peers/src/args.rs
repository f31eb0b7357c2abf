//! The command line.

use areo::args::{Common, DapWord, DurabilityWord};
use areo::exit::{Failure, Outcome};
use areo_bench::load::{Pace, Popularity};
use areo_bench::peers::{Operation, Options, Watch};
use areo_bench::target::TargetName;
use areo_client::units::{parse_time, parse_timeout};
use areo_lab::shared::{command, data_directory, history, random_seed, size_up_to};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Put and get at Areo and at other stores on this machine, in turn, each through its usual client.
///
/// All clusters run all the time and take turns in every run, so that other work on the machine affects all of them. Ends
/// with 1 if any operation failed. `peers/README.md` lists the needs of each store.
#[derive(Parser, Debug)]
#[command(name = "areo-peers", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) compare: Compare,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The stores: areo; areo-keys, which encrypts and judges grants; areo-conditional, whose writes have one winner; areo-s3, such a domain behind the gateway of S3; etcd, redis, redis-wait, whose puts wait for a majority (WAIT); and of what runs already:
    /// s3=http://HOST:PORT/BUCKET, or minio= that, with the credentials of the AWS_* variables, cassandra=HOST:PORT,HOST:PORT,..., also Scylla,
    /// asked at QUORUM, and cassandra-serial=HOST:PORT,..., with lightweight transactions
    #[arg(
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        default_value = "areo,etcd,redis,redis-wait"
    )]
    pub(crate) targets: Vec<Word>,
    /// The product's program, which runs the servers of areo [default: `areo` beside this program]
    #[arg(long, value_name = "PATH", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) areo: Option<PathBuf>,
    /// Sizes of values, from 16 to 64MiB
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "1KiB", value_parser = parse_size)]
    pub(crate) size: Vec<usize>,
    /// Numbers of clients that work at the same time
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,16,64", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) clients: Vec<u16>,
    /// Operations of the clients: put, get; put-if, each of an object of its own on the version that the client knows; increment,
    /// all of one counter; list, the names of all objects of a size; list-folder, the level above, where those are one entry. put-if
    /// and increment are of areo-conditional, areo-s3, etcd and what has one winner behind S3; list and list-folder are of what is
    /// asked by S3. None of the four is part of a --history
    #[arg(
        long,
        value_name = "put,get,...",
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
    /// Data fragments of erasure coding: any K of the servers make the value [default: servers - 2, so that f = 1]
    #[arg(long, value_name = "K")]
    pub(crate) k: Option<u8>,
    /// What an acknowledgement means; the report says what it means to each store
    #[arg(long, default_value = "memory")]
    pub(crate) durability: DurabilityWord,
    /// Objects of each size [default: 1000, or 256MiB of them, but at least 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) objects: Option<u64>,
    /// Distribution of keys: uniform, in-turn, or zipf:EXPONENT
    #[arg(long, default_value = "uniform")]
    pub(crate) popularity: Popularity,
    /// Operations per second of all clients together (open loop); latency counts from the time at which each was due [default:
    /// closed loop, each client begins an operation when its last one has ended]
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rate: Option<u32>,
    /// Longest random wait of a client between its operations
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with = "rate", value_parser = parse_time)]
    pub(crate) wait: Duration,
    /// Clients that reconfigure Areo while it is measured, beside the others: replication and erasure coding take turns, on
    /// the same servers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=100))]
    pub(crate) reconfigurers: u16,
    /// Longest random wait of a reconfigurer between its changes
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_time)]
    pub(crate) reconfigure_wait: Duration,
    /// Write the history of all clients to this file, for `areo-lab check`, each store as a domain; clients then make and compare
    /// values byte by byte, which takes them time
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: Option<PathBuf>,
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_timeout)]
    pub(crate) time: Duration,
    /// Time before each measurement that is not measured
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(crate) warm_up: Duration,
    /// Number of measurements
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// At the end kill a member of each store (kill -9) under load: the leader, if there is one. Half of the largest number of
    /// clients get, the others put; completions per 10 ms are recorded for this time before and after
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "5s", value_parser = parse_timeout)]
    pub(crate) kill: Option<Duration>,
    /// Seed of keys and operations [default: random, and printed]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write a line for each run to this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page with tables and plots into this file
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
    /// Directory for the servers' data during the run [default: that for temporary files]
    #[arg(long, value_name = "DIR", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) data: Option<PathBuf>,
}

/// The first 16 bytes identify a value.
fn parse_size(text: &str) -> Result<usize, String> {
    size_up_to(64 << 20, text)
}

impl Compare {
    /// The options of a comparison of these stores.
    pub(crate) fn options(&self, targets: Vec<TargetName>, watch: Watch) -> Outcome<Options> {
        let unrecorded = self.operations.iter().find(|it| !it.is_recorded());
        if let (Some(operation), true) = (unrecorded, self.history.is_some()) {
            return Err(Failure::usage(format!(
                "--history: {} is not recorded: leave it out of --operations",
                operation.word()
            )));
        }
        Ok(Options {
            targets,
            data: data_directory(self.data.clone())?,
            sizes: self.size.clone(),
            clients: self.clients.iter().copied().map(usize::from).collect(),
            operations: self.operations.clone(),
            objects: self.objects,
            popularity: self.popularity,
            pace: match self.rate {
                Some(rate) => Pace::Open {
                    per_second: rate.into(),
                },
                None => Pace::up_to(self.wait),
            },
            reconfigurers: self.reconfigurers.into(),
            between_changes: self.reconfigure_wait,
            history: history(self.history.clone())?,
            warm_up: self.warm_up,
            time: self.time,
            runs: self.runs,
            kill: self.kill,
            watch: Some(watch),
            seed: self.seed.unwrap_or_else(random_seed),
            command: command(crate::NAME),
        })
    }
}

/// A word of `--targets`: a store, and where it is if it runs already.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// One that is started here.
    Started(TargetName),
    /// A bucket that is there.
    S3(TargetName, BucketPlace),
    /// A cluster that is there, asked in one of its ways, and the first of its nodes.
    Cql(TargetName, String),
    /// One more node of the cluster before it.
    Node(String),
}

/// The place of a bucket: the endpoint, such as `http://127.0.0.1:9000`, and the name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BucketPlace {
    pub(crate) endpoint: String,
    pub(crate) bucket: String,
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Word, String> {
        let (name, place) = match text.split_once('=') {
            Some((name, place)) => (name.parse()?, Some(place)),
            None if text.contains(':') => return node(text).map(Word::Node),
            None => (text.parse()?, None),
        };
        let missing = |how: &str| Err(format!("where it is is missing: write {name}={how}"));
        match (name, place) {
            (name, Some(url)) if name.is_bucket() => Ok(Word::S3(name, bucket(url)?)),
            (name, None) if name.is_bucket() => missing("http://HOST:PORT/BUCKET"),
            (TargetName::Cassandra | TargetName::CassandraSerial, Some(text)) => {
                Ok(Word::Cql(name, node(text)?))
            }
            (TargetName::Cassandra | TargetName::CassandraSerial, None) => {
                missing("HOST:PORT[,HOST:PORT...]")
            }
            (_, None) => Ok(Word::Started(name)),
            (_, Some(_)) => Err(format!("{name} is started here, and takes no address")),
        }
    }
}

/// `HOST:PORT`, as it was written.
fn node(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':');
    let is_node = parts.is_some_and(|(host, port)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let port = port.parse::<u16>().is_ok_and(|port| port > 0);
        port && !host.is_empty() && host.chars().all(plain)
    });
    match is_node {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is no address of a node: write HOST:PORT")),
    }
}

/// Parses `http://HOST:PORT/BUCKET`, or the same with `https`.
fn bucket(url: &str) -> Result<BucketPlace, String> {
    let parts = url.trim_end_matches('/').rsplit_once('/');
    let (endpoint, bucket) = parts.unwrap_or_default();
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_host =
        |host: &str| !host.is_empty() && host.chars().all(|c| plain(c) || "[]:".contains(c));
    match host.is_some_and(is_host) && !bucket.is_empty() && bucket.chars().all(plain) {
        true => Ok(BucketPlace {
            endpoint: endpoint.to_owned(),
            bucket: bucket.to_owned(),
        }),
        false => Err(format!(
            "'{url}' is no address of a bucket: write http://HOST:PORT/BUCKET"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
