//! Searches: for every schedule of a small case, and for the smallest part of a run that breaks the same rule. Tests of their
//! own and not beside the code, because that would compile every algorithm once more.

#![allow(clippy::unwrap_used)] // Helpers of tests, too.

mod explored;
mod shrunk;
