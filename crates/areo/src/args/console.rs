//! The command line of the console.

use super::certificate::Certificate;
use areo_client::units::parse_timeout;
use clap::Args;
use std::time::Duration;

/// Show the cluster in a browser, and change it there
///
/// It runs in the foreground, on any machine that reaches the servers, and prints a URL that opens it once. Pages may do what the grants of the key
/// allow: that of the cluster file, or another one with which a person signs in. `docs/console.md` shows the pages.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Console {
    /// Address to listen on [default: 127.0.0.1:7470]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Names by which browsers reach it, beside addresses and localhost; several are separated by commas
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub(crate) name: Vec<String>,
    #[command(flatten)]
    pub(crate) certificate: Certificate,
    /// Age at which a session ends; one that is not used ends after a quarter of it [default: 8h]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) session: Option<Duration>,
}
