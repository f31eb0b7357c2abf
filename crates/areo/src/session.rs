//! Talking to the cluster: which one is meant, connecting, and endings of the library as exit codes.

use crate::args::Global;
use crate::config::{self, Settings};
use crate::exit::{Code, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::log;
use crate::output::Output;
use crate::outside;
use crate::progress;
use areo_client::cluster_file::ClusterFile;
use areo_client::units::parse_timeout;
use areo_client::{
    Access, Client, ConnectError, ConnectOptions, CreateDomainError, DEFAULT_TIMEOUT, Domain,
    Error, InvalidChoice, Metrics, ROOT_DOMAIN, place,
};
use areo_trust::key::AccessKey;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The cluster file if nothing names a cluster.
const DEFAULT_FILE: &str = "areo-data/cluster.toml";
/// Time that every step has, however long those before it took: enough to be tried.
const LEAST: Duration = Duration::from_millis(50);
const DEFAULT_DOMAIN: &str = "default";

/// The common parts of every command that talks to a cluster.
pub struct Session {
    /// The manner of printing.
    pub out: Output,
    pub(crate) settings: Settings,
    /// The metrics of all its clients.
    pub(crate) metrics: Metrics,
    pub(crate) global: Global,
}

/// The cluster of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// That of a cluster file.
    File(PathBuf, ClusterFile),
    /// That of these servers.
    Addresses(Vec<String>),
}

impl Session {
    pub(crate) fn new(out: Output, settings: Settings, global: Global) -> Session {
        Session {
            out,
            settings,
            metrics: Metrics::new(),
            global,
        }
    }

    /// The longest time for an operation.
    pub(crate) fn timeout(&self) -> Outcome<Duration> {
        self.timeout_or(DEFAULT_TIMEOUT)
    }

    /// The longest time for an operation where the user names none, and the usual one does not fit.
    ///
    /// # Errors
    /// What environment or file say is no time.
    pub fn timeout_or(&self, usual: Duration) -> Outcome<Duration> {
        let timeout = self
            .settings
            .get(self.global.common.timeout, "timeout", parse_timeout)?;
        Ok(timeout.unwrap_or(usual))
    }

    /// The cluster that flag, environment or configuration file name, if one does.
    pub(crate) fn named_target(&self) -> Outcome<Option<Target>> {
        let named = self.global.cluster.clone();
        let named = self.settings.get(named, "cluster", config::text)?;
        named.map(|named| target(&named)).transpose()
    }

    /// The cluster that is meant.
    ///
    /// # Errors
    /// None is.
    pub(crate) fn target(&self) -> Outcome<Target> {
        self.target_here()?.ok_or_else(|| {
            Failure::usage(format!(
                "there is no cluster here (no {DEFAULT_FILE}): run `areo up` or pass --cluster"
            ))
        })
    }

    /// The cluster that is named, else that of the file in this directory, if there is one.
    pub(crate) fn target_here(&self) -> Outcome<Option<Target>> {
        if let Some(target) = self.named_target()? {
            return Ok(Some(target));
        }
        let path = Path::new(DEFAULT_FILE);
        let file = ClusterFile::read(path)?;
        Ok(file.map(|file| Target::File(path.into(), file)))
    }

    /// A client of the cluster that is meant.
    pub(crate) async fn connect(&self) -> Outcome<Client> {
        let addresses = self.target()?.addresses();
        let connect = self.connect_within(self.timeout()?);
        progress::connecting(self.out, &addresses, connect).await
    }

    /// A client of the cluster with another timeout.
    pub(crate) async fn connect_within(&self, timeout: Duration) -> Outcome<Client> {
        let target = self.target()?;
        let options = ConnectOptions {
            metrics: Some(self.metrics.clone()),
            access: self.access(&target)?,
            ..target.options(timeout)
        };
        let connected = Client::connect(options).await;
        let client = connected.map_err(|error| unreachable(&error, &target))?;
        let hardware = self
            .settings
            .get(self.global.hardware_id, "hardware-id", config::number)?;
        if let Some(hardware) = hardware {
            client.reincarnate(hardware).await.map_err(failure)?;
        }
        Ok(client)
    }

    /// Everything by which this process proves itself: environment and configuration file over the cluster file.
    pub(crate) fn access(&self, target: &Target) -> Outcome<Option<Access>> {
        let key = self.settings.get(None, "key", config::key)?;
        Ok(key.or(target.key()).map(Access::Key))
    }

    /// The domain of this name; or the root domain, of which the configurations can be seen and changed.
    pub(crate) async fn find(&self, client: &Client, name: &str) -> Outcome<Domain> {
        let find = async {
            match name {
                ROOT_DOMAIN => Ok(client.root_domain().await),
                name => client.domain(name).await.map_err(failure),
            }
        };
        progress::late(self.out, client, find).await
    }

