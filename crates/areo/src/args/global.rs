//! Options of every command.

use areo_client::units::parse_timeout;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The cluster: its file, or addresses of some of its servers [default: ./areo-data/cluster.toml]
    #[arg(long, global = true, value_name = "FILE|ADDR[,ADDR]")]
    pub(crate) cluster: Option<String>,
    /// The domain that holds the objects [default: default]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Versions that are written name this hardware, a number, and how often a command was run with it. For two commands at a
    /// time two numbers
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) hardware_id: Option<u32>,
    /// Show the steps of the operation, as `areo trace` does
    #[arg(long, global = true)]
    pub(crate) trace: bool,
    /// Record the keys of operations, too
    #[arg(long, global = true)]
    pub(crate) trace_keys: bool,
    /// Serve metrics of the operations for Prometheus at this address (`/metrics`) while the command runs
    #[arg(long, global = true, value_name = "IP:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command of the product and of the laboratory.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Global options")]
pub struct Common {
    /// Deadline of an operation, such as 500ms or 5s [default: 10s; measurements have their own]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Print more; twice: even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Print results and errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Configuration file; '' for none [default: ./areo.toml, else areo/config.toml in `$XDG_CONFIG_HOME`]
    #[arg(long, global = true, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub config: Option<PathBuf>,
}

/// The option that prints the cost of an operation.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct Stats {
    /// Print the cost of the operation: rounds, configurations, bytes sent and received
    #[arg(long)]
    pub(crate) stats: bool,
}
