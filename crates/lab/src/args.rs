//! The command line of the laboratory.

mod bench;
mod probe;
mod sim;

pub(crate) use bench::{
    Bench, DrawReport, Load, MeasureAvailability, MeasureLimits, MeasureReconfig, MeasureRepair,
    MeasureWideArea, Nemesis, Paper, PaperWord,
};
pub(crate) use probe::{Probe, ProbeS3};
pub(crate) use sim::{Explore, Measure, SchedulerWord, Sim, SimOptions};

use areo::args::{Common, SCREEN, VERSION};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// The laboratory of Areo: simulate, explore, judge, measure, disturb.
#[derive(Parser, Debug)]
#[command(
    name = "areo-lab",
    version = VERSION,
    max_term_width = 100,
    subcommand_required = true
)]
#[command(arg_required_else_help = true)]
#[command(help_template = SCREEN)]
#[command(after_help = "\
Servers are processes of the product: the program `areo` beside this one, or --areo PATH.
Options of every command (`areo-lab check --help` explains them): --areo --timeout --json -v -q --config
Exit codes: 0 done, 1 a rule or a promise is broken or an operation failed, 2 usage, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The product's program, which runs the servers [default: `areo` beside this program]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) areo: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Simulate a cluster with every kind of fault
    #[command(subcommand, arg_required_else_help = true)]
    Sim(Sim),
    /// Follow every schedule of a small case
    ///
    /// Without a name, the cases are listed, each with the bound that keeps it small.
    Explore(Explore),
    /// Measure reconfiguration and coded storage in virtual time
    ///
    /// Repeats experiments of the paper on reconfiguration without consensus, with Ares II beside them, and of the study of CASSS. Servers and
    /// clients are those of production; the network, and the time that a server works on a message, are given. The same seed has the same figures. Without a
    /// name, the experiments are listed; ends with 1 if a count that does not depend on time is wrong. `docs/paper-results.md`
    /// has results.
    Measure(Measure),
    /// Judge a history
    ///
    /// Is it linearizable, coverable, is there one winner per version? Each operation has two lines, its begin and its end:
    ///
    /// {"t":10,"client":"a","op":1,"event":"invoke","kind":"write","domain":"d","key":"k","value":"a"}
    ///
    /// {"t":25,"client":"a","op":1,"event":"ok","kind":"write","domain":"d","key":"k","value":"a","version":"1-a"}
    ///
    /// `t` is in nanoseconds; other events are `fail` and `unknown`; other kinds `read`, `regular_read`, `cvr_write`,
    /// `conditional_write`, `delete` and `reconfig`; `based_on` is the version that a conditional write names.
    Check {
        /// Events, one JSON object per line; `-` is standard input
        #[arg(value_name = "HISTORY", value_parser = OsStringValueParser::new().map(PathBuf::from))]
        history: PathBuf,
    },
    /// Measure real servers
    #[command(subcommand, arg_required_else_help = true)]
    Bench(Bench),
    /// Disturb real servers under load, and judge what clients saw
    ///
    /// Servers are killed, stopped and cut off; then everything is repaired. The deadline of an operation is 2 s, or that of
    /// `--timeout`. Some kinds of trouble need root; the report names those that were not possible.
    Nemesis(Nemesis),
    /// Repeat an experiment of the papers with real servers
    ///
    /// All variants of ARES and CoARES, for objects and files, are measured in turn: latency, rounds, configurations, bytes.
    /// Ratios of variants stand beside the published ones, with a verdict on their order and the reason of a difference. Counts
    /// that do not depend on the machine are asserted: ends with 1 if a count is wrong or an operation failed. `areo-lab paper
    /// list` lists the experiments; `docs/paper-results.md` has results.
    Paper(Paper),
    /// Judge the autopilot's model of losses, and its thresholds
    ///
    /// Servers are drawn with their signals and their end, and both say which are at risk. The model was made of others, drawn by another seed.
    /// `docs/autopilot.md` says what is assumed.
    Predict {
        /// Make the weights anew, and print them as `crates/steward/prediction.toml` has them
        #[arg(long)]
        weights: bool,
    },
    /// Find out what a store of others promises
    #[command(subcommand, arg_required_else_help = true)]
    Probe(Probe),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: Shell,
    },
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
