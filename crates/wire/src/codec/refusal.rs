//! Refusals of the algorithms as refusals of frames, and back.

use crate::frame;
use areo_core::message::Refusal;

impl From<Refusal> for frame::Refusal {
    fn from(refusal: Refusal) -> frame::Refusal {
        match refusal {
            Refusal::Busy => frame::Refusal::Busy,
            Refusal::Full => frame::Refusal::Full,
            Refusal::Damaged => frame::Refusal::Damaged,
            Refusal::Draining => frame::Refusal::Draining,
            Refusal::Starting => frame::Refusal::Starting,
            Refusal::WrongCluster => frame::Refusal::WrongCluster,
            Refusal::WrongServer => frame::Refusal::WrongServer,
            Refusal::Unauthorised => frame::Refusal::Unauthorised,
            Refusal::UnknownConfiguration => frame::Refusal::UnknownConfiguration,
            Refusal::TooLarge => frame::Refusal::TooLarge,
            Refusal::Malformed => frame::Refusal::Malformed,
            Refusal::Unknown => frame::Refusal::UnknownRequest,
            Refusal::DeadlinePassed => frame::Refusal::DeadlinePassed,
            Refusal::Removed => frame::Refusal::Removed,
            Refusal::Forked => frame::Refusal::Forked,
            Refusal::Fenced => frame::Refusal::Fenced,
        }
    }
}

impl From<frame::Refusal> for Refusal {
    fn from(refusal: frame::Refusal) -> Refusal {
        match refusal {
            frame::Refusal::Busy => Refusal::Busy,
            frame::Refusal::Full => Refusal::Full,
            // A server on an old copy of its data is damaged as a whole: it abstains until it is mended
            // ([X-11 damage-abstains]).
            frame::Refusal::Damaged | frame::Refusal::RolledBack => Refusal::Damaged,
            frame::Refusal::Draining => Refusal::Draining,
            frame::Refusal::Starting => Refusal::Starting,
            frame::Refusal::WrongCluster => Refusal::WrongCluster,
            frame::Refusal::WrongServer => Refusal::WrongServer,
            frame::Refusal::Unauthorised => Refusal::Unauthorised,
            frame::Refusal::UnknownConfiguration => Refusal::UnknownConfiguration,
            frame::Refusal::TooLarge => Refusal::TooLarge,
            frame::Refusal::Malformed => Refusal::Malformed,
            frame::Refusal::UnknownRequest | frame::Refusal::UnsupportedVersion => Refusal::Unknown,
            frame::Refusal::DeadlinePassed => Refusal::DeadlinePassed,
            frame::Refusal::Removed => Refusal::Removed,
            frame::Refusal::Forked => Refusal::Forked,
            frame::Refusal::Fenced => Refusal::Fenced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_survive_both_ways() {
        for sent in frame::Refusal::ALL {
            let read = Refusal::from(sent);
            let again = frame::Refusal::from(read);
            match sent {
                frame::Refusal::RolledBack => assert_eq!(again, frame::Refusal::Damaged),
                frame::Refusal::UnsupportedVersion => {
                    assert_eq!(again, frame::Refusal::UnknownRequest);
                }
                _ => assert_eq!(again, sent),
            }
            assert_eq!(Refusal::from(again), read);
        }
    }
}
