//! Fields behind the fixed part of a hello and of a welcome.
//!
//! | message | kind | content |
//! |---|---|---|
//! | hello | 1 | the ticket of the caller's key |
//! | hello | 2 | the proof that the caller holds this ticket, 64 bytes |
//! | welcome | 1 | the number of the process, 8 bytes |
//! | welcome | 2 | a sentence that explains the refusal, UTF-8 |

use super::{Authentication, Hello, MUST_UNDERSTAND, Welcome};

const TICKET: u16 = 1;
const PROOF: u16 = 2;
const PROCESS: u16 = 1;
const REASON: u16 = 2;

/// The longest sentence of a refusal, in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// A field that this version gives no place of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its kind; with bit 15 set it must be understood.
    pub kind: u16,
    /// Content of the field.
    pub value: Vec<u8>,
}

impl Field {
    /// True if a receiver that does not know this kind has to give up.
    pub fn must_understand(&self) -> bool {
        self.kind & MUST_UNDERSTAND != 0
    }
}

fn find(fields: &[Field], kind: u16) -> Option<&[u8]> {
    let field = fields.iter().find(|field| field.kind == kind)?;
    Some(&field.value)
}

impl Hello {
    /// The hello with a ticket, and the proof that the caller holds it. A ticket of 3 KiB fits.
    #[must_use]
    pub fn with_ticket(mut self, ticket: &[u8], proof: &[u8]) -> Hello {
        self.authentication = Authentication::Ticket;
        for (kind, value) in [(TICKET, ticket), (PROOF, proof)] {
            let value = value.to_vec();
            self.fields.push(Field { kind, value });
        }
        self
    }

    /// The ticket, and the proof that the caller holds it; empty where it is missing. `None`: the caller shows no ticket.
    pub fn ticket(&self) -> Option<(&[u8], &[u8])> {
        let field = |kind| find(&self.fields, kind).unwrap_or_default();
        match self.authentication {
            Authentication::None => None,
            Authentication::Ticket => Some((field(TICKET), field(PROOF))),
        }
    }
}

impl Welcome {
    /// The number of the process that answers, which tells it from another one with the same identity; of an earlier version
    /// none.
    pub fn process(&self) -> Option<u64> {
        let number = find(&self.fields, PROCESS)?;
        Some(u64::from_le_bytes(number.try_into().ok()?))
    }

    /// The sentence that explains the refusal, if the server gives one. It comes from the other end: nothing but text is left of it.
    pub fn reason(&self) -> Option<String> {
        let text = std::str::from_utf8(find(&self.fields, REASON)?).ok()?;
        let is_fit = text.len() <= MAX_REASON_BYTES && !text.contains(char::is_control);
        is_fit.then(|| text.to_owned())
    }
}

/// The field of a welcome that [`Welcome::process`] reads.
pub fn process_field(process: u64) -> Field {
    Field {
        kind: PROCESS,
        value: process.to_le_bytes().into(),
    }
}

/// The field of a welcome that [`Welcome::reason`] reads. A sentence that is too long is not sent.
pub fn reason_field(sentence: &str) -> Option<Field> {
    let is_fit = sentence.len() <= MAX_REASON_BYTES;
    is_fit.then(|| Field {
        kind: REASON,
        value: sentence.as_bytes().into(),
    })
}
