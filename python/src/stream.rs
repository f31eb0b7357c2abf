//! Values in pieces.

use crate::failure::Failure;
use crate::operation::Operation;
use crate::process::OfProcess;
use crate::value::{ToPython, metadata};
use areo_client::{Condition, Domain, ObjectStream, PutOptions, StreamError, Version};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// A stream that one operation at a time uses: it is taken out meanwhile, and is gone if that operation failed or was given up.
struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Slot<T> {
        Slot(self.0.clone())
    }
}

impl<T> Slot<T> {
    fn new(stream: T) -> Slot<T> {
        Slot(Arc::new(Mutex::new(Some(stream))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().expect("no holder of the lock panics")
    }

    fn take(&self) -> Result<T, Failure> {
        self.lock().take().ok_or_else(Failure::given_up)
    }

    fn put_back(&self, stream: T) {
        *self.lock() = Some(stream);
    }
}

/// A value that is read in pieces.
#[pyclass(frozen, module = "areo._areo")]
pub(crate) struct Reader {
    stream: OfProcess<Slot<ObjectStream>>,
    version: String,
    length: u64,
    metadata: areo_client::Metadata,
}

impl Reader {
    pub(crate) fn new(stream: ObjectStream) -> Reader {
        Reader {
            version: stream.version().to_string(),
            length: stream.length(),
            metadata: stream.metadata().clone(),
            stream: OfProcess::new(Slot::new(stream)),
        }
    }
}

#[pymethods]
impl Reader {
    fn version(&self) -> &str {
        &self.version
    }

    /// Bytes of the whole value.
    fn length(&self) -> u64 {
        self.length
    }

    fn metadata(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(metadata(py, &self.metadata)?.unbind())
    }

    /// The next piece; `None` at the end.
    fn next(&self) -> PyResult<Operation> {
        let slot = self.stream.get()?.clone();
        Ok(Operation::new(async move {
            let mut stream = slot.take()?;
            let piece = stream.next().await?;
            slot.put_back(stream);
            Ok(piece)
        }))
    }

    /// Gives up the rest of the value, in the process that reads it.
    fn close(&self) {
        if let Ok(slot) = self.stream.get() {
            drop(slot.take());
        }
    }
}

impl ToPython for Reader {
    fn to_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, self)?.into_any())
    }
}

/// A value that is written in pieces.
#[pyclass(frozen, module = "areo._areo")]
pub(crate) struct Writer(OfProcess<Slot<Upload>>);

/// The put, and the source that it reads.
struct Upload {
    put: Pin<Box<dyn Future<Output = Result<Version, StreamError>> + Send>>,
    source: Source,
}

impl Writer {
    pub(crate) fn new(
        domain: Domain,
        key: String,
        options: PutOptions,
        condition: Option<Condition>,
    ) -> Writer {
        let source = Source::default();
        let read = source.clone();
        let put = async move {
            let put = domain.put_described(&key, read, options, condition, |_, options| options);
            put.await
        };
        let upload = Upload {
            put: Box::pin(put),
            source,
        };
        Writer(OfProcess::new(Slot::new(upload)))
    }
}

#[pymethods]
impl Writer {
    /// Takes a piece; waits while earlier ones are under way.
    fn push(&self, piece: PyBackedBytes) -> PyResult<Operation> {
        let slot = self.0.get()?.clone();
        let piece = Bytes::from_owner(piece);
        Ok(Operation::new(async move {
            let mut upload = slot.take()?;
            upload.source.push(piece);
            poll_fn(|context| upload.poll_taken(context)).await?;
            slot.put_back(upload);
            Ok(())
        }))
    }

    /// Ends the value, and returns its version.
    fn finish(&self) -> PyResult<Operation> {
        let slot = self.0.get()?.clone();
        Ok(Operation::new(async move {
            let upload = slot.take()?;
            upload.source.end(End::Whole);
            Ok(upload.put.await?)
        }))
    }

    /// Removes the sent blocks.
    fn abort(&self) -> PyResult<Operation> {
        let slot = self.0.get()?.clone();
        Ok(Operation::new(async move {
            if let Ok(upload) = slot.take() {
                upload.source.end(End::Abort);
                // It fails, as the source does.
                let _ = upload.put.await;
            }
            Ok(())
        }))
    }
}

impl Upload {
    /// Ready once the put has read all pieces.
    fn poll_taken(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        match self.put.as_mut().poll(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Ready(Ok(_)) => unreachable!("the source has not ended"),
            Poll::Pending if self.source.is_empty() => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Pieces that the put has not read yet. The operation that adds one polls the put next, so that nothing is to be woken.
#[derive(Clone, Default)]
struct Source(Arc<Mutex<Pieces>>);

#[derive(Default)]
struct Pieces {
    waiting: VecDeque<Bytes>,
    end: Option<End>,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Abort,
}

impl Source {
    fn lock(&self) -> MutexGuard<'_, Pieces> {
        self.0.lock().expect("no holder of the lock panics")
    }

    fn push(&self, piece: Bytes) {
        // An empty read is the end.
        if !piece.is_empty() {
            self.lock().waiting.push_back(piece);
        }
    }

    fn end(&self, end: End) {
        self.lock().end = Some(end);
    }

    fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }
}

impl AsyncRead for Source {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut pieces = self.lock();
        let Some(piece) = pieces.waiting.front_mut() else {
            return match pieces.end {
                Some(End::Whole) => Poll::Ready(Ok(())),
                Some(End::Abort) => Poll::Ready(Err(io::Error::other("given up"))),
                None => Poll::Pending,
            };
        };
        let some = piece.split_to(piece.len().min(buffer.remaining()));
        buffer.put_slice(&some);
        if piece.is_empty() {
            pieces.waiting.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}
