//! The ledger under attack from below: killed writers, lying disks.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot set itself up fails")]

mod answers;
mod crash;
mod faults;
mod fixtures;
mod fuzz;
mod guard_page;
mod guarded;
mod second_verifier;
mod tidy;
