//! How each kind of agent is started: its command, its environment, what it is told of its surroundings.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tools::{Definition, ToolRunner, definitions};
use baton_core::ids::{AgentName, SessionId};

use super::actor::Spawn;
use super::broker::{Begin, Broker};
use crate::agent::{Launch, RotatingFile};
use crate::harness::acp::{AcpHarness, McpServer, Setup, Wire};
use crate::harness::exec::ExecHarness;
use crate::harness::llm::{Key, LlmHarness, LlmSetup, ToolDefinition};
use crate::harness::{AgentSpec, Drive, Harness};

/// The variable that every process of a session has: by it what outlived Baton is found.
pub const SESSION_VARIABLE: &str = "BATON_SESSION_ID";

/// The variable that names the trace of the guarded run that a session plays a part in.
pub const GUARD_VARIABLE: &str = "BATON_GUARD_TRACE";

/// What a model is told before everything else.
const SYSTEM: &str = "You are a careful software engineer. You work in one directory with the tools that you are given: paths are relative to it. \
    Look before you change something, keep changes small, and say in the end what you did.";

/// Reads a variable by its name.
pub type Variable = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where Baton itself is, and what it knows of its own environment.
pub struct Surroundings {
    /// The program that serves Baton's tools to agents.
    pub program: PathBuf,
    pub data_dir: PathBuf,
    pub state_dir: PathBuf,
    /// What no tool may see: those two, and where Baton listens.
    pub own: Vec<PathBuf>,
    /// Reads a variable of Baton's own environment.
    pub variable: Variable,
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl Broker {
    /// A variable that the processes of an agent have, of the configuration or passed on.
    pub fn variable_of(&self, agent: &AgentName, name: &str) -> Option<String> {
        let own = &self.setting().surroundings.variable;
        self.agents().get(agent)?.environment(&**own).remove(name)
    }
}

impl Surroundings {
    /// What an agent's copy of Baton's tools is told of whom it serves.
    pub(super) fn binding(&self, id: SessionId, begin: &Begin) -> Vec<(String, String)> {
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
        if let Some(part) = begin.part {
            env.push(("BATON_ROLE".to_owned(), part.role.to_string()));
            env.push((GUARD_VARIABLE.to_owned(), part.trace.to_string()));
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
    tools: &Arc<ToolRunner>,
) -> Spawn {
    let setting = broker.setting();
    let surroundings = &setting.surroundings;
    let mut env: BTreeMap<String, String> = spec.environment(&*surroundings.variable);
    // Whoever started this Baton may itself be an agent of one: none of that is passed on.
    env.extend(surroundings.binding(id, begin));
    // Into its environment alone: what its tools are told of their surroundings stands in messages, which are kept.
    if !matches!(spec.drive, Drive::Llm { .. }) {
        env.extend(broker.issue(id, begin));
    }
    let stderr = dir.join("stderr.log");
    let (cwd, lines) = (begin.cwd.clone(), setting.bounds.stderr_lines);
    let grace = setting.bounds.stop_grace.min(spec.waits.exit);
    let launch = move |words: Vec<String>| -> io::Result<Launch> {
        // A command has a process for each prompt, and all of them one file.
        let stderr_copy = Some(RotatingFile::append(&stderr)?);
        let (dir, env) = (cwd.clone(), env.clone());
        Ok(Launch { words, dir, env, stderr_lines: lines, stderr_copy, grace })
    };
    match &spec.drive {
        Drive::Acp { command } | Drive::Mock { command } => {
            let command = command.clone();
            let mcp_servers = match spec.takes_mcp() {
                true => vec![McpServer {
                    name: "baton".to_owned(),
                    command: surroundings.program.clone(),
                    args: vec!["mcp".to_owned()],
                    env: surroundings.binding(id, begin),
                }],
                false => Vec::new(),
            };
            let (cwd, mode) = (begin.cwd.clone(), spec.mode.clone());
            let (fs, terminal, tools) = (spec.fs, spec.terminal, Some(tools.clone()));
            let gate = begin.gate.clone();
            let wire = dir.join("wire.log");
            let setup = Setup { cwd, mcp_servers, mode, fs, terminal, tools, gate, load, wire: None };
            Box::new(move |tell| {
                let setup = Setup { wire: Some(Wire::new(RotatingFile::create(&wire)?)), ..setup };
                let harness = AcpHarness::start(launch(command)?, setup, tell)?;
                Ok(Box::new(harness) as Box<dyn Harness>)
            })
        }
        Drive::Exec { command, profile } => {
            let (command, profile) = (command.clone(), *profile);
            Box::new(move |tell| {
                let prepare = Box::new(move || launch(command.clone()));
                Ok(Box::new(ExecHarness::start(prepare, profile, tell)?) as Box<dyn Harness>)
            })
        }
        Drive::Llm { api, base_url, model, api_key_env } => {
            let setup = LlmSetup {
                api: *api,
                base_url: base_url.clone().unwrap_or_else(|| api.own_server().to_owned()),
                model: model.clone(),
                key: None,
                system: Some(SYSTEM.to_owned()),
                tools: definitions().iter().map(offered).collect(),
                max_tokens: None,
                timeout: setting.bounds.llm_timeout,
            };
            let variable = api_key_env.clone();
            Box::new(move |tell| {
                let key = variable.as_deref().map(Key::from_env).transpose()?;
                Ok(Box::new(LlmHarness::start(LlmSetup { key, ..setup }, tell)?) as Box<dyn Harness>)
            })
        }
    }
}

/// A tool as a model's server is told of it.
fn offered(tool: &Definition) -> ToolDefinition {
    ToolDefinition {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tool.parameters.clone(),
    }
}
