//! The root domain's marks of servers that leave: that they are to leave, and that they are forgotten.

use super::ReconfigError;
use super::departure::{leaving, sequences, serving, with_root};
use crate::choice::{self, InvalidChoice};
use crate::cluster::{ROOT_DOMAIN, ServerInfo};
use crate::error::Error;
use crate::operation::Operation;
use crate::session::{Context, KnownDomain};
use areo_core::config::{Configuration, ServerId};
use areo_core::gather;
use std::sync::Arc;

/// Domains that are asked at once which servers they name.
const DOMAINS_AT_ONCE: usize = 64;

/// A server that was not forgotten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForgetError {
    /// There is no such server, or there are several.
    #[error("{error}")]
    Choice {
        /// The reason why no single server was found.
        error: InvalidChoice,
    },
    /// The server is a member of configurations.
    #[error("'{server}' is a member of {}: take it out first (`areo server replace {server}` or `areo server drain {server}`)", .domains.join(", "))]
    Named {
        /// Name of the server.
        server: String,
        /// Names of the domains with these configurations.
        domains: Vec<String>,
    },
    /// The server is running and serves.
    #[error("'{server}' serves: stop it first, it could not start again")]
    Serves {
        /// Name of the server.
        server: String,
    },
    /// A domain may name it, or no quorum took note.
    #[error("{error}")]
    Other {
        /// The error of the call.
        error: Error,
    },
}

impl From<InvalidChoice> for ForgetError {
    fn from(error: InvalidChoice) -> ForgetError {
        ForgetError::Choice { error }
    }
}

impl From<Error> for ForgetError {
    fn from(error: Error) -> ForgetError {
        ForgetError::Other { error }
    }
}

/// Marks the server as one that is to go, or that is to stay. `None`: it is in no directory.
pub(crate) async fn mark_leaving(
    context: &Context,
    domains: Vec<(String, Arc<Configuration>)>,
    server: &str,
    is_leaving: bool,
) -> Result<Option<ServerInfo>, ReconfigError> {
    let names = context.servers().await?;
    let record = match choice::member(server, &names) {
        Ok(record) => record,
        Err(error @ InvalidChoice::UnknownServer { .. }) => {
            // A member that has ended for good and is in no directory: no server is chosen from elsewhere.
            let sequences = sequences(context, domains).await;
            let found = leaving(server, &names, &sequences);
            return found.map(|_| None).map_err(|_| error.into());
        }
        Err(error) => return Err(error.into()),
    };
    if record.is_leaving() != is_leaving {
        let root = context.root_handle();
        let marked = root.mark_leaving(record, is_leaving);
        marked.await.map_err(|failed| context.unknown(&failed))?;
    }
    let names = context.servers().await?;
    Ok(names.records().get(&record.id).map(ServerInfo::from))
}

/// Forgets a server that no configuration names, and that does not serve.
pub(crate) async fn forget(
    context: &Context,
    domains: Vec<(String, Arc<Configuration>)>,
    server: &str,
) -> Result<ServerInfo, ForgetError> {
    let names = context.servers().await?;
    let record = choice::member(server, &names)?;
    let domains = naming(context, domains, record.id).await?;
    let server = record.name.clone();
    if !domains.is_empty() {
        return Err(ForgetError::Named { server, domains });
    }
    if serving(context, &names).await.contains(&record.id) {
        return Err(ForgetError::Serves { server });
    }
    let forgotten = context.root_handle().forget(record).await;
    forgotten.map_err(|failed| context.unknown(&failed))?;
    // What is shown next is without it.
    context.servers().await?;
    Ok(record.into())
}

/// The names of the domains of which a configuration in use names the server.
async fn naming(
    context: &Context,
    domains: Vec<(String, Arc<Configuration>)>,
    server: ServerId,
) -> Result<Vec<String>, Error> {
    let look = with_root(context, domains).map(async |(name, known)| {
        let of_domain = context.on(Arc::new(KnownDomain::new(name.clone(), known)));
        let names = of_domain.handle().names(server).await;
        let reading = of_domain.during(Operation::ReadSequence);
        let names = names.map_err(|failed| reading.not_applied(&failed))?;
        Ok(names.then(|| name.unwrap_or_else(|| ROOT_DOMAIN.into())))
    });
    let looked = gather::join(DOMAINS_AT_ONCE, look).await;
    looked.into_iter().filter_map(Result::transpose).collect()
}
