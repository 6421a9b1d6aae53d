//! One file for each command. A command takes what it needs from the context, says everything through the `Ui`, and ends with a public exit code.

mod acp;
mod agent;
mod agent_check;
mod agent_setup;
mod beside;
mod ci;
mod completions;
mod config;
mod demo;
mod doctor;
mod driven;
mod ending;
mod event_row;
mod events;
mod exit_signal;
mod explain;
mod follow;
pub(crate) mod guarded;
mod hooks;
mod house;
mod init;
mod man;
mod mcp;
mod mock_agent;
mod notify;
mod offer;
mod policy;
mod replay;
mod run;
mod runner;
mod send;
mod serve;
mod session;
mod standing;
mod status;
mod task;
mod token;
mod trace;
mod verify;

use crate::args::{Agent, Command, Config, Hooks, Policy};
use crate::context::Context;
use crate::error::Stop;
use crate::exit::Exit;
use crate::ui::Ui;

pub(crate) use exit_signal::SWITCH as EXIT_SWITCH;
pub(crate) use mcp::serve_in_house as serve_tools;
pub(crate) use trace::tell_fetched;

/// How a command ends.
pub(crate) type Ended = Result<Exit, Stop>;

pub(crate) fn run(ctx: &Context, ui: &mut Ui, command: Option<Command>) -> Ended {
    match command {
        None => status::run(ctx, ui),
        Some(Command::Init) => init::run(ctx, ui),
        Some(Command::Demo(args)) => demo::run(ctx, ui, &args),
        Some(Command::Task(command)) => task::run(ctx, ui, command),
        Some(Command::Send(args)) => send::run(ctx, ui, &args),
        Some(Command::Exit(command)) => exit_signal::run(ctx, ui, command),
        Some(Command::Ci(command)) => ci::run(ctx, ui, command),
        Some(Command::Trace(command)) => trace::run(ctx, ui, command),
        Some(Command::Run(args)) => run::run(ctx, ui, &args),
        Some(Command::Session(command)) => session::run(ctx, ui, command),
        Some(Command::Agent(Agent::Ls)) => agent_setup::list(ctx, ui),
        Some(Command::Agent(Agent::Add(args))) => agent_setup::add(ctx, ui, &args),
        Some(Command::Agent(Agent::Check(args))) => agent_check::check(ctx, ui, &args),
        Some(Command::Agent(Agent::Key(args))) => agent::run(ctx, ui, &args),
        Some(Command::Events(args)) => events::run(ctx, ui, &args),
        Some(Command::Verify(args)) => verify::run(ctx, ui, &args),
        Some(Command::Notify(command)) => notify::run(ctx, ui, &command),
        Some(Command::Replay(args)) => replay::run(ctx, ui, &args),
        Some(Command::Serve(args)) => serve::run(ctx, ui, &args),
        Some(Command::Token(command)) => token::run(ctx, ui, command),
        Some(Command::Doctor(args)) => doctor::run(ctx, ui, &args),
        Some(Command::Config(Config::Show(args))) => config::show(ctx, ui, &args),
        Some(Command::Config(Config::Schema)) => config::schema(ui),
        Some(Command::Hooks(Hooks::Check)) => hooks::check(ctx, ui),
        Some(Command::Policy(Policy::Check)) => policy::check(ctx, ui),
        Some(Command::Mcp(args)) => mcp::run(ctx, &args),
        Some(Command::Acp(args)) => acp::run(ctx, &args),
        Some(Command::MockAgent) => mock_agent::run(),
        Some(Command::Explain(args)) => explain::run(ui, &args),
        Some(Command::Completions(args)) => completions::run(ui, &args),
        Some(Command::Man(args)) => man::run(ui, &args),
    }
}
