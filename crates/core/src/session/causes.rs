//! What an error comes from, read from what was said before it: credentials that were refused, limits that were reached, memory that ran out.
//!
//! Agents say so in words of their own, and the words change. So this is asked only about ends that are errors, looks for phrases and not for single
//! words, and says nothing where it is not sure: a wrong cause is worse than none, because credentials are not tried again and limits are waited for.

use super::ending::{Cause, ProcessEnd};
use crate::time::Timestamp;

/// What is known of an error, to look for its cause in.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was said: an error's message, the lines beside the protocol.
    pub said: &'a [&'a str],
    pub process: Option<&'a ProcessEnd>,
    /// Whether it ended before it took any input.
    pub is_starting: bool,
    /// Whether the kernel ended something for want of memory while it ran.
    pub is_memory_short: bool,
    pub now: Timestamp,
}

/// What the evidence shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clue {
    pub cause: Cause,
    /// When a limit ends, where that was said.
    pub resets_at: Option<Timestamp>,
}

/// All phrases of a row are in the line; in lower case.
const LIMITS: &[&[&str]] = &[
    &["usage limit"],
    &["usage_limit"],
    &["limit reached"],
    &["rate limit", "exceeded"],
    &["rate limit", "reached"],
    &["rate limited"],
    &["rate_limit_error"],
    &["rate_limit_exceeded"],
    &["quota", "exceeded"],
    &["exceeded your current quota"],
    &["insufficient_quota"],
    &["resource_exhausted"],
    &["too many requests"],
    &["status 429"],
    &["http 429"],
    &["error 429"],
    &["status code 429"],
    &["error: 429"],
    &["credit balance is too low"],
    &["out of credits"],
];

const REFUSALS: &[&[&str]] = &[
    &["invalid api key"],
    &["incorrect api key"],
    &["invalid_api_key"],
    &["api key not valid"],
    &["api key is missing"],
    &["missing api key"],
    &["api key", "expired"],
    &["invalid x-api-key"],
    &["authentication_error"],
    &["authentication required"],
    &["authentication failed"],
    &["please run /login"],
    &["not logged in"],
    &["please log in"],
    &["oauth token", "expired"],
    &["401 unauthorized"],
    &["status 401"],
    &["http 401"],
    &["error 401"],
    &["status code 401"],
    &["error: 401"],
    &["please set an auth method"],
    &["no auth type is selected"],
];

const MEMORY: &[&[&str]] = &[
    &["heap out of memory"],
    &["reached heap limit", "allocation failed"],
    &["memory allocation of", "bytes failed"],
    &["out of memory: killed process"],
];

const NO_PROGRAM: &[&[&str]] =
    &[&["not found"], &["no such file"], &["permission denied"], &["cannot execute"]];

/// The longest that a limit may last and be believed, in milliseconds: a month and some days.
const RESET_MS_MAX: i64 = 40 * 86_400_000;

impl Evidence<'_> {
    /// What it shows, where it shows something.
    pub fn clue(&self) -> Option<Clue> {
        let only = |cause| Some(Clue { cause, resets_at: None });
        let was_killed = matches!(self.process, Some(ProcessEnd::Signalled(9) | ProcessEnd::Exited(137)));
        if was_killed && self.is_memory_short || self.line_with(MEMORY).is_some() {
            return only(Cause::Oom);
        }
        if let Some(line) = self.line_with(LIMITS) {
            let resets_at = reset_in(line, self.now).or_else(|| {
                self.said.iter().flat_map(|text| text.lines()).find_map(|l| reset_line(l, self.now))
            });
            return Some(Clue { cause: Cause::Quota, resets_at });
        }
        if self.line_with(REFUSALS).is_some() {
            return only(Cause::Auth);
        }
        // What shells and launchers say of a program that is not there.
        let is_code = matches!(self.process, Some(ProcessEnd::Exited(126 | 127)));
        if is_code && (self.is_starting || self.line_with(NO_PROGRAM).is_some()) {
            return only(Cause::Spawn);
        }
        None
    }

    fn line_with(&self, rows: &[&[&str]]) -> Option<&str> {
        self.said.iter().flat_map(|text| text.lines()).find(|line| {
            let line = line.to_ascii_lowercase();
            rows.iter().any(|row| row.iter().all(|phrase| line.contains(phrase)))
        })
    }
}

