//! `baton acp`: the Agent Client Protocol over the standard streams, so that an editor can use Baton as an agent.
//!
//! Nothing is decided here. [`server`] knows the editor's sessions, [`content`] makes a text of what it sends, [`turn`] lets a run of this very
//! program do a prompt and answer for it, [`translate`] says what the run's events are in the protocol, [`replay`] tells a conversation again
//! from the tasks that it led to, and [`program`] starts the processes. So the ledger is the only truth, and every rule is written once.

mod content;
mod program;
mod replay;
mod server;
mod translate;
mod turn;
mod wire;

use std::io;

use crate::args::Acp;
use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;

use self::program::Program;

/// Where a task keeps the conversation that it belongs to, and the directory that the editor named.
const SESSION_KEY: &str = "acpSession";
const CWD_KEY: &str = "acpCwd";

pub(super) fn run(ctx: &Context, args: &Acp) -> Ended {
    let exe = std::env::current_exe().map_err(|error| broken(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(&error))?;
    let (wire, incoming, writing) = wire::start().map_err(|error| broken(&error))?;
    let program = Program::new(exe, args.agent.clone());
    runtime.block_on(server::serve(ctx, program, wire, incoming));
    // A read of standard input that nobody waits for any more would hold the end up.
    runtime.shutdown_background();
    writing.finish();
    Ok(Exit::Ok)
}

fn broken(error: &io::Error) -> CliError {
    CliError::new(Code::Io, "the agent for editors cannot be started").cause(error.to_string())
}
