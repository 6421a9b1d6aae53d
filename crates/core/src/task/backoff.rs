//! How long a task waits after a failed attempt.

/// The wait after the first failed attempt.
const FIRST_MS: i64 = 60_000;
/// Each further attempt waits this many times longer …
const FACTOR: i64 = 3;
/// … but never longer than this.
const MOST_MS: i64 = 15 * 60_000;

/// The wait after the n-th failed attempt, give or take a quarter as the random number says.
pub fn wait_ms(attempts: u32, random: u16) -> i64 {
    let steps = attempts.saturating_sub(1).min(8);
    let wait = (FIRST_MS * FACTOR.pow(steps)).min(MOST_MS);
    // From 3/4 to 5/4 of it.
    wait * 3 / 4 + wait / 2 * i64::from(random) / i64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_threefold_up_to_a_quarter_of_an_hour_give_or_take_a_quarter() {
        for (attempts, expected_s) in [(1, 60), (2, 180), (3, 540), (4, 900), (1000, 900)] {
            let expected = expected_s * 1000;
            assert_eq!(wait_ms(attempts, 0), expected * 3 / 4, "{attempts}");
            assert_eq!(wait_ms(attempts, u16::MAX), expected * 5 / 4, "{attempts}");
            let middle = wait_ms(attempts, u16::MAX / 2);
            assert!((middle - expected).abs() <= expected / 1000, "{attempts}: {middle}");
        }
    }
}
