//! Operations that failed.

/// Sentences that are kept; the first tell most.
const SENTENCES_MAX: usize = 10;

/// The number of operations that failed, and the first of them, in sentences.
#[derive(Clone, Default)]
pub(crate) struct Failures {
    pub(crate) count: u64,
    pub(crate) first: Vec<String>,
}

impl Failures {
    pub(crate) fn add(&mut self, sentence: String) {
        self.count += 1;
        if self.first.len() < SENTENCES_MAX {
            self.first.push(sentence);
        }
    }

    pub(crate) fn merge(&mut self, others: Failures) {
        self.count += others.count;
        let room = SENTENCES_MAX.saturating_sub(self.first.len());
        self.first.extend(others.first.into_iter().take(room));
    }
}
