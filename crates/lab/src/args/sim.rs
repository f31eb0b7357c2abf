//! `areo-lab sim` and `explore`.

use areo_sim::measure::Scale;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum Sim {
    /// Run many seeds; every rule must hold in each
    Run {
        /// Number of seeds
        #[arg(long, value_name = "N", default_value_t = 500)]
        seeds: u64,
        /// The first seed
        #[arg(long, value_name = "SEED", default_value_t = 0)]
        first_seed: u64,
        /// Seeds that run at the same time [default: one per processor]
        #[arg(long, value_name = "N")]
        threads: Option<usize>,
        /// Run each seed twice and compare everything that happened
        #[arg(long)]
        verify_replay: bool,
        #[command(flatten)]
        options: SimOptions,
    },
    /// Run one seed again and show its last events
    Replay {
        /// The seed
        seed: u64,
        /// Find the smallest part of the run that breaks the same rule, and show it
        #[arg(long)]
        shrink: bool,
        #[command(flatten)]
        options: SimOptions,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Explore {
    /// The case
    #[arg(value_name = "CASE")]
    pub(crate) name: Option<String>,
    /// List the cases
    #[arg(long)]
    pub(crate) list: bool,
    /// Give up after this number of states
    #[arg(long, value_name = "N", default_value_t = 50_000_000)]
    pub(crate) states: u64,
    /// Directory for the history of a schedule that broke a rule, for `areo-lab check`
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Measure {
    /// The experiment
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) name: Option<String>,
    /// Scale: quick (two runs), default (a quarter of the published runs), full (as published)
    #[arg(long, value_name = "SCALE", default_value = "default")]
    pub(crate) scale: Scale,
    /// What everything is drawn from
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write a page with plots and tables into this file (S1 to S5 and what belongs to them)
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) html: Option<PathBuf>,
}

/// The rule by which a simulation chooses the next event.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SchedulerWord {
    /// One of the others, drawn by each seed
    Mixed,
    /// The next event in time, with random delays
    Random,
    /// Priorities that change at few moments: probabilistic concurrency testing
    Pct,
}

#[derive(Args, Debug)]
pub(crate) struct SimOptions {
    /// Operations of each seed, before everything is repaired; a replay needs the number of its run
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) ops: u64,
    /// Inject no faults
    #[arg(long)]
    pub(crate) no_faults: bool,
    /// Scheduler of events; a replay needs that of its run
    #[arg(long, value_name = "WHO", default_value = "mixed")]
    pub(crate) scheduler: SchedulerWord,
    /// Depth of `pct`: number of ordering constraints of the bugs that it finds with a known probability [default: drawn by each
    /// seed]
    #[arg(long, value_name = "D", requires = "scheduler")]
    pub(crate) depth: Option<u64>,
    /// Directory for histories of replays and of seeds that broke a rule, for `areo-lab check`
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) history: PathBuf,
}
