//! The starts of one server, as its data directory counts them. A start is *confirmed* once a quorum of the root domain
//! has registered it. One that never was is tried again as it is, with the same number: if refused starts counted, a copy
//! of an older state would overtake the registered incarnation by being started again and again, as every supervisor
//! does.

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

    /// Begins a start. What this says must be durable before the start is registered. Returns the start's number, which
    /// tells it from another one of the same incarnation.
    pub fn begin(&mut self, random: u64) -> u64 {
        if self.unconfirmed.is_none() {
            self.incarnation += 1;
        }
        *self.unconfirmed.get_or_insert(random)
    }

    /// The start is registered. What this says must be durable before the server answers for any object.
    pub fn confirm(&mut self) {
        self.unconfirmed = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_that_were_refused_do_not_count() {
        let mut starts = Starts::NONE;
        assert_eq!(starts.begin(7), 7);
        starts.confirm();
        let mut copy = starts;
        for random in 8..12 {
            starts.begin(random);
            starts.confirm();
        }
        for random in 20..40 {
            assert_eq!(copy.begin(random), 20, "it stays the same start");
        }
        assert_eq!((copy.incarnation, starts.incarnation), (2, 5));
    }
}
