//! The certificate of a gateway or a console.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Certificate {
    /// File with a certificate for callers, and the CAs up to its root, in PEM; without it connections are plain
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// File with the private key of --cert, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) cert_key: Option<PathBuf>,
    /// Have the cluster's CA issue a certificate for callers, and renew it; `areo ca export` prints the CA
    #[arg(long, conflicts_with_all = ["cert", "cert_key"])]
    pub(crate) tls: bool,
}