/// A moment in a line of its own that speaks of a reset.
fn reset_line(line: &str, now: Timestamp) -> Option<Timestamp> {
    let lower = line.to_ascii_lowercase();
    let speaks = ["reset", "try again", "retry"].iter().any(|word| lower.contains(word));
    if speaks { reset_in(line, now) } else { None }
}

/// When a line says that a limit ends: a moment, seconds since 1970, or a time from now.
pub fn reset_in(line: &str, now: Timestamp) -> Option<Timestamp> {
    let is_likely = |at: &Timestamp| {
        let ahead = at.unix_ms() - now.unix_ms();
        (1..=RESET_MS_MAX).contains(&ahead)
    };
    let words = || line.split(|c: char| c.is_whitespace() || "|,;()[]{}\"'`=".contains(c));
    let moment = words().find_map(|word| {
        let word = word.trim_end_matches('.');
        if let Ok(at) = Timestamp::from_rfc3339(word) {
            return Some(at);
        }
        // `resetsAt:1760000400` and the like.
        let digits = word.rsplit(':').next().unwrap_or(word);
        let number: i64 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        let ms = match digits.len() {
            10 => number * 1000,
            13 => number,
            _ => return None,
        };
        Timestamp::from_unix_ms(ms).ok().filter(is_likely)
    });
    moment.filter(is_likely).or_else(|| from_now(line, now)).filter(is_likely)
}

/// `in 5 minutes`, `after 2h13m`, `in 1 day, 2 hours and 3 minutes`.
fn from_now(line: &str, now: Timestamp) -> Option<Timestamp> {
    let lower = line.to_ascii_lowercase();
    [" in ", " after "].iter().find_map(|mark| {
        lower.match_indices(mark).find_map(|(at, _)| {
            let ms = span_ms(&lower[at + mark.len()..])?;
            Some(now.plus_ms(ms))
        })
    })
}

