//! Acts. Takes what people and agents ask of tasks through the one road (decide, append, apply, then files), and does what is due.
//!
//! Start at [`engine`] for the road, [`scheduler`] for what happens by itself, [`watch`] for what people do to the files.

pub mod agent;
pub mod ci;
pub mod clock;
pub mod conduct;
pub mod dispatch;
pub mod engine;
pub mod harness;
pub mod hooks;
pub mod limits;
pub mod notify;
pub mod occupancy;
pub mod process;
pub mod relay;
pub mod scheduler;
pub mod session;
pub mod telemetry;
pub mod tools;
mod trust;
pub mod watch;
pub mod work;

pub use engine::{Engine, Fault, Ground, Settings};
