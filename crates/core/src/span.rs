//! The closed list of span names: what an operation is made of, for whoever watches it. Spans carry these names and no
//! others. Nothing is computed for them unless somebody watches.
//!
//! Two levels, as in the papers: what a person asked for (`areo.*`), and what the shared memory does for it. What they call
//! them stands in `docs/tracing.md`.

use crate::error::{CallError, Unavailable, WriteError};
use crate::tag::Tag;
use tracing::Span;

/// A read of one object.
pub const READ: &str = "areo.read";
/// A read of everything of an object but its content.
pub const STAT: &str = "areo.stat";
/// A write of one object.
pub const WRITE: &str = "areo.write";
/// A coverable write of one object.
pub const CVR_WRITE: &str = "areo.cvr_write";
/// A deletion of one object.
pub const DELETE: &str = "areo.delete";
/// A page of a listing.
pub const LIST: &str = "areo.list";
/// A change of a domain's configuration.
pub const RECONFIG: &str = "areo.reconfig";
/// A write of a value in blocks, from its first block to its manifest.
pub const UPLOAD: &str = "areo.upload";
/// A read of the blocks of a value.
pub const DOWNLOAD: &str = "areo.download";
/// A look at all blocks of values, for those that nobody needs.
pub const SWEEP: &str = "areo.sweep";
/// A read of a file: of its list of blocks, of their content, or of both.
pub const FILE_READ: &str = "areo.file.read";
/// A write of what changed in a file.
pub const FILE_UPDATE: &str = "areo.file.update";
/// A removal of a file.
pub const FILE_REMOVE: &str = "areo.file.remove";

/// Looking for the newest version, along the sequence.
pub const PHASE1: &str = "phase1";
/// Bringing a version to a quorum, along the sequence.
pub const PHASE2: &str = "phase2";

/// The largest tag at a quorum of one configuration.
pub const GET_TAG: &str = "dap.get_tag";
/// The newest version in one configuration.
pub const GET_DATA: &str = "dap.get_data";
/// Bringing a version to a quorum of one configuration.
pub const PUT_DATA: &str = "dap.put_data";

/// A promise of a ranked register by a quorum of one configuration, or a query of the register.
pub const PREPARE: &str = "dap.prepare";
/// Having a quorum of one configuration accept a version of a ranked register.
pub const ACCEPT: &str = "dap.accept";

/// Asking a configuration for its successor.
pub const CONFIG_READ: &str = "config.read";
/// Making a pointer known to a quorum of a configuration.
pub const CONFIG_PUT: &str = "config.put";
/// Deciding and announcing a successor.
pub const CONFIG_ADD: &str = "config.add";
/// Bringing the state of the configurations before it into a new one.
pub const CONFIG_UPDATE: &str = "config.update";
/// Declaring a configuration final.
pub const CONFIG_FINALIZE: &str = "config.finalize";
/// Letting superseded configurations go.
pub const CONFIG_COLLECT: &str = "config.collect";

/// Computing the parity fragments of a value.
pub const EC_ENCODE: &str = "ec.encode";
/// Computing missing data fragments.
pub const EC_DECODE: &str = "ec.decode";

/// Cutting a local file where its content says so.
pub const DIVIDE: &str = "file.divide";
/// Finding out which blocks changed.
pub const IDENTIFY: &str = "file.identify";

/// One quorum call: from the first request that is sent to the decision.
pub const QUORUM: &str = "net.quorum";

/// A server's work on accesses to objects, from the request to its reply.
pub const SERVER_ACCESS: &str = "server.access";
/// A server's page of a listing.
pub const SERVER_LIST: &str = "server.list";
/// A server's step of a consensus.
pub const SERVER_CELL: &str = "server.cell";
/// A server's answer about successors.
pub const SERVER_CONFIG: &str = "server.config";
/// A server's work on any other request.
pub const SERVER_OTHER: &str = "server.other";
/// Handing the records of a batch to the store.
pub const STORE_APPEND: &str = "store.append";
/// Making a batch durable.
pub const STORE_SYNC: &str = "store.sync";

/// A span of an operation on an object. `key` is for those only who ask for keys.
macro_rules! of_object {
    ($span:expr, $name:expr) => {
        tracing::debug_span!(
            $span,
            key = $name.key(),
            tag = tracing::field::Empty,
            bytes = tracing::field::Empty,
            error.type = tracing::field::Empty,
        )
    };
}

