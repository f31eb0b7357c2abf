//! Notes that the server sends without a request. The driver returns those whose receiver is not connected, and sends them again later.

use super::Node;
use crate::keep::Keep;
use areo_core::config::ServerId;
use areo_core::instant::Instant;
use areo_core::message::Note;
use std::time::Duration;

/// The time for which a note that could not be sent is sent again.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// A note with its receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingNote {
    pub to: ServerId,
    pub note: Note,
    /// The time after which it is not sent again.
    until: Instant,
}

impl<K: Keep, C> Node<K, C> {
    /// The notes to send now: earlier ones that could not be sent, and behind them those of this turn.
    #[must_use = "notes are sent, or returned"]
    pub fn outgoing(&mut self, now: Instant, sends: Vec<(ServerId, Note)>) -> Vec<OutgoingNote> {
        let until = now.plus(RETRY_TIME);
        let new = sends.into_iter();
        let new = new.map(|(to, note)| OutgoingNote { to, note, until });
        let mut notes = std::mem::take(&mut self.unsent);
        notes.extend(new);
        notes
    }

    /// Takes back [outgoing](Node::outgoing) notes whose receiver is not connected, for the next time, unless their time is over. Gossip and
    /// notes of restarts are dropped: their sender repeats them with newer content.
    pub fn keep_unsent(&mut self, now: Instant, mut notes: Vec<OutgoingNote>) {
        assert!(self.unsent.is_empty(), "unsent notes went out before these");
        notes.retain(|it| now < it.until && !matches!(it.note, Note::Gossip(_) | Note::Restart(_)));
        self.unsent = notes;
    }
}
