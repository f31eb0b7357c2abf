//! The starts of one server, as its data directory counts them (decision record 0017). A start is *confirmed* once a
//! quorum of the root domain has registered it. What was refused does not count: a copy of an older state would overtake
//! the registered incarnation by being started again and again, as every supervisor does.

use crate::message::Enrolment;

/// How often a server was started, and whether the last start was confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starts {
    /// Counts confirmed starts, and the one that is not confirmed yet.
    pub incarnation: u64,
    /// The random number of a start that is not confirmed yet.
    pub unconfirmed: Option<u64>,
}

impl Starts {
    /// Of a server that was never started.
    pub const NONE: Starts = Starts {
        incarnation: 0,
        unconfirmed: None,
    };
}

/// The way of one process from its directory to a confirmed start. It serves under a start that it began itself, never under
/// one that it found in its directory: another process may have found the same in a copy.
#[derive(Clone, Debug)]
pub struct StartPhase {
    starts: Starts,
    /// This process began the start that is not confirmed.
    is_own: bool,
}

/// What is to be registered next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next {
    /// Whether it is registered, or asked about.
    pub step: Enrolment,
    /// The incarnation.
    pub incarnation: u64,
    /// The number of the start; of one that is only asked about, none.
    pub start: u64,
    /// An earlier process began it.
    pub resumed: bool,
}

/// What is to be done with the directory when the root domain has agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgreedStep {
    /// Write these down, durably, and go on with [`StartPhase::next`].
    GoOn(Starts),
    /// Write these down, durably; then the server may answer for objects.
    Serve(Starts),
}

impl StartPhase {
    /// Of a process that found this in its directory.
    pub fn new(starts: Starts) -> StartPhase {
        let is_own = false;
        StartPhase { starts, is_own }
    }

    /// The incarnation under which this process will serve.
    pub fn incarnation(&self) -> u64 {
        self.starts.incarnation + u64::from(!self.is_own)
    }

    /// What is to be registered: first, what an earlier process left unconfirmed; then, as a question, whether any later start
    /// is known; then a start of this process's own.
    pub fn next(&self) -> Next {
        match (self.starts.unconfirmed, self.is_own) {
            (Some(start), is_own) => Next {
                step: Enrolment::Register,
                incarnation: self.starts.incarnation,
                start,
                resumed: !is_own,
            },
            (None, _) => Next {
                step: Enrolment::Ask,
                incarnation: self.starts.incarnation + 1,
                start: 0,
                resumed: false,
            },
        }
    }

    /// The root domain has agreed to [`StartPhase::next`]; `random` is the number of a start that begins now.
    pub fn agreed(&mut self, random: u64) -> AgreedStep {
        match (self.starts.unconfirmed.take(), self.is_own) {
            (Some(_), false) => AgreedStep::GoOn(self.starts),
            (Some(_), true) => AgreedStep::Serve(self.starts),
            (None, is_own) => {
                assert!(!is_own, "a process begins one start");
                let asked = self.incarnation();
                self.starts.incarnation += 1;
                self.starts.unconfirmed = Some(random.max(1));
                self.is_own = true;
                assert_eq!(self.incarnation(), asked, "it begins what it asked about");
                AgreedStep::GoOn(self.starts)
            }
        }
    }
}

#[cfg(test)]
mod tests;
