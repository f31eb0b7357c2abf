//! Clients and domains.

use crate::ending::attached;
use crate::failure::Failure;
use crate::operation::Operation;
use crate::process::OfProcess;
use crate::stream::{Reader, Writer};
use crate::value::{ToPython, object};
use areo_client::{
    Access, Condition, ConnectOptions, Etag, ListOptions, Object, PutOptions, Statistics, Version,
};
use areo_trust::key::AccessKey;
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The clock cannot add an arbitrary time to the present one.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(365 * 24);

/// Connects to the cluster of a file, or that some addresses belong to. `key` comes before the key in the file.
#[pyfunction]
pub(crate) fn connect(
    cluster: &str,
    key: Option<&str>,
    timeout_seconds: f64,
) -> PyResult<Operation> {
    let mut options = ConnectOptions::of(cluster).map_err(Failure::from)?;
    let is_address = |address: &String| address.contains(':') && !address.contains('/');
    if options.addresses.is_empty() || !options.addresses.iter().all(is_address) {
        let sentence = format!(
            "'{cluster}' names no cluster: there is no such file, and addresses are written HOST:PORT"
        );
        return Err(Failure::invalid(sentence).into());
    }
    let timeout = Duration::try_from_secs_f64(timeout_seconds).ok();
    let is_allowed = |timeout: &Duration| !timeout.is_zero() && *timeout <= LONGEST_TIMEOUT;
    options.timeout = timeout.filter(is_allowed).ok_or_else(|| {
        Failure::invalid(
            "a timeout is a number of seconds, more than 0 and at most a year (31536000)",
        )
    })?;
    if let Some(key) = key {
        let parsed = AccessKey::parse(key).map_err(|error| Failure::invalid(error.to_string()))?;
        options.access = Some(Access::Key(parsed));
    }
    options.trace_source = Some(crate::trace::trace_of);
    Ok(Operation::new(async {
        let client = areo_client::Client::connect(options).await?;
        Ok(Client(OfProcess::new(client)))
    }))
}

/// A connection to a cluster.
#[pyclass(frozen, module = "areo._areo")]
pub(crate) struct Client(OfProcess<areo_client::Client>);

#[pymethods]
impl Client {
    /// The id of the cluster.
    fn cluster(&self) -> PyResult<String> {
        Ok(self.0.get()?.cluster().to_string())
    }

    fn domain(&self, name: String) -> PyResult<Operation> {
        let client = self.0.get()?.clone();
        Ok(Operation::new(async move {
            let (domain, statistics) = client.domain(&name).await?.measured();
            Ok(Domain {
                domain: OfProcess::new(domain),
                statistics,
            })
        }))
    }

    /// The names of all domains.
    fn domains(&self) -> PyResult<Operation> {
        let client = self.0.get()?.clone();
        Ok(Operation::new(async move {
            let domains = client.domains().await?;
            Ok(domains.into_iter().map(|it| it.name).collect::<Vec<_>>())
        }))
    }

    /// The metrics of its operations, as text for Prometheus.
    fn metrics(&self) -> PyResult<String> {
        Ok(self.0.get()?.metrics().text())
    }

    /// Sends off what waits.
    fn close(&self) -> PyResult<Operation> {
        let client = self.0.get()?.clone();
        Ok(Operation::new(async move {
            client.close().await;
            Ok(())
        }))
    }
}

impl ToPython for Client {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, self)?.into_any())
    }
}

/// The options of a write: content type, pairs of the user, ETag.
#[derive(FromPyObject)]
pub(crate) struct Options(Option<String>, Vec<(String, String)>, Option<String>);

impl Options {
    fn put(self) -> Result<PutOptions, Failure> {
        let Options(content_type, user_metadata, etag) = self;
        let etag = etag.as_deref().map(Etag::new).transpose()?;
        Ok(PutOptions {
            content_type,
            user_metadata,
            etag,
            ..PutOptions::default()
        })
    }
}

/// The condition of a write: the version that is to be the newest, or that there is to be no object.
#[derive(FromPyObject)]
pub(crate) struct On(Option<String>, bool);

impl On {
    fn condition(self) -> Result<Option<Condition>, Failure> {
        match self {
            On(None, false) => Ok(None),
            On(None, true) => Ok(Some(Condition::Absent)),
            On(Some(version), false) => Ok(Some(Condition::Version(version.parse()?))),
            On(Some(_), true) => Err(Failure::invalid(
                "a write is on a version or on there being no object, not on both",
            )),
        }
    }
}

/// The version of a condition that names one, or none for there being no object.
fn version_of(condition: Condition) -> Option<Version> {
    match condition {
        Condition::Version(version) => Some(version),
        _ => None,
    }
}

/// A domain of a cluster.
#[pyclass(frozen, module = "areo._areo")]
pub(crate) struct Domain {
    domain: OfProcess<areo_client::Domain>,
    statistics: Arc<Statistics>,
}

