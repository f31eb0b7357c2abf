//! The framing `aws-chunked`, taken off.
//!
//! ```text
//! LENGTH[;chunk-signature=64 DIGITS] CR LF
//! BYTES CR LF
//! 0[;chunk-signature=64 DIGITS] CR LF
//! x-amz-checksum-NAME:BASE64 CR LF
//! x-amz-trailer-signature:64 DIGITS CR LF
//! CR LF
//! ```
//!
//! Clients differ behind the last chunk: some end a line with LF alone, put an empty line before the signature, or leave out the last one. The end of
//! the body is known from HTTP, so that empty lines mean nothing there; a line that is not empty must be an expected one.

use bytes::{Buf, Bytes, BytesMut};
use ring::digest;

use super::checksum::{Algorithm, Checksum};
use crate::auth::{ChunkChain, Payload, parse_hex};
use crate::wire::{Code, S3Error};

/// Maximum length of a signed chunk: all of its bytes are kept until the signature is verified.
pub const MAX_SIGNED_CHUNK_BYTES: usize = 16 << 20;
/// Maximum length of the line before a chunk.
const MAX_LINE_BYTES: usize = 128;
/// Maximum length of all lines behind the last chunk.
const MAX_TRAILER_BYTES: usize = 4 << 10;
/// The field of a line with the signature of its chunk.
const SIGNATURE: &str = "chunk-signature=";
/// The header of a trailer with its signature.
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// Takes off the framing of one body, without any input or output.
pub struct ChunkDecoder {
    state: State,
    /// Bytes of a line that is not complete.
    line: Vec<u8>,
    /// Bytes of the object that have not come.
    missing: u64,
    /// The signatures, if there are any.
    chain: Option<ChunkChain>,
    /// Bytes of a signed chunk that are not believed yet, and their hash.
    unverified: BytesMut,
    hash: digest::Context,
    has_trailer: bool,
    trailer: Option<Algorithm>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The line before a chunk.
    Line,
    /// In the bytes of a chunk, of which `left` are missing.
    Bytes { left: u64, signature: [u8; 32] },
    /// In the CR and LF behind the bytes, of which `came` have come.
    Separator { came: usize },
    /// All that is behind the last chunk.
    Trailer,
}

impl ChunkDecoder {
    /// A decoder of a body whose object has `length` bytes. `chain` is needed for signed chunks; `trailer` is the algorithm of the announced checksum.
    ///
    /// # Errors
    /// [`Code::AccessDenied`]: chunks are signed, and the request is not; [`Code::InvalidRequest`]: a checksum is announced for a trailer that the
    /// payload does not have.
    pub fn new(
        payload: Payload,
        length: u64,
        chain: Option<ChunkChain>,
        trailer: Option<Algorithm>,
    ) -> Result<ChunkDecoder, S3Error> {
        let chain = match payload.has_signed_chunks() {
            false => None,
            true => Some(chain.ok_or_else(|| {
                let sentence = "chunks are signed, and the request is not: sign the request";
                S3Error::new(Code::AccessDenied, sentence)
            })?),
        };
        if trailer.is_some() && !payload.has_trailer() {
            return Err(trailer_without_place());
        }
        Ok(ChunkDecoder {
            state: State::Line,
            line: Vec::new(),
            missing: length,
            chain,
            unverified: BytesMut::new(),
            hash: digest::Context::new(&digest::SHA256),
            has_trailer: payload.has_trailer(),
            trailer,
        })
    }

