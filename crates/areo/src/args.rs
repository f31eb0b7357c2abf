//! The command line.

mod autopilot;
mod cluster;
mod console;
mod global;
mod large;
mod many;
mod trace;

pub(crate) use autopilot::{Autopilot, AutopilotVerb, LevelWord};
pub(crate) use cluster::{Cluster, Status};
pub(crate) use console::Console;
pub(crate) use large::{ByteRange, Repair, Sweep};
pub(crate) use many::{Backup, Cp, Restore};

use areo_client::units::parse_size;
use areo_client::{Decider, Version};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use large::parse_range;
use std::path::PathBuf;

mod certificate;
pub(crate) mod file;
mod reconfig;
mod refusal;
mod s3;
mod server;
mod trust;
mod values;

pub(crate) use certificate::Certificate;
pub(crate) use file::File;
pub use global::Common;
pub(crate) use global::{Global, Stats};
pub(crate) use reconfig::{ChangeArgs, ExperimentalArgs, Reconfig, Start};
pub use refusal::parse;
pub(crate) use refusal::{asked_for_json, sentence};
pub(crate) use s3::S3;
pub(crate) use server::{Departure, HealthOf, HealthQuestion, Maintain, Server, ServerVerb};
pub(crate) use trace::{Trace, Which};
pub(crate) use trust::{Audit, Ca, Key, Token};
pub(crate) use values::{Basis, parse_block_size, parse_max_object};
use values::{KeyParser, parse_basis, parse_copy_limit, parse_pair};

/// The template of a program's `--help`: its commands on one screen. The help of each command explains the options of all commands.
pub const SCREEN: &str = "{about-with-newline}{usage-heading} {usage}\n{subcommands}{after-help}";

/// The number of the version.
pub const NUMBER: &str = env!("BUILD_VERSION");
/// The revision of the source that this is built from; `unknown` without git.
pub const REVISION: &str = env!("BUILD_COMMIT");
/// The day of that revision; `unknown` without git.
pub const REVISION_DATE: &str = env!("BUILD_DATE");
/// The profile of Cargo that this is built with; `debug` is `dev`.
pub const PROFILE: &str = env!("BUILD_PROFILE");
/// The version, and of what and how it is built.
pub const VERSION: &str = concat!(
    env!("BUILD_VERSION"),
    " (",
    env!("BUILD_COMMIT"),
    ", ",
    env!("BUILD_DATE"),
    ", ",
    env!("BUILD_PROFILE"),
    ")"
);

