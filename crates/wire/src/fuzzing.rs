//! Promises for any bytes whatsoever. Each function takes one input and panics if a promise is broken: nothing
//! panics on the way, and what can be read survives being written and read again. It says whether the input could be
//! read, so that a driver notices when it only ever meets the first check.
//!
//! The targets in `fuzz/` call these, and so does a test that needs nothing but a stable toolchain
//! (`crates/wire/tests/fuzz.rs`).
//!
//! A message with its payload is one input: `count u8 · (length u16) × count · body`. The segments themselves are zeros,
//! because the codec never looks into them.

use crate::checksum::crc32c;
use crate::codec::{self, DecodeError, EncodedMessage};
use crate::frame::{self, BodyPlace, DecodeOutcome, FrameError, Head, Limits};
use crate::hello::{self, Authentication, Channel, Field, Hello, HelloError, Role, Welcome};
use crate::record;
use bytes::Bytes;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A frame's head. A wrong checksum is mended once, so that the protected part is reached, too.
pub fn frame(input: &[u8]) -> bool {
    let limits = Limits::default();
    match frame::decode(input, &limits) {
        Ok(DecodeOutcome::Need { total_bytes }) => {
            assert!(input.len() < total_bytes && total_bytes <= limits.max_head_bytes());
            false
        }
        Ok(DecodeOutcome::Head(head)) => check_head(input, &head),
        Err(FrameError::HeadDamaged { computed, .. }) => {
            let mut mended = input.to_vec();
            mended[..4].copy_from_slice(&computed.to_le_bytes());
            match frame::decode(&mended, &limits) {
                Ok(DecodeOutcome::Head(head)) => check_head(&mended, &head),
                Err(FrameError::SegmentsDisagree { .. }) => false,
                other => panic!("mending the checksum led to {other:?}"),
            }
        }
        Err(_) => false,
    }
}

/// A head has one encoding.
fn check_head(bytes: &[u8], head: &Head<'_>) -> bool {
    let mut again = Vec::new();
    let rows: Vec<_> = head.segments.iter().collect();
    let (rows, place) = (rows.iter().copied(), BodyPlace::Inline);
    let encoded = frame::encode(&mut again, &head.header, rows, head.body, place);
    encoded.expect("what the limits let through can be sent");
    assert_eq!(again, bytes[..head.head_bytes]);
    true
}

/// A hello, and a welcome. A wrong checksum is mended once.
pub fn hello(input: &[u8]) -> bool {
    if let Some(prefix) = input.first_chunk()
        && let Ok(bytes) = hello::message_bytes(prefix)
    {
        assert!(bytes <= hello::MAX_BYTES);
    }
    let hello = mending(input, hello::decode_hello);
    if let Ok(message) = &hello {
        let again = hello::encode_hello(message);
        assert_eq!(hello::decode_hello(&again).as_ref(), Ok(message));
    }
    let welcome = mending(input, hello::decode_welcome);
    if let Ok(message) = &welcome {
        let again = hello::encode_welcome(message);
        assert_eq!(hello::decode_welcome(&again).as_ref(), Ok(message));
    }
    hello.is_ok() || welcome.is_ok()
}

/// The fields of a hello and of a welcome behind a fixed part that is good: `flags u8 · (kind u16 · length u16 · bytes) ...`, where bit 0 of the
/// flags says that the hello shows a ticket.
pub fn hello_fields(input: &[u8]) -> bool {
    let Some((flags, fields)) = input.split_first() else {
        return false;
    };
    let authentication = match flags & 1 {
        0 => Authentication::None,
        _ => Authentication::Ticket,
    };
    let bare = Hello {
        authentication,
        ..Hello::new(Role::Client, Channel::Calls, 7)
    };
    let message = with_fields(hello::encode_hello(&bare), fields);
    if message.len() > hello::MAX_BYTES {
        return false;
    }
    let hello = hello::decode_hello(&message);
    if let Ok(hello) = &hello {
        assert_eq!(hello::encode_hello(hello), message);
        let needs_more = hello.fields.iter().any(Field::must_understand);
        assert_eq!(hello.agree().is_err(), needs_more);
        let shown = hello.ticket();
        assert_eq!(shown.is_some(), flags & 1 != 0);
        if let Some((ticket, proof)) = shown {
            let again = bare.with_ticket(ticket, proof);
            assert_eq!(again.ticket(), shown);
        }
    }
    let message = with_fields(hello::encode_welcome(&Welcome::of_fuzzing()), fields);
    let welcome = hello::decode_welcome(&message);
    if let Ok(welcome) = &welcome {
        assert_eq!(hello::encode_welcome(welcome), message);
        if let Some(process) = welcome.process() {
            let field = hello::process_field(process);
            assert!(welcome.fields.contains(&field));
        }
        if let Some(reason) = welcome.reason() {
            assert!(!reason.contains(char::is_control), "{reason:?}");
            let field = hello::reason_field(&reason).expect("it came in a field");
            assert!(welcome.fields.contains(&field));
        }
    }
    assert_eq!(hello.is_ok(), welcome.is_ok(), "fields are alike in both");
    hello.is_ok()
}

/// A message with these bytes before its checksum, and a length and a checksum that are right.
fn with_fields(mut message: Vec<u8>, fields: &[u8]) -> Vec<u8> {
    message.truncate(message.len() - size_of::<u32>());
    message.extend_from_slice(fields);
    let bytes = message.len() + size_of::<u32>();
    message[4..6].copy_from_slice(&(bytes as u16).to_le_bytes());
    let checksum = crc32c(&message);
    message.extend_from_slice(&checksum.to_le_bytes());
    message
}