    /// The name of the domain that is meant.
    pub(crate) fn domain_name(&self) -> Outcome<String> {
        let name = self.named_domain()?;
        Ok(name.unwrap_or_else(|| DEFAULT_DOMAIN.into()))
    }

    /// The name of the domain, if flag, environment or configuration file say one.
    pub(crate) fn named_domain(&self) -> Outcome<Option<String>> {
        let named = self.global.domain.clone();
        self.settings.get(named, "domain", config::text)
    }

    /// A client, and the domain of the command. The operation that follows has the rest of the time.
    pub(crate) async fn domain(&self) -> Outcome<(Client, Domain)> {
        let name = self.domain_name()?;
        let (begun, timeout) = (Instant::now(), self.timeout()?);
        let left = || timeout.saturating_sub(begun.elapsed()).max(LEAST);
        let client = self.connect().await?;
        let hurried = client.with_timeout(left());
        let domain = progress::late(self.out, &client, hurried.domain(&name)).await;
        let domain = domain.map_err(failure)?.with_timeout(left());
        Ok((client, domain))
    }

    /// A client and the domain for a write that may replace a large value. `keeps_replaced`: its blocks are
    /// left to a sweep.
    pub(crate) async fn domain_to_write(&self, keeps_replaced: bool) -> Outcome<(Client, Domain)> {
        let (client, domain) = self.domain().await?;
        match keeps_replaced {
            true => Ok((client, domain.keeping_replaced())),
            false => Ok((client, domain)),
        }
    }
}

impl Target {
    /// The options to reach it.
    pub(crate) fn options(&self, timeout: Duration) -> ConnectOptions {
        let options = match self {
            Target::File(_, file) => ConnectOptions::from(file.clone()),
            Target::Addresses(addresses) => ConnectOptions {
                addresses: addresses.clone(),
                ..ConnectOptions::default()
            },
        };
        let common = connect_options();
        ConnectOptions {
            timeout,
            trace_source: common.trace_source,
            decide_outside: common.decide_outside,
            ..options
        }
    }

    /// The key in its file, if there is one.
    fn key(&self) -> Option<AccessKey> {
        match self {
            Target::File(_, file) => file.key.clone(),
            Target::Addresses(_) => None,
        }
    }

    /// Addresses of its servers, as far as they are known.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match self {
            Target::File(_, file) => file.addresses(),
            Target::Addresses(addresses) => addresses.clone(),
        }
    }
}

/// The options of every client of this program.
pub fn connect_options() -> ConnectOptions {
    ConnectOptions {
        trace_source: Some(log::trace_of),
        decide_outside: Some(outside::way),
        ..ConnectOptions::default()
    }
}

/// Writes a cluster file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_cluster_file(file: &ClusterFile, path: &Path) -> Outcome {
    let written = file.write(path);
    written.map_err(|error| Failure::file("write the cluster file", path, &error))
}

/// A file if there is one of this name, else addresses.
fn target(named: &str) -> Outcome<Target> {
    let path = Path::new(named);
    if let Some(file) = ClusterFile::read(path)? {
        return Ok(Target::File(path.into(), file));
    }
    let addresses: Vec<String> = named.split(',').map(|a| a.trim().to_owned()).collect();
    match addresses.iter().all(|address| is_address(address)) {
        true => Ok(Target::Addresses(addresses)),
        false => Err(Failure::usage(format!(
            "'{named}' names no cluster: there is no such file, and addresses are written HOST:PORT"
        ))),
    }
}

/// True if the text is an address, whose name may resolve or not.
pub(crate) fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        let is_host = |c: char| c != '/' && !c.is_whitespace();
        !host.is_empty()
            && host.chars().all(is_host)
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// Runs an operation; Ctrl-C, SIGTERM and SIGHUP end it, so that its resources are cleaned up.
///
/// # Errors
/// Those of the operation; [`Code::Interrupted`], with `interrupted` as the sentence if it is not empty.
pub fn run<T>(operation: impl Future<Output = Outcome<T>>, interrupted: &str) -> Outcome<T> {
    run_until(async |mut interrupt| {
        tokio::select! {
            outcome = operation => outcome,
            () = interrupt.asked() => Err(stopped(interrupted)),
        }
    })
}

/// Runs an operation that ends by itself when it is interrupted.
///
/// # Errors
/// Those of the operation.
pub(crate) fn run_until<T>(operation: impl AsyncFnOnce(Interrupt) -> Outcome<T>) -> Outcome<T> {
    let interrupt = Interrupt::watch()?;
    run_unwatched(operation(interrupt))
}

