//! What Baton does by itself, with real processes, real sockets and a real data directory; and a simulated one that loses its power.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod acp;
mod agent;
mod beats;
mod ci;
mod day;
mod deaths;
mod deaths_llm;
mod doomed;
mod exec;
mod files;
mod live;
mod llm;
mod notify;
mod process;
mod real_agents;
mod receiver;
mod recordings;
mod session;
mod session_tools;
mod sim;
mod support;
mod telemetry;
mod together;
mod world;
