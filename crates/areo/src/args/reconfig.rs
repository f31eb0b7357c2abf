//! The part of the command line that chooses configurations.

use super::{DapWord, ReconfigWord};
use areo_client::experimental::Experimental;
use areo_client::{Change, DapKind, Decider, ReconfigKind};
use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub(crate) enum Reconfig {
    /// Show the effect of a change, and how much it moves
    Plan {
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Change a domain while clients read and write
    ///
    /// If this process dies, reads and writes continue, and any client can finish the change with --resume. Changes that are started
    /// at the same time become one configuration, if that passes the checks; if another change is decided first, this one is made after
    /// it. Ends with 4 if the two contradict each other, with 5 if no change began, with 8 if the change may be pending, or made with the next one.
    Start(Start),
    /// Show the configurations of a domain, pending ones included
    Status {
        /// Name of the domain; `@root` holds the list of servers and domains
        name: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Finish a change that another client left pending, and change nothing else
    #[arg(long, conflicts_with_all = ["add", "remove", "servers", "dap", "k", "delta", "experimental", "consensus", "force", "allow_f0"])]
    pub(crate) resume: bool,
    /// Go on without objects that cannot be read any more; they can be written again, or removed
    #[arg(long)]
    pub(crate) leave_unreadable: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What is to be different; what is not said stays as it is.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ChangeArgs {
    /// Name of the domain; `@root` holds the list of servers and domains
    pub(crate) name: String,
    /// Servers to add, by name or id; the first takes the place of the first one in --remove, and so on
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) add: Vec<String>,
    /// Servers to remove
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) remove: Vec<String>,
    /// All servers of the domain after the change, in order
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// How values are kept
    #[arg(long)]
    pub(crate) dap: Option<DapWord>,
    /// Data fragments of `ec`: any K of the servers make the value
    #[arg(long)]
    pub(crate) k: Option<u8>,
    /// Concurrent writers of one object with which a read of `ec` still ends
    #[arg(long)]
    pub(crate) delta: Option<u16>,
    #[command(flatten)]
    pub(crate) experimental: ExperimentalArgs,
    /// Consensus on later changes: `members`, or `etcd=HOST:PORT`; the present configuration names that of this change
    #[arg(long, value_name = "WHO")]
    pub(crate) consensus: Option<Decider>,
    /// Accept servers that do not serve at present
    #[arg(long)]
    pub(crate) force: bool,
    /// Accept a domain that does not survive the crash of any server
    #[arg(long)]
    pub(crate) allow_f0: bool,
}

/// What only experiments ask for.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ExperimentalArgs {
    /// For experiments only, with no benefit in use: protocol=ares|ares2, piggyback=on|off, collect=on|off|paper,
    /// thrifty=off|queries|on, contact=each|single; for a change also leave-off=transferred|finalized; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    experimental: Vec<Experimental>,
}

impl ExperimentalArgs {
    /// All of them; the last word on a key wins.
    pub(crate) fn all(&self) -> Experimental {
        let all = self.experimental.iter().copied();
        all.fold(Experimental::default(), Experimental::and)
    }
}

impl From<ReconfigWord> for ReconfigKind {
    fn from(word: ReconfigWord) -> ReconfigKind {
        match word {
            ReconfigWord::Ares => ReconfigKind::Ares,
            ReconfigWord::Rambo => ReconfigKind::Rambo,
            ReconfigWord::LRambo => ReconfigKind::LRambo,
            ReconfigWord::Sm => ReconfigKind::Sm,
            ReconfigWord::Spsn => ReconfigKind::Spsn,
            ReconfigWord::DynaStore => ReconfigKind::DynaStore,
        }
    }
}

impl From<DapWord> for DapKind {
    fn from(word: DapWord) -> DapKind {
        match word {
            DapWord::Abd => DapKind::Abd,
            DapWord::Ec => DapKind::Ec,
            DapWord::Conditional => DapKind::Conditional,
            DapWord::AbdPublished => DapKind::AbdPublished,
            DapWord::EcPublished => DapKind::EcPublished,
            DapWord::EcOptimized => DapKind::EcOptimized,
            DapWord::Cas => DapKind::Cas,
            DapWord::CasGc => DapKind::CasGc,
            DapWord::CasSs => DapKind::CasSs,
        }
    }
}

impl ChangeArgs {
    /// The change that the arguments describe.
    pub(crate) fn change(&self) -> Change {
        Change {
            servers: self.servers.clone(),
            add: self.add.clone(),
            remove: self.remove.clone(),
            dap: self.dap.map(Into::into),
            k: self.k,
            delta: self.delta,
            experimental: self.experimental.all(),
            decided_by: self.consensus.clone(),
            allow_f0: self.allow_f0,
            force: self.force,
        }
    }
}
