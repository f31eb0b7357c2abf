//! The command line of the S3 gateway.

use super::DapWord;
use super::certificate::Certificate;
use areo_client::units::parse_timeout;
use clap::Args;
use std::time::Duration;

#[derive(Args, Debug, Clone, Default)]
pub(crate) struct S3 {
    /// Address to listen on [default: 127.0.0.1:7480]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Region that clients sign for [default: us-east-1]
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,
    /// Domain under which buckets have names of their own, as `BUCKET.s3.example`; several are separated by commas
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub(crate) domain_name: Vec<String>,
    /// Kind of new buckets [default: conditional]
    #[arg(long)]
    pub(crate) default_dap: Option<DapWord>,
    /// Elements from which values of new buckets are restored [default: by the number of servers]
    #[arg(long, value_name = "K")]
    pub(crate) default_k: Option<u8>,
    #[command(flatten)]
    pub(crate) certificate: Certificate,
    /// Names and addresses by which clients reach this gateway, for --tls; several are separated by commas [default: those of --listen and --domain-name]
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',')]
    pub(crate) tls_name: Vec<String>,
    /// Connections at a time [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<usize>,
    /// Pause between two passes over the lifecycle rules of buckets [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) lifecycle_every: Option<Duration>,
    /// Stop when standard input ends: `areo up` holds the other end, however it dies
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}
