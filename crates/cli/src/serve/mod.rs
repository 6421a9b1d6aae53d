//! One process owns the data directory, and others hand their commands over to it.
//!
//! The caller sends its arguments, its working directory, its environment and its three standard streams ([`frame`]) over a socket
//! ([`socket`]); the owner ([`owner`]) runs the very same command with them ([`server`]) and answers with the exit code, which the caller ends
//! with ([`call`]). So every command is written once.

mod acting;
pub(crate) mod call;
pub(crate) mod frame;
pub(crate) mod in_house;
pub(crate) mod owner;
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod web;

pub(crate) use acting::Acting;
pub(crate) use call::{Feeding, HandOver};
pub(crate) use owner::{Owner, UNTIL_EOF, UNTIL_IDLE, ends_with_sessions, is_until_idle};
