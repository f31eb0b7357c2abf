//! The command line of the autopilot.

use areo_client::units::parse_timeout;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Run the autopilot, which proposes changes of the cluster, or look at them
///
/// It runs in the foreground, on any machine, in any number: one instance acts. It observes servers by their status and their admin ports, and writes the
/// changes that it would make, and why. `docs/autopilot.md` has its rules.
#[derive(Args, Debug, Clone, Default)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Autopilot {
    #[command(subcommand)]
    pub(crate) verb: Option<AutopilotVerb>,
    /// The part of the work that it does by itself [default: advise]
    #[arg(long)]
    pub(crate) level: Option<LevelWord>,
    /// File with thresholds in place of the built-in ones, as `docs/autopilot.md` describes them
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Time between two looks at the cluster [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) every: Option<Duration>,
}

/// The part of the work that the autopilot does by itself.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LevelWord {
    /// Print what it would propose, and write nothing
    Observe,
    /// Propose changes, and carry out those that an operator approves
    Advise,
    /// Carry out changes of the rules that may act
    Act,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum AutopilotVerb {
    /// Show whether it is paused, which instance acts, and what is open
    Status,
    /// List what is open
    Ls,
    /// Show why a server or a domain is to be changed, and what a change waits for
    Explain {
        /// Name of the server or of the domain
        subject: String,
    },
    /// Have a proposed change carried out
    Approve {
        /// Number of the intent
        number: u64,
    },
    /// Give an intent up for as long as its reason lasts
    ///
    /// A change that was begun is finished. An intent for another reason is proposed all the same.
    Decline {
        /// Number of the intent
        number: u64,
    },
    /// Have a change tried again that failed three times
    Retry {
        /// Number of the intent
        number: u64,
    },
    /// Keep it from changing anything
    Pause {
        /// End the pause
        #[arg(long)]
        off: bool,
    },
    /// List all intents, finished ones too
    Journal,
}
