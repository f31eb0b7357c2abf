//! The part of the command line that chooses configurations.

use super::DapWord;
use areo_client::{Change, Collect, DapKind, Decider, EcDap, Options, OptionsChange};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub(crate) enum Reconfig {
    /// Show what a change would do, and what it has to move
    Plan {
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Change a domain while clients read and write
    ///
    /// If this process dies, reads and writes go on, and anybody can finish it with --resume. Ends with 4 if another change
    /// was decided first (that one is installed then), with 5 if nothing was begun, with 8 if the change may be pending.
    Start(Start),
    /// Show the configurations of a domain, pending ones included
    Status {
        /// Name of the domain; `@root` is the one that knows servers and domains
        name: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Finish what somebody else began and left, and change nothing else
    #[arg(long, conflicts_with_all = ["add", "remove", "servers", "dap", "k", "delta", "protocol", "piggyback", "collect", "ec_dap", "consensus", "until_mine", "force", "allow_f0"])]
    pub(crate) resume: bool,
    /// If another change is decided first, make this one after it
    #[arg(long)]
    pub(crate) until_mine: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What is to be different; what is not said stays as it is.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ChangeArgs {
    /// Name of the domain; `@root` is the one that knows servers and domains
    pub(crate) name: String,
    /// Servers that come, by name or id; the first takes the place of the first that goes, and so on
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) add: Vec<String>,
    /// Servers that go
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) remove: Vec<String>,
    /// All servers, in order, in place of those that there are
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// How values are kept
    #[arg(long)]
    pub(crate) dap: Option<DapWord>,
    /// Data fragments of `ec`: any K of the servers make the value
    #[arg(long)]
    pub(crate) k: Option<u8>,
    /// Concurrent writers of one object that a read of `ec` surely gets past
    #[arg(long)]
    pub(crate) delta: Option<u16>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    /// Who decides after this change: `members`, or `etcd=HOST:PORT`; who decides this one was said before
    #[arg(long, value_name = "WHO")]
    pub(crate) consensus: Option<Decider>,
    /// Take servers that do not serve at present
    #[arg(long)]
    pub(crate) force: bool,
    /// Accept a domain that does not survive the crash of any server
    #[arg(long)]
    pub(crate) allow_f0: bool,
}

/// Which optimisations of Ares II a configuration makes use of.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct OptionArgs {
    /// Ares, or Ares II with its optimisations
    #[arg(long)]
    pub(crate) protocol: Option<ProtocolWord>,
    /// Whether servers show on every reply what comes next, which saves rounds
    #[arg(long)]
    pub(crate) piggyback: Option<SwitchWord>,
    /// What becomes of superseded configurations
    #[arg(long)]
    pub(crate) collect: Option<CollectWord>,
    /// Data access of `ec`: the corrected one, or one of those that papers compare with; those read and write less well
    #[arg(long, value_name = "WORD")]
    pub(crate) ec_dap: Option<EcDapWord>,
}

/// A protocol.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProtocolWord {
    /// Rounds of their own to learn what comes next; nothing is collected
    Ares,
    /// Piggybacking and collection
    Ares2,
}

/// On or off.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SwitchWord {
    /// Yes
    On,
    /// No
    Off,
}

/// What becomes of superseded configurations.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CollectWord {
    /// Servers drop them and point to the latest one
    On,
    /// Servers keep them
    Off,
    /// Servers drop them and point from one to the next, as published
    Paper,
}

/// Which EC-DAP.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EcDapWord {
    /// EC-DAP II, corrected
    Corrected,
    /// As Ares has it: reads always write back, and wait behind more than delta writers; tags stay for ever
    Published,
    /// EC-DAPopt of `CoAres`: the same, and clients remember what they wrote
    Optimized,
}

impl From<EcDapWord> for EcDap {
    fn from(word: EcDapWord) -> EcDap {
        match word {
            EcDapWord::Corrected => EcDap::Corrected,
            EcDapWord::Published => EcDap::Published,
            EcDapWord::Optimized => EcDap::Optimized,
        }
    }
}

impl From<CollectWord> for Collect {
    fn from(word: CollectWord) -> Collect {
        match word {
            CollectWord::On => Collect::On,
            CollectWord::Off => Collect::Off,
            CollectWord::Paper => Collect::Paper,
        }
    }
}

impl From<DapWord> for DapKind {
    fn from(word: DapWord) -> DapKind {
        match word {
            DapWord::Abd => DapKind::Abd,
            DapWord::Ec => DapKind::Ec,
        }
    }
}

impl OptionArgs {
    /// What they say: a protocol says both, the others say one and go before it.
    pub(crate) fn change(self) -> OptionsChange {
        let protocol = self.protocol.map(|protocol| match protocol {
            ProtocolWord::Ares => Options::ARES,
            ProtocolWord::Ares2 => Options::default(),
        });
        let piggyback = self.piggyback.map(|word| word == SwitchWord::On);
        OptionsChange {
            piggyback: piggyback.or(protocol.map(|protocol| protocol.piggyback)),
            collect: self
                .collect
                .map(Into::into)
                .or(protocol.map(|protocol| protocol.collect)),
            ec: self.ec_dap.map(Into::into),
        }
    }
}

impl ChangeArgs {
    /// What they say.
    pub(crate) fn change(&self) -> Change {
        Change {
            servers: self.servers.clone(),
            add: self.add.clone(),
            remove: self.remove.clone(),
            dap: self.dap.map(Into::into),
            k: self.k,
            delta: self.delta,
            options: self.options.change(),
            decided_by: self.consensus.clone(),
            allow_f0: self.allow_f0,
            force: self.force,
        }
    }
}
