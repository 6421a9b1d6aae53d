//! Decides. The words of Baton as types: identifiers, time as data, limits, events and decisions.
//!
//! Nothing here reads a clock, a file, the network or a source of randomness: those arrive as values. Start at
//! [`event`], then [`ids`].

/// Stores a type as the text that it prints and parses.
macro_rules! as_text {
    ($($name:ty),* $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use as_text;

pub mod agent;
pub mod duration;
pub mod event;
pub mod guard;
pub mod ids;
pub mod json;
pub mod limits;
pub mod moment;
pub mod nearest;
pub mod offer;
pub mod protocol;
pub mod roles;
pub mod session;
pub mod task;
pub mod time;
mod words;

pub use event::{Actor, ArtifactRef, Durability, Event, EventType, KeyGrant, Payload, Seen};
pub use ids::{
    AgentName, Digest, EventId, KeyId, LedgerId, Origin, PublicKeyText, RunId, SessionId, TaskId, Token,
    TraceId, Uuid7,
};
pub use roles::Role;
pub use time::Timestamp;
