//! Agents that are led from outside: one process each, any number of clients, and the Agent Client Protocol between them, message by message.
//!
//! ```text
//! client ──► Relay::post ──► (fresh id) ──► agent
//! client ◄── answer ◄─────── (its own id) ◄─┤
//! readers ◄── Ring ◄── everything it says ◄─┘
//! ```
//!
//! Baton understands as much of the protocol as it takes to keep clients apart, to know which sessions there are, and to tell all of them how it ended.
//! Start at [`Relays::open`], then [`Relay::post`].

mod added;
mod calls;
mod dying;
mod hearing;
mod message;
mod reader;
mod relays;
mod ring;
mod sessions;
mod state;

pub use calls::Answered;
pub use message::{ERROR_ENDED, ERROR_INTERNAL, Malformed, Message, error};
pub use reader::{Next, Reader};
pub use relays::{Listed, NotOpened, Patience, Relays};
pub use ring::{Item, Kind};
pub use state::{Posted, Relay};
