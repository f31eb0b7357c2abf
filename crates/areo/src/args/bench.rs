//! `areo bench`.

use crate::units::parse_time;
use areo_bench::Trouble;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub(crate) enum Bench {
    /// Kill, stop and cut off real servers under load; mend everything, and judge what clients saw
    ///
    /// While there is trouble an operation may take 2 s, unless `--timeout` says otherwise. Some troubles need root; where
    /// they cannot be had, the report says so.
    Nemesis(Nemesis),
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
    /// Keep the history in this file, as `areo check` reads it [default: kept only if a promise was broken]
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
