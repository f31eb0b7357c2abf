//! Options of every command.

use crate::units::parse_timeout;
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
    /// Show what was going on in the operation, as `areo trace` does
    #[arg(long, global = true)]
    pub(crate) trace: bool,
    /// Remember with operations which keys they are for
    #[arg(long, global = true)]
    pub(crate) trace_keys: bool,
    /// Answer Prometheus at this address (`/metrics`), as long as the command runs: what its operations come to
    #[arg(long, global = true, value_name = "IP:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command of the product and of the laboratory.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Global options")]
pub struct Common {
    /// How long an operation may take, such as 500ms or 5s [default: 10s, of measurements their own]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Say more; twice: still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// The configuration file; '' reads none [default: ./areo.toml, else areo/config.toml in `$XDG_CONFIG_HOME`]
    #[arg(long, global = true, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub config: Option<PathBuf>,
}