impl Welcome {
    /// A welcome without fields.
    fn of_fuzzing() -> Welcome {
        Welcome {
            version: frame::VERSION,
            must_features: 0,
            optional_features: 0,
            refusal: None,
            max_body_bytes: frame::MAX_BODY_BYTES,
            max_payload_bytes: frame::MAX_PAYLOAD_BYTES,
            cluster: 8,
            server: 9,
            incarnation: 10,
            fields: Vec::new(),
        }
    }
}

fn mending<T>(
    input: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, HelloError>,
) -> Result<T, HelloError> {
    let decoded = decode(input);
    let Err(HelloError::Damaged { computed, .. }) = decoded else {
        return decoded;
    };
    let mut mended = input.to_vec();
    let checksum = mended.len() - 4;
    mended[checksum..].copy_from_slice(&computed.to_le_bytes());
    decode(&mended)
}

/// A request with its payload.
pub fn request(input: &[u8]) -> bool {
    let (body, payload) = split(input);
    message(
        &body,
        &payload,
        codec::decode_request,
        codec::encode_request,
        |_| {},
    )
}

/// A reply with its payload.
pub fn reply(input: &[u8]) -> bool {
    let (body, payload) = split(input);
    message(
        &body,
        &payload,
        codec::decode_reply,
        codec::encode_reply,
        |reply| _ = reply.refusal(),
    )
}

/// Decodes a note, and encodes it again.
pub fn note(input: &[u8]) -> bool {
    let (body, payload) = split(input);
    let decode = codec::decode_note;
    message(&body, &payload, decode, codec::encode_note, |_| {})
}

fn message<T: PartialEq + std::fmt::Debug>(
    body: &[u8],
    payload: &[(Bytes, u32)],
    decode: impl Fn(&[u8], Vec<(Bytes, u32)>) -> Result<T, DecodeError>,
    encode: impl Fn(&T) -> EncodedMessage,
    look: impl Fn(&T),
) -> bool {
    match decode(body, payload.to_vec()) {
        Ok(decoded) => {
            look(&decoded);
            let again = encode(&decoded);
            assert_eq!(again.payload, payload, "segments stay what they are");
            assert_eq!(decode(&again.body, again.payload), Ok(decoded));
            true
        }
        Err(error) => {
            // Asking again with the same bytes cannot help.
            assert!(!error.to_string().is_empty() && !error.refusal().may_pass());
            false
        }
    }
}

/// The header of a record.
pub fn record_header(input: &[u8]) -> bool {
    match record::decode_header(input) {
        Ok(header) => {
            let again = record::encode_header(&header);
            assert_eq!(record::decode_header(&again), Ok(header));
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

/// An input of [`request`], [`reply`] and [`note`].
pub fn join(body: &[u8], segment_bytes: &[u16]) -> Vec<u8> {
    let count = u8::try_from(segment_bytes.len()).expect("an input has few segments");
    let mut input = vec![count];
    input.extend(segment_bytes.iter().flat_map(|bytes| bytes.to_le_bytes()));
    input.extend_from_slice(body);
    input
}

/// The reverse of [`join`]; takes anything.
fn split(input: &[u8]) -> (Bytes, Vec<(Bytes, u32)>) {
    let (count, mut rest) = input.split_first().unwrap_or((&0, &[]));
    let mut payload = Vec::new();
    for index in 0..*count {
        let Some((length, behind)) = rest.split_first_chunk() else {
            break;
        };
        let length = usize::from(u16::from_le_bytes(*length));
        payload.push((Bytes::from_static(&ZEROS[..length]), index.into()));
        rest = behind;
    }
    (Bytes::copy_from_slice(rest), payload)
}

/// A line of a golden file (`crates/wire/tests/golden/`): a name, a body, and the segments of its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Golden {
    /// The name of the example.
    pub name: String,
    /// The body of a message, or the header of a record.
    pub body: Vec<u8>,
    /// Segments of the payload.
    pub segments: Vec<Vec<u8>>,
}

impl Golden {
    /// The lines of a golden file: `name body segment ...`, in hexadecimal, `#` before remarks.
    ///
    /// # Panics
    /// If it is no golden file.
    pub fn parse(text: &str) -> Vec<Golden> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(Golden::parse_line).collect()
    }

    fn parse_line(line: &str) -> Golden {
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next().expect("a line begins with a name");
        let body = words.next().expect("and goes on with a body");
        Golden {
            name,
            body: from_hexadecimal(&body),
            segments: words.map(|word| from_hexadecimal(&word)).collect(),
        }
    }

    /// The example as an input of [`request`], [`reply`] and [`note`].
    pub fn input(&self) -> Vec<u8> {
        let lengths = self.segments.iter().map(|segment| segment.len() as u16);
        join(&self.body, &lengths.collect::<Vec<_>>())
    }
}

fn from_hexadecimal(text: &str) -> Vec<u8> {
    let digit = |byte: u8| {
        let digit = char::from(byte).to_digit(16);
        digit.expect("golden files are written in hexadecimal") as u8
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty(), "bytes have two digits");
    pairs
        .iter()
        .map(|[high, low]| digit(*high) << 4 | digit(*low))
        .collect()
}