    /// Takes bytes from the front of `input` until some bytes of the object are believed, and returns them. `None`: `input` is empty, and more is
    /// needed.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`]: the framing is broken, or a signed chunk is too long; [`Code::IncompleteBody`]: the chunks have more or fewer bytes
    /// than were declared; [`Code::SignatureDoesNotMatch`].
    pub fn decode(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, S3Error> {
        while !input.is_empty() {
            match self.state {
                State::Line => self.take_line(input)?,
                State::Bytes { left, signature } => {
                    let believed = self.take_bytes(input, left, &signature)?;
                    if believed.is_some() {
                        return Ok(believed);
                    }
                }
                State::Separator { came } => {
                    if input.get_u8() != b"\r\n"[came] {
                        return Err(broken("a chunk is longer than its line says"));
                    }
                    self.state = match came {
                        0 => State::Separator { came: 1 },
                        _ => State::Line,
                    };
                }
                State::Trailer => {
                    if self.line.len() + input.len() > MAX_TRAILER_BYTES {
                        return Err(broken("what follows the last chunk is too long"));
                    }
                    self.line.extend_from_slice(input);
                    input.clear();
                }
            }
        }
        Ok(None)
    }

    /// Ends the body, and returns the checksum of its trailer.
    ///
    /// # Errors
    /// [`Code::IncompleteBody`]: there was no last chunk; [`Code::InvalidRequest`]: the trailer is not the announced one;
    /// [`Code::SignatureDoesNotMatch`]: its signature is missing or wrong; [`Code::InvalidDigest`]: its checksum cannot be read.
    pub fn finish(&mut self) -> Result<Option<Checksum>, S3Error> {
        if self.state != State::Trailer {
            let sentence = "the body ended before its last chunk";
            return Err(S3Error::new(Code::IncompleteBody, sentence));
        }
        let lines = std::mem::take(&mut self.line);
        let (mut checksum, mut signature) = (None, None);
        let mut canonical = Vec::new();
        for line in lines.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let (name, value) = trailing_header(line)?;
            let is_signature = name == TRAILER_SIGNATURE;
            if signature.is_some() || !self.has_trailer {
                return Err(broken("a line follows the end of the body"));
            }
            if is_signature && self.chain.is_some() {
                let parsed = parse_hex(value.as_bytes());
                signature = Some(parsed.ok_or_else(|| unsigned("the trailer"))?);
                continue;
            }
            let announced = self.trailer.filter(|one| one.header() == name);
            let Some(algorithm) = announced.filter(|_| checksum.is_none()) else {
                let name = name.escape_debug();
                let sentence = format!("x-amz-trailer does not announce '{name}'");
                return Err(broken(&sentence));
            };
            checksum = Some(Checksum::parse(algorithm, value)?);
            canonical.extend(format!("{name}:{value}\n").bytes());
        }
        if let Some(chain) = self.chain.as_mut().filter(|_| self.has_trailer) {
            let signature = signature.ok_or_else(|| unsigned("the trailer"))?;
            chain.verify_trailer(&canonical, &signature)?;
        }
        match self.trailer.filter(|_| checksum.is_none()) {
            None => Ok(checksum),
            Some(missing) => {
                let header = missing.header();
                let sentence = format!("x-amz-trailer announces '{header}', and it did not come");
                Err(broken(&sentence))
            }
        }
    }

    /// Bytes that are kept: those of a line, and those of a signed chunk that is not complete.
    pub fn buffered_bytes(&self) -> usize {
        self.line.len() + self.unverified.len()
    }

    /// Takes bytes of the line before a chunk, and reads it when it is complete.
    fn take_line(&mut self, input: &mut Bytes) -> Result<(), S3Error> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(input.len(), |end| end + 1);
        if self.line.len() + taken > MAX_LINE_BYTES {
            return Err(broken("the line before a chunk is too long"));
        }
        self.line.extend_from_slice(&input.split_to(taken));
        if end.is_none() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r\n");
        let line = line.and_then(|line| std::str::from_utf8(line).ok());
        let line = line.ok_or_else(|| broken("a chunk begins with a line of ASCII, CR and LF"))?;
        let (digits, field) = match line.split_once(';') {
            Some((digits, field)) => (digits, Some(field)),
            None => (line, None),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let length = u64::from_str_radix(digits, 16).ok().filter(|_| is_number);
        let length = length.ok_or_else(|| broken("the length of a chunk must be hexadecimal"))?;
        let signature = match (&self.chain, field) {
            (None, None) => [0; 32],
            (None, Some(_)) => return Err(broken("a chunk has a field that is not expected")),
            (Some(_), field) => {
                let digits = field.and_then(|field| field.strip_prefix(SIGNATURE));
                let parsed = digits.and_then(|digits| parse_hex(digits.as_bytes()));
                parsed.ok_or_else(|| unsigned("a chunk"))?
            }
        };
        self.begin_chunk(length, signature)
    }

