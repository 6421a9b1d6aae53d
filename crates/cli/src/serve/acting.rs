//! Who gives a command: a person, or a process of an agent's session. Asked of the kernel, not of the caller.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::AgentName;
use baton_core::ids::{SessionId, TaskId};
use baton_runtime::process::variable_of;
use baton_runtime::session::{Live, SESSION_VARIABLE, Snapshot};
use baton_server::access::Who;
use baton_server::house::Bound;
use rustix::net::sockopt::socket_peercred;

use crate::args::{Agent, Command};
use crate::commands::guarded;
use crate::error::{CliError, Code};
use crate::limits::AGENT_CALLS_MAX;
use crate::serve::Owner;
use crate::session_args::{Session, SessionOne};
use crate::task_args::Task;
use crate::trace_args::Trace;

/// An agent that gives a command: from within its session, or over HTTP with a token of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acting {
    /// Nothing where the token is no session's.
    pub(crate) session: Option<SessionId>,
    pub(crate) agent: AgentName,
    pub(crate) task: Option<TaskId>,
}

/// How far up the line of parents is looked, and how often where somebody of it ends meanwhile.
const ANCESTORS_MAX: usize = 256;
const LOOKS_MAX: usize = 3;

impl Acting {
    /// The session that the process at the other end belongs to; nobody's where it is a person's. What cannot be told is refused: only a person's
    /// process has nothing to hide.
    pub(crate) fn of(stream: &UnixStream, owner: &Owner) -> Result<Option<Acting>, CliError> {
        let broker = &owner.broker;
        let caller = socket_peercred(stream).map_err(|_| unclear("nobody is at the other end"))?.pid;
        let line = Line::of(caller.as_raw_nonzero().get())
            .ok_or_else(|| unclear("the process that called has gone"))?;
        // First by what the kernel knows: the agent's own process, or its group.
        let live = broker.live();
        let is_of = |live: &&Live| {
            let own = live.handle.pid().and_then(|own| i32::try_from(own).ok());
            own.is_some_and(|own| line.numbers.contains(&own))
        };
        if let Some(live) = live.iter().find(is_of) {
            return Ok(Some(Acting::in_session(live)));
        }
        // Then by what it says itself, which only ever takes something away. A session of another data directory says nothing here.
        let named = line.named.into_iter().find_map(|id| Snapshot::load(&broker.dir_of(id)).ok());
        let Some(named) = named else { return Ok(None) };
        match live.iter().find(|live| live.handle.id() == named.id) {
            // A hook or a tool, which Baton itself has started.
            Some(live) if line.is_ours => Ok(Some(Acting::in_session(live))),
            _ => Err(Acting::stray(named, owner)),
        }
    }

    /// Why nothing is done for a process that outlived its session. That it tried is recorded once, where the session played a part in a guarded run.
    fn stray(named: Snapshot, owner: &Owner) -> CliError {
        let error = unclear(&format!("it was started for {}, and is not part of it", named.id));
        if owner.agent_calls.is_first_stray(named.id) {
            let left = Acting { session: Some(named.id), agent: named.agent, task: named.task };
            guarded::note(owner, &left, "a command from outside its session", &error);
        }
        error
    }

    fn in_session(live: &Live) -> Acting {
        let task = live.bound.as_ref().map(|bound| bound.task.clone());
        Acting { session: Some(live.handle.id()), agent: live.agent.clone(), task }
    }

    /// The agent whose token a request has; nobody where it is a person's.
    pub(crate) fn by_token(who: &Who) -> Option<Acting> {
        let Bound { agent, session, task, .. } = who.bound.clone()?;
        Some(Acting { session, agent, task })
    }

    fn is_own_session(&self, one: &SessionOne) -> bool {
        self.session.is_some_and(|own| own.to_string().starts_with(&one.session))
    }

    /// Where its commands come from.
    pub(crate) fn place(&self) -> String {
        match self.session {
            Some(session) => session.to_string(),
            None => format!("a token of {}", self.agent),
        }
    }

    /// Refuses a process of a session that would own the data directory itself, where nobody does: it would be asked by nobody who it is.
    pub(crate) fn expect_no_agent(sessions: &Path) -> Result<(), CliError> {
        let own = std::env::var(SESSION_VARIABLE).ok().and_then(|id| id.parse::<SessionId>().ok());
        match own.filter(|id| Snapshot::load(&sessions.join(id.to_string())).is_ok()) {
            Some(id) => Err(unclear(&format!("it was started for {id}, and nobody owns the data directory"))),
            None => Ok(()),
        }
    }

    /// The same as [`Acting::expect_may`]; what an agent of a guarded run tries in vain is recorded.
    pub(crate) fn expect_may_in(&self, owner: &Owner, command: Option<&Command>) -> Result<(), CliError> {
        self.expect_may(command).and_then(|()| self.expect_not_overheard(owner, command)).inspect_err(
            |error| {
                let what = match command {
                    Some(Command::Trace(_)) => "a command about traces",
                    Some(Command::Session(_)) => "a command about sessions",
                    Some(Command::Task(_)) => "a command about tasks",
                    _ => "a command for people",
                };
                guarded::note(owner, self, what, error);
            },
        )
    }

