//! The operations of one object, and what the judges say about them.

use crate::history::{History, Operation};

/// The finding of a judge: a sentence, and the operations that show it, as places in [`History::operations`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) what: String,
    pub(crate) operations: Vec<u32>,
}

/// The verdict of a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Violated(Finding),
    /// Why it could not be judged.
    Unjudged(String),
}

impl From<Result<(), Finding>> for Verdict {
    fn from(result: Result<(), Finding>) -> Verdict {
        match result {
            Ok(()) => Verdict::Holds,
            Err(finding) => Verdict::Violated(finding),
        }
    }
}

/// Operations of one history that are judged together. In the judges, an operation is its place in the view.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'h> {
    pub(crate) history: &'h History,
    /// The operations' places in [`History::operations`].
    pub(crate) places: &'h [u32],
}

impl<'h> View<'h> {
    pub(crate) fn get(&self, index: usize) -> &'h Operation {
        &self.history.operations()[self.places[index] as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &'h Operation)> + '_ {
        (0..self.places.len()).map(|index| (index, self.get(index)))
    }

    /// Invocations and ends in their order; the flag says whether it is the end.
    pub(crate) fn moments(&self) -> Vec<(u32, usize, bool)> {
        let mut moments = Vec::with_capacity(self.places.len() * 2);
        for (index, operation) in self.iter() {
            moments.push((operation.invoked.rank, index, false));
            moments.extend(operation.ended.map(|ended| (ended.rank, index, true)));
        }
        moments.sort_unstable();
        moments
    }

    pub(crate) fn finding(
        &self,
        what: impl Into<String>,
        operations: impl IntoIterator<Item = usize>,
    ) -> Finding {
        let mut operations: Vec<u32> = operations
            .into_iter()
            .map(|index| self.places[index])
            .collect();
        operations
            .sort_unstable_by_key(|&place| self.history.operations()[place as usize].invoked.rank);
        operations.dedup();
        Finding {
            what: what.into(),
            operations,
        }
    }
}