/// A span of a phase, or of an operation that is on no single object.
macro_rules! of_phase {
    ($span:expr) => {
        tracing::debug_span!($span, error.type = tracing::field::Empty)
    };
}

/// A span of work in one configuration.
macro_rules! in_configuration {
    ($span:expr, $c:expr) => {{
        let c: &crate::config::Configuration = $c;
        tracing::debug_span!(
            $span,
            domain = c.id().domain.0,
            configuration = c.id().index,
            dap = c.dap().word(),
            n = c.n(),
            k = c.dap().k(),
            quorum = c.quorums().quorum(),
            tag = tracing::field::Empty,
            bytes = tracing::field::Empty,
            error.type = tracing::field::Empty,
        )
    }};
}

/// A span of a call to several servers. The driver of the call records its cost.
macro_rules! of_call {
    ($to:expr, $needed:expr) => {
        tracing::debug_span!(
            span::QUORUM,
            servers = $to.len(),
            needed = $needed,
            replies = tracing::field::Empty,
            sent_bytes = tracing::field::Empty,
            received_bytes = tracing::field::Empty,
            error.type = tracing::field::Empty,
        )
    };
}

pub(crate) use {in_configuration, of_call, of_object, of_phase};

/// A read of the object of this key, for a caller that goes on with the found version ([`crate::dsm::Domain::read_within`]).
pub fn read(key: &str) -> Span {
    tracing::debug_span!(
        READ,
        key,
        tag = tracing::field::Empty,
        bytes = tracing::field::Empty,
        error.type = tracing::field::Empty
    )
}

/// The outcome of work that nobody waits for any more.
pub const CANCELLED: &str = "cancelled";

/// An end without success, in a word that says of which kind: few of them, so that people can count by it.
pub trait ErrorType {
    /// The kind of the error, in one word.
    fn error_type(&self) -> &'static str;
}

impl ErrorType for Unavailable {
    fn error_type(&self) -> &'static str {
        "unavailable"
    }
}

impl ErrorType for CallError {
    fn error_type(&self) -> &'static str {
        match self {
            CallError::Unavailable(unavailable) => unavailable.error_type(),
            CallError::Moved => "moved",
        }
    }
}

impl ErrorType for WriteError {
    fn error_type(&self) -> &'static str {
        match self {
            WriteError::NotApplied(_) => "not_applied",
            WriteError::Unknown(_) => "unknown",
        }
    }
}

/// Does the work in the span, which says so if it fails, or is given up. A macro and no function: a future that is handed on takes its
/// room twice, is copied, and both again on each level.
#[macro_export]
macro_rules! watch {
    ($span:expr, $work:expr) => {{
        let watched = $crate::span::SpanGuard::new($span);
        let span = watched.span();
        // Where it stands: `Instrument` would move it twice, which is most of what a read costs.
        let mut work = ::core::pin::pin!($work);
        let ended = ::core::future::poll_fn(|context| {
            let _in = span.enter();
            ::core::future::Future::poll(work.as_mut(), context)
        })
        .await;
        watched.end(&ended);
        ended
    }};
}

pub use watch;

/// Work in a span. Dropped before its end it was given up: whoever waited for it did not wait any longer, or did not need it.
pub struct SpanGuard(Option<Span>);

impl SpanGuard {
    pub fn new(span: Span) -> SpanGuard {
        SpanGuard(Some(span))
    }

    pub fn span(&self) -> Span {
        self.0.clone().expect("there is one until it has ended")
    }

    /// Ends the span; it says `error.type` if that failed. A span without that succeeded.
    pub fn end<T, E: ErrorType>(mut self, ended: &Result<T, E>) {
        let span = self.0.take().expect("it ends once");
        if let Err(error) = ended {
            let why = error.error_type();
            span.record("error.type", why);
            let what = span.metadata().map_or("", tracing::Metadata::name);
            span.in_scope(|| tracing::debug!(what, why, "did not succeed"));
        }
    }
}

impl Drop for SpanGuard {
    fn drop(&mut self) {
        if let Some(span) = self.0.take() {
            span.record("error.type", CANCELLED);
        }
    }
}

/// Records in the current span the version that it is about.
pub(crate) fn record_tag(tag: Tag) {
    let span = tracing::Span::current();
    if !span.is_disabled() {
        span.record("tag", tracing::field::display(tag));
    }
}

/// Records in the current span the bytes that it is about.
pub(crate) fn record_bytes(bytes: u64) {
    tracing::Span::current().record("bytes", bytes);
}

#[cfg(test)]
mod tests;
