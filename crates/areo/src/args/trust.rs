//! The command line of the trust of a cluster: join tokens, access keys, CAs, the audit.

use areo_client::units::parse_timeout;
use areo_trust::grant::{Grant, GrantError, Grants};
use areo_trust::id::TokenId;
use areo_trust::roots::RootDigest;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Subcommand, Debug)]
pub(crate) enum Token {
    /// Make a token with which one machine becomes a server
    ///
    /// Its text is printed once, and stands in no list. The new server reads it from a file, from
    /// the environment or from its standard input.
    Create {
        /// The time in which it lets a server in
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_timeout)]
        ttl: Duration,
    },
    /// List tokens that were made
    Ls,
    /// Revoke a token
    Revoke {
        /// Its id, as `areo token ls` shows it
        #[arg(value_parser = parse_token)]
        id: TokenId,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum Key {
    /// Make a key, and print a cluster file with it
    ///
    /// Programs on other machines use the cluster with this file: `areo --cluster FILE ls`. The key stands in no other place.
    Create {
        /// Name: 1 to 63 characters, no space and no comma
        name: String,
        #[command(flatten)]
        grants: GrantArgs,
        /// Write the cluster file there, for its owner alone, instead of printing it
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the key of the cluster file as variables for clients of S3
    ///
    /// For a shell: `eval "$(areo key env)"`. It asks no server.
    Env,
    /// List keys
    Ls,
    /// Give a key a second secret, and print a cluster file with it
    ///
    /// Both secrets count until `areo key retire`.
    Rotate {
        /// Name or id of the key
        key: String,
        /// Write the cluster file there, for its owner alone, instead of printing it. One of this cluster is replaced
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Drop the older secret of a key that was rotated
    Retire {
        /// Name or id of the key
        key: String,
    },
    /// Give a key other grants instead of those that it has
    Grant {
        /// Name or id of the key
        key: String,
        #[command(flatten)]
        grants: GrantArgs,
    },
    /// Revoke a key, for ever
    ///
    /// Servers refuse it within seconds.
    Revoke {
        /// Name or id of the key
        key: String,
    },
}

/// The grants of a key.
#[derive(Args, Debug, Clone)]
pub(crate) struct GrantArgs {
    /// A grant of the key: `read,write:DOMAIN` with verbs read, write, list, delete, admin; `DOMAIN*` for all whose names
    /// begin so, `*` for all domains. Of the whole cluster: status, reconfig, keys, join, trace, gateway. May be repeated
    #[arg(long = "grant", value_name = "VERBS[:WHERE]", required = true)]
    grants: Vec<Grant>,
}

impl GrantArgs {
    /// All of them as one set.
    ///
    /// # Errors
    /// They are too many.
    pub(crate) fn grants(&self) -> Result<Grants, GrantError> {
        Grants::new(self.grants.clone())
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Ca {
    /// List the CAs that the cluster trusts
    Ls,
    /// Print the certificates of the CAs that the cluster trusts, in PEM, the one that issues first
    ///
    /// Clients of a gateway with --tls verify it by them. Any key will do.
    Export,
    /// Have a new CA issue the certificates of all servers
    ///
    /// Waits until each server trusts the new CA, has it issue, and waits until each server has a certificate of it. Started again, it goes
    /// on. The old CA stays trusted until `areo ca drop`.
    Rotate,
    /// Trust a CA of your own beside those of the cluster
    ///
    /// Servers with certificates of it are let in.
    Trust {
        /// Its certificate, as PEM or DER
        file: PathBuf,
    },
    /// Trust a CA no longer
    ///
    /// Asks each server first whether its certificate stands on another one.
    Drop {
        /// Its digest, as `areo ca ls` shows it
        #[arg(value_parser = parse_digest)]
        digest: RootDigest,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum Audit {
    /// List changes of CAs, tokens and keys, and who made them
    Ls {
        /// Those of the last so many hours or days, such as 12h or 7d [default: all]
        #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
        since: Option<Duration>,
    },
}

fn parse_token(text: &str) -> Result<TokenId, String> {
    // A whole token is not repeated: it is a secret.
    let id = TokenId::parse(text);
    id.ok_or_else(|| {
        "the id of a token has 16 digits out of 0-9 and a-f: `areo token ls` lists them".into()
    })
}

fn parse_digest(text: &str) -> Result<RootDigest, String> {
    let digest = RootDigest::parse(text);
    digest.ok_or_else(|| {
        "the digest of a CA has 64 digits out of 0-9 and a-f: `areo ca ls` lists them".into()
    })
}
