//! The rights of callers: functions of bytes, keys and times, without sockets, files and clocks.
//!
//! | module | |
//! |---|---|
//! | [`authority`] | the cluster's own CA: its root, and the certificates that it issues to servers |
//! | [`certificate`] | a chain against the trusted roots, and the server that it names |
//! | [`host`] | the names in the certificate of a gateway |
//! | [`operator`] | a certificate of an operator's own PKI, as files give it |
//! | [`roots`] | the CAs that a cluster trusts, and their rotation |
//! | [`tls`] | what `rustls` needs for connections between servers, from clients, and for joining |
//! | [`token`] | what lets a machine become a server, once |
//! | [`key`] | access keys, and the proof that a client has one |
//! | [`grant`] | what a key may do |
//! | [`signing`] | the keys by which a gateway verifies signatures of S3 |
//! | [`ticket`] | what a client shows to every server, which judges it alone |
//! | [`id`] | ids of tokens and keys |
//! | [`protocol`] | requests about all of it, and their answers, as bytes |
//! | [`registry`] | where a cluster keeps its CAs, tokens and keys, with one winner for each change |
//! | [`secret`] | bytes that are never shown, and their encryption at rest |
//! | [`fuzzing`] | what must hold for any bytes |
//!
//! # Clocks
//!
//! Times are seconds since 1970 in UTC and parameters. Any clock may be an hour wrong, so that two of them differ by two
//! hours: [`SKEW_SECONDS`]. A certificate or a ticket counts so long before its first and after its last second, and a certificate
//! is renewed a month early. A clock that is wrong by more refuses what others take, and the sentence of the refusal says to look at it.

pub mod authority;
pub mod certificate;
pub mod fuzzing;
pub mod grant;
mod hexadecimal;
pub mod host;
pub mod id;
pub mod key;
pub mod operator;
mod pem;
pub mod protocol;
pub mod registry;
pub mod roots;
pub mod secret;
pub mod signing;
mod text;
pub mod ticket;
pub mod tls;
pub mod token;

pub use text::TextError;

/// Seconds that two clocks may be apart while certificates and tickets still count.
pub const SKEW_SECONDS: u64 = 2 * 60 * 60;
