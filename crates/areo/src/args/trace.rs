//! `areo trace`.

use areo_client::units::parse_time;
use areo_telemetry::TraceId;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The choice of traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// Those that ended last.
    Last,
    /// Those that took longest, of each kind.
    Slow,
    /// All of a while, added up.
    Summary,
    /// Two of them, side by side.
    Compare,
    /// The trace with this id.
    Id(TraceId),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Which, String> {
        match text {
            "last" => Ok(Which::Last),
            "slow" => Ok(Which::Slow),
            "summary" => Ok(Which::Summary),
            "compare" => Ok(Which::Compare),
            text => text.parse().map(Which::Id).map_err(|_| {
                "neither `last`, `slow`, `summary` nor `compare`, nor the id of a trace (32 hexadecimal digits)".into()
            }),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// `last`: the newest operation · `slow`: the slowest of each kind · `summary`: times by operation and phase · `compare`: two
    /// traces side by side · an id: that trace
    #[arg(value_name = "last|slow|summary|compare|ID")]
    pub(crate) which: Which,
    /// For `compare`: both ids, as `areo trace last --count 10 --list` prints them
    #[arg(value_name = "A B", num_args = 2, required_if_eq("which", "compare"))]
    pub(crate) both: Vec<TraceId>,
    /// Number of traces; with `slow`, of each kind
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) count: u16,
    /// One line for each trace
    #[arg(long, conflicts_with = "html")]
    pub(crate) list: bool,
    /// For `summary`: operations that ended within this time [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) since: Option<Duration>,
    /// Write a page with pictures for a browser
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
}
