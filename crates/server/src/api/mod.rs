//! The routes, one file for each family: what each takes and gives, and its handler.

pub mod actions;
pub mod agents;
pub mod changes;
pub mod commands;
pub mod health;
pub mod heard;
pub mod mcp;
pub mod page;
pub mod reviews;
pub mod sessions;
pub mod status;
pub mod streams;
pub mod tasks;
pub mod traces;
pub mod work;
