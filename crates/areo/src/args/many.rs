//! The part of the command line that is about many objects at once.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug, Clone)]
pub(crate) struct Cp {
    /// A file, a folder with -r, or `areo://DOMAIN/KEY`
    pub(crate) source: OsString,
    /// `areo://DOMAIN/KEY`, a file or a folder; with -r `areo://DOMAIN/PREFIX` or a folder
    pub(crate) target: OsString,
    /// Copy what is in a folder, as keys PREFIX/a/b; or all objects of such keys, as files
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Delete what is in the target and not in the source, after all else was copied
    #[arg(long, requires = "recursive")]
    pub(crate) delete: bool,
    /// Print what would be copied and deleted, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Backup {
    /// The domain, or --all; and the directory of the backup, which is made if it is not there
    #[arg(value_names = ["DOMAIN", "DIR"], num_args = 1..=2, required = true)]
    pub(crate) names: Vec<OsString>,
    /// Back up all domains
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Restore {
    /// The directory of the backup
    pub(crate) dir: PathBuf,
    /// Only this domain of the backup [default: all]
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) only: Option<String>,
    /// Restore the one domain under another name
    #[arg(long = "as", value_name = "DOMAIN")]
    pub(crate) target: Option<String>,
    /// Restore what was there at the end of this run [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) run: Option<u64>,
    /// Replace objects and files that are there and differ. Otherwise they stay, and the command ends with 4
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Verify the whole backup, all runs of it, and restore nothing. Needs no cluster
    #[arg(long, conflicts_with_all = ["only", "target", "run", "overwrite"])]
    pub(crate) check: bool,
}
