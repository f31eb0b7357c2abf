//! The first bytes on a connection: who is calling whom, and in which version of the protocol.
//!
//! ```text
//! hello (caller → server), 88 bytes + fields + 4
//!  0      4     6   7   8            16           24  25  26  27    32           48           64
//!  ┌──────┬─────┬───┬───┬────────────┬────────────┬───┬───┬───┬─────┬────────────┬────────────┬──
//!  │ AREO │bytes│low│hi │ must-under-│ optional   │rol│aut│use│zero │ cluster    │ expected   │ own
//!  │      │     │ver│ver│ stand      │ features   │ e │h  │   │     │ 0 unknown  │ server     │ id
//!  └──────┴─────┴───┴───┴────────────┴────────────┴───┴───┴───┴─────┴────────────┴────────────┴──
//!  80 highest incarnation of the expected server that the caller knows · 88 fields · crc32c
//!
//! welcome (server → caller), 80 bytes + fields + 4
//!  0      4     6   7   8            16           24    26    28       32           48
//!  ┌──────┬─────┬───┬───┬────────────┬────────────┬─────┬─────┬────────┬────────────┬────────────┐
//!  │ AREO │bytes│ver│ 0 │ must-under-│ optional   │code │zero │max body│ cluster    │ server     │
//!  │      │     │   │   │ stand      │ features   │0 ok │     │        │            │            │
//!  └──────┴─────┴───┴───┴────────────┴────────────┴─────┴─────┴────────┴────────────┴────────────┘
//!  64 incarnation · 72 max payload · 80 fields · crc32c
//! ```
//!
//! Little-endian; identities are 128-bit numbers. `bytes` is the length of the whole message, checksum
//! included, so that a later version may append. Fields are `kind u16 · length u16 · bytes`; a field whose
//! kind has bit 15 set must be understood, any other may be skipped.
//!
//! Everything from byte 8 on may mean something else in another version, so a reader looks at the version
//! range first. The welcome of a refusal names the server too, so that a caller who reached the wrong one can say
//! which.

#![allow(
    clippy::missing_panics_doc,
    reason = "the asserts state invariants of this code; no input reaches them"
)]

mod fields;
#[cfg(test)]
mod tests;

pub use fields::{Field, process_field, reason_field};

use crate::checksum::crc32c;

use crate::frame::{self, Refusal};

/// The first four bytes of a hello and of a welcome.
pub const MAGIC: [u8; 4] = *b"AREO";
/// The magic and the length: a reader needs them to know how much to read.
pub const PREFIX_BYTES: usize = 6;
/// The longest hello or welcome, in bytes.
pub const MAX_BYTES: usize = 4096;
/// The features that this code understands.
pub const KNOWN_FEATURES: u64 = 0;

const HELLO_FIXED_BYTES: usize = 88;
const WELCOME_FIXED_BYTES: usize = 80;
const CHECKSUM_BYTES: usize = 4;
const FIELD_HEADER_BYTES: usize = 4;
const MUST_UNDERSTAND: u16 = 1 << 15;

/// The role of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// A process that runs operations.
    Client = 0,
    /// Another server: to register, to repair, to gossip.
    Server = 1,
}

/// The way in which the caller proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Authentication {
    /// A certificate below the hello, or nothing.
    None = 0,
    /// A ticket of the cluster ([`Hello::ticket`]).
    Ticket = 1,
}

/// The use of a connection. The two kinds speak the same protocol; a receiver sizes its buffers by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Channel {
    /// Small calls, many of them to a packet.
    Calls = 0,
    /// Large payloads, so that small calls never wait behind them.
    Bulk = 1,
}

