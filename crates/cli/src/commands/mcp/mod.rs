//! `baton mcp`: the Model Context Protocol over the standard streams, with the tools that concern tasks.
//!
//! Nothing is decided here. [`tools`] says what there is and what each tool takes, [`calls`] which command of ours does it, [`runner`](super::runner) runs that
//! command as a process of its own, and [`answer`] tells an agent what came of it and what to do next. So every command is written once, and goes
//! to the owner of the data directory by itself.

mod answer;
mod binding;
mod calls;
#[cfg(test)]
mod reference;
mod server;
mod tools;
mod transport;

use std::io;

use crate::args::Mcp;
use crate::commands::Ended;
use crate::commands::runner::Runner;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;

use self::binding::Binding;
use self::server::Server;

pub(super) fn run(ctx: &Context, args: &Mcp) -> Ended {
    let binding = Binding::read(&ctx.env, args)?;
    let layout = ctx.layout()?;
    let data_dir = std::path::absolute(layout.root()).map_err(|error| broken(&error))?;
    let exe = std::env::current_exe().map_err(|error| broken(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| broken(&error))?;
    let served = runtime.block_on(server::serve(Server::new(binding, Runner::new(exe, data_dir))));
    // A read of standard input that nobody waits for any more would hold the end up.
    runtime.shutdown_background();
    served.map_err(|error| broken(&error))?.finish();
    Ok(Exit::Ok)
}

fn broken(error: &io::Error) -> CliError {
    CliError::new(Code::Io, "the tool server cannot be started").cause(error.to_string())
}
