//! Agents as processes: started in a group of their own, listened to line by line, ended with all that they started.

mod catalog;
mod child;
mod lines;
mod rotating;

pub use catalog::{AgentSpec, Api, Drive, Profile, Waits};
pub use child::{Agent, Exit, Heard, Launch, NotWritten};
pub use rotating::RotatingFile;
