//! Domains of a cluster: found, created, removed, listed.

use crate::choice::{self, CreateDomainError, DomainOptions};
use crate::cluster::{Health, Names};
use crate::error::Error;
use crate::session::{Context, KnownDomain, STATUS_PATIENCE, later_version};
use areo_core::config::{Configuration, ServerId};
use areo_core::env::Env;
use areo_core::manager::{Creation, DomainError, Removal, RemovalError};
use areo_core::object::DomainId;
use areo_core::reconfig::ReconfigError;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn find_domain(
    context: &Context,
    name: &str,
) -> Result<Option<Arc<Configuration>>, Error> {
    context.find_root().await;
    let found = context.root_handle().find_domain(name).await;
    let found = found.map_err(|error| domain_error(context, error))?;
    context.names_of(found.as_slice()).await;
    Ok(found)
}

pub(super) async fn create_domain(
    context: &Context,
    name: &str,
    options: &DomainOptions,
) -> Result<Arc<Configuration>, CreateDomainError> {
    context.find_root().await;
    // Asking first proposes nothing: without a quorum it is certain that nothing was created. And no server is chosen for a domain
    // that exists.
    let root = context.root_handle();
    let found = root.find_domain(name).await;
    let found = found.map_err(|error| domain_error(context, error))?;
    if let Some(configuration) = found {
        return Err(exists(context, name, &configuration).await);
    }
    let env = &context.client.env;
    let id = u128::from(env.random()) << 64 | u128::from(env.random());
    let names = context.servers().await?;
    let gone = gone(context, &names).await;
    let first = choice::first_configuration(options, &names, &gone, DomainId(id))?;
    match context.root_handle().create_domain(name, &first).await {
        Ok(Creation::Created) => Ok(first),
        Ok(Creation::Exists(configuration)) => Err(exists(context, name, &configuration).await),
        Err(DomainError::Unavailable(failed)) if failed.handed_over => {
            Err(context.unknown(&failed).into())
        }
        Err(error) => Err(domain_error(context, error).into()),
    }
}

/// Servers that share their address with another one and do not answer there: they no longer exist, and the address is another one's.
pub(super) async fn gone(context: &Context, names: &Names) -> BTreeSet<ServerId> {
    let shared = choice::sharing(names);
    if shared.is_empty() {
        return BTreeSet::new();
    }
    let patience = context.timeout().min(STATUS_PATIENCE);
    let health = context.health(&shared, patience).await;
    let is_silent = |(id, health): (&ServerId, Health)| health.answered().is_none().then_some(*id);
    shared.iter().zip(health).filter_map(is_silent).collect()
}

/// The name is taken: by a domain, or by one that is being removed.
async fn exists(context: &Context, name: &str, c: &Arc<Configuration>) -> CreateDomainError {
    let names = context.names_of(std::slice::from_ref(c)).await;
    match context.within(STATUS_PATIENCE).domain(c).path().await {
        Ok(path) if path.last().is_some_and(|last| last.dap().is_removal()) => {
            let domain = name.into();
            Error::Removed { domain }.into()
        }
        _ => CreateDomainError::Exists {
            name: name.into(),
            configuration: Box::new(names.configuration(c)),
        },
    }
}

pub(super) async fn remove_domain(context: &Context, name: &str) -> Result<(), Error> {
    context.find_root().await;
    let root = context.root_handle();
    let found = root.find_domain(name).await;
    let found = found.map_err(|error| domain_error(context, error))?;
    let not_found = || Error::NotFound {
        domain: name.into(),
        key: None,
    };
    let c = found.ok_or_else(not_found)?;
    match root.remove_domain(name).await {
        Ok(Removal::Removed) => Ok(()),
        // Another remover was faster.
        Ok(Removal::NotFound) | Err(RemovalError::Reconfig(ReconfigError::Removed)) => {
            Err(not_found())
        }
        Err(RemovalError::Domain(error)) => Err(domain_error(context, error)),
        Err(RemovalError::Reconfig(error)) => {
            let removed = KnownDomain::new(Some(name.into()), c);
            Err(context.on(Arc::new(removed)).reconfig_error(error))
        }
    }
}

/// All domains, by name; `patience` replaces the operation's deadline.
pub(super) async fn list_domains(
    context: &Context,
    patience: Option<Duration>,
) -> Result<Vec<(String, Arc<Configuration>)>, Error> {
    let client = match patience {
        Some(patience) => context.within(patience),
        None => context.client.clone(),
    };
    context.find_root().await;
    let domains = client.root(context.root()).domains().await;
    domains.map_err(|error| domain_error(context, error))
}

pub(super) fn domain_error(context: &Context, error: DomainError) -> Error {
    match error {
        DomainError::Name(error) => error.into(),
        DomainError::Unavailable(failed) => context.not_applied(&failed),
        DomainError::Descriptor(error) => later_version(&error),
    }
}
