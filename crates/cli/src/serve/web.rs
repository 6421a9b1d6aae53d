//! The server over HTTP, in the process that owns the data directory: its commands are the very same.

use std::net::SocketAddr;
use std::sync::Arc;

use baton_runtime::Fault;
use baton_server::access::{Scope, Who};
use baton_server::house::{Call, Commands, Done, Handed, House, Ran, Scheduling};
use baton_server::limits::Patience;
use baton_server::listen::{self, Listening, Setting};
use baton_server::problem::Problem;
use tokio::io::DuplexStream;

use super::acting::Acting;
use super::in_house::{self, argv, printed};
use super::owner::Owner;
use super::server::{Call as Command, Poke};
use crate::commands::serve_tools;
use crate::config;
use crate::console::Console;
use crate::error::{CliError, Code};

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
    scheduling: Scheduling,
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
        patience: Patience::default(),
    };
    let house = House {
        engine: owner.engine.clone(),
        broker: owner.broker.clone(),
        commands: Arc::new(InHouse { owner: owner.clone(), poke: poke.clone() }),
        scheduling,
        dir: owner.workspace.layout.root().join("server"),
    };
    let listening = Listening::start(&setting, house, owner.tokens.clone()).map_err(CliError::from)?;
    owner.broker.open_door(&listening.url());
    Ok(listening)
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
        in_house::run(&self.owner, &call.words, &call.input, Acting::by_token(&call.who))
    }

    fn begin(&self, handed: Handed, done: Done) -> Result<(), Problem> {
        let Handed { words, who, stdin, printed, is_terminal, caller } = handed;
        let console = Console::elsewhere(stdin, printed, is_terminal, caller);
        let command = Command::in_house(&self.owner, &argv(&[], &words), console, Acting::by_token(&who))
            .and_then(|command| command.expect_remote(who.scope == Scope::Admin).map(|()| command));
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

fn problem(error: &CliError) -> Problem {
    Problem::of_command(error.exit().code(), &printed(error))
}
