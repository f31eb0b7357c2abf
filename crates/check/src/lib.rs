//! Histories and verdicts: linearizable, coverable, fragmented, one winner.
//!
//! A [`History`] is what clients did and saw, as JSON lines with one [`Event`] each. [`judge`] says whether it keeps
//! what Areo promises, property by property ([`Property`]), and shows for every violation a small set of operations
//! that proves it. It depends on nothing else of Areo, so that no defect of Areo can hide in it.
//!
//! # Reading order
//!
//! `version`, `event` (the format) → `history` (events joined to operations) → `judge` (what is judged, and its
//! report) → one judge per property: `linearizable` over `register`, `absence`, `search` and `shrink`; `versions`;
//! `coverable`; `winner`; `regular`; `fragmented`; `configurations`.
//!
//! ```
//! use areo_check::{History, Verdict, judge};
//! let lines = concat!(
//!     r#"{"t":1,"client":"a","op":1,"event":"invoke","kind":"write","domain":"d","key":"k","value":"x"}"#, "\n",
//!     r#"{"t":2,"client":"a","op":1,"event":"ok","kind":"write","domain":"d","key":"k"}"#, "\n",
//!     r#"{"t":3,"client":"b","op":1,"event":"invoke","kind":"read","domain":"d","key":"k"}"#, "\n",
//!     r#"{"t":4,"client":"b","op":1,"event":"ok","kind":"read","domain":"d","key":"k","value":null}"#, "\n",
//! );
//! let report = judge(&History::read(lines.as_bytes())?);
//! assert_eq!(report.verdict, Verdict::Violated);
//! assert!(report.to_string().contains("read as absent, which no delete explains"));
//! # Ok::<(), areo_check::HistoryError>(())
//! ```

mod command;
mod configurations;
mod coverable;
mod error;
mod event;
mod fragmented;
pub mod fuzzing;
mod history;
mod judge;
mod linearizable;
mod register;
mod regular;
mod report;
mod search;
mod shrink;
mod version;
mod versions;
mod view;
mod winner;

pub use command::{Format, Ran, check_file};
pub use error::{HistoryError, Problem};
pub use event::{Configuration, Event, EventKind, Kind, Text};
pub use history::{History, KnownConfiguration, Moment, Name, Object, Operation, Outcome};
pub use judge::judge;
pub use report::{
    Counts, Property, PropertyReport, Report, ShownOperation, UnjudgedPart, Verdict, Violation,
};
pub use version::{InvalidVersion, Version};
