//! Messages to bytes and back: frames, checksums, message codec, records.
//!
//! | module | bytes of | drawn in |
//! |---|---|---|
//! | [`checksum`] | CRC-32C of any of them | |
//! | [`frame`] | a message on its way, with lengths and checksums | `docs/wire.md` |
//! | [`hello`] | the first words of a connection | `docs/wire.md` |
//! | [`codec`] | what a message says: requests, replies, notes | `docs/wire.md` |
//! | [`record`] | what a server keeps on disk beside payloads | `docs/data-file.md` |
//! | [`fuzzing`] | anything at all: what must hold for it | |

pub mod checksum;
pub mod codec;
pub mod frame;
pub mod fuzzing;
pub mod hello;
pub mod record;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
