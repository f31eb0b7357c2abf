//! The starts of one server, as its data directory counts them (decision record 0017). A start is *confirmed* once a
//! quorum of the root domain has registered it. What was refused does not count: a copy of an older state would overtake
//! the registered incarnation by being started again and again, as every supervisor does.

use crate::message::Enrolment;

/// The number of starts of a server, and the confirmation of the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starts {
    /// Counts confirmed starts, and the one that is not confirmed yet.
    pub incarnation: u64,
    /// The random number of a start that is not confirmed yet.
    pub unconfirmed: Option<u64>,
}

impl Starts {
    /// The starts of a server that was never started.
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
    /// True if this process began the start that is not confirmed.
    is_own: bool,
    /// True if the root domain has returned its record of the server, before anything was registered.
    has_looked: bool,
    /// Records are known to be missing.
    abstains: bool,
}

/// The registration that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Next {
    /// The step: a registration, or a question about it.
    pub step: Enrolment,
    pub incarnation: u64,
    /// The number of the start; of one that is only asked about, none.
    pub start: u64,
    /// An earlier process began it.
    pub resumed: bool,
}

/// The step for the directory when the root domain has agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgreedStep {
    /// Write these down, durably, and go on with [`StartPhase::next`].
    GoOn(Starts),
    /// Write these down, durably; then the server may answer for objects.
    Serve(Starts),
}

impl StartPhase {
    /// The phase of a process that found this in its directory.
    pub fn new(starts: Starts) -> StartPhase {
        StartPhase {
            starts,
            is_own: false,
            has_looked: false,
            abstains: false,
        }
    }

    /// Records of the directory are known to be missing, so that its server abstains whether or not its log is behind.
    #[must_use]
    pub fn abstaining(self, abstains: bool) -> StartPhase {
        StartPhase { abstains, ..self }
    }

    /// True if the log must reach the position that the last start has registered: a shorter log belongs to an older
    /// copy.
    pub fn must_not_be_behind(&self) -> bool {
        !self.abstains
    }

    /// The last start that the directory knows to be confirmed, or that an earlier process began.
    pub fn last(&self) -> u64 {
        let began = u64::from(self.is_own);
        assert!(self.starts.incarnation >= began, "its own start counts");
        self.starts.incarnation - began
    }

    /// The incarnation under which this process will serve.
    pub fn incarnation(&self) -> u64 {
        self.starts.incarnation + u64::from(!self.is_own)
    }

    /// The next step of the registration. The first step asks if any later start is known, because nothing may be registered
    /// while another process has the identity. The second step registers the start that an earlier process left unconfirmed, and
    /// asks again. The last step registers a start of this process's own.
    pub fn next(&self) -> Next {
        match (self.starts.unconfirmed, self.is_own) {
            (Some(start), is_own) if self.has_looked => Next {
                step: Enrolment::Register,
                incarnation: self.starts.incarnation,
                start,
                resumed: !is_own,
            },
            (_, is_own) => Next {
                step: Enrolment::Ask,
                incarnation: self.starts.incarnation + u64::from(!is_own),
                start: 0,
                resumed: false,
            },
        }
    }

    /// The root domain has agreed to [`StartPhase::next`]; `random` is the number of a start that begins now.
    pub fn agreed(&mut self, random: u64) -> AgreedStep {
        let has_looked = std::mem::replace(&mut self.has_looked, true);
        if self.starts.unconfirmed.is_some() && !has_looked {
            return AgreedStep::GoOn(self.starts);
        }
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