/// Atomic, reconfigurable, erasure-coded objects on your servers.
#[derive(Parser, Debug)]
#[command(
    name = "areo",
    version = VERSION,
    max_term_width = 100,
    subcommand_required = true
)]
#[command(arg_required_else_help = true)]
#[command(help_template = SCREEN)]
#[command(after_help = "\
Begin with `areo up`. Of every command (see `areo ls --help`): -v -q --cluster
--domain --timeout --json --hardware-id --trace --trace-keys --metrics --config
Exit codes: 1 other, 2 usage, 3 not found, 4 precondition, 5 no quorum, not applied, 6 not authorised, 7 corrupted, \
8 unknown, 130 interrupted, 141 closed.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a whole cluster on this machine
    ///
    /// Each server is a process. Another run continues with the data of the last one.
    Up(Up),
    /// Run one server in the foreground, or replace, drain, forget one
    Server(Box<Server>),
    /// Write an object
    Put(Put),
    /// Read an object
    Get(Get),
    /// List objects
    Ls(Ls),
    /// Show version, size, metadata and placement of an object
    ///
    /// Also show what each server holds of it.
    Stat(Stat),
    /// Delete objects
    #[command(aliases = ["delete", "del", "remove"])]
    Rm(Rm),
    /// Copy folders to objects and back; also: backup, restore
    ///
    /// An object that has the length and the checksum of its file is not copied: run a copy again that was interrupted, and it goes on. A file appears
    /// complete or not at all. A symbolic link to a file is copied as that file, one to a folder is refused. Folders without files, times and modes of
    /// files, and metadata of objects are not copied: `areo backup` keeps metadata.
    Cp(Cp),
    /// Back up domains into a directory, what has changed since the last run
    ///
    /// Each run reads what has changed since the last one. Each object is read by itself, at one version of it: the run is no snapshot of all objects at one
    /// moment. A run that was interrupted goes on when it is run again. `docs/backup.md` describes the directory.
    #[command(hide = true)]
    #[command(
        override_usage = "areo backup [OPTIONS] <DOMAIN> <DIR>\n       areo backup [OPTIONS] --all <DIR>"
    )]
    Backup(Backup),
    /// Restore domains from a backup, or verify it
    ///
    /// Into this cluster or another one, also with other servers and another [n,k]. A domain that is not there is created as it was. What is
    /// there and equal is not written, so that a restore that was interrupted goes on when it is run again. What is there and not in the backup stays.
    #[command(hide = true)]
    Restore(Restore),
    /// Push, pull and compare files that many people edit
    ///
    /// A file is a list of blocks: edits of different parts are all kept, and only changed blocks travel.
    #[command(subcommand, arg_required_else_help = true)]
    File(File),
    /// Remove blocks that are no longer needed
    ///
    /// Such blocks remain of replaced or deleted large objects, of removed files, and of writes that never ended.
    // The screen has room for one line about upkeep: that of `repair` names it.
    #[command(hide = true)]
    Sweep(Sweep),
    /// Bring objects to servers that lack them; also: sweep
    ///
    /// Servers do so themselves: a server that was away begins a second after its start. This shows where a domain stands, and does
    /// it at once for all servers.
    #[command(subcommand, arg_required_else_help = true)]
    Repair(Repair),
    /// Create, list, show and remove domains
    ///
    /// A domain is a named set of objects with servers and a way to keep values.
    #[command(subcommand, arg_required_else_help = true)]
    Domain(Domain),
    /// Change a domain while clients read and write
    ///
    /// Its servers, its [n,k] and its algorithm may change.
    #[command(subcommand, arg_required_else_help = true)]
    Reconfig(Reconfig),
    /// Run a gateway for clients of S3
    ///
    /// A bucket is a domain. Any number of gateways serve one cluster. Its key needs the grant `gateway`; callers sign with keys of their own, whose
    /// grants servers judge. `docs/s3.md` says which operations there are.
    S3(Box<S3>),
    /// Make, list and revoke tokens with which machines become servers
    // The screen has room for one line about trust: that of `key` names the others.
    #[command(subcommand, arg_required_else_help = true, hide = true)]
    Token(Token),
    /// Make, rotate and revoke access keys; also: token, ca, audit
    ///
    /// A key has grants, which each server checks for each request.
    #[command(subcommand, arg_required_else_help = true)]
    Key(Key),
    /// List, rotate and drop the CAs that the cluster trusts
    #[command(subcommand, arg_required_else_help = true, hide = true)]
    Ca(Ca),
    /// List changes of CAs, tokens and keys, and who made them
    #[command(subcommand, arg_required_else_help = true, hide = true)]
    Audit(Audit),
    /// Show servers, domains, faults; also: cluster, autopilot, console
    Status(Status),
    /// Finalize an upgrade of all servers
    // The screen has room for one line about the cluster: that of `status` names it.
    #[command(subcommand, arg_required_else_help = true, hide = true)]
    Cluster(Cluster),
    #[command(hide = true)]
    Autopilot(Autopilot),
    #[command(hide = true)]
    Console(Console),
    /// Show the steps of an operation, and their times
    ///
    /// A trace leads from the client through the servers to their disks.
    ///
    /// Commands remember their operations in `areo/traces.jsonl` of `$XDG_STATE_HOME` (`~/.local/state`), servers in memory.
    /// `areo --trace VERB ...` shows the operation at once. `docs/tracing.md` explains the spans.
    Trace(Trace),
    /// Print a completion script for a shell
    // The screen has no room for what is needed once.
    #[command(hide = true)]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all commands into a folder
    #[command(hide = true)]
    Manual {
        /// The folder, which is there
        folder: PathBuf,
    },
    /// Print the version of this program, and the revision of its source
    #[command(hide = true)]
    Version,
}

