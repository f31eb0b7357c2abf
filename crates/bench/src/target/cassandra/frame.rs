//! Cassandra's native protocol, version 4, which every server since 2.2 speaks: as much of it as a dozen statements need.
//! A library would bring 28 crates that nothing else here has, and 51 s of CPU time to a build from nothing.

use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use std::collections::BTreeMap;

/// Bytes before the body of a frame.
pub(super) const HEAD: usize = 9;
const VERSION: u8 = 4;
const ANSWERS: u8 = 0x80;
/// The specification allows no longer body.
const BODY_MAX: usize = 256 << 20;
const WITH_VALUES: u8 = 0x01;
const WITHOUT_METADATA: u8 = 0x02;

/// Of how many replicas is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consistency {
    One = 1,
    Quorum = 4,
    Serial = 8,
}

/// What a server is asked.
#[derive(Debug)]
pub(super) enum Request<'a> {
    /// Before anything else.
    Startup,
    /// A statement as text.
    Query(&'a str),
    /// A statement that is executed later, and often.
    Prepare(&'a str),
    /// It.
    Execute {
        id: &'a [u8],
        consistency: Consistency,
        values: &'a [&'a [u8]],
    },
}

impl Request<'_> {
    fn code(&self) -> u8 {
        match self {
            Request::Startup => 0x01,
            Request::Query(_) => 0x07,
            Request::Prepare(_) => 0x09,
            Request::Execute { .. } => 0x0a,
        }
    }

    /// Appends it, with the number that its answer will have.
    pub(super) fn write(&self, stream: i16, out: &mut BytesMut) {
        let begin = out.len();
        out.put_u8(VERSION);
        out.put_u8(0);
        out.put_i16(stream);
        out.put_u8(self.code());
        out.put_u32(0);
        match self {
            Request::Startup => {
                out.put_u16(1);
                put_word(out, "CQL_VERSION");
                put_word(out, "3.0.0");
            }
            Request::Query(statement) => {
                put_cell(out, statement.as_bytes());
                out.put_u16(Consistency::One as u16);
                out.put_u8(0);
            }
            Request::Prepare(statement) => put_cell(out, statement.as_bytes()),
            Request::Execute {
                id,
                consistency,
                values,
            } => {
                put_short(out, id);
                out.put_u16(*consistency as u16);
                out.put_u8(WITH_VALUES | WITHOUT_METADATA);
                out.put_u16(values.len() as u16);
                for value in *values {
                    put_cell(out, value);
                }
            }
        }
        let length = (out.len() - begin - HEAD) as u32;
        out[begin + HEAD - 4..begin + HEAD].copy_from_slice(&length.to_be_bytes());
    }
}

fn put_word(out: &mut BytesMut, word: &str) {
    put_short(out, word.as_bytes());
}

fn put_short(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u16(bytes.len() as u16);
    out.put_slice(bytes);
}

fn put_cell(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put_slice(bytes);
}

/// A value of a row; `None` is null.
pub(super) type Cell = Option<Bytes>;

/// What a server answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// That it may be asked.
    Ready,
    /// That it wants to know who asks, and by which class it would find out.
    Authenticate(String),
    /// That it is done.
    Done,
    /// The name of a statement that it has prepared.
    Prepared(Bytes),
    /// Rows.
    Rows(Vec<Vec<Cell>>),
    /// That something is wrong: what, and the specification's number for it.
    Refused { code: u32, message: String },
}

/// An answer, not looked into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// The number that its request had.
    pub(super) stream: i16,
    flags: u8,
    code: u8,
    body: Bytes,
}

/// Takes the first frame off `bytes`; `None` if it is not there whole.
///
/// # Errors
/// That it is none of a server that speaks this version, as a sentence.
pub(super) fn take(bytes: &mut BytesMut) -> Result<Option<Frame>, String> {
    let Some(&version) = bytes.first() else {
        return Ok(None);
    };
    if version != ANSWERS | VERSION {
        return Err(match version {
            0x81..=0x86 => format!(
                "the server speaks version {} of Cassandra's protocol, and not {VERSION}",
                version & !ANSWERS
            ),
            _ => "what listens there does not speak Cassandra's protocol".into(),
        });
    }
    let Some(mut head) = bytes.get(1..HEAD) else {
        return Ok(None);
    };
    let (flags, stream, code) = (head.get_u8(), head.get_i16(), head.get_u8());
    let length = head.get_u32() as usize;
    if length > BODY_MAX {
        return Err(format!("an answer of {length} bytes is too long"));
    }
    if bytes.len() < HEAD + length {
        bytes.reserve(HEAD + length - bytes.len());
        return Ok(None);
    }
    bytes.advance(HEAD);
    Ok(Some(Frame {
        stream,
        flags,
        code,
        body: bytes.split_to(length).freeze(),
    }))
}

