//! Sessions at work: each has one owner, a thread that takes one thing after the other from its mailbox, asks the machine, records what the machine
//! declares, and only then does what follows.
//!
//! ```text
//! harness, people, timers, hooks ──► mailbox ──► machine ──► ledger ──► feed
//!                ▲                                  │
//!                └────────────── effects ◄──────────┘
//! ```
//!
//! Start at [`Actor::start`].

mod acting;
mod actor;
mod feed;
mod hearing;
mod hook_run;
mod recorder;
mod tool_run;
mod transcript;

pub use actor::{Actor, Ask, Deadlines, Handle, Spawn, Start, Tell};
pub use feed::{Channel, Feed, Item, Next};
pub use recorder::{Bound, Recorder};
pub use transcript::{Transcript, path_in};