    /// Refuses what was said in another session to whoever plays a part in a guarded run: each is shown what is meant for it.
    fn expect_not_overheard(&self, owner: &Owner, command: Option<&Command>) -> Result<(), CliError> {
        let Some(Command::Session(Session::Show(args))) = command else { return Ok(()) };
        let plays = |task: &TaskId| {
            owner
                .engine
                .look(|board| board.get(task).is_some_and(|task| task.guard.is_some()))
                .unwrap_or(true)
        };
        if self.is_own_session(&args.one) || !self.task.as_ref().is_some_and(plays) {
            return Ok(());
        }
        let what =
            format!("agent {} reads no other session while it plays a part in a guarded run", self.agent);
        Err(CliError::new(Code::NotForAgents, what).cause(format!("the call comes from {}", self.place())))
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
                Trace::New(_)
                | Trace::Export(_)
                | Trace::Checkpoint(_)
                | Trace::Review(_)
                | Trace::Abort(_)
                | Trace::Close(_) => false,
            },
            Some(Command::Session(command)) => match command {
                Session::Ls(_) | Session::Show(_) => true,
                Session::Ask(args) => self.is_own_session(&args.one),
                Session::Submit(one) => self.is_own_session(one),
                _ => false,
            },
            Some(Command::Doctor(args)) => !args.fix,
            Some(Command::Agent(Agent::Ls | Agent::Check(_))) => true,
            Some(
                Command::Send(_)
                | Command::Exit(_)
                | Command::Hooks(_)
                | Command::Policy(_)
                | Command::Verify(_),
            ) => true,
            Some(_) => false,
        };
        if may {
            return Ok(());
        }
        let what = format!("agent {} may not do this from its session", self.agent);
        Err(CliError::new(Code::NotForAgents, what).cause(format!("the call comes from {}", self.place())))
    }
}

/// A process and those that it descends from.
#[derive(Debug, Default)]
struct Line {
    /// Their numbers, and those of their groups.
    numbers: BTreeSet<i32>,
    /// The sessions that they say they were started for, the nearest first.
    named: Vec<SessionId>,
    /// Whether this very process is among them.
    is_ours: bool,
}

impl Line {
    /// Looks a process up, unless it has gone. One that goes while it is looked at is looked at again.
    fn of(pid: i32) -> Option<Line> {
        (0..LOOKS_MAX).find_map(|_| Line::look(pid))
    }

    fn look(mut pid: i32) -> Option<Line> {
        let (own, mut line) = (i32::try_from(std::process::id()).ok()?, Line::default());
        for _ in 0..ANCESTORS_MAX {
            if pid == own {
                line.is_ours = true;
                return Some(line);
            }
            let (parent, group) = parent_and_group(pid)?;
            line.numbers.extend([pid, group]);
            line.named.extend(session_in(pid).or_else(|| session_in(group)));
            if parent <= 1 {
                return Some(line);
            }
            pid = parent;
        }
        // Whoever hides behind so many has a reason.
        None
    }
}

/// How many commands each session has done at the moment: the person who wants to stop it finds a place too.
#[derive(Debug, Default)]
pub(crate) struct AgentCalls {
    running: Mutex<BTreeMap<SessionId, usize>>,
    /// The sessions of which a process came that is no part of them.
    strays: Mutex<BTreeSet<SessionId>>,
}

/// A command of a session, until it has ended.
#[derive(Debug)]
pub(crate) struct AgentCall(Arc<AgentCalls>, SessionId);

impl AgentCalls {
    pub(crate) fn enter(self: &Arc<Self>, session: SessionId) -> Result<AgentCall, CliError> {
        let mut calls = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = calls.entry(session).or_default();
        if *count >= AGENT_CALLS_MAX {
            let what = format!("{session} has {AGENT_CALLS_MAX} commands done already: wait for one to end");
            return Err(CliError::new(Code::NotForAgents, what));
        }
        *count += 1;
        Ok(AgentCall(self.clone(), session))
    }

    fn is_first_stray(&self, session: SessionId) -> bool {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner).insert(session)
    }
}

impl Drop for AgentCall {
    fn drop(&mut self) {
        let mut calls = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = calls.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                calls.remove(&self.1);
            }
        }
    }
}

fn unclear(why: &str) -> CliError {
    CliError::new(Code::NotForAgents, "it cannot be told who gives this command").cause(why)
}

/// The parent and the group of a process, as the kernel has them; the name before may hold anything.
fn parent_and_group(pid: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 1..))?;
    let after = std::str::from_utf8(after).ok()?;
    let mut fields = after.split_ascii_whitespace();
    // One that has ended has left nothing but its number.
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    let mut numbers = fields.map(|field| field.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The session that a process was started for.
fn session_in(pid: i32) -> Option<SessionId> {
    let value = variable_of(pid, SESSION_VARIABLE)?;
    std::str::from_utf8(&value).ok()?.parse().ok()
}
