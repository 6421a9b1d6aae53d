//! The ledger under attack from below: killed writers, lying disks.

mod crash;
mod faults;
mod fixtures;
mod fuzz;
mod second_verifier;
mod tidy;
