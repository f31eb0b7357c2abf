//! Spans of what takes many operations on objects: values in blocks, sweeps, files.

use crate::operation::Operation;
use areo_core::span;
pub(crate) use areo_core::span::CANCELLED;
use tracing::{Span, debug_span, field};

/// [`span::watch`] for work that is large and takes long: the future is boxed.
macro_rules! watch {
    ($span:expr, $work:expr) => {
        areo_core::span::watch!($span, Box::pin($work))
    };
}

pub(crate) use watch;

/// Makes a span with one of these names: they must be known where a span is made.
macro_rules! of {
    ($name:expr, $key:expr) => {
        debug_span!(
            $name,
            key = $key,
            bytes = field::Empty,
            blocks = field::Empty,
            error.type = field::Empty
        )
    };
}

/// The span of an operation on this key that consists of several steps. The shared memory makes those of the others.
pub(crate) fn of(operation: Operation, key: &str) -> Option<Span> {
    match operation {
        Operation::Get => Some(span::read(key)),
        Operation::FilePull | Operation::FileRead => Some(of!(span::FILE_READ, key)),
        Operation::FilePush => Some(of!(span::FILE_UPDATE, key)),
        Operation::FileRemove => Some(of!(span::FILE_REMOVE, key)),
        _ => None,
    }
}

/// A write of this object in blocks.
pub(crate) fn upload(key: &str) -> Span {
    of!(span::UPLOAD, key)
}

/// A read of this number of bytes of an object in blocks.
pub(crate) fn download(key: &str, bytes: u64) -> Span {
    debug_span!(span::DOWNLOAD, key, bytes)
}

/// A sweep, which may be done beside an operation of the caller.
pub(crate) fn sweep(aside: bool) -> Span {
    debug_span!(
        span::SWEEP,
        aside = aside.then_some(true),
        error.type = field::Empty
    )
}

/// Cutting a local file.
pub(crate) fn divide() -> Span {
    debug_span!(
        span::DIVIDE,
        bytes = field::Empty,
        blocks = field::Empty,
        error.type = field::Empty
    )
}

/// The comparison of a file's blocks with new content.
pub(crate) fn identify(blocks: usize) -> Span {
    debug_span!(span::IDENTIFY, blocks)
}

/// Records the number of bytes and blocks in the current span.
pub(crate) fn record(bytes: u64, blocks: usize) {
    let span = Span::current();
    span.record("bytes", bytes);
    span.record("blocks", blocks);
}