impl Domain {
    fn handle(&self) -> Result<areo_client::Domain, Failure> {
        self.domain.get().cloned()
    }
}

#[pymethods]
impl Domain {
    fn name(&self) -> PyResult<String> {
        Ok(self.domain.get()?.name().to_owned())
    }

    /// True if one of concurrent conditional writes on one version succeeds at most.
    fn has_one_winner(&self) -> PyResult<bool> {
        Ok(self.domain.get()?.has_one_winner())
    }

    /// The cost of the operations through this handle that have ended.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.domain.get()?;
        let counts = self.statistics.counts();
        let fields = (
            counts.rounds,
            counts.configurations,
            counts.requests,
            counts.sent_bytes,
            counts.received_bytes,
        );
        Ok(object(py, "Stats", fields)?.unbind())
    }

    fn put(
        &self,
        key: String,
        value: PyBackedBytes,
        options: Options,
        on: On,
    ) -> PyResult<Operation> {
        let domain = self.handle()?;
        let (options, condition) = (options.put()?, on.condition()?);
        let value = Bytes::from_owner(value);
        Ok(Operation::new(async move {
            let written = match condition {
                None => domain.put_with(&key, value, options).await,
                Some(condition) => {
                    let version = version_of(condition);
                    domain.write_if(&key, value, version, options).await
                }
            };
            Ok(written?)
        }))
    }

    fn compare_and_put(
        &self,
        key: String,
        value: PyBackedBytes,
        version: Option<&str>,
        options: Options,
    ) -> PyResult<Operation> {
        let domain = self.handle()?;
        let version = version.map(str::parse::<Version>).transpose();
        let version = version.map_err(Failure::from)?;
        let (value, options) = (Bytes::from_owner(value), options.put()?);
        Ok(Operation::new(async move {
            let written = domain.compare_and_put(&key, value, version, options).await;
            Ok(written?)
        }))
    }

    /// `change` is given the object, or `None`, and returns the next value, or `None`.
    fn update(&self, key: String, change: Py<PyAny>) -> PyResult<Operation> {
        let domain = self.handle()?;
        Ok(Operation::new(async move {
            let raised: Mutex<Option<PyErr>> = Mutex::new(None);
            let next = |object: Option<&Object>| match changed(&change, object) {
                Ok(next) => next,
                Err(error) => {
                    *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    None
                }
            };
            let updated = domain.update(&key, next).await;
            let raised = raised.into_inner().unwrap_or_else(PoisonError::into_inner);
            match raised {
                Some(error) => Err(Failure::Python(error)),
                None => Ok(updated?),
            }
        }))
    }

    fn get(&self, key: String) -> PyResult<Operation> {
        let domain = self.handle()?;
        Ok(Operation::new(async move {
            Ok(Box::new(domain.get(&key).await?))
        }))
    }

    fn stat(&self, key: String) -> PyResult<Operation> {
        let domain = self.handle()?;
        Ok(Operation::new(async move { Ok(domain.stat(&key).await?) }))
    }

    fn delete(&self, key: String, version: Option<&str>) -> PyResult<Operation> {
        let domain = self.handle()?;
        let version = version.map(str::parse::<Version>).transpose();
        let version = version.map_err(Failure::from)?;
        Ok(Operation::new(async move {
            let deleted = match version {
                None => domain.delete(&key).await,
                Some(version) => domain.delete_if(&key, version).await,
            };
            Ok(deleted?)
        }))
    }

    fn list(
        &self,
        prefix: String,
        after: String,
        delimiter: String,
        limit: usize,
    ) -> PyResult<Operation> {
        let domain = self.handle()?;
        let options = ListOptions {
            prefix,
            after,
            delimiter,
            limit,
        };
        Ok(Operation::new(async move {
            Ok(domain.list_with(options).await?)
        }))
    }

    /// Reads the bytes from `start` to before `end`.
    fn read(&self, key: String, start: u64, end: Option<u64>) -> PyResult<Operation> {
        let domain = self.handle()?;
        Ok(Operation::new(async move {
            let stream = match end {
                None => domain.get_range(&key, start..).await?,
                Some(end) => domain.get_range(&key, start..end).await?,
            };
            Ok(Reader::new(stream))
        }))
    }

    /// Begins a write of a value that comes in pieces.
    fn write(&self, key: String, options: Options, on: On) -> PyResult<Writer> {
        let domain = self.handle()?;
        let (options, condition) = (options.put()?, on.condition()?);
        Ok(Writer::new(domain, key, options, condition))
    }
}

impl ToPython for Domain {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, self)?.into_any())
    }
}

/// The next value of an object, made by the caller's function.
fn changed(change: &Py<PyAny>, object: Option<&Object>) -> PyResult<Option<Bytes>> {
    attached(|py| {
        let object = match object {
            Some(object) => Box::new(object.clone()).to_python(py)?,
            None => py.None(),
        };
        let next: Option<PyBackedBytes> = change.bind(py).call1((object,))?.extract()?;
        Ok(next.map(Bytes::from_owner))
    })
}
