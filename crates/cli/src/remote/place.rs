//! Where a command is done when a server is named, and what of it has to be sent along.

use std::path::Path;

use crate::args::{Agent, Command, Config};
use crate::session_args::Session;
use crate::task_args::{Ci, ExitSignal, Task};
use crate::trace_args::Trace;

/// Where a command is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this process, whatever server is named.
    Here,
    /// The same; and whoever names a server for it means something else.
    Own(&'static str),
    /// By the server.
    There,
    /// Neither: why.
    Nowhere(&'static str),
}

/// Where a command is done. Without a wildcard, so that a new one asks for its answer here.
pub(crate) fn place(command: Option<&Command>) -> Place {
    match command {
        None => Place::There,
        Some(command) => match command {
            Command::Init => Place::Own("init"),
            Command::Demo(_) => Place::Own("demo"),
            Command::Serve(_) => Place::Own("serve"),
            Command::Mcp(_) => Place::Own("mcp"),
            Command::Acp(_) => Place::Own("acp"),
            Command::MockAgent => Place::Own("mock-agent"),
            Command::Explain(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Config(Config::Schema) => Place::Here,
            Command::Token(_) => Place::Nowhere("tokens are made on the machine that they open"),
            Command::Verify(args) => {
                let names_file = args.proof.is_some() || args.checkpoint.is_some() || args.trust.is_some();
                let is_trace = args.target.as_deref().is_none_or(is_id);
                // What lies here is verified here, without asking anybody.
                if names_file || !is_trace { Place::Here } else { Place::There }
            }
            Command::Agent(Agent::Key(args)) if args.public.is_some() => {
                Place::Nowhere("the file with the key is not there")
            }
            Command::Task(Task::Edit(args)) if args.file.is_none() => {
                Place::Nowhere("an editor needs the file of the task; name a file with the new text")
            }
            Command::Task(_)
            | Command::Send(_)
            | Command::Exit(_)
            | Command::Ci(_)
            | Command::Trace(_)
            | Command::Run(_)
            | Command::Session(_)
            | Command::Agent(_)
            | Command::Events(_)
            | Command::Notify(_)
            | Command::Replay(_)
            | Command::Doctor(_)
            | Command::Config(Config::Show(_))
            | Command::Hooks(_)
            | Command::Policy(_) => Place::There,
        },
    }
}

/// Whether a text names a trace or a task, and no file.
fn is_id(text: &str) -> bool {
    !Path::new(text).exists() && !text.contains('/') && text != "-"
}

/// Whether a command that is cut off has left nothing that might be half done.
pub(super) fn only_looks(command: Option<&Command>) -> bool {
    matches!(
        command,
        None | Some(
            Command::Events(_)
                | Command::Verify(_)
                | Command::Replay(_)
                | Command::Config(_)
                | Command::Task(Task::Ls(_) | Task::Show(_))
                | Command::Trace(Trace::Ls | Trace::Show(_) | Trace::Export(_) | Trace::Prove(_))
                | Command::Session(Session::Ls(_) | Session::Show(_))
                | Command::Agent(Agent::Ls)
        )
    )
}

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed<'a> {
    Nothing,
    Stdin,
    File(&'a Path),
}

/// What a command reads. Standard input is left alone where it is not read: it may be that of a loop around this.
pub(super) fn fed(command: Option<&Command>) -> Fed<'_> {
    let path = match command {
        Some(Command::Task(Task::New(args))) => args.file.as_deref(),
        Some(Command::Task(Task::Edit(args))) => args.file.as_deref(),
        Some(Command::Send(args)) => Some(args.file.as_path()),
        Some(Command::Exit(ExitSignal::Check(args))) => Some(args.file.as_path()),
        Some(Command::Exit(ExitSignal::Submit(args))) => Some(args.file.as_path()),
        Some(Command::Ci(Ci::Report(args))) => args.log.as_deref(),
        Some(Command::Trace(Trace::Append(args))) => Some(args.file.as_path()),
        Some(Command::Run(_) | Command::Session(Session::Attach(_))) => Some(Path::new("-")),
        _ => None,
    };
    match path {
        None => Fed::Nothing,
        Some(path) if path.as_os_str() == "-" => Fed::Stdin,
        Some(path) => Fed::File(path),
    }
}
