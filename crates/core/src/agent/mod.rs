//! The names under which agents' authors know what ends a session.

pub mod exit;
