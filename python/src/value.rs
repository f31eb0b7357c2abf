//! What operations return, as objects of Python: those of `areo._model`, and native handles.

use areo_client::{Entry, Metadata, Object, ObjectInfo, Page, Version};
use bytes::Bytes;
use pyo3::IntoPyObjectExt;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A value that an operation returns.
pub(crate) trait ToPython: Send + 'static {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>>;
}

/// An object of this class of `areo._model`.
pub(crate) fn object<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("areo._model")?.getattr(class)?.call1(fields)
}

pub(crate) fn metadata<'py>(py: Python<'py>, of: &Metadata) -> PyResult<Bound<'py, PyAny>> {
    let user = PyDict::new(py);
    for (name, value) in &of.user {
        user.set_item(name, value)?;
    }
    let etag = of.etag.as_ref().map(areo_client::Etag::as_str);
    let fields = (of.content_type.as_deref(), user, etag, of.written_at_ms);
    object(py, "Metadata", fields)
}

/// All of a value, in one piece; its bytes are copied once.
fn joined<'py>(py: Python<'py>, pieces: &[Bytes]) -> PyResult<Bound<'py, PyBytes>> {
    let length = pieces.iter().map(Bytes::len).sum();
    PyBytes::new_with(py, length, |mut room| {
        for piece in pieces {
            let (here, rest) = room.split_at_mut(piece.len());
            here.copy_from_slice(piece);
            room = rest;
        }
        Ok(())
    })
}

impl ToPython for () {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(py.None())
    }
}

impl ToPython for Version {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.to_string().into_py_any(py)
    }
}

impl ToPython for Option<Version> {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let text = self.map(|version| version.to_string());
        text.into_py_any(py)
    }
}

impl ToPython for Vec<String> {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.into_py_any(py)
    }
}

/// A piece of a stream; `None` at its end.
impl ToPython for Option<Bytes> {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let piece = self.map(|piece| PyBytes::new(py, &piece));
        piece.into_py_any(py)
    }
}

impl ToPython for Box<Object> {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let value = joined(py, &self.content)?;
        let fields = (
            value,
            self.version.to_string(),
            metadata(py, &self.metadata)?,
        );
        Ok(object(py, "Object", fields)?.unbind())
    }
}

impl ToPython for ObjectInfo {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let metadata = metadata(py, &self.metadata)?;
        let fields = (self.version.to_string(), self.length, metadata);
        Ok(object(py, "Info", fields)?.unbind())
    }
}

impl ToPython for Page {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let class = py.import("areo._model")?.getattr("Entry")?;
        let entry = |entry: Entry| {
            let version = entry.version.to_string();
            class.call1((
                entry.key,
                version,
                entry.length,
                entry.etag,
                entry.written_at_ms,
                entry.damaged,
            ))
        };
        let entries: PyResult<Vec<_>> = self.entries.into_iter().map(entry).collect();
        let fields = (entries?, self.prefixes, self.next);
        Ok(object(py, "Page", fields)?.unbind())
    }
}