/// The first message of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The lowest version that the caller speaks.
    pub version_low: u8,
    /// The highest version that the caller speaks.
    pub version_high: u8,
    /// Features without which the caller cannot go on.
    pub must_features: u64,
    /// Features that the caller would use.
    pub optional_features: u64,
    /// Role of the caller: client or server.
    pub role: Role,
    /// The way in which the caller proves its identity.
    pub authentication: Authentication,
    /// The use of the connection.
    pub channel: Channel,
    /// The cluster that the caller means; 0 if it does not know it yet.
    pub cluster: u128,
    /// The server that the caller means; 0 if any will do.
    pub expected_server: u128,
    /// The caller's own id.
    pub own_id: u128,
    /// The highest incarnation of the expected server that the caller knows of; 0 if none.
    pub known_incarnation: u64,
    /// Fields that this version does not know by name.
    pub fields: Vec<Field>,
}

impl Hello {
    /// The hello of a caller that speaks exactly this version and uses no optional feature.
    pub fn new(role: Role, channel: Channel, own_id: u128) -> Hello {
        Hello {
            version_low: frame::VERSION,
            version_high: frame::VERSION,
            must_features: 0,
            optional_features: 0,
            role,
            authentication: Authentication::None,
            channel,
            cluster: 0,
            expected_server: 0,
            own_id,
            known_incarnation: 0,
            fields: Vec::new(),
        }
    }

    /// The version to speak with this caller: the highest that both know.
    ///
    /// # Errors
    /// There is none, or the caller needs a feature or a field that this code does not know.
    pub fn agree(&self) -> Result<u8, Refusal> {
        let version_fits =
            self.version_low <= frame::VERSION && frame::VERSION <= self.version_high;
        let features_fit = self.must_features & !KNOWN_FEATURES == 0;
        if version_fits && features_fit && !self.fields.iter().any(Field::must_understand) {
            Ok(frame::VERSION)
        } else {
            Err(Refusal::UnsupportedVersion)
        }
    }
}

/// The answer of a server to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version to be spoken from here on; 0 if refused.
    pub version: u8,
    /// Features in force that both sides must honour.
    pub must_features: u64,
    /// Optional features in force.
    pub optional_features: u64,
    /// Why the server will not talk; the connection closes after it.
    pub refusal: Option<Refusal>,
    /// The largest body that the server accepts, in bytes.
    pub max_body_bytes: u32,
    /// The largest payload of one frame that the server accepts, in bytes.
    pub max_payload_bytes: u64,
    /// The server's cluster; 0 if it has none yet.
    pub cluster: u128,
    /// Id of the server.
    pub server: u128,
    /// Number of the server's current start.
    pub incarnation: u64,
    /// Fields that this version does not know by name.
    pub fields: Vec<Field>,
}

/// Why bytes are no hello or welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The magic is missing: something else speaks on this connection.
    #[error("not Areo's protocol: begins with {}", beginning(*found))]
    NotAreo {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// A length below the fixed part or above [`MAX_BYTES`], or not the length of what arrived.
    #[error("hello of {bytes} bytes")]
    WrongLength {
        /// The length that was found.
        bytes: usize,
    },
    /// The checksum does not match.
    #[error("hello damaged: checksum {stored:08x}, computed {computed:08x}")]
    Damaged {
        /// The checksum in the message.
        stored: u32,
        /// The checksum of what arrived.
        computed: u32,
    },
    /// A byte that stands for nothing in this version.
    #[error("unknown value {value} at byte {offset} of the hello")]
    UnknownValue {
        /// Its offset in the message, in bytes.
        offset: usize,
        value: u16,
    },
    /// A field that reaches over the end.
    #[error("field at byte {offset} overruns the hello")]
    FieldOverrun {
        /// The offset at which the field begins, in bytes.
        offset: usize,
    },
    /// A hello whose lowest version is above its highest.
    #[error("versions {low} to {high}")]
    EmptyVersionRange { low: u8, high: u8 },
}

/// The first bytes of another protocol as a person may know them. HTTP most often is an admin port.
fn beginning(found: [u8; 4]) -> String {
    let text = found.escape_ascii();
    match &found {
        b"HTTP" => format!("'{text}', as an admin port does: servers listen on another port"),
        _ => format!("'{text}'"),
    }
}

