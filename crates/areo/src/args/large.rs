//! The command line: what looks after the objects of a domain, and ranges of large ones.

use super::KeyParser;
use areo_client::units::parse_time;
use clap::{Args, Subcommand};
use std::ops::Bound;
use std::time::Duration;

#[derive(Args, Debug, Clone)]
pub(crate) struct Sweep {
    /// Least age of what is removed [default: 1min for replaced and deleted values, 1h for unfinished writes]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) older_than: Option<Duration>,
}

#[derive(Subcommand, Debug, Clone)]
pub(crate) enum Repair {
    /// Count the objects that every server of their domain holds; of all domains, or that of --domain
    ///
    /// Asks all servers now, and changes nothing. Ends with 1 if there are other objects. A write that is under way counts among them.
    Status,
    /// Name the objects of the domain that are not at all servers, and the servers that they wait for
    ///
    /// `waiting`: those servers get the object once they serve and have room. `unrecoverable`: it is damaged at so many servers that
    /// the others are no quorum; the versions are named that servers list, and where.
    Ls,
    /// Look at every object of the domain now, or at one, and bring its newest version to the servers that lack it
    ///
    /// Ends with 1 if an object is not at all servers then. May be run at any time, and again.
    Retry {
        /// Only what has this key, as `areo repair ls` names it
        #[arg(value_name = "KEY", value_parser = KeyParser)]
        key: Option<String>,
    },
}

/// First byte, and where it ends.
pub(crate) type ByteRange = (Bound<u64>, Bound<u64>);

pub(super) fn parse_range(text: &str) -> Result<ByteRange, String> {
    let wrong = || {
        format!("'{text}' is not a range: ranges are written 0-99, first and last byte, or 100-")
    };
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| wrong());
    let first = number(first)?;
    if last.is_empty() {
        return Ok((Bound::Included(first), Bound::Unbounded));
    }
    let last = number(last)?;
    match first <= last {
        true => Ok((Bound::Included(first), Bound::Included(last))),
        false => Err(format!("the range '{text}' ends before it begins")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_a_first_and_perhaps_a_last_byte() {
        use Bound::{Included, Unbounded};
        assert_eq!(parse_range("0-99"), Ok((Included(0), Included(99))));
        assert_eq!(parse_range("7-7"), Ok((Included(7), Included(7))));
        assert_eq!(parse_range("100-"), Ok((Included(100), Unbounded)));
        for wrong in ["", "-", "-5", "5", "a-b", "1-2-3", "0x1-2"] {
            let error = parse_range(wrong).unwrap_err();
            assert!(error.contains("0-99"), "{wrong}: {error}");
        }
        let error = parse_range("9-8").unwrap_err();
        assert!(error.contains("ends before it begins"), "{error}");
    }
}
