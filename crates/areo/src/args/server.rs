//! The command line of servers: running one, and taking one out of the cluster.

use super::values::parse_max_object;
use super::{DurabilityWord, LogWord, RootWord};
use areo_client::units::{parse_size, parse_timeout};
use areo_client::{LabelChange, Maintenance};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug, Clone, Default)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Server {
    #[command(subcommand)]
    pub(crate) verb: Option<ServerVerb>,
    /// Directory of the server's identity and data
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:7400]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,
    /// Address at which others reach this server [default: that of --listen]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<String>,
    /// Address for health and administration [default: loopback, port 90 above]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) admin: Option<String>,
    /// Begin a new cluster, with this server as its root domain
    #[arg(long, conflicts_with = "join")]
    pub(crate) init: bool,
    /// Who changes the members of the root domain: `auto`, it grows to 3 and 5 members when servers join; `fixed`, people [default: auto]
    #[arg(long, value_name = "WHO", requires = "init", conflicts_with = "join")]
    pub(crate) root: Option<RootWord>,
    /// Join the cluster of a server
    #[arg(long, value_name = "ADDR[,ADDR]", value_delimiter = ',')]
    pub(crate) join: Vec<String>,
    /// File with the join token for a cluster that has keys; `-` for standard input [environment: `AREO_TOKEN` has the token itself]
    #[arg(long, value_name = "FILE", requires = "join", conflicts_with = "init")]
    pub(crate) token: Option<PathBuf>,
    /// Keys for clients, certificates for servers and encrypted connections also on loopback; on other addresses there always are
    #[arg(long, requires = "init", conflicts_with = "join")]
    pub(crate) tls: bool,
    /// File with a certificate for this server from a PKI of your own, and the CAs up to its root, in PEM; read again when it changes [default: a certificate of the cluster's CA]
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// File with the private key of --cert, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) cert_key: Option<PathBuf>,
    /// Name of the server, unique in the cluster [default: s1 with --init, the next free of s1, s2, ... with --join]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// What an acknowledgement means [default: fsync]
    #[arg(long)]
    pub(crate) durability: Option<DurabilityWord>,
    /// Largest value of one object, up to 1GiB [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_max_object)]
    pub(crate) max_object: Option<u64>,
    /// Bytes of objects that the server reads in a second, at most, to repair itself; 0: it does not [default: 32MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) repair_rate: Option<u64>,
    /// Bytes of its records that the server verifies in a second, at most; 0: only those that are read [default: 1280KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) scrub_rate: Option<u64>,
    /// Format of log lines [default: text]
    #[arg(long)]
    pub(crate) log: Option<LogWord>,
    /// Stop when standard input ends: `areo up` holds the other end, however it dies
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum ServerVerb {
    /// Put another server in the place of one that is lost, in every domain that names it
    ///
    /// The cluster remembers that the server is to go, and chooses it for nothing any more; `keep` takes that back.
    /// Clients read and write meanwhile. If this process dies, run it again, from anywhere: the domains that still name
    /// the server are left to do. A domain that cannot be changed does not keep the others from it; its exit code is that of the command.
    Replace {
        #[command(flatten)]
        departure: Departure,
        /// The server that comes [default: one that serves and is no member, of several the one in the fewest domains]
        #[arg(long, value_name = "NEW")]
        with: Option<String>,
    },
    /// Empty a server: take it out of every domain
    ///
    /// The cluster remembers that the server is to go, and chooses it for nothing any more; `keep` takes that back. Another server takes its place, as with `replace`. Where none is free, the domain goes on with one server less if that
    /// tolerates a crash.
    Drain {
        #[command(flatten)]
        departure: Departure,
    },
    /// Take back that a server is to go, after `drain` or `replace`
    ///
    /// It may be chosen for domains again. Domains that it was taken out of stay as they are.
    Keep {
        /// The server, by name or id
        server: String,
    },
    /// List the servers with their labels, and the plans that people have with them
    Ls,
    /// Label a server: its zone, its class, that it is to be emptied, and texts of your own
    ///
    /// `zone=a`: domains keep their members in several zones, and the autopilot moves members where one zone has too many. `class=hdd`: rules
    /// of the autopilot may empty a class of servers. `empty=yes`: the autopilot replaces it in the background. A label without a text is removed: `empty=`.
    /// Labels stay when the server starts again.
    Label {
        /// The server, by name or id
        server: String,
        /// Label and its text
        #[arg(value_name = "KEY=TEXT", required = true)]
        changes: Vec<LabelChange>,
    },
    /// Keep the autopilot from replacing a server while people work at it
    ///
    /// It may be away until then: the autopilot says that it waits. Domains lose its redundancy meanwhile as with any server that is away.
    Maintain(Maintain),
    /// Ask a server whether it serves: ends with 0, or with 5
    ///
    /// For a container engine. It asks the admin port without a key.
    Health(HealthQuestion),
    /// Take a server that is stopped, and in no domain, off the list
    ///
    /// Its data directory cannot be started again, and its name stays taken.
    Forget {
        /// The server, by name or id
        server: String,
    },
}

/// The maintenance of a server.
#[derive(Args, Debug, Clone)]
pub(crate) struct Maintain {
    /// The server, by name or id
    pub(crate) server: String,
    /// Time until it ends by itself, at most 7d
    #[arg(long = "for", value_name = "TIME", value_parser = parse_maintenance, required_unless_present = "end")]
    pub(crate) time: Option<Duration>,
    /// Text for others who look at the server
    #[arg(long, value_name = "TEXT", conflicts_with = "end")]
    pub(crate) reason: Option<String>,
    /// End it now
    #[arg(long, conflicts_with = "time")]
    pub(crate) end: bool,
}

fn parse_maintenance(text: &str) -> Result<Duration, String> {
    match parse_timeout(text)? {
        time if time > Maintenance::LONGEST => Err("a maintenance lasts for at most 7d".into()),
        time => Ok(time),
    }
}

/// The question about a server's health.
#[derive(Args, Debug, Clone)]
pub(crate) struct HealthQuestion {
    /// Address of the admin port [default: that of a server with the settings of this machine]
    #[arg(value_name = "HOST:PORT")]
    pub(crate) admin: Option<String>,
    /// State to ask for [default: ready]
    #[arg(long, value_name = "WHAT")]
    pub(crate) of: Option<HealthOf>,
}

/// The state of a server that is asked for.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum HealthOf {
    /// The process runs
    Live,
    /// The server serves
    #[default]
    Ready,
    /// It serves, and sees a quorum of every domain
    Cluster,
}

/// The server that goes.
#[derive(Args, Debug, Clone)]
pub(crate) struct Departure {
    /// The server that goes, by name or id
    pub(crate) server: String,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}