/// How values are kept.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DapWord {
    /// Replicate: every server holds the value
    Abd,
    /// Erasure-code: every server holds a fragment, any k make the value
    Ec,
    /// Decide every write: of conditional writes on one version one succeeds. Replicate, or with --k erasure-code
    Conditional,
    /// Erasure-code as Ares does, to compare with: reads always write back, and wait behind more than delta writers
    #[value(hide = true)]
    EcPublished,
    /// Erasure-code as `CoAres` does, to compare with: clients remember what they wrote
    #[value(hide = true)]
    EcOptimized,
    /// Replicate as MW-ABD does, to compare with: reads always write back
    #[value(hide = true)]
    AbdPublished,
    /// Erasure-code by CAS: a read that meets writers sends tags and no values; every version stays
    Cas,
    /// Code as CAS does, and drop versions that are superseded
    #[value(name = "casgc")]
    CasGc,
    /// Code as CASGC does, bounded, with gossip of servers: state that no run produces is written over and not reported. For caches,
    /// not for data that must not change unnoticed
    #[value(name = "casss")]
    CasSs,
}

/// How a domain is reconfigured.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReconfigWord {
    /// Ares II: consensus on each next configuration; servers, code and algorithm can change
    Ares,
    /// Rambo: consensus on each next configuration; replicated, and only servers can change
    Rambo,
    /// L-Rambo: as rambo, but one of the servers makes concurrent changes together
    LRambo,
    /// SM: without consensus, and concurrent changes become one; replicated or `ec`, and only servers can change
    Sm,
    /// SpSn: as sm, in rounds, to compare with
    Spsn,
    /// DynaStore: as sm, but concurrent changes become configurations beside each other and then one, to compare with
    #[value(name = "dynastore")]
    DynaStore,
}

/// What an acknowledgement means.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DurabilityWord {
    /// On disk at a quorum
    Fsync,
    /// In memory at a quorum; lost when the process ends
    Memory,
}

/// The authority over the members of a new cluster's root domain.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RootWord {
    /// Its members: it grows to 3 and 5 members when servers join, and replaces those that are gone for long
    Auto,
    /// People, by `areo reconfig start @root`
    Fixed,
}

