//! What the server is given by whoever owns the data directory: the engine and the sessions, and the commands of the command line.

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_core::ids::{AgentName, SessionId, TaskId};
use baton_runtime::scheduler::Wake;
use baton_runtime::session::Broker;
use baton_runtime::{Engine, Fault};
use tokio::io::DuplexStream;

use crate::access::Who;
use crate::problem::Problem;

/// Commands of the command line, done in this very process.
///
/// What breaks if an implementation lies: an answer that was not recorded is acted on by whoever asked.
pub trait Commands: Send + Sync + fmt::Debug {
    /// Does a command, as `baton --json WORDS` would, and gives what it printed. Blocks.
    fn run(&self, call: Call) -> Ran;

    /// Begins a command with streams of its own, as `baton WORDS` would do it; `done` gets the exit code.
    fn begin(&self, handed: Handed, done: Done) -> Result<(), Problem>;

    /// A tool server for one conversation (MCP), in lines of JSON, bound to whoever asks. Called where tasks can be spawned.
    fn tools(&self, who: &Who) -> Result<DuplexStream, Problem>;

    /// What a failure means to people.
    fn explain(&self, fault: Fault) -> Problem;

    /// Something has changed: whatever is due by that is looked at, and shown.
    fn changed(&self);
}

/// A command.
#[derive(Debug, Clone)]
pub struct Call {
    pub words: Vec<String>,
    pub input: Vec<u8>,
    pub who: Who,
}

/// A command whose streams are elsewhere.
#[derive(Debug)]
pub struct Handed {
    pub words: Vec<String>,
    pub who: Who,
    pub stdin: OwnedFd,
    /// Takes what it prints: pieces of at most [`PIECE_BYTES_MAX`](crate::limits::PIECE_BYTES_MAX) bytes, each after its [`piece_head`], in the order in which they are printed.
    pub printed: OwnedFd,
    /// Whether the input comes from a terminal.
    pub is_terminal: bool,
    /// Closed when whoever gave it has gone.
    pub caller: UnixStream,
}

pub const STDOUT: u8 = 1;
pub const STDERR: u8 = 2;

/// Bytes before a piece: which stream it is of, and how long it is.
pub const PIECE_HEAD: usize = 5;

pub fn piece_head(stream: u8, bytes: usize) -> [u8; PIECE_HEAD] {
    let [a, b, c, d] = u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    [stream, a, b, c, d]
}

/// Takes the exit code of a command.
pub type Done = Box<dyn FnOnce(u8) + Send>;

/// A command that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub exit: u8,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

/// What the server stands on.
#[derive(Debug, Clone)]
pub struct House {
    pub engine: Arc<Engine>,
    pub broker: Arc<Broker>,
    pub commands: Arc<dyn Commands>,
    pub scheduling: Scheduling,
    /// Where what only the server needs is kept.
    pub dir: PathBuf,
}

/// How work is handed out.
#[derive(Debug, Clone)]
pub struct Scheduling {
    /// Whether tasks are handed to agents without being asked.
    pub is_dispatching: bool,
    /// After how long it is looked again, whatever happens.
    pub poll: Duration,
    /// Sessions for tasks at once.
    pub max_concurrent: usize,
    /// Knows when it was last looked.
    pub wake: Arc<Wake>,
}

/// An agent that acts for itself, from within its session or by a token of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub agent: AgentName,
    pub session: Option<SessionId>,
    /// The one task that it may act on; any, where nothing is said.
    pub task: Option<TaskId>,
    /// The lease that it acts under, where it is a session's: with it, what it may do is over.
    pub fence: Option<u64>,
}
