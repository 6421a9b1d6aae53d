//! Shows: what the data directory holds and what happens in it, over HTTP. Decides nothing: every change is asked of the engine, of a session, or of a
//! command of the command line.
//!
//! Start at [`routes`] for what there is, [`app`] for the way of a request, [`listen`] for connections.

pub mod access;
pub mod acp;
pub mod api;
pub mod app;
pub mod asked;
pub mod field;
pub mod house;
pub mod limits;
pub mod listen;
pub mod once;
pub mod openapi;
pub mod pages;
pub mod problem;
#[cfg(test)]
mod reference;
pub mod routes;
pub mod schema;
pub mod stream;
pub mod wishes;