/// Runs an operation that a signal ends with the process. A server does something so before it begins: it handles signals itself, and
/// `Interrupt` would end it while it drains. A command cleans up so after it was interrupted.
///
/// # Errors
/// Those of the operation.
///
/// # Errors
/// Those of the operation.
pub fn run_unwatched<T>(operation: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(operation);
    // A thread that still waits for input is not waited for; one that copies a value into a file is.
    runtime.shutdown_background();
    place::settle();
    outcome
}

fn stopped(sentence: &str) -> Failure {
    match sentence {
        "" => Failure::interrupted(),
        sentence => Failure::new(Code::Interrupted, sentence),
    }
}

/// A cluster of which no server answers. That of a file may have moved or be down; which is not for us to know.
pub(crate) fn unreachable(error: &ConnectError, target: &Target) -> Failure {
    let code = match error {
        ConnectError::NoAddress | ConnectError::SeveralClusters { .. } => Code::Usage,
        ConnectError::NoServer { .. } => Code::Unavailable,
        ConnectError::Unauthorised { .. } => Code::Unauthorised,
        // Of `Thread`, and of what the library may come to tell apart.
        _ => Code::Other,
    };
    let from = match (target, error) {
        (Target::File(path, _), ConnectError::NoServer { .. }) => {
            format!(" (addresses from {})", path.display())
        }
        _ => String::new(),
    };
    Failure::new(code, format!("{error}{from}"))
}

/// The failure of the process for an error of the library.
#[allow(clippy::needless_pass_by_value)] // For `map_err`.
pub(crate) fn failure(error: Error) -> Failure {
    let code = match &error {
        Error::NotFound { .. } | Error::Removed { .. } => Code::NotFound,
        Error::VersionConflict { .. } | Error::Swept { .. } => Code::Precondition,
        Error::Unavailable { .. } => Code::Unavailable,
        Error::Unknown { .. } => Code::Unknown,
        Error::Undecided { undecided, .. } => match undecided.handed_over {
            true => Code::Unknown,
            false => Code::Unavailable,
        },
        // Nothing was written: damage is for reads to report.
        Error::Obstructed { call } if call.operation.writes() => Code::Unavailable,
        Error::Corrupted { .. } | Error::Obstructed { .. } => Code::Corrupted,
        Error::Unauthorised { .. } => Code::Unauthorised,
        Error::Invalid { .. } => Code::Usage,
        // What the library may come to tell apart.
        _ => Code::Other,
    };
    let hint = match &error {
        Error::NotFound { domain, key: None } if domain == DEFAULT_DOMAIN => {
            ": `areo domain create default` makes it".into()
        }
        Error::NotFound { key: None, .. } => ": `areo domain ls` lists those that exist".into(),
        Error::Removed { domain } => format!(": `areo domain rm {domain}` finishes the removal"),
        _ => String::new(),
    };
    Failure::new(code, format!("{error}{hint}"))
}

/// The failure of the process for an impossible configuration.
pub(crate) fn choice_failure(error: &InvalidChoice) -> Failure {
    let code = match error {
        InvalidChoice::UnknownServer { .. } | InvalidChoice::NotAMember { .. } => Code::NotFound,
        InvalidChoice::TooFewServers { .. } | InvalidChoice::TooFewStay { .. } => {
            Code::Precondition
        }
        InvalidChoice::AmbiguousServer { .. }
        | InvalidChoice::ServerTwice { .. }
        | InvalidChoice::MemberAlready { .. }
        | InvalidChoice::ReplacesItself { .. }
        | InvalidChoice::Leaving { .. }
        | InvalidChoice::NoFreeServer { .. }
        | InvalidChoice::SameAddress { .. }
        | InvalidChoice::NoFragments { .. }
        | InvalidChoice::NothingToLeaveOff
        | InvalidChoice::NoCrashTolerated { .. }
        | InvalidChoice::NeedsPiggyback { .. }
        | InvalidChoice::NotInALattice { .. }
        | InvalidChoice::TooFewToBegin { .. }
        | InvalidChoice::ServersOnly { .. }
        | InvalidChoice::InvalidShape { .. } => Code::Usage,
    };
    Failure::new(code, error.to_string())
}

/// The failure of the process for a domain that was not created.
pub(crate) fn creation_failure(error: CreateDomainError) -> Failure {
    let code = match &error {
        CreateDomainError::Choice { error } => return choice_failure(error),
        CreateDomainError::Exists { .. } => Code::Precondition,
        CreateDomainError::Unavailable { .. } => Code::Unavailable,
        CreateDomainError::Unknown { .. } => Code::Unknown,
        _ => Code::Other,
    };
    match error {
        CreateDomainError::Other { error } => failure(error),
        error => Failure::new(code, error.to_string()),
    }
}

#[cfg(test)]
mod tests;
