//! The Agent Client Protocol over an agent's standard streams, with the official library.
//!
//! The process is ours ([`Agent`]); the library sees lines only. Every line is looked at before it gets there: what is no message is told and kept
//! from it, updates are translated right here (so that a flood of them is held back by whoever listens), and requests and answers go through it.
//! The library runs in a thread of its own; [`AcpHarness`] sends it what is asked.

mod desk;
mod inbound;
mod serving;
mod talk;
mod terminals;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use baton_core::session::{Answer, Cause};
use futures::SinkExt as _;
use futures::channel::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded};

use self::desk::Desk;
use self::inbound::Sorted;
use self::talk::{Command, Talk};
use super::{Failure, Harness, Told};
use crate::agent::{Agent, Heard, Launch, NotWritten, RotatingFile};
use crate::limits::WIRE_LINE_BYTES_MAX;
use crate::session::ToolGate;
use crate::tools::ToolRunner;

/// What an agent is told about its surroundings.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    pub cwd: PathBuf,
    pub mcp_servers: Vec<McpServer>,
    /// The permission mode that is set before the first prompt.
    pub mode: Option<String>,
    /// Whether Baton reads and writes files for the agent.
    pub fs: bool,
    /// Whether Baton runs programs for the agent.
    pub terminal: bool,
    /// What does both; without it neither is offered.
    pub tools: Option<Arc<ToolRunner>>,
    /// What stands between the agent and them, where its work is guarded.
    pub gate: Option<Arc<dyn ToolGate>>,
    /// A session of the agent's own that is to be gone on with.
    pub load: Option<String>,
    /// Gets every line of both sides as it is, before anybody understands it.
    pub wire: Option<Wire>,
}

/// Where lines are kept as they are: what came with `<`, what went with `>`.
#[derive(Debug, Clone)]
pub struct Wire(Arc<Mutex<RotatingFile>>);

impl Wire {
    pub fn new(file: RotatingFile) -> Self {
        Wire(Arc::new(Mutex::new(file)))
    }

    /// Keeps a line, or its beginning where it is long. What cannot be kept is no reason to stop.
    fn keep(&self, side: &str, line: &[u8]) {
        let part = &line[..line.len().min(WIRE_LINE_BYTES_MAX)];
        let kept = [side.as_bytes(), b" ", part.trim_ascii_end(), b"\n"].concat();
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).push(&kept);
    }
}

/// A server of tools that is offered to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub command: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// An agent that speaks ACP.
#[derive(Debug)]
pub struct AcpHarness {
    agent: Agent,
    commands: UnboundedSender<Command>,
}

/// Where lines for the library go, until there are none any more.
type Incoming = Arc<Mutex<Option<Sender<std::io::Result<String>>>>>;

impl AcpHarness {
    /// Starts an agent and the conversation with it. What it tells begins with `Ready` or `Broken` and ends with `Exited`.
    pub fn start(
        launch: Launch,
        setup: Setup,
        tell: impl Fn(Told) + Send + Sync + 'static,
    ) -> std::io::Result<AcpHarness> {
        let tell: Arc<dyn Fn(Told) + Send + Sync> = Arc::new(tell);
        // One at a time: the library would keep however many there are.
        let (to_library, incoming) = channel(0);
        let to_library: Incoming = Arc::new(Mutex::new(Some(to_library)));
        let desk = Arc::<Desk>::default();
        let to_agent = Arc::<OnceLock<Agent>>::default();
        let (commands, asked) = unbounded();
        let agent = Agent::start(launch, {
            let wire = setup.wire.clone();
            let ear = Ear { to_library, to_agent: to_agent.clone(), desk: desk.clone(), tell: tell.clone() };
            move |heard| {
                if let (Heard::Line(line), Some(wire)) = (&heard, &wire) {
                    wire.keep("<", line);
                }
                ear.hear(heard);
            }
        })?;
        to_agent.get_or_init(|| agent.clone());
        let talk = Talk { agent: agent.clone(), setup, tell, desk };
        start_library(talk, incoming, asked)?;
        Ok(AcpHarness { agent, commands })
    }

    fn ask(&self, command: Command) {
        // Where nobody takes it any more the agent is gone, which is told.
        let _ = self.commands.unbounded_send(command);
    }
}

fn start_library(
    talk: Talk,
    incoming: Receiver<std::io::Result<String>>,
    asked: UnboundedReceiver<Command>,
) -> std::io::Result<()> {
    let stopping = talk.agent.clone();
    let run = move || futures::executor::block_on(talk.run(incoming, asked));
    let started = std::thread::Builder::new().name("acp".into()).spawn(run);
    if started.is_err() {
        stopping.stop();
    }
    started.map(drop)
}

/// Sorts what comes from the process: to the library, or straight to whoever listens.
struct Ear {
    to_library: Incoming,
    /// For what is answered before the library sees it: set once the process has started.
    to_agent: Arc<OnceLock<Agent>>,
    desk: Arc<Desk>,
    tell: Arc<dyn Fn(Told) + Send + Sync>,
}

impl Ear {
    fn hear(&self, heard: Heard) {
        let tell = &self.tell;
        match heard {
            Heard::Line(line) => {
                let Sorted { told, for_library, answer } = inbound::sort(&line, &self.desk);
                drop(line);
                told.into_iter().for_each(|told| tell(told));
                if let Some(answer) = answer {
                    // One that does not read gets none.
                    let _ = self.to_agent.wait().write(format!("{answer}\n").as_bytes());
                }
                if let (Some(line), Some(library)) = (for_library, &mut *self.library()) {
                    // Waits for its turn; where nobody takes it any more the conversation is over.
                    let _ = futures::executor::block_on(library.send(Ok(line)));
                    self.hold_if_crowded();
                }
            }
            Heard::TooLong(bytes) => {
                let message = format!("the agent sent a line of {bytes} bytes, which is no message");
                tell(Told::Broken(Failure::of(Cause::Protocol, message)));
            }
            Heard::Closed => {
                self.library().take();
                tell(Told::Closed("output"));
            }
            Heard::Deaf => tell(Told::Closed("input")),
            Heard::Ended(exit) => {
                self.library().take();
                tell(Told::Exited(exit));
            }
        }
    }

    /// Hears nothing more until what was asked for has been answered; what is written goes on.
    fn hold_if_crowded(&self) {
        if self.desk.is_crowded() {
            let agent = self.to_agent.wait();
            agent.hold();
            // Whoever answered in between has found nobody to release.
            if !self.desk.is_crowded() {
                agent.release();
            }
        }
    }

    fn library(&self) -> MutexGuard<'_, Option<Sender<std::io::Result<String>>>> {
        self.to_library.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Harness for AcpHarness {
    fn prompt(&mut self, blocks: &[String]) -> Result<(), Failure> {
        let sent = self.commands.unbounded_send(Command::Prompt(blocks.to_vec()));
        sent.map_err(|_| Failure::new(NotWritten::Closed.to_string()))
    }

    fn cancel(&mut self) {
        self.ask(Command::Cancel);
    }

    fn answer(&mut self, id: &str, answer: &Answer) {
        self.ask(Command::Answer(id.to_owned(), answer.clone()));
    }

    fn stop(&mut self) {
        self.agent.stop();
    }

    fn end(&mut self) {
        self.agent.end();
    }

    fn pid(&self) -> Option<u32> {
        Some(self.agent.pid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harness_can_be_moved_to_where_it_is_needed() {
        fn is_send<T: Send>() {}
        is_send::<AcpHarness>();
        is_send::<Box<dyn Harness>>();
    }
}
