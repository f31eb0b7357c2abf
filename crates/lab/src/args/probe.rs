//! `areo-lab probe`.

use areo_lab::probe::Endpoint;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum Probe {
    /// Find out what a store with an interface of S3 promises
    ///
    /// Several writers create and replace one object over all endpoints, delete versions, complete uploads, send requests again, read and list. The history is judged
    /// as that of a compare-and-set register; a violation is shown by the smallest set of operations. Everything that the run makes is removed, also
    /// when it is interrupted: a bucket of its own, or what is below its own prefix in `--bucket`. Credentials are `AWS_ACCESS_KEY_ID` and
    /// `AWS_SECRET_ACCESS_KEY`, or those of a file. Ends with 1 if something is violated, with 8 if something could not be judged, with 5 if an endpoint
    /// does not answer. `docs/probe.md` explains the cases.
    S3(Box<ProbeS3>),
}

#[derive(Args, Debug)]
pub(crate) struct ProbeS3 {
    /// Gateways of one store, such as `http://127.0.0.1:7480`
    #[arg(value_name = "ENDPOINT", required = true, value_parser = Endpoint::parse)]
    pub(crate) endpoints: Vec<Endpoint>,
    /// A bucket that exists [default: one of its own, which is removed]
    #[arg(long, value_name = "NAME", value_parser = bucket)]
    pub(crate) bucket: Option<String>,
    /// Clients that write at once
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=256))]
    pub(crate) writers: u16,
    /// Number of races for a version
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rounds: u16,
    /// The region in signatures [default: `AWS_REGION`, `AWS_DEFAULT_REGION`, us-east-1]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Credentials in the format of the AWS CLI, of the profile `AWS_PROFILE` or `default`
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) credentials: Option<PathBuf>,
    /// CAs in PEM for https [default: those of the system]
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) ca: Option<PathBuf>,
    /// A command that takes a minority of the servers away: conditional writes are then tried
    #[arg(long, value_name = "COMMAND", requires = "back")]
    pub(crate) minority_away: Option<String>,
    /// A command that takes so many servers away that there is no quorum
    #[arg(long, value_name = "COMMAND", requires = "back")]
    pub(crate) quorum_away: Option<String>,
    /// A command that brings them back; it runs also when the probe is interrupted
    #[arg(long, value_name = "COMMAND")]
    pub(crate) back: Option<String>,
    /// Write the verdict as a page
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) html: Option<PathBuf>,
    /// Write the history, which `areo-lab check` judges
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) history: Option<PathBuf>,
}

fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A name of a bucket, which is part of paths as it is.
fn bucket(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match (3..=63).contains(&text.len()) && text.bytes().all(is_name) {
        true => Ok(text.to_owned()),
        false => Err("a bucket has 3 to 63 letters, digits, hyphens and points".to_owned()),
    }
}
