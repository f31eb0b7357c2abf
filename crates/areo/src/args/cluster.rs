//! The command line: the cluster as a whole.

use areo_client::units::parse_timeout;
use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct Status {
    /// Wait until the cluster is ready, at most for this time: the domain (`--domain`, or `default`) exists, and a quorum of the
    /// servers of every domain serves. Then ends with 3 if the domain is missing, with 5 if a quorum is missing
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) wait: Option<Duration>,
}

#[derive(Subcommand, Debug, Clone, Copy)]
pub(crate) enum Cluster {
    /// Finalize an upgrade: use what is new, and start no older program any more
    ///
    /// Every server that is not forgotten must have been started with the new program; otherwise it ends with 4. Once it has begun there may be no way
    /// back to the program of before, also if it is interrupted: run it again then. `areo status` shows the versions of servers; *Upgrade* in `docs/operations.md` says what is promised between versions.
    Finalize,
}