    fn begin_chunk(&mut self, length: u64, signature: [u8; 32]) -> Result<(), S3Error> {
        let is_signed = self.chain.is_some();
        if length > self.missing || (length == 0 && self.missing > 0) {
            let sentence = "the chunks do not have the length in x-amz-decoded-content-length";
            return Err(S3Error::new(Code::IncompleteBody, sentence));
        }
        if is_signed && length > MAX_SIGNED_CHUNK_BYTES as u64 {
            let most = MAX_SIGNED_CHUNK_BYTES >> 20;
            return Err(broken(&format!("a signed chunk has at most {most} MiB")));
        }
        self.state = match length {
            0 => State::Trailer,
            left => State::Bytes { left, signature },
        };
        if let Some(chain) = self.chain.as_mut().filter(|_| length == 0) {
            chain.verify_chunk(&crate::auth::sha256(b""), &signature)?;
        }
        Ok(())
    }

    /// Takes bytes of a chunk, and returns those that are believed.
    fn take_bytes(
        &mut self,
        input: &mut Bytes,
        left: u64,
        signature: &[u8; 32],
    ) -> Result<Option<Bytes>, S3Error> {
        let taken = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let bytes = input.split_to(taken);
        let left = left - taken as u64;
        self.missing -= taken as u64;
        self.state = match left {
            0 => State::Separator { came: 0 },
            left => State::Bytes {
                left,
                signature: *signature,
            },
        };
        let Some(chain) = &mut self.chain else {
            return Ok(Some(bytes));
        };
        self.hash.update(&bytes);
        if left > 0 {
            if self.unverified.is_empty() {
                // A buffer that grows by doubling has room for up to two such chunks.
                let rest = usize::try_from(left).expect("a signed chunk is short");
                self.unverified.reserve(bytes.len() + rest);
            }
            self.unverified.extend_from_slice(&bytes);
            return Ok(None);
        }
        let hash = std::mem::replace(&mut self.hash, digest::Context::new(&digest::SHA256));
        let hash = hash.finish().as_ref().try_into();
        chain.verify_chunk(&hash.expect("a SHA-256 has 32 bytes"), signature)?;
        if self.unverified.is_empty() {
            return Ok(Some(bytes));
        }
        self.unverified.extend_from_slice(&bytes);
        Ok(Some(self.unverified.split().freeze()))
    }
}

/// A line of a trailer: its name in small letters, and its value.
fn trailing_header(line: &[u8]) -> Result<(String, &str), S3Error> {
    let text = std::str::from_utf8(line).ok();
    let pair = text.and_then(|text| text.split_once(':'));
    let (name, value) = pair.ok_or_else(|| broken("a line of the trailer must be NAME:VALUE"))?;
    Ok((
        name.trim_matches(' ').to_ascii_lowercase(),
        value.trim_matches(' '),
    ))
}

/// The refusal of a checksum in a trailer that does not exist.
pub(super) fn trailer_without_place() -> S3Error {
    broken(
        "x-amz-trailer announces a checksum, and x-amz-content-sha256 declares no trailer: it must end with -TRAILER",
    )
}

fn broken(sentence: &str) -> S3Error {
    S3Error::new(Code::InvalidRequest, sentence)
}

fn unsigned(of: &str) -> S3Error {
    let sentence = format!("{of} of the body has no signature of 64 hexadecimal digits");
    S3Error::new(Code::SignatureDoesNotMatch, sentence)
}