/// The time that a text begins with, in milliseconds.
fn span_ms(text: &str) -> Option<i64> {
    let (mut rest, mut total) = (text, None);
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else { return total };
        let unit_start = rest[digits..].trim_start();
        let letters = unit_start.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &unit_start[..letters] {
            "ms" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            _ => return total,
        };
        let ms = (number * unit).min(RESET_MS_MAX as f64) as i64;
        total = Some(total.unwrap_or(0) + ms);
        rest = &unit_start[letters..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_770_670_800_000;

    fn clue(said: &str, process: &ProcessEnd, is_memory_short: bool) -> Option<Clue> {
        let now = Timestamp::nearest(NOW);
        let evidence =
            Evidence { said: &[said], process: Some(process), is_starting: false, is_memory_short, now };
        evidence.clue()
    }

    #[test]
    fn what_agents_say_has_its_cause() {
        use Cause::{Auth, Oom, Quota};
        let in_ms = |ms: i64| Some(Timestamp::nearest(NOW + ms));
        let table: &[(&str, Option<Cause>, Option<Timestamp>)] = &[
            // Claude Code
            ("Invalid API key · Please run /login", Some(Auth), None),
            (r#"API Error: 401 {"type":"error","error":{"type":"authentication_error"}}"#, Some(Auth), None),
            ("OAuth token has expired. Please obtain a new token", Some(Auth), None),
            ("Claude AI usage limit reached|1770674400", Some(Quota), in_ms(3_600_000)),
            ("Credit balance is too low", Some(Quota), None),
            // Codex
            ("Not logged in. Run codex login", Some(Auth), None),
            ("unexpected status 401 Unauthorized: Missing bearer", Some(Auth), None),
            (
                "You've hit your usage limit. Upgrade to Pro or try again in 3 days 5 hours 12 minutes.",
                Some(Quota),
                in_ms(((3 * 24 + 5) * 60 + 12) * 60_000),
            ),
            ("exceeded retry limit, last status: 429 Too Many Requests", Some(Quota), None),
            // Gemini
            ("Please set an Auth method in your settings.json", Some(Auth), None),
            ("API key not valid. Please pass a valid API key.", Some(Auth), None),
            ("RESOURCE_EXHAUSTED: quota, please retry in 34.5s", Some(Quota), in_ms(34_500)),
            // OpenCode, Qwen and what they call
            ("AI_APICallError: Incorrect API key provided: sk-***", Some(Auth), None),
            ("No auth type is selected.", Some(Auth), None),
            (
                "Rate limit reached for gpt-x: limit resets at 2026-02-09T22:00:00Z",
                Some(Quota),
                in_ms(3_600_000),
            ),
            ("rate_limit_exceeded\nreset after 2h13m", Some(Quota), in_ms((2 * 60 + 13) * 60_000)),
            ("usage limit reached, resetsAt: \"2026-02-09T21:30:00.000Z\"", Some(Quota), in_ms(1_800_000)),
            // Node
            (
                "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
                Some(Oom),
                None,
            ),
            // What says nothing of it
            ("rate limit: 100 requests a minute", None, None),
            ("listening on port 4010, 401 files", None, None),
            ("panicked at src/main.rs:429", None, None),
            ("TypeError: x is undefined", None, None),
            ("", None, None),
        ];
        for (said, cause, resets_at) in table {
            let found = clue(said, &ProcessEnd::Exited(1), false);
            assert_eq!(found.as_ref().map(|clue| clue.cause), *cause, "{said}");
            assert_eq!(found.and_then(|clue| clue.resets_at), *resets_at, "{said}");
        }
    }

    #[test]
    fn only_a_kill_with_evidence_is_for_want_of_memory() {
        let cause = |process, short| clue("", &process, short).map(|clue| clue.cause);
        assert_eq!(cause(ProcessEnd::Signalled(9), true), Some(Cause::Oom));
        assert_eq!(cause(ProcessEnd::Exited(137), true), Some(Cause::Oom));
        assert_eq!(cause(ProcessEnd::Signalled(9), false), None);
        assert_eq!(cause(ProcessEnd::Signalled(11), true), None);
        assert_eq!(cause(ProcessEnd::Exited(1), true), None);
    }

    #[test]
    fn a_launcher_that_finds_no_program_says_so_by_its_code() {
        let cause = |said, process| clue(said, &process, false).map(|clue| clue.cause);
        assert_eq!(cause("sh: 1: gone: not found", ProcessEnd::Exited(127)), Some(Cause::Spawn));
        assert_eq!(cause("something else", ProcessEnd::Exited(127)), None);
        assert_eq!(cause("sh: 1: gone: not found", ProcessEnd::Exited(1)), None);
        let evidence = Evidence {
            said: &[],
            process: Some(&ProcessEnd::Exited(126)),
            is_starting: true,
            is_memory_short: false,
            now: Timestamp::nearest(NOW),
        };
        assert_eq!(evidence.clue().map(|clue| clue.cause), Some(Cause::Spawn));
    }

    #[test]
    fn a_reset_that_is_past_or_far_away_is_not_believed() {
        let reset = |text| reset_in(text, Timestamp::nearest(NOW)).map(|at| at.unix_ms() - NOW);
        assert_eq!(reset("resets at 2020-01-01T00:00:00Z"), None);
        assert_eq!(reset("resets at 2036-01-01T00:00:00Z"), None);
        assert_eq!(reset("request 1234567890 failed"), None);
        assert_eq!(reset("try again in a while"), None);
        assert_eq!(reset("try again in 90 seconds."), Some(90_000));
        assert_eq!(reset("reset|1770670860000"), Some(60_000));
        assert_eq!(reset("try again in 1 day, 2 hours and 3 minutes"), Some(((24 + 2) * 60 + 3) * 60_000));
        assert_eq!(reset("try again in 99999999999999999999 hours é"), Some(RESET_MS_MAX));
    }
}
