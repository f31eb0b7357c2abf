//! Dates of signatures.

use time::format_description::well_known::Rfc2822;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

/// A moment of a request, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    /// A date as signatures have it: `20130524T000000Z`.
    pub fn parse_basic(text: &str) -> Option<Timestamp> {
        let bytes: &[u8; 16] = text.as_bytes().try_into().ok()?;
        if bytes[8] != b'T' || bytes[15] != b'Z' {
            return None;
        }
        let number = |from: usize, to: usize| {
            let mut digits = bytes[from..to].iter();
            digits.try_fold(0_u16, |sum, digit| {
                let value = digit.is_ascii_digit().then(|| digit - b'0')?;
                Some(sum * 10 + u16::from(value))
            })
        };
        let small = |from: usize| u8::try_from(number(from, from + 2)?).ok();
        let month = Month::try_from(small(4)?).ok()?;
        let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, small(6)?).ok()?;
        let time = Time::from_hms(small(9)?, small(11)?, small(13)?).ok()?;
        Some(Timestamp(OffsetDateTime::new_utc(date, time)))
    }

    /// A date as the header `Date` has it: `Fri, 24 May 2013 00:00:00 GMT`.
    pub fn parse_http(text: &str) -> Option<Timestamp> {
        let parsed = OffsetDateTime::parse(text, &Rfc2822).ok()?;
        let utc = parsed.checked_to_offset(UtcOffset::UTC)?;
        (0..=9999).contains(&utc.year()).then_some(Timestamp(utc))
    }

    /// A moment in seconds since 1970. `None`: after the year 9999.
    pub fn of_unix_seconds(seconds: u64) -> Option<Timestamp> {
        let seconds = i64::try_from(seconds).ok()?;
        let utc = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
        (0..=9999).contains(&utc.year()).then_some(Timestamp(utc))
    }

    /// The form in strings to sign: `20130524T000000Z`.
    pub fn text(self) -> String {
        let (hour, minute, second) = self.0.to_hms();
        format!("{:08}T{hour:02}{minute:02}{second:02}Z", self.day())
    }

    /// The day in UTC as a number: 20130524.
    pub fn day(self) -> u32 {
        let (year, month, day) = self.0.to_calendar_date();
        let year = u32::try_from(year).expect("constructors take years from 0 to 9999");
        (year * 100 + u32::from(u8::from(month))) * 100 + u32::from(day)
    }

    pub fn unix_seconds(self) -> i64 {
        self.0.unix_timestamp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_one_moment() {
        let basic = Timestamp::parse_basic("20130524T000000Z").unwrap();
        let http = Timestamp::parse_http("Fri, 24 May 2013 00:00:00 GMT").unwrap();
        assert_eq!(basic, http);
        assert_eq!(basic.text(), "20130524T000000Z");
        assert_eq!(Timestamp::of_unix_seconds(1_369_353_600), Some(basic));
        assert_eq!(basic.day(), 20_130_524);
        assert_eq!(basic.unix_seconds(), 1_369_353_600);
        let zoned = Timestamp::parse_http("Fri, 24 May 2013 01:30:00 +0200").unwrap();
        assert_eq!(zoned.text(), "20130523T233000Z");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "20130524T000000",
            "20130524T000000z",
            "20130524 000000Z",
            "+0130524T000000Z",
            "20131324T000000Z",
            "20130532T000000Z",
            "20130524T240000Z",
            "20130524T000060Z",
            "2013-05-24T00:00:00Z",
            "２0130524T000Z",
        ] {
            assert_eq!(Timestamp::parse_basic(text), None, "{text}");
        }
        assert_eq!(Timestamp::parse_http("24 May"), None);
        assert_eq!(Timestamp::parse_http("20130524T000000Z"), None);
    }
}
