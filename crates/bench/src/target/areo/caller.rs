//! A client of one domain of this store.

use crate::error::{RunError, failed};
use crate::load::counter;
use crate::target::{Answer, CallError, Caller, Conditional, Cost};
use areo_client::{
    Client, ConfigurationInfo, ConnectOptions, Counts, Domain, Error, Object, PutOptions,
    Statistics, Version,
};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A client of its own, and the domain as it is found now. The domain needs the client.
pub(crate) async fn connected(
    connect: &ConnectOptions,
    domain: &str,
) -> Result<(Client, Domain), RunError> {
    let client = Client::connect(connect.clone()).await;
    let client = client.map_err(failed("connect a client"))?;
    let domain = client.domain(domain).await;
    let domain = domain.map_err(failed("find the domain"))?;
    Ok((client, domain))
}

/// A client of one domain.
pub(crate) struct AreoCaller {
    domain: Domain,
    statistics: Arc<Statistics>,
    /// For each object with conditional writes the version that it wrote or read last; `None`: the object was absent.
    versions: HashMap<String, Option<Version>>,
    /// The client of the domain, if it does not share connections with other callers. It is kept until the caller
    /// ends.
    _client: Option<Client>,
}

impl AreoCaller {
    /// A caller that shares the connections of the domain.
    pub(crate) fn of(domain: &Domain) -> AreoCaller {
        let (domain, statistics) = domain.measured();
        AreoCaller {
            domain,
            statistics,
            versions: HashMap::new(),
            _client: None,
        }
    }

    /// A caller with connections of its own.
    pub(crate) async fn connect(
        connect: &ConnectOptions,
        domain: &str,
    ) -> Result<AreoCaller, RunError> {
        let (client, found) = connected(connect, domain).await?;
        Ok(AreoCaller {
            _client: Some(client),
            ..AreoCaller::of(&found)
        })
    }

    fn since(&self, before: Counts, version: Option<Version>) -> Cost {
        Cost {
            counts: self.statistics.since(before),
            version,
            ..Cost::default()
        }
    }
}

impl Caller for AreoCaller {
    fn put<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let put = self.domain.put(key, value);
            let version = put.await?;
            Ok(self.since(before, Some(version)))
        })
    }

    fn get<'a>(&'a mut self, key: &'a str) -> Answer<'a, (Option<Bytes>, Cost), CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let object = found(self.domain.get(key).await)?;
            let version = object.as_ref().map(|object| object.version);
            let value = object.map(Object::into_bytes);
            Ok((value, self.since(before, version)))
        })
    }

    fn delete<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let version = found(self.domain.delete(key).await)?;
            Ok(self.since(before, version))
        })
    }

    fn write_on<'a>(
        &'a mut self,
        key: &'a str,
        value: Option<Bytes>,
        on: Option<Version>,
    ) -> Answer<'a, Conditional, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let options = PutOptions::default();
            let done = match (value, on) {
                (Some(value), on) => self.domain.compare_and_put(key, value, on, options).await,
                (None, Some(on)) => self.domain.compare_and_delete(key, on).await,
                (None, None) => unreachable!("what is absent is not deleted"),
            };
            match done {
                Ok(version) => Ok(Conditional::Won(self.since(before, Some(version)))),
                Err(Error::VersionConflict { latest, .. }) => Ok(Conditional::Lost(latest)),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn has_one_winner(&self) -> bool {
        self.domain.has_one_winner()
    }

    fn put_if<'a>(&'a mut self, key: &'a str, value: Bytes) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let known = match self.versions.remove(key) {
                Some(known) => known,
                None => found(self.domain.get(key).await)?.map(|object| object.version),
            };
            let options = PutOptions::default();
            let put = self.domain.compare_and_put(key, value, known, options);
            let version = put.await?;
            self.versions.insert(key.to_owned(), Some(version));
            Ok(self.since(before, Some(version)))
        })
    }

    fn increment<'a>(&'a mut self, key: &'a str) -> Answer<'a, Cost, CallError> {
        Box::pin(async move {
            let before = self.statistics.counts();
            let next = |object: Option<&Object>| {
                let value = object.map(|object| object.clone().into_bytes());
                Some(counter::value(counter::count(value.as_deref()) + 1))
            };
            match self.domain.update(key, next).await {
                Ok(version) => Ok(self.since(before, version)),
                Err(error @ Error::VersionConflict { .. }) => {
                    Err(CallError::NotApplied(error.to_string()))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.domain = self.domain.with_timeout(timeout);
    }

    fn configuration(&self) -> Option<ConfigurationInfo> {
        Some(self.domain.configuration())
    }
}

/// Turns the error of an absent object into `None`.
fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::NotFound { key: Some(_), .. }) => Ok(None),
        answer => answer.map(Some),
    }
}
