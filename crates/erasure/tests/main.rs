//! The codec against its definition, an oracle and golden files. One program: linking one for each file takes longer than running them.

#![allow(clippy::unwrap_used, reason = "test code outside of test functions")]

mod arguments;
mod common;
mod erasures;
mod golden;
mod oracle;
