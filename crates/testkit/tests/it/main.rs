//! The ledger under attack from below: killed writers, lying disks.

mod crash;
mod faults;
