//! The memory of a process of its recent operations.
//!
//! The algorithms say what they do in spans of the `tracing` facade (`areo_core::span` has their names). The [`Recorder`] is
//! the subscriber that turns them into [`SpanRecord`]s: it decides which operations are watched ([`Sampler`]), gives
//! them W3C identities that cross processes, and keeps the last ones and the slowest of each kind in a bounded ring.
//!
//! ```text
//!   span! ──► Recorder (sampled?) ──► SpanRecord ─┬► Ring: the last ones, the slowest traces ──► `areo trace`, admin port
//!                                                 └► export: a collector, if the standard variables name one
//! ```
//!
//! [`waterfall`] draws a trace for a terminal, [`view`] for a browser, [`explanation`] says where its time went, [`summary`] adds many up, [`compare`] sets
//! two side by side.
//! [`admin`] asks a server for its traces and metrics.

pub mod admin;
pub mod compare;
pub mod explanation;
pub mod export;
mod ids;
pub mod listed;
mod record;
mod recorder;
mod ring;
mod span_attributes;
pub mod summary;
mod trace;
pub mod view;
pub mod waterfall;

pub use record::{SpanId, SpanRecord, TraceId, Value};
pub use recorder::{Context, Recorder, Sampler, context_of};
pub use ring::{Limits, Ring};
pub use trace::{Node, Trace};
