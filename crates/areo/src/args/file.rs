//! The part of the command line that is about files.

use super::values::KeyParser;
use super::{Stats, parse_block_size};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum File {
    /// Write the changes of a local file since it was last pushed or pulled
    ///
    /// Blocks that only other clients changed stay as they are. A block that another client changed, too, is a conflict: the
    /// command does not write it, names it, and ends with 4. The version on which a local file is based is kept in `areo/files`
    /// of `$XDG_CACHE_HOME` (`~/.cache`), under its name; without it, a file that differs is written with --fresh alone.
    Push(Push),
    /// Copy the file to a local one, which appears complete or not at all
    Pull(Pull),
    /// Print the content
    Cat(FileName),
    /// Show how a local file differs from the file, chunk by chunk
    Diff(Diff),
    /// Show the blocks of a file: ids, versions, sizes, who wrote them
    Blocks(FileName),
    /// List files
    Ls {
        /// Only names with this prefix
        #[arg(default_value = "", hide_default_value = true)]
        prefix: String,
    },
    /// Remove a file with its blocks
    Rm(FileName),
}

#[derive(Args, Debug, Clone)]
pub(crate) struct FileName {
    /// Name of the file: 1 to 1024 bytes of UTF-8
    #[arg(value_parser = KeyParser)]
    pub(crate) name: String,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Push {
    /// Name of the file: 1 to 1024 bytes of UTF-8
    #[arg(value_parser = KeyParser)]
    pub(crate) name: String,
    /// The local file
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) cut: Cut,
    /// Replace the stored file by the local one, with all changes of other clients
    #[arg(long)]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Pull {
    /// Name of the file
    #[arg(value_parser = KeyParser)]
    pub(crate) name: String,
    /// The local file
    pub(crate) path: PathBuf,
    /// Replace the local file even if it has changes of its own
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) stats: Stats,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Diff {
    /// Name of the file
    #[arg(value_parser = KeyParser)]
    pub(crate) name: String,
    /// The local file
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) cut: Cut,
}

/// How to divide content into blocks. All clients that push a file should cut it alike.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct Cut {
    /// Algorithm that divides the file into blocks [default: as last time, else fastcdc]
    #[arg(long)]
    pub(crate) chunking: Option<Method>,
    /// Least size of a block, 4KiB to 64MiB [default: as last time, else 512KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub(crate) min: Option<usize>,
    /// Average size of a block [default: as last time, else 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub(crate) avg: Option<usize>,
    /// Largest size of a block [default: as last time, else 2MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub(crate) max: Option<usize>,
}

/// A way to find cuts.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// `FastCDC`
    Fastcdc,
    /// Rabin fingerprints, the papers' choice; slower, and for blocks above 16 MiB
    Rabin,
}
