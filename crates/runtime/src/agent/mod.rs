//! Agents as processes: started in a group of their own, listened to line by line, ended with all that they started.

mod child;
mod environment;
mod lines;
mod memory;
mod rotating;

pub use child::{Agent, Exit, Heard, Launch, NotWritten};
pub use environment::{environment, environment_of, find};
pub use rotating::RotatingFile;