/// The length of the message that begins with `prefix`, in bytes, at most [`MAX_BYTES`].
///
/// # Errors
/// It is no message of this protocol, or of an impossible length.
pub fn message_bytes(prefix: &[u8; PREFIX_BYTES]) -> Result<usize, HelloError> {
    if prefix[..4] != MAGIC {
        return Err(HelloError::NotAreo {
            found: prefix[..4].try_into().expect("4 of 6 bytes"),
        });
    }
    let bytes = usize::from(u16::from_le_bytes([prefix[4], prefix[5]]));
    let smallest = HELLO_FIXED_BYTES.min(WELCOME_FIXED_BYTES) + CHECKSUM_BYTES;
    if (smallest..=MAX_BYTES).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(HelloError::WrongLength { bytes })
    }
}

/// The bytes of `hello`. Its fields must fit [`MAX_BYTES`].
pub fn encode_hello(hello: &Hello) -> Vec<u8> {
    let mut out = vec![0; HELLO_FIXED_BYTES];
    out[6] = hello.version_low;
    out[7] = hello.version_high;
    out[8..16].copy_from_slice(&hello.must_features.to_le_bytes());
    out[16..24].copy_from_slice(&hello.optional_features.to_le_bytes());
    out[24] = hello.role as u8;
    out[25] = hello.authentication as u8;
    out[26] = hello.channel as u8;
    out[32..48].copy_from_slice(&hello.cluster.to_le_bytes());
    out[48..64].copy_from_slice(&hello.expected_server.to_le_bytes());
    out[64..80].copy_from_slice(&hello.own_id.to_le_bytes());
    out[80..88].copy_from_slice(&hello.known_incarnation.to_le_bytes());
    seal(out, &hello.fields)
}

/// Reads a whole hello.
///
/// If the version ranges do not meet, the rest is not looked at for meaning: the caller is then told so by
/// way of [`Hello::agree`], not by an error here.
///
/// # Errors
/// The first rule that the bytes break.
pub fn decode_hello(bytes: &[u8]) -> Result<Hello, HelloError> {
    let content = open(bytes, HELLO_FIXED_BYTES)?;
    let (version_low, version_high) = (content[6], content[7]);
    if version_low > version_high {
        return Err(HelloError::EmptyVersionRange {
            low: version_low,
            high: version_high,
        });
    }
    let mut hello = Hello::new(Role::Client, Channel::Calls, 0);
    (hello.version_low, hello.version_high) = (version_low, version_high);
    if hello.agree().is_err() {
        return Ok(hello);
    }
    hello.must_features = u64_at(content, 8);
    hello.optional_features = u64_at(content, 16);
    hello.role = match content[24] {
        0 => Role::Client,
        1 => Role::Server,
        other => return Err(unknown(24, u16::from(other))),
    };
    hello.authentication = match content[25] {
        0 => Authentication::None,
        1 => Authentication::Ticket,
        other => return Err(unknown(25, u16::from(other))),
    };
    hello.channel = match content[26] {
        0 => Channel::Calls,
        1 => Channel::Bulk,
        other => return Err(unknown(26, u16::from(other))),
    };
    if let Some(at) = (27..32).find(|&at| content[at] != 0) {
        return Err(unknown(at, u16::from(content[at])));
    }
    hello.cluster = u128_at(content, 32);
    hello.expected_server = u128_at(content, 48);
    hello.own_id = u128_at(content, 64);
    hello.known_incarnation = u64_at(content, 80);
    hello.fields = decode_fields(content, HELLO_FIXED_BYTES)?;
    Ok(hello)
}

/// The bytes of `welcome`. Its fields must fit [`MAX_BYTES`].
pub fn encode_welcome(welcome: &Welcome) -> Vec<u8> {
    assert_eq!(welcome.version == 0, welcome.refusal.is_some());
    let mut out = vec![0; WELCOME_FIXED_BYTES];
    out[6] = welcome.version;
    out[8..16].copy_from_slice(&welcome.must_features.to_le_bytes());
    out[16..24].copy_from_slice(&welcome.optional_features.to_le_bytes());
    out[24..26].copy_from_slice(&welcome.refusal.map_or(0, Refusal::code).to_le_bytes());
    out[28..32].copy_from_slice(&welcome.max_body_bytes.to_le_bytes());
    out[32..48].copy_from_slice(&welcome.cluster.to_le_bytes());
    out[48..64].copy_from_slice(&welcome.server.to_le_bytes());
    out[64..72].copy_from_slice(&welcome.incarnation.to_le_bytes());
    out[72..80].copy_from_slice(&welcome.max_payload_bytes.to_le_bytes());
    seal(out, &welcome.fields)
}

