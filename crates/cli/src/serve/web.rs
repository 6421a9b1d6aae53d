//! The server over HTTP, in the process that owns the data directory: its commands are the very same.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use baton_runtime::Fault;
use baton_server::access::Who;
use baton_server::house::{Call, Commands, Done, Handed, House, Ran};
use baton_server::limits::OUTPUT_BYTES_MAX;
use baton_server::listen::{self, Listening, Setting};
use baton_server::problem::Problem;
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::io::DuplexStream;

use super::owner::Owner;
use super::server::{Call as Command, Poke};
use crate::commands::serve_tools;
use crate::config;
use crate::console::Console;
use crate::error::{CliError, Code};
use crate::exit::Exit;

/// The commands, for the server.
#[derive(Debug)]
struct InHouse {
    owner: Arc<Owner>,
    poke: Arc<Poke>,
}

/// How the server listens, of the configuration and the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) is_exposed: bool,
}

/// Begins to listen.
pub(crate) fn start(
    owner: &Arc<Owner>,
    poke: &Arc<Poke>,
    settings: &config::Listen,
    is_configured: bool,
    asked: Asked,
) -> Result<Listening, CliError> {
    let listen = match asked.listen {
        Some(listen) => listen,
        None => settings.listen.parse().map_err(|_| {
            CliError::new(
                Code::Listen,
                format!("server.listen: expected an address and a port, got {:?}", settings.listen),
            )
        })?,
    };
    let tls = settings.tls.clone().map(|tls| listen::Tls { cert: tls.cert, key: tls.key });
    let setting = Setting {
        listen,
        // Nobody asked for this very port, and another project may have it.
        is_port_free: asked.listen.is_none() && !is_configured,
        tls,
        hosts: settings.hosts.clone(),
        is_exposed: asked.is_exposed,
    };
    let house = House {
        engine: owner.engine.clone(),
        broker: owner.broker.clone(),
        commands: Arc::new(InHouse { owner: owner.clone(), poke: poke.clone() }),
        dir: owner.workspace.layout.root().join("server"),
    };
    Listening::start(&setting, house, owner.tokens.clone()).map_err(CliError::from)
}

impl From<listen::Error> for CliError {
    fn from(error: listen::Error) -> Self {
        let hint = match &error {
            listen::Error::Exposed(_) | listen::Error::Certificate { .. } => "baton explain W018",
            _ => "baton serve --listen 127.0.0.1:0",
        };
        CliError::new(Code::Listen, error.to_string()).hint(hint)
    }
}

impl From<baton_server::access::TokenError> for CliError {
    fn from(error: baton_server::access::TokenError) -> Self {
        CliError::new(Code::TokenFile, error.to_string()).hint("baton token ls")
    }
}

impl Commands for InHouse {
    fn run(&self, call: Call) -> Ran {
        self.try_run(&call).unwrap_or_else(|error| {
            let error = CliError::new(Code::Io, "the command cannot be done").cause(error.to_string());
            Ran { exit: Exit::Unexpected.code(), out: Vec::new(), err: printed(&error) }
        })
    }

    fn begin(&self, handed: Handed, done: Done) -> Result<(), Problem> {
        let Handed { words, streams, is_terminal, caller, .. } = handed;
        let console = Console::of(streams, is_terminal, Arc::new(caller));
        let command = Command::in_house(&self.owner, &argv(&[], &words), console, None)
            .and_then(|command| command.expect_remote().map(|()| command));
        let command = command.map_err(|error| problem(&error))?;
        let poked = (self.owner.clone(), self.poke.clone());
        let run = move || {
            let code = command.run();
            poked.0.wake.wake();
            poked.1.poke();
            drop(poked);
            done(code);
        };
        let spawned = std::thread::Builder::new().name("call".into()).spawn(run);
        spawned.map(drop).map_err(|error| Problem::unexpected(format!("no thread for it: {error}")))
    }

    fn tools(&self, who: &Who) -> Result<DuplexStream, Problem> {
        serve_tools(&self.owner, who).map_err(|error| problem(&error))
    }

    fn explain(&self, fault: Fault) -> Problem {
        problem(&CliError::from(fault))
    }

    fn changed(&self) {
        self.owner.wake.wake();
        self.poke.poke();
    }
}

impl InHouse {
    fn try_run(&self, call: &Call) -> io::Result<Ran> {
        let [mut stdin, mut stdout, mut stderr] = [kept("in")?, kept("out")?, kept("err")?];
        stdin.write_all(&call.input)?;
        stdin.rewind()?;
        let console = Console::kept(stdin, stdout.try_clone()?, stderr.try_clone()?);
        let exit = match Command::in_house(&self.owner, &argv(&["--json"], &call.words), console, None) {
            Ok(command) => command.run(),
            Err(error) => {
                return Ok(Ran { exit: error.exit().code(), out: Vec::new(), err: printed(&error) });
            }
        };
        Ok(Ran { exit, out: taken(&mut stdout)?, err: taken(&mut stderr)? })
    }
}

fn argv(flags: &[&str], words: &[String]) -> Vec<OsString> {
    let first = ["baton"].iter().chain(flags).map(OsString::from);
    first.chain(words.iter().map(OsString::from)).collect()
}

/// A file that is nowhere.
fn kept(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

fn taken(file: &mut File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    let read = file.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match read as u64 > OUTPUT_BYTES_MAX {
        true => Err(io::Error::other("it prints more than is shown")),
        false => Ok(bytes),
    }
}

fn problem(error: &CliError) -> Problem {
    Problem::of_command(error.exit().code(), &printed(error))
}

/// An error as `--json` prints it.
fn printed(error: &CliError) -> Vec<u8> {
    let mut out = Vec::new();
    error.print(&mut out, true, crate::ui::color::Paint::plain(), &crate::ui::shell::Place::new(None));
    out
}