impl Frame {
    /// What it says.
    ///
    /// # Errors
    /// That it cannot be understood, as a sentence.
    pub(super) fn reply(self) -> Result<Reply, String> {
        let code = self.code;
        let understood = Reader(self.body).reply(self.flags, code);
        understood.map_err(|_| format!("an answer of kind {code} that cannot be understood"))
    }
}

/// A body that is not as the specification has it.
struct Malformed;

impl From<TryGetError> for Malformed {
    fn from(_: TryGetError) -> Malformed {
        Malformed
    }
}

struct Reader(Bytes);

impl Reader {
    fn reply(&mut self, flags: u8, code: u8) -> Result<Reply, Malformed> {
        if flags & 0x02 != 0 {
            // The identity of a trace.
            self.bytes(16)?;
        }
        if flags & 0x08 != 0 {
            for _ in 0..self.0.try_get_u16()? {
                self.short()?;
            }
        }
        match code {
            0x00 => Ok(Reply::Refused {
                code: self.0.try_get_u32()?,
                message: self.word()?,
            }),
            0x02 => Ok(Reply::Ready),
            0x03 => Ok(Reply::Authenticate(self.word()?)),
            0x08 => match self.0.try_get_u32()? {
                // Nothing, a keyspace that is used now, a schema that changed.
                1 | 3 | 5 => Ok(Reply::Done),
                2 => self.rows(),
                4 => Ok(Reply::Prepared(self.short()?)),
                _ => Err(Malformed),
            },
            _ => Err(Malformed),
        }
    }

    fn rows(&mut self) -> Result<Reply, Malformed> {
        let flags = self.0.try_get_u32()?;
        let columns = self.0.try_get_u32()?;
        if flags & 0x02 != 0 {
            // More pages, which nothing that is asked here has.
            return Err(Malformed);
        }
        if flags & 0x04 == 0 {
            let of_all = flags & 0x01 != 0;
            if of_all {
                self.table()?;
            }
            for _ in 0..columns {
                if !of_all {
                    self.table()?;
                }
                self.short()?;
                self.kind(0)?;
            }
        }
        if columns == 0 {
            // Nothing would bound how many rows there are.
            return Err(Malformed);
        }
        let mut rows = Vec::new();
        for _ in 0..self.0.try_get_u32()? {
            let mut row = Vec::new();
            for _ in 0..columns {
                row.push(self.cell()?);
            }
            rows.push(row);
        }
        Ok(Reply::Rows(rows))
    }

    fn table(&mut self) -> Result<(), Malformed> {
        self.short()?;
        self.short().map(drop)
    }

    /// Passes over the type of a column.
    fn kind(&mut self, depth: u8) -> Result<(), Malformed> {
        if depth > 8 {
            return Err(Malformed);
        }
        let inside = match self.0.try_get_u16()? {
            // A class.
            0x00 => return self.short().map(drop),
            0x20 | 0x22 => 1,
            0x21 => 2,
            0x31 => self.0.try_get_u16()?,
            // One that users made, which the tables that are asked here do not have.
            0x30 => return Err(Malformed),
            _ => 0,
        };
        (0..inside).try_for_each(|_| self.kind(depth + 1))
    }

    fn bytes(&mut self, length: usize) -> Result<Bytes, Malformed> {
        match length <= self.0.len() {
            true => Ok(self.0.split_to(length)),
            false => Err(Malformed),
        }
    }

    fn short(&mut self) -> Result<Bytes, Malformed> {
        let length = self.0.try_get_u16()?;
        self.bytes(length.into())
    }

    fn word(&mut self) -> Result<String, Malformed> {
        let word = self.short()?;
        Ok(String::from_utf8_lossy(&word).into_owned())
    }

    fn cell(&mut self) -> Result<Cell, Malformed> {
        match usize::try_from(self.0.try_get_i32()?) {
            Ok(length) => self.bytes(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// What a cell that maps words to words has; `None` if it is none.
pub(super) fn map(cell: Bytes) -> Option<BTreeMap<String, String>> {
    let mut reader = Reader(cell);
    let mut found = BTreeMap::new();
    for _ in 0..reader.0.try_get_u32().ok()? {
        let (name, value) = (reader.cell().ok()??, reader.cell().ok()??);
        let word = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        found.insert(word(name), word(value));
    }
    Some(found)
}

#[cfg(test)]
mod tests;
