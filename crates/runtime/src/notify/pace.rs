//! How long each thing may take and how long is waited in between.

use std::time::Duration;

use crate::limits::{
    NOTIFY_ATTEMPTS_MAX, NOTIFY_COMMAND_TIMEOUT, NOTIFY_ELSEWHERE_WAIT, NOTIFY_FIRST_WAIT,
    NOTIFY_RETRY_AFTER_MAX, NOTIFY_WAIT_FACTOR, STOP_GRACE, WEBHOOK_TIMEOUT,
};

/// The times of a notifier. The defaults are for people; tests are in a hurry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub attempts: u32,
    pub first_wait: Duration,
    pub wait_factor: u32,
    pub retry_after_max: Duration,
    /// Between two looks at what another process is sending.
    pub elsewhere_wait: Duration,
    pub webhook_timeout: Duration,
    pub command_timeout: Duration,
    pub command_grace: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            attempts: NOTIFY_ATTEMPTS_MAX,
            first_wait: NOTIFY_FIRST_WAIT,
            wait_factor: NOTIFY_WAIT_FACTOR,
            retry_after_max: NOTIFY_RETRY_AFTER_MAX,
            elsewhere_wait: NOTIFY_ELSEWHERE_WAIT,
            webhook_timeout: WEBHOOK_TIMEOUT,
            command_timeout: NOTIFY_COMMAND_TIMEOUT,
            command_grace: STOP_GRACE,
        }
    }
}

impl Pace {
    /// The wait after the n-th failure: longer each time, a quarter more or less so that many do not come back at once, and not
    /// before the receiver wants it, within reason.
    pub(super) fn wait(&self, failures: u32, random: u16, after: Option<Duration>) -> Duration {
        let factor = self.wait_factor.saturating_pow(failures.saturating_sub(1));
        let wait = self.first_wait.saturating_mul(factor);
        // Between 75 % and 125 %, in parts of 65,536.
        let wait = wait.saturating_mul(3 * 16_384 + u32::from(random) / 2) / 65_536;
        wait.max(after.unwrap_or_default().min(self.retry_after_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_by_four_and_vary_by_a_quarter() {
        let pace = Pace::default();
        for (failures, seconds) in [(1, 1.0), (2, 4.0), (3, 16.0), (4, 64.0)] {
            let check = |random, share: f64| {
                let wait = pace.wait(failures, random, None).as_secs_f64();
                assert!((wait / seconds - share).abs() < 0.001, "{failures} {random}: {wait}");
            };
            check(0, 0.75);
            check(32_768, 1.0);
            check(u16::MAX, 1.25);
        }
    }

    #[test]
    fn a_receiver_may_ask_for_more_within_reason() {
        let pace = Pace::default();
        let wait = |seconds| pace.wait(1, 32_768, Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!((wait(0), wait(30), wait(u64::MAX)), (1, 30, 300));
    }
}
