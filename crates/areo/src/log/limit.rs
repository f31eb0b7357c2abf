//! A limit to the lines of one kind in a period.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;

/// The largest number of lines of one kind in a [`WHILE`].
pub(super) const LINES: u32 = 10;
/// The time over which lines of a kind are counted.
const WHILE: Duration = Duration::from_secs(10);

/// Counts lines by where they are written in the code.
#[derive(Default)]
pub(super) struct Limit(Mutex<HashMap<Identifier, Window>>);

struct Window {
    began: Instant,
    lines: u32,
    left_out: u64,
}

impl Limit {
    /// The number of lines of its kind that were left out before it; `None`: this line is left out,
    /// too.
    pub(super) fn admit(&self, kind: Identifier, now: Instant) -> Option<u64> {
        let mut windows = self.0.lock().expect("no holder of the lock panics");
        let new = || Window {
            began: now,
            lines: 0,
            left_out: 0,
        };
        let window = windows.entry(kind).or_insert_with(new);
        if now.saturating_duration_since(window.began) >= WHILE {
            (window.began, window.lines) = (now, 0);
        }
        if window.lines == LINES {
            window.left_out += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_is_cut_and_said() {
        let kind = |span: &tracing::Span| span.metadata().map(tracing::Metadata::callsite);
        let kinds = || {
            let one = kind(&tracing::info_span!("one"));
            (one, kind(&tracing::info_span!("other")))
        };
        // Spans have metadata only while a subscriber listens.
        let listening = tracing_subscriber::registry();
        let (Some(one), Some(other)) = tracing::subscriber::with_default(listening, kinds) else {
            panic!("somebody listens");
        };
        let (limit, now) = (Limit::default(), Instant::now());
        let admitted = (0..100).filter_map(|_| limit.admit(one.clone(), now));
        assert_eq!(admitted.collect::<Vec<_>>(), [0; LINES as usize]);
        assert_eq!(limit.admit(other, now), Some(0), "another kind goes on");
        let soon = now + WHILE.saturating_sub(Duration::from_nanos(1));
        assert_eq!(limit.admit(one.clone(), soon), None);
        assert_eq!(limit.admit(one.clone(), now + WHILE), Some(91));
        assert_eq!(limit.admit(one, now + WHILE), Some(0), "said once");
    }
}