/// Reads a whole welcome.
///
/// # Errors
/// The first rule that the bytes break.
pub fn decode_welcome(bytes: &[u8]) -> Result<Welcome, HelloError> {
    let content = open(bytes, WELCOME_FIXED_BYTES)?;
    let version = content[6];
    let code = u16::from_le_bytes([content[24], content[25]]);
    let refusal = Refusal::from_code(code);
    if refusal.is_none() && code != 0 {
        return Err(unknown(24, code));
    }
    // Accepted means in a version that was offered; a refusal speaks none.
    let expected = if refusal.is_some() { 0 } else { frame::VERSION };
    if version != expected {
        return Err(unknown(6, u16::from(version)));
    }
    if let Some(at) = [7, 26, 27].into_iter().find(|&at| content[at] != 0) {
        return Err(unknown(at, u16::from(content[at])));
    }
    Ok(Welcome {
        version,
        must_features: u64_at(content, 8),
        optional_features: u64_at(content, 16),
        refusal,
        max_body_bytes: u32::from_le_bytes(content[28..32].try_into().expect("4 bytes")),
        max_payload_bytes: u64_at(content, 72),
        cluster: u128_at(content, 32),
        server: u128_at(content, 48),
        incarnation: u64_at(content, 64),
        fields: decode_fields(content, WELCOME_FIXED_BYTES)?,
    })
}

/// Appends the fields, fills in magic and length, closes with the checksum.
fn seal(mut out: Vec<u8>, fields: &[Field]) -> Vec<u8> {
    for field in fields {
        let length =
            u16::try_from(field.value.len()).expect("a field fits the message, which fits 4 KiB");
        out.extend_from_slice(&field.kind.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&field.value);
    }
    let bytes = out.len() + CHECKSUM_BYTES;
    assert!(bytes <= MAX_BYTES, "hello of {bytes} bytes");
    out[..4].copy_from_slice(&MAGIC);
    out[4..6].copy_from_slice(&(bytes as u16).to_le_bytes());
    let checksum = crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Checks magic, length and checksum; returns the part that the checksum covers.
fn open(bytes: &[u8], fixed_bytes: usize) -> Result<&[u8], HelloError> {
    let length = HelloError::WrongLength { bytes: bytes.len() };
    let prefix = bytes.first_chunk::<PREFIX_BYTES>().ok_or(length)?;
    if message_bytes(prefix)? != bytes.len() || bytes.len() < fixed_bytes + CHECKSUM_BYTES {
        return Err(length);
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    let stored = u32::from_le_bytes(checksum.try_into().expect("4 bytes"));
    let computed = crc32c(content);
    if stored == computed {
        Ok(content)
    } else {
        Err(HelloError::Damaged { stored, computed })
    }
}

fn decode_fields(content: &[u8], from: usize) -> Result<Vec<Field>, HelloError> {
    let mut fields = Vec::new();
    let mut offset = from;
    while offset < content.len() {
        let overrun = HelloError::FieldOverrun { offset };
        let rest = &content[offset..];
        let (header, rest) = rest
            .split_first_chunk::<FIELD_HEADER_BYTES>()
            .ok_or(overrun)?;
        let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
        let value = rest.get(..length).ok_or(overrun)?.to_vec();
        let kind = u16::from_le_bytes([header[0], header[1]]);
        fields.push(Field { kind, value });
        offset += FIELD_HEADER_BYTES + length;
    }
    assert_eq!(offset, content.len(), "fields fill the message exactly");
    Ok(fields)
}

fn unknown(offset: usize, value: u16) -> HelloError {
    HelloError::UnknownValue { offset, value }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("16 bytes"))
}
