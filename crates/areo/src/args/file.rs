//! The part of the command line that is about files.

use super::values::KeyParser;
use super::{Stats, parse_block_size};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum File {
    /// Write what changed in a local file since it was last pushed or pulled
    ///
    /// Blocks that others have changed elsewhere stay as they are. A block that another client has changed as well is not
    /// written: the command says which, and ends with 4. What a local file is based on is kept in `areo/files` of
    /// `$XDG_CACHE_HOME` (`~/.cache`); without that, the file is compared with what is there, and replaces it.
    Push(Push),
    /// Make a local file what the file is; it appears complete or not at all
    Pull(Pull),
    /// Print the content
    Cat(FileName),
    /// Show how a local file differs from the file, chunk by chunk
    Diff(Diff),
    /// Show the blocks of a file: ids, versions, sizes, who wrote them
    Blocks(FileName),
    /// List files
    Ls {
        /// Only names that begin with this
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
    /// Forget what the local file is based on: make the file what it is, and replace what others have written
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

/// How to cut content into blocks. All clients that push a file should cut it alike.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct Cut {
    /// How to find cuts [default: as last time, else fastcdc]
    #[arg(long)]
    pub(crate) chunking: Option<Method>,
    /// Bytes that a block has at least, 4KiB to 64MiB [default: as last time, else 512KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub(crate) min: Option<usize>,
    /// Bytes that a block has about [default: as last time, else 1MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_size)]
    pub(crate) avg: Option<usize>,
    /// Bytes that a block has at most [default: as last time, else 2MiB]
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
