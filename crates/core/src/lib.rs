//! Decides. The words of Baton as types: identifiers, time as data, limits, events and decisions.
//!
//! Nothing here reads a clock, a file, the network or a source of randomness: those arrive as values. Start at
//! [`event`], then [`ids`].

pub mod agent;
pub mod decision;
pub mod event;
pub mod ids;
pub mod json;
pub mod limits;
pub mod offer;
pub mod protocol;
pub mod roles;
pub mod task;
pub mod time;

pub use decision::Decision;
pub use event::{Actor, ArtifactRef, Durability, Event, EventType, KeyGrant, Payload, Seen};
pub use ids::{
    AgentName, Digest, EventId, KeyId, LedgerId, Origin, PublicKeyText, RunId, SessionId, TaskId, Token,
    TraceId, Uuid7,
};
pub use roles::Role;
pub use time::Timestamp;
