//! Durations as people write them: `"30s"`, `"10m"`, `"1h30m"`, `"250ms"`.

use std::time::Duration;

/// Units from large to small, in milliseconds. In a text each stands at most once, in this order.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The same as an expression that JSON Schema understands.
pub const PATTERN: &str = "^(?=\\d)(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?$";

/// Reads a duration; `None` where the text is none, or one that has no end.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut next, mut total) = (text, 0, 0u64);
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, after) = after.split_at(letters);
        let place = UNITS.iter().position(|(name, _)| *name == unit).filter(|place| *place >= next)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(UNITS[place].1)?)?;
        (rest, next) = (after, place + 1);
    }
    (next > 0).then(|| Duration::from_millis(total))
}

/// Writes a duration, each unit where there is something of it.
pub fn format(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, ms) in UNITS {
        if rest >= ms {
            text.push_str(&format!("{}{unit}", rest / ms));
            rest %= ms;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_are_written_in_their_shortest_form() {
        for (text, ms, written) in [
            ("30s", 30_000, "30s"),
            ("10m", 600_000, "10m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("250ms", 250, "250ms"),
            ("1m1ms", 60_001, "1m1ms"),
            ("2d", 172_800_000, "2d"),
            ("0s", 0, "0s"),
            ("0ms", 0, "0s"),
            ("007s", 7000, "7s"),
        ] {
            let read = parse(text);
            assert_eq!(read, Some(Duration::from_millis(ms)), "{text}");
            assert_eq!(format(read.unwrap()), written);
        }
    }

    #[test]
    fn what_is_no_duration_is_not_read() {
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "+1s",
            "1.5s",
            "1 s",
            " 1s",
            "1s ",
            "30m1h",
            "1s1s",
            "1ms1s",
            "1S",
            "1w",
            "1é",
            "١s",
            "99999999999999999999s",
            "18446744073709551615s",
            "1sms",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
