//! Messages to bytes and back: frames, checksums, message codec, records.

pub mod frame;
pub mod hello;
