//! Who gives a command: a person, or a process of an agent's session. Asked of the kernel, not of the caller.

use std::os::unix::net::UnixStream;

use baton_core::AgentName;
use baton_core::ids::{SessionId, TaskId};
use baton_runtime::process::variable_of;
use baton_runtime::session::{Broker, Live, SESSION_VARIABLE, Snapshot};
use rustix::net::sockopt::socket_peercred;

use crate::args::{Agent, Command};
use crate::error::{CliError, Code};
use crate::session_args::Session;
use crate::task_args::Task;
use crate::trace_args::Trace;

/// An agent that gives a command from within its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acting {
    pub(crate) session: SessionId,
    pub(crate) agent: AgentName,
    pub(crate) task: Option<TaskId>,
}

/// How far up the line of parents is looked. Whoever is further away from the agent has been started by something else.
const ANCESTORS_MAX: usize = 64;

impl Acting {
    /// The session that the process at the other end belongs to, by itself, its group, or one of those that it descends from.
    pub(crate) fn of(stream: &UnixStream, broker: &Broker) -> Option<Acting> {
        let live = broker.live();
        let mut pid = socket_peercred(stream).ok()?.pid.as_raw_nonzero().get();
        for _ in 0..ANCESTORS_MAX {
            let (parent, group) = parent_and_group(pid)?;
            let named = session_in(pid).or_else(|| session_in(group));
            let is_of = |live: &&Live| {
                let own = live.handle.pid().and_then(|own| i32::try_from(own).ok());
                Some(live.handle.id()) == named || own.is_some_and(|own| own == pid || own == group)
            };
            if let Some(live) = live.iter().find(is_of) {
                let task = live.bound.as_ref().map(|bound| bound.task.clone());
                return Some(Acting { session: live.handle.id(), agent: live.agent.clone(), task });
            }
            // What outlived its session is still nobody else's. A session of another data directory says nothing here.
            if let Some(ended) = named.and_then(|id| Snapshot::load(&broker.dir_of(id)).ok()) {
                return Some(Acting { session: ended.id, agent: ended.agent, task: None });
            }
            if parent <= 1 {
                return None;
            }
            pid = parent;
        }
        None
    }

    /// Refuses what only a person may do: whoever does the work neither judges it nor answers for others.
    pub(crate) fn expect_may(&self, command: Option<&Command>) -> Result<(), CliError> {
        let is_own = |agent: &AgentName| *agent == self.agent;
        let may = match command {
            None => true,
            Some(Command::Task(command)) => match command {
                Task::New(_) | Task::Ls(_) | Task::Show(_) | Task::Log(_) => true,
                Task::Claim(args) => is_own(&args.agent),
                Task::Beat(args) | Task::Release(args) => is_own(&args.agent),
                Task::Move(_) | Task::Edit(_) | Task::Retry(_) | Task::Approve(_) | Task::Reject(_) => false,
            },
            Some(Command::Trace(command)) => match command {
                Trace::Ls | Trace::Show(_) | Trace::Prove(_) => true,
                Trace::Append(args) => args.agent.as_ref().is_some_and(is_own),
                Trace::New(_) | Trace::Export(_) | Trace::Checkpoint(_) | Trace::Close(_) => false,
            },
            Some(Command::Session(command)) => match command {
                Session::Ls(_) | Session::Show(_) => true,
                Session::Ask(args) => self.session.to_string().starts_with(&args.one.session),
                _ => false,
            },
            Some(Command::Doctor(args)) => !args.fix,
            Some(Command::Agent(Agent::Ls | Agent::Check(_))) => true,
            Some(Command::Send(_) | Command::Exit(_) | Command::Hooks(_)) => true,
            Some(_) => false,
        };
        if may {
            return Ok(());
        }
        let what = format!("agent {} may not do this from its session", self.agent);
        Err(CliError::new(Code::NotForAgents, what).cause(format!("the call comes from {}", self.session)))
    }
}

/// The parent and the group of a process, as the kernel has them; the name before may hold anything.
fn parent_and_group(pid: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace().skip(1).map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

/// The session that a process was started for.
fn session_in(pid: i32) -> Option<SessionId> {
    let value = variable_of(pid, SESSION_VARIABLE)?;
    std::str::from_utf8(&value).ok()?.parse().ok()
}
