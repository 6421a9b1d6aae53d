//! The scanner takes time in proportion to what it reads, whatever it reads.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "how long it takes is what is shown"
)]

use std::time::{Duration, Instant};

use baton_core::protocol::exit_signal::{ExitReason, ExitSignal, WorkPhase};
use baton_core::protocol::scan::{Found, Scanner};

const BYTES: usize = 10_000_000;

/// Ten megabytes of a pattern, then a signal: it is found, and soon. Seconds are far from what a look back at every brace would take.
fn check(pattern: &str) {
    let signal = ExitSignal::new(WorkPhase::Review, ExitReason::Completed);
    let mut text = pattern.repeat(BYTES / pattern.len());
    text += "\n";
    text += &serde_json::to_string(&signal).unwrap();
    text += " Bye.";
    let start = Instant::now();
    let mut scanner = Scanner::new();
    let mut found: Vec<Found> = text.as_bytes().chunks(8192).flat_map(|piece| scanner.push(piece)).collect();
    found.extend(scanner.finish());
    let shown: String = pattern.chars().take(40).collect();
    println!("{:?} for {shown}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?} for {shown}", start.elapsed());
    assert_eq!(found.last(), Some(&Found::Signal(signal)), "{shown}");
}

#[test]
fn ten_megabytes_of_braces_are_read_in_passing() {
    check("{");
    check("{}");
    check("{ ");
    check("{\"");
}

#[test]
fn text_that_is_nearly_json_at_many_braces_is_read_in_passing() {
    check("{\"a\":");
    check("{\"a\":[");
    check(&("{\"a\":".repeat(60) + "x"));
    let long_name = "n".repeat(1000);
    check(&(format!("{{\"{long_name}\":").repeat(60) + "x"));
    check(&(format!("{{\"\\u0061{long_name}\":").repeat(60) + "x"));
    // Two readings at once: what is a string to one is structure to the other.
    check("{\"a\":\"{\",\":\",\":\"");
    check("{\"protocol\":\"apm2_agent_exit\",");
}
