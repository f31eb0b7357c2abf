//! The options of connecting to a cluster, and the errors of looking for it.

use crate::cluster::ClusterId;
use crate::cluster_file::{ClusterFile, ClusterFileError};
use crate::metrics::Metrics;
use areo_net::Tls;
use areo_net::outside::DecideOutside;
use areo_net::trace::TraceSource;
use areo_trust::id::KeyId;
use areo_trust::key::AccessKey;
use std::path::Path;
use std::time::Duration;

/// The longest time that an operation may take unless the user says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The place of a cluster, and the settings of a client of it.
///
/// ```
/// use areo_client::{ConnectOptions, Metrics};
///
/// let options = ConnectOptions {
///     metrics: Some(Metrics::new()),
///     ..ConnectOptions::from("10.0.0.1:7400,10.0.0.2:7400")
/// };
/// assert_eq!(options.addresses.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Addresses of servers, `host:port`. One that answers is enough: it knows the others.
    pub addresses: Vec<String>,
    /// The cluster that is meant; servers of another one are refused. `None`: that of the first server that answers.
    pub cluster: Option<ClusterId>,
    /// The longest time that connecting may take, and later each operation (see [`crate::Client::with_timeout`]).
    pub timeout: Duration,
    /// Metrics of the client, together with others that are given these. `None`: by itself ([`crate::Client::metrics`]).
    pub metrics: Option<Metrics>,
    /// Returns the identity of a span, so that servers join its trace. `None`: requests belong to no trace.
    pub trace_source: Option<TraceSource>,
    /// Asks a service outside the cluster, where a domain has one decide which configuration comes next. `None`: such
    /// domains cannot be changed by this client.
    pub decide_outside: Option<DecideOutside>,
    /// Everything by which this process proves itself. `None`: the cluster has no keys, and connections to it are plain.
    pub access: Option<Access>,
}

/// Everything by which a client proves itself to a cluster with keys.
#[derive(Clone, Debug)]
pub enum Access {
    /// An access key. It is all that a client needs: a server proves the same key before it is believed.
    Key(AccessKey),
    /// The key of a gateway, and another key on whose behalf it acts: the client has the rights of the other key,
    /// except rights to the whole cluster other than `status` ([`crate::Client::on_behalf`]).
    Behalf {
        /// The key of the gateway, which has the grant `gateway`.
        gateway: AccessKey,
        /// Id of the key on whose behalf the gateway acts.
        of: KeyId,
    },
    /// The certificate of a server, for operations of the server itself.
    Certificate(Tls),
}

/// No address, any cluster, 10 s, and nothing else.
impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            addresses: Vec::new(),
            cluster: None,
            timeout: DEFAULT_TIMEOUT,
            metrics: None,
            trace_source: None,
            decide_outside: None,
            access: None,
        }
    }
}

impl ConnectOptions {
    /// Options for the cluster file at this path, and for these addresses where there is no such file.
    ///
    /// # Errors
    /// [`ClusterFileError`] if there is something else than a cluster file.
    pub fn of(cluster: &str) -> Result<ConnectOptions, ClusterFileError> {
        let file = ClusterFile::read(Path::new(cluster))?;
        Ok(file.map_or_else(|| cluster.into(), ConnectOptions::from))
    }
}

/// All servers of the file, its cluster, and its key, if it has one; 10 s.
impl From<ClusterFile> for ConnectOptions {
    fn from(file: ClusterFile) -> ConnectOptions {
        ConnectOptions {
            addresses: file.addresses(),
            cluster: Some(ClusterId(file.cluster)),
            access: file.key.map(Access::Key),
            ..ConnectOptions::default()
        }
    }
}

/// One or several addresses, separated by commas; any cluster, 10 s.
impl From<&str> for ConnectOptions {
    fn from(addresses: &str) -> ConnectOptions {
        let addresses = addresses.split(',').map(str::trim);
        ConnectOptions {
            addresses: addresses
                .filter(|address| !address.is_empty())
                .map(Into::into)
                .collect(),
            ..ConnectOptions::default()
        }
    }
}

/// No cluster was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No address was given.
    #[error("no address of a server was given: give at least one, as host:port")]
    NoAddress,
    /// No server of the cluster answered at any address.
    #[error("no server of {} answers ({}): is it running, and is this where?", named(.cluster.as_ref()), listed(.attempts))]
    NoServer {
        /// The cluster that was meant, if one was.
        cluster: Option<ClusterId>,
        /// The attempt at each address, in the order given.
        attempts: Vec<Attempt>,
    },
    /// The cluster does not take the access key.
    #[error("not authorised: {sentence}")]
    Unauthorised {
        /// The fault, and the way to mend it, in one sentence.
        sentence: String,
    },
    /// Servers of several clusters answered.
    #[error("the addresses are of several clusters ({}): name servers of one", .found.iter().map(|(address, cluster)| format!("{address} of {cluster}")).collect::<Vec<_>>().join(", "))]
    SeveralClusters {
        /// Addresses and their clusters: the first that answered, and one of another cluster.
        found: Vec<(String, ClusterId)>,
    },
    /// The operating system gave no thread, or nothing to run a network with.
    #[error("the thread for the network cannot be started: {error}")]
    Thread {
        /// The error of the operating system.
        error: String,
    },
}

/// An attempt to connect to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The address, host and port.
    pub address: String,
    /// Why it was of no use: `connection refused`, `timed out`, `belongs to another cluster`, ...
    pub reason: String,
}

fn named(cluster: Option<&ClusterId>) -> String {
    cluster.map_or("a cluster".to_owned(), |cluster| {
        format!("cluster {cluster}")
    })
}

fn listed(attempts: &[Attempt]) -> String {
    let list = |Attempt { address, reason }: &Attempt| format!("{address} {reason}");
    let attempts: Vec<String> = attempts.iter().map(list).collect();
    attempts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_separated_by_commas() {
        let options = ConnectOptions::from("a:1, b:2,,");
        assert_eq!(options.addresses, ["a:1", "b:2"]);
        assert!(ConnectOptions::from("").addresses.is_empty());
    }

    #[test]
    fn the_sentence_names_every_address() {
        let attempt = |address: &str, reason: &str| Attempt {
            address: address.into(),
            reason: reason.into(),
        };
        let error = ConnectError::NoServer {
            cluster: Some(ClusterId(15)),
            attempts: vec![
                attempt("a:1", "connection refused"),
                attempt("b:2", "timed out"),
            ],
        };
        assert_eq!(
            error.to_string(),
            "no server of cluster 0000000000000000000000000000000f answers \
             (a:1 connection refused, b:2 timed out): is it running, and is this where?"
        );
    }
}