/// The format of a log line.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogWord {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Up {
    /// Number of servers [default: 5, or those of the directory]
    #[arg(long, value_name = "N")]
    pub(crate) servers: Option<u8>,
    /// Directory of the cluster [default: ./areo-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Port of the first server; the others follow, admin ports begin 90 above [default: 7400]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// How the domain `default` keeps values [default: ec]
    #[arg(long)]
    pub(crate) dap: Option<DapWord>,
    /// Data fragments of `ec`: any K of the servers make the value [default: servers - 2, so that f = 1]
    #[arg(long)]
    pub(crate) k: Option<u8>,
    /// What an acknowledgement means [default: fsync, or that of the directory]
    #[arg(long)]
    pub(crate) durability: Option<DurabilityWord>,
    /// Restart servers that die
    #[arg(long)]
    pub(crate) restart: bool,
    /// Run a gateway for clients of S3 as well, at 127.0.0.1:7480 or this address
    #[arg(
        long,
        value_name = "HOST:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:7480"
    )]
    pub(crate) s3: Option<String>,
    /// Largest value of one object, up to 1GiB [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_max_object)]
    pub(crate) max_object: Option<u64>,
    /// Bytes of objects that each server reads in a second, at most, to repair itself; 0: it does not [default: 32MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) repair_rate: Option<u64>,
    /// Bytes of its records that each server verifies in a second, at most; 0: only those that are read [default: 1280KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) scrub_rate: Option<u64>,
    /// Accept a domain `default` that does not survive the crash of any server
    #[arg(long)]
    pub(crate) allow_f0: bool,
    /// Format of the servers' log lines [default: text]
    #[arg(long)]
    pub(crate) log: Option<LogWord>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Put {
    /// Key of the object: 1 to 1024 bytes of UTF-8
    #[arg(value_parser = KeyParser)]
    pub(crate) key: String,
    /// File with the value; `-` or nothing: standard input
    pub(crate) file: Option<PathBuf>,
    /// MIME type [default: guessed from the file's extension]
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Metadata of the version; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    pub(crate) meta: Vec<(String, String)>,
    /// Write only if this is the newest version, as `get --version-only` and `stat` print it; `none`: only if there is no
    /// such object. Otherwise ends with 4. In a conditional domain one write on a version succeeds; elsewhere two may
    #[arg(long, value_name = "VERSION", value_parser = parse_basis)]
    pub(crate) if_version: Option<Basis>,
    /// With --if-version: refuse where several concurrent writes on one version may succeed
    #[arg(long, requires = "if_version")]
    pub(crate) require_one_winner: bool,
    /// Values longer than this are written in blocks of this length, 4KiB to 64MiB [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub(crate) block_size: Option<usize>,
    /// Keep the blocks of the replaced large value for clients that read it now; a later `areo sweep` removes them
    #[arg(long)]
    pub(crate) keep_replaced: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Get {
    /// Key of the object
    #[arg(value_parser = KeyParser)]
    pub(crate) key: String,
    /// File for the value, which appears complete or not at all; in a directory it has the last part of the key as its name; `-` or
    /// nothing: standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The file for the value, as an option
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) output: Option<PathBuf>,
    /// Only these bytes, counted from 0, both included; `A-`: from A to the end
    #[arg(long, value_name = "A-B", value_parser = parse_range)]
    pub(crate) range: Option<ByteRange>,
    /// Print the version and not the value
    #[arg(long, conflicts_with_all = ["output", "file", "range"])]
    pub(crate) version_only: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Ls {
    /// Only keys with this prefix
    #[arg(default_value = "")]
    pub(crate) prefix: String,
    /// Size, time of the write (by the writer's clock) and version before the key
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Largest number of keys
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only keys after this one
    #[arg(long, value_name = "KEY", default_value = "")]
    pub(crate) after: String,
    /// Group keys by their part up to this text: `--delimiter /` shows folders
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) delimiter: String,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Stat {
    /// Key of the object
    #[arg(value_parser = KeyParser)]
    pub(crate) key: String,
    /// Show the servers of the elements, and do not ask these servers
    #[arg(long)]
    pub(crate) rule: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Rm {
    /// Keys of the objects; a key without an object does not keep the others
    #[arg(required = true, value_name = "KEY", value_parser = KeyParser)]
    pub(crate) keys: Vec<String>,
    /// Delete only if this is the newest version, of one object. Otherwise ends with 4; as `put --if-version`
    #[arg(long, value_name = "VERSION")]
    pub(crate) if_version: Option<Version>,
    /// With --if-version: refuse where several concurrent writes on one version may succeed
    #[arg(long, requires = "if_version")]
    pub(crate) require_one_winner: bool,
    /// Keep the blocks of the deleted large value for clients that read it now; a later `areo sweep` removes them
    #[arg(long)]
    pub(crate) keep_replaced: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Domain {
    /// Create a domain
    Create(DomainCreate),
    /// List domains
    Ls,
    /// Remove a domain and everything in it; its name can be used again
    Rm {
        /// Name of the domain
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Show a domain's configurations
    ///
    /// Pending ones stand below the one that they come after.
    Show {
        /// Name of the domain
        name: String,
    },
}

#[derive(Args, Debug, Clone)]
pub(crate) struct DomainCreate {
    /// Name: 1 to 63 characters out of a-z, 0-9, '-', '_' and '.'
    pub(crate) name: String,
    /// How values are kept [default: ec; with another --reconfig than ares: abd]
    #[arg(long)]
    pub(crate) dap: Option<DapWord>,
    /// How the domain is reconfigured
    #[arg(long, default_value = "ares")]
    pub(crate) reconfig: ReconfigWord,
    /// Data fragments: any K of the servers make the value [default: servers - 2, so that f = 1; of `conditional` 1]
    #[arg(long)]
    pub(crate) k: Option<u8>,
    /// Servers of the domain, by name or id [default: all of the cluster]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// Concurrent writers of one object with which a read of `ec` still ends [default: 5]
    #[arg(long)]
    pub(crate) delta: Option<u16>,
    /// Values up to this size are kept as full copies [default: 16KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_copy_limit)]
    pub(crate) copy_limit: Option<u32>,
    #[command(flatten)]
    pub(crate) experimental: ExperimentalArgs,
    /// Consensus on the next configuration: `members`, or `etcd=HOST:PORT[,HOST:PORT...]` [default: members]
    #[arg(long, value_name = "WHO")]
    pub(crate) consensus: Option<Decider>,
    /// Accept a domain that does not survive the crash of any server
    #[arg(long)]
    pub(crate) allow_f0: bool,
}

#[cfg(test)]
mod tests;
