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
mod broker;
mod ending;
mod feed;
mod gate;
mod hearing;
mod hook_run;
mod listing;
mod looking;
mod pass;
mod past;
mod recorder;
mod relayed;
mod snapshot;
mod spawning;
mod tool_run;
mod transcript;
mod waiting;

pub use actor::{Actor, Ask, Deadlines, Handle, Signals, Spawn, Start, Tell};
pub use broker::{Begin, Broker, Live, NotBegun, OnEnd, Part, SessionBounds, Setting, token};
pub use feed::{Channel, Feed, Item, Next, Said};
pub use gate::{Entry, Gave, ToolGate, Wish};
pub use listing::{Page, Row, Wanted, list_in};
pub use pass::{API_TOKEN_VARIABLE, API_URL_VARIABLE, Pass};
pub use past::{BATON_DIED, events, recover, state_events, view};
pub use recorder::{Bound, Recorder};
pub use relayed::{Relayed, Stop};
pub use snapshot::{Process, Snapshot};
pub use spawning::{GUARD_VARIABLE, SESSION_VARIABLE, Surroundings, Variable};
pub use transcript::{Transcript, path_in};
