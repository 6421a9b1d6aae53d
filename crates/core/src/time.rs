//! Time as data: a moment in milliseconds since 1970, which parses and prints as RFC 3339 in UTC.
//!
//! Nothing here reads a clock. The one spelling is `YYYY-MM-DDTHH:MM:SS.mmmZ`, because times are hashed as text.

use std::fmt;
use std::str::FromStr;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z, in the years 0000 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why a text or a number is not a [`Timestamp`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a time like 2026-01-31T09:30:00.000Z, got {0:?}")]
pub struct Error(String);

const YEAR_0: i64 = -62_167_219_200_000;
const YEAR_10000: i64 = 253_402_300_800_000;

impl Timestamp {
    /// Takes milliseconds since 1970, or refuses what a four-digit year cannot show.
    pub fn from_unix_ms(ms: i64) -> Result<Self, Error> {
        if (YEAR_0..YEAR_10000).contains(&ms) { Ok(Timestamp(ms)) } else { Err(Error(ms.to_string())) }
    }

    /// The moment nearest to this many milliseconds since 1970.
    pub fn nearest(ms: i64) -> Self {
        Timestamp(ms.clamp(YEAR_0, YEAR_10000 - 1))
    }

    /// The moment this many milliseconds later, or the last one that there is.
    pub fn plus_ms(self, ms: i64) -> Self {
        Timestamp::nearest(self.0.saturating_add(ms))
    }

    /// Reads the spellings of RFC 3339 that others send: a fraction of any length or none, `Z` or an offset.
    ///
    /// What is finer than a millisecond is cut off. Refused are lower-case letters, leap seconds and impossible dates.
    pub fn from_rfc3339(text: &str) -> Result<Self, Error> {
        parse_foreign(text).ok_or_else(|| Error(text.chars().take(40).collect()))
    }

    /// Milliseconds since 1970.
    pub fn unix_ms(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil_from_days(days);
        let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", ms % 1000)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.as_bytes()).ok_or_else(|| Error(text.chars().take(40).collect()))
    }
}

crate::as_text!(Timestamp);

fn parse(b: &[u8]) -> Option<Timestamp> {
    if b.len() != 24 {
        return None;
    }
    for (i, mark) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')] {
        if b[i] != mark {
            return None;
        }
    }
    let number = |range: std::ops::Range<usize>| {
        b[range].iter().try_fold(0i64, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (h, m, s, ms) = (number(11..13)?, number(14..16)?, number(17..19)?, number(20..23)?);
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days_in_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) || h > 23 || m > 59 || s > 59 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    Some(Timestamp(((days * 24 + h) * 60 + m) * 60_000 + s * 1000 + ms))
}

/// Longest fraction of a second that is read, in digits.
const FRACTION_DIGITS_MAX: usize = 12;

fn parse_foreign(text: &str) -> Option<Timestamp> {
    let (seconds, rest) = text.split_at_checked(19)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("0", rest),
    };
    if !(1..=FRACTION_DIGITS_MAX).contains(&fraction.len()) {
        return None;
    }
    let at = parse(format!("{seconds}.{:0<3.3}Z", fraction).as_bytes())?;
    if zone == "Z" {
        return Some(at);
    }
    let &[sign, h1, h2, b':', m1, m2] = zone.as_bytes() else { return None };
    let number = |tens: u8, ones: u8| {
        let is_number = tens.is_ascii_digit() && ones.is_ascii_digit();
        is_number.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    };
    let (hours, minutes) = (number(h1, h2)?, number(m1, m2)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let offset_ms = (hours * 60 + minutes) * 60_000;
    let ms = match sign {
        b'+' => at.0 - offset_ms,
        b'-' => at.0 + offset_ms,
        _ => return None,
    };
    Timestamp::from_unix_ms(ms).ok()
}

/// Days since 1970 of a date of the Gregorian calendar. Years start in March, so that the leap day is a year's last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970; the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * of_year + 2) / 153;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * m + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, ms: i64) {
        assert_eq!(text.parse::<Timestamp>().unwrap().unix_ms(), ms, "{text}");
        assert_eq!(Timestamp::from_unix_ms(ms).unwrap().to_string(), text);
    }

    #[test]
    fn known_moments_parse_and_print() {
        check("1970-01-01T00:00:00.000Z", 0);
        check("2000-02-29T23:59:59.999Z", 951_868_799_999);
        check("2026-02-09T21:00:00.000Z", 1_770_670_800_000);
        check("1969-12-31T23:59:59.999Z", -1);
        check("0000-01-01T00:00:00.000Z", YEAR_0);
        check("9999-12-31T23:59:59.999Z", YEAR_10000 - 1);
    }

    #[test]
    fn other_spellings_and_impossible_dates_are_refused() {
        for text in [
            "",
            "2026-02-09T21:00:00Z",
            "2026-02-09T21:00:00.000+00:00",
            "2026-02-30T00:00:00.000Z",
            "2025-02-29T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:00:60.000Z",
            "2026-01-01t00:00:00.000z",
            "2026-01-01T00:00:00.00éZ",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
        assert!(Timestamp::from_unix_ms(i64::MAX).is_err());
    }

    #[test]
    fn foreign_spellings_of_a_moment_are_read() {
        for text in [
            "2026-02-09T21:00:00.000Z",
            "2026-02-09T21:00:00Z",
            "2026-02-09T21:00:00.0009Z",
            "2026-02-09T23:30:00+02:30",
            "2026-02-08T21:01:00.0-23:59",
        ] {
            assert_eq!(
                Timestamp::from_rfc3339(text).map(Timestamp::unix_ms),
                Ok(1_770_670_800_000),
                "{text}"
            );
        }
        assert_eq!(Timestamp::from_rfc3339("1970-01-01T00:00:00.25Z").map(Timestamp::unix_ms), Ok(250));
    }

    #[test]
    fn texts_that_are_no_moment_of_rfc_3339_are_refused() {
        for text in [
            "",
            "yesterday",
            "2026-02-09",
            "2026-02-09T21:00:00",
            "2026-02-09 21:00:00Z",
            "2026-02-09t21:00:00z",
            "2026-02-30T21:00:00Z",
            "2026-02-09T21:00:60Z",
            "2026-02-09T21:00:00.Z",
            "2026-02-09T21:00:00.1234567890123Z",
            "2026-02-09T21:00:00+2:00",
            "2026-02-09T21:00:00+0200",
            "2026-02-09T21:00:00+24:00",
            "2026-02-09T21:00:00 02:00",
            "2026-02-09T21:00:00é",
            "0000-01-01T00:00:00+01:00",
        ] {
            assert!(Timestamp::from_rfc3339(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_survives_the_round_trip(ms in YEAR_0..YEAR_10000) {
            let t = Timestamp::from_unix_ms(ms).unwrap();
            prop_assert_eq!(t.to_string().parse::<Timestamp>().unwrap(), t);
        }
    }
}
