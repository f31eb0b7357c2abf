//! Sizes such as `64KiB`, times such as `5s` and counts such as `1 block`, as people write and read them.

use std::time::Duration;

/// Suffixes of sizes with the bytes they stand for.
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// Suffixes of times with the milliseconds they stand for.
const TIMES: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Bytes from `65536`, `64KiB` or `1.5MiB`.
///
/// # Errors
/// A sentence that says how sizes are written.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size: sizes are written 4096, 64KiB, 1.5MiB or 1GiB");
    let (number, suffix) = split(text).ok_or_else(wrong)?;
    let unit = match suffix {
        "" => 1,
        suffix => unit(SIZES, suffix).ok_or_else(wrong)?,
    };
    scale(number, unit).ok_or_else(wrong)
}

/// A time from `5s`, `1.5s`, `200ms`, `2min`, `1h` or `7d`.
///
/// # Errors
/// A sentence that says how times are written.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time: times are written 200ms, 5s, 2min, 1h or 7d");
    let (number, suffix) = split(text).ok_or_else(wrong)?;
    let unit = unit(TIMES, suffix).ok_or_else(wrong)?;
    scale(number, unit)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

/// A time that something may take: not 0.
///
/// # Errors
/// A sentence that says how times are written.
pub fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("nothing can be done in no time: give a time such as 5s".into()),
        time => Ok(time),
    }
}

fn split(text: &str) -> Option<(&str, &str)> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let (number, suffix) = text.split_at(text.find(|c| !digits(c)).unwrap_or(text.len()));
    let starts = number.bytes().next()?.is_ascii_digit() && !number.ends_with('.');
    starts.then_some((number, suffix.trim_start()))
}

fn unit(units: &[(&str, u64)], suffix: &str) -> Option<u64> {
    let known = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(suffix);
    units.iter().find(known).map(|(_, factor)| *factor)
}

/// `number` times `unit`, exactly for whole numbers; fractions are cut to whole units of one.
fn scale(number: &str, unit: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let (whole, fraction) = number.split_once('.')?;
    let (whole, digits) = (whole.parse::<u64>().ok()?, fraction.parse::<u64>().ok()?);
    let parts = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = u128::from(unit) * u128::from(digits) / u128::from(parts);
    whole
        .checked_mul(unit)?
        .checked_add(u64::try_from(fraction).ok()?)
}

/// Bytes for people: `0 B`, `1023 B`, `16.0 KiB`, `1.5 MiB`.
pub fn show_size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", units[unit]),
    }
}

/// A count and its noun, from the singular `one`: `1 block`, `2 blocks`.
pub fn show_count(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// Bytes exactly as [`parse_size`] reads them, in the largest unit that divides them.
pub fn exact_size(bytes: u64) -> String {
    let binary = SIZES.iter().filter(|(_, factor)| factor.is_power_of_two());
    let mut dividing =
        binary.filter(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    let (name, factor) = dividing.next_back().copied().unwrap_or(SIZES[0]);
    format!("{}{name}", bytes / factor)
}

/// Milliseconds since 1970 as `2026-01-31 23:59:59 UTC`.
pub fn show_time(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// An age in the largest unit of which it is at least two, rounded down: `119 s`, `2 min`, `3 d`.
pub fn show_age(seconds: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("d", 86_400), ("h", 3600), ("min", 60)];
    let fitting = UNITS.iter().find(|(_, unit)| seconds >= 2 * unit);
    let (name, unit) = fitting.copied().unwrap_or(("s", 1));
    format!("{} {name}", seconds / unit)
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Counted in eras of 400 years whose
/// years begin in March, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_two_digits_or_so() {
        for (seconds, text) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 min"),
            (7_200, "2 h"),
            (1_000_000, "11 d"),
        ] {
            assert_eq!(show_age(seconds), text);
        }
    }

    #[test]
    fn one_is_not_many() {
        let shown = [0, 1, 2].map(|count| show_count(count, "block"));
        assert_eq!(shown, ["0 blocks", "1 block", "2 blocks"]);
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1B", 1),
            ("64KiB", 65_536),
            ("64 KiB", 65_536),
            ("64kib", 65_536),
            ("1.5MiB", 3 << 19),
            ("0.1KiB", 102),
            ("2GiB", 2 << 30),
            ("5MB", 5_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for wrong in [
            "",
            "KiB",
            "-1",
            "1 2",
            "1.2.3MiB",
            "1.",
            ".5MiB",
            "64K",
            "1e3",
            "18446744073709551616",
            "99999999TiB",
            "1.99999999999999999999999KiB",
        ] {
            let error = parse_size(wrong).unwrap_err();
            assert!(error.contains("64KiB"), "{wrong}: {error}");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, ms) in [
            ("200ms", 200),
            ("5s", 5_000),
            ("1.5s", 1_500),
            ("1m", 60_000),
            ("2min", 120_000),
            ("1h", 3_600_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in [
            "",
            "5",
            "s",
            "-5s",
            "5 parsecs",
            "5 mi",
            "18446744073709551615h",
        ] {
            let error = parse_time(wrong).unwrap_err();
            assert!(error.contains("5s"), "{wrong}: {error}");
        }
        assert!(parse_timeout("0ms").is_err());
        assert_eq!(parse_timeout("1ms"), Ok(Duration::from_millis(1)));
    }

    #[test]
    fn sizes_are_shown_short_or_exactly() {
        for (bytes, short, exact) in [
            (0, "0 B", "0B"),
            (1023, "1023 B", "1023B"),
            (1024, "1.0 KiB", "1KiB"),
            (16_385, "16.0 KiB", "16385B"),
            ((1 << 20) - 1, "1.0 MiB", "1048575B"),
            (64 << 20, "64.0 MiB", "64MiB"),
            (3 << 29, "1.5 GiB", "1536MiB"),
            (u64::MAX, "16.0 EiB", "18446744073709551615B"),
        ] {
            assert_eq!(show_size(bytes), short);
            assert_eq!(exact_size(bytes), exact);
            assert_eq!(parse_size(exact), Ok(bytes), "what is shown is read");
        }
    }

    #[test]
    fn times_are_shown_by_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59:59 UTC"),
            (4_102_444_800, "2100-01-01 00:00:00 UTC"),
        ] {
            assert_eq!(show_time(seconds * 1000 + 7), shown);
        }
    }
}
