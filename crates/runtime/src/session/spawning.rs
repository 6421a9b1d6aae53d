//! How each kind of agent is started: its command, its environment, what it is told of its surroundings.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use baton_core::ids::SessionId;

use super::actor::Spawn;
use super::broker::{Begin, Broker};
use crate::agent::{AgentSpec, Drive, Launch, RotatingFile};
use crate::harness::Harness;
use crate::harness::acp::{AcpHarness, McpServer, Setup};

/// The variable that every process of a session has: by it what outlived Baton is found.
pub const SESSION_VARIABLE: &str = "BATON_SESSION_ID";

/// Where Baton itself is, and what it knows of its own environment.
pub struct Surroundings {
    /// The program that serves Baton's tools to agents.
    pub program: PathBuf,
    pub data_dir: PathBuf,
    pub state_dir: PathBuf,
    /// Reads a variable of Baton's own environment.
    pub variable: Box<dyn Fn(&str) -> Option<String> + Send + Sync>,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl Surroundings {
    /// What an agent's copy of Baton's tools is told of whom it serves.
    fn binding(&self, id: SessionId, begin: &Begin) -> Vec<(String, String)> {
        let mut env = vec![
            ("BATON_DATA_DIR".to_owned(), self.data_dir.display().to_string()),
            ("BATON_STATE_DIR".to_owned(), self.state_dir.display().to_string()),
            (SESSION_VARIABLE.to_owned(), id.to_string()),
            ("BATON_AGENT".to_owned(), begin.agent.to_string()),
        ];
        if let Some(runtime) = (self.variable)("XDG_RUNTIME_DIR") {
            env.push(("XDG_RUNTIME_DIR".to_owned(), runtime));
        }
        if let Some(bound) = &begin.bound {
            env.push(("BATON_TASK_ID".to_owned(), bound.task.to_string()));
            env.push(("BATON_FENCE".to_owned(), bound.fence.to_string()));
            env.push(("BATON_RUN_ID".to_owned(), bound.run.to_string()));
        }
        env
    }
}

/// What starts the agent of a session, once.
pub(super) fn spawner(
    broker: &Broker,
    spec: &AgentSpec,
    id: SessionId,
    dir: &Path,
    begin: &Begin,
    load: Option<String>,
) -> Spawn {
    let setting = broker.setting();
    let surroundings = &setting.surroundings;
    let mut env: BTreeMap<String, String> = spec.environment(&*surroundings.variable);
    // Whoever started this Baton may itself be an agent of one: none of that is passed on.
    env.insert(SESSION_VARIABLE.to_owned(), id.to_string());
    let stderr = dir.join("stderr.log");
    let (cwd, lines) = (begin.cwd.clone(), setting.bounds.stderr_lines);
    let grace = setting.bounds.stop_grace.min(spec.waits.exit);
    let launch = move |words: Vec<String>| -> io::Result<Launch> {
        let stderr_copy = Some(RotatingFile::create(&stderr)?);
        Ok(Launch { words, dir: cwd, env, stderr_lines: lines, stderr_copy, grace })
    };
    match &spec.drive {
        Drive::Acp { command } | Drive::Mock { command } => {
            let command = command.clone();
            let mcp_servers = match spec.mcp {
                true => vec![McpServer {
                    name: "baton".to_owned(),
                    command: surroundings.program.clone(),
                    args: vec!["mcp".to_owned()],
                    env: surroundings.binding(id, begin),
                }],
                false => Vec::new(),
            };
            let (cwd, mode, fs) = (begin.cwd.clone(), spec.mode.clone(), spec.fs);
            let setup = Setup { cwd, mcp_servers, mode, fs, load };
            Box::new(move |tell| {
                let harness = AcpHarness::start(launch(command)?, setup, tell)?;
                Ok(Box::new(harness) as Box<dyn Harness>)
            })
        }
        Drive::Exec { .. } | Drive::Llm { .. } => {
            Box::new(|_| Err(io::Error::new(io::ErrorKind::Unsupported, "not driven by this version")))
        }
    }
}
