//! Times for people: relative in tables, exact to the second where they stand in a row of events.

use baton_core::Timestamp;

/// How long ago, in at most two units: `just now`, `3 min ago`, `2 h 5 min ago`, `4 d 1 h ago`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let ms = now.unix_ms() - then.unix_ms();
    if (-1000..1000).contains(&ms) {
        return "just now".to_owned();
    }
    let span = duration(ms.unsigned_abs() / 1000);
    if ms < 0 { format!("{span} in the future") } else { format!("{span} ago") }
}

/// A span in at most two units.
pub(crate) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let two = |a: u64, unit_a: &str, b: u64, unit_b: &str| {
        if b == 0 { format!("{a} {unit_a}") } else { format!("{a} {unit_a} {b} {unit_b}") }
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => two(minutes, "min", if minutes < 10 { seconds % 60 } else { 0 }, "s"),
        (0, _, _) => two(hours, "h", minutes, "min"),
        _ => two(days, "d", hours, "h"),
    }
}

/// `2026-02-09 21:00:00Z`
pub(crate) fn exact(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} {}Z", &text[..10], &text[11..19])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_at_most_two_units() {
        let check = |seconds, expected| assert_eq!(duration(seconds), expected);
        check(0, "0 s");
        check(65, "1 min 5 s");
        check(660, "11 min");
        check(7500, "2 h 5 min");
        check(90_000, "1 d 1 h");
        check(86_400, "1 d");
    }

    #[test]
    fn past_and_future_are_told_apart() {
        let at = |ms| Timestamp::from_unix_ms(ms).unwrap();
        assert_eq!(ago(at(0), at(500)), "just now");
        assert_eq!(ago(at(0), at(5000)), "5 s ago");
        assert_eq!(ago(at(5000), at(0)), "5 s in the future");
        assert_eq!(exact(at(0)), "1970-01-01 00:00:00Z");
    }
}
