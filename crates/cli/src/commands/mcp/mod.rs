//! `baton mcp`: the Model Context Protocol over the standard streams, with the tools that concern tasks.
//!
//! Nothing is decided here. [`tools`] says what there is and what each tool takes, [`calls`] which command of ours does it, [`runner`](super::runner) runs that
//! command as a process of its own, and [`answer`] tells an agent what came of it and what to do next. So every command is written once, and goes
//! to the owner of the data directory by itself. Over HTTP it is that owner who serves, and does them in its own process, in the name of whoever asks.

mod answer;
mod binding;
mod calls;
#[cfg(test)]
mod reference;
mod server;
mod tools;
mod transport;

use std::io;
use std::str::FromStr;
use std::sync::Arc;

use baton_core::task::Lease;
use baton_core::{AgentName, Role, TaskId};
use baton_server::access::Who;
use baton_server::house::Bound;
use tokio::io::DuplexStream;

use crate::args::Mcp;
use crate::commands::Ended;
use crate::commands::runner::Runner;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::limits::MCP_STREAM_BYTES;
use crate::serve::{Acting, Owner};

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

/// A tool server in this very process, for one conversation over HTTP. An agent's token binds it as a session's variables would.
pub(crate) fn serve_in_house(owner: &Arc<Owner>, who: &Who) -> Result<DuplexStream, CliError> {
    let data_dir = std::path::absolute(owner.workspace.layout.root()).map_err(|error| broken(&error))?;
    let mut binding = Binding { agent: None, role: Role::Executor, task: None, session: None, guard: None };
    if let Some(bound) = &who.bound {
        binding.agent = Some(bound.agent.clone());
        binding.role = role(owner, &bound.agent)?;
        binding.session = bound.session.and_then(baton_runtime::session::token);
        let attempt = bound.task.as_ref().and_then(|task| owner.crew.attempt(task));
        if let Some(part) = bound.session.zip(attempt).and_then(|(id, attempt)| attempt.playing()?.part(id)) {
            (binding.role, binding.guard) = (part.role, Some(part.trace));
        }
        binding.task = bound.task.as_ref().map(|task| held(owner, task, bound)).transpose()?;
    }
    let (ours, theirs) = tokio::io::duplex(MCP_STREAM_BYTES);
    let runner = Runner::in_house(owner.clone(), Acting::by_token(who), data_dir);
    server::serve_stream(Server::new(binding, runner), theirs);
    Ok(ours)
}

/// The role of an agent: what its processes, and so its tools over the standard streams, are told.
fn role(owner: &Owner, agent: &AgentName) -> Result<Role, CliError> {
    let Some(text) = owner.broker.variable_of(agent, "BATON_ROLE") else { return Ok(Role::Executor) };
    text.parse().map_err(|error: <Role as FromStr>::Err| {
        CliError::new(Code::Value, format!("the variable BATON_ROLE of {agent} does not read"))
            .cause(error.to_string())
            .hint("baton mcp --help")
    })
}

/// The task of a token, with the fence under which its agent holds it; of a session's, with the session's own.
fn held(owner: &Owner, task: &TaskId, bound: &Bound) -> Result<binding::Bound, CliError> {
    let (found, _) = owner.engine.task(task)?;
    let agent = &bound.agent;
    let is_own = |lease: &Lease| lease.agent == *agent && bound.fence.is_none_or(|own| own == lease.fence);
    match found.lease.filter(is_own) {
        Some(lease) => Ok(binding::Bound { task: task.clone(), fence: lease.fence }),
        None => Err(CliError::new(Code::LeaseLost, format!("{agent} does not hold {task}: claim it first"))
            .hint(format!("baton task claim {task} --agent {agent}"))),
    }
}

fn broken(error: &io::Error) -> CliError {
    CliError::new(Code::Io, "the tool server cannot be started").cause(error.to_string())
}
