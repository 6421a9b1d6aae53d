//! Sessions for commands: who can be started, from the configuration; and the sessions that are kept, by their names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::AgentName;
use baton_core::ids::SessionId;
use baton_runtime::Engine;
use baton_runtime::harness::exec::Profile;
use baton_runtime::harness::llm::Api;
use baton_runtime::harness::{AgentSpec, Drive, Waits};
use baton_runtime::session::{Broker, SessionBounds, Setting, Snapshot, Surroundings};
use baton_runtime::tools::Walling;
use baton_store::{Layout, Workspace};

use crate::config::{self, Settings};
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::limits::CANDIDATES_MAX;

/// Where the sessions of a data directory are kept.
pub(crate) fn dir_of(layout: &Layout) -> PathBuf {
    layout.root().join("sessions")
}

/// The agents of a configuration, as they are started.
pub(crate) fn agents(settings: &Settings, program: &Path) -> BTreeMap<AgentName, AgentSpec> {
    let all = settings.agents.iter().map(|(name, agent)| (name.clone(), spec(name, agent, program)));
    all.collect()
}

/// The program that runs now. Agents start it for the tools that it serves.
pub(crate) fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("baton"))
}

fn spec(name: &AgentName, agent: &config::Agent, program: &Path) -> AgentSpec {
    let drive = match &agent.harness {
        config::Harness::Acp { command } => Drive::Acp { command: command.clone() },
        config::Harness::Exec { command, profile } => Drive::Exec {
            command: command.clone(),
            profile: match profile {
                config::ExecProfile::Claude => Profile::Claude,
                config::ExecProfile::Codex => Profile::Codex,
                config::ExecProfile::Gemini => Profile::Gemini,
                config::ExecProfile::Plain => Profile::Plain,
            },
        },
        config::Harness::Llm { api, base_url, model, api_key_env } => Drive::Llm {
            api: match api {
                config::Api::OpenAi => Api::OpenAi,
                config::Api::Anthropic => Api::Anthropic,
            },
            base_url: base_url.clone(),
            model: model.clone(),
            api_key_env: api_key_env.clone(),
        },
        config::Harness::Mock => {
            Drive::Mock { command: vec![program.display().to_string(), "mock-agent".to_owned()] }
        }
    };
    AgentSpec {
        name: name.clone(),
        drive,
        env: agent.env.clone(),
        env_pass: agent.env_pass.clone(),
        mode: agent.mode.clone(),
        fs: agent.fs,
        terminal: agent.terminal,
        mcp: agent.mcp,
        roles: agent.roles.clone(),
        exit_protocol: agent.exit_protocol,
        max_sessions: agent.max_sessions.map(|max| max as usize),
        worktree: agent.workspace == config::AgentWorkspace::Worktree,
        waits: Waits {
            handshake: agent.deadlines.handshake,
            inactivity: agent.deadlines.inactivity,
            cancel: agent.deadlines.cancel,
            exit: agent.deadlines.exit,
        },
    }
}

/// What stands around programs that Baton runs for agents: they see neither the data directory nor the state directory, nor where Baton listens.
pub(crate) fn walling(ctx: &Context, root: &Path) -> Result<Walling, CliError> {
    let root = std::fs::canonicalize(root).map_err(|error| CliError::io("find", root, &error))?;
    let own = [Some(root), Some(state_dir(ctx)?), ctx.runtime_dir()];
    Ok(Walling { myself: own_program(), own: own.into_iter().flatten().collect() })
}

fn state_dir(ctx: &Context) -> Result<PathBuf, CliError> {
    Ok(std::path::absolute(ctx.state_dir()?).unwrap_or_default())
}

/// The sessions of a data directory that this process owns.
pub(crate) fn broker(
    ctx: &Context,
    workspace: &Workspace,
    engine: &Engine,
    settings: &Settings,
) -> Result<Arc<Broker>, CliError> {
    let session = &settings.session;
    let root = std::fs::canonicalize(workspace.layout.root());
    let root = root.map_err(|error| CliError::io("find", workspace.layout.root(), &error))?;
    let Walling { myself: program, own } = walling(ctx, &root)?;
    let state_dir = state_dir(ctx)?;
    Ok(Broker::new(Setting {
        journal: workspace.journal.clone(),
        key: workspace.ledger_key.clone(),
        artifacts: Arc::new(workspace.artifacts.clone()),
        clock: engine.ground().clock.clone(),
        dir: root.join("sessions"),
        boot: engine.ground().boot.clone(),
        agents: agents(settings, &program),
        bounds: SessionBounds {
            max_sessions: SESSIONS_MAX.max(settings.scheduler.max_concurrent as usize),
            llm_timeout: session.llm_timeout,
            tool_timeout: session.tool_timeout,
            tool_timeouts: session.tool_timeouts.clone(),
            permission_timeout: session.permission_timeout,
            stop_grace: session.stop_grace,
            exit_grace: session.exit_grace,
            stderr_lines: session.stderr_lines as usize,
            output_bytes: usize::try_from(session.output_bytes).unwrap_or(usize::MAX),
            home_read: below_home(ctx, &session.home_read),
            resume: session.resume,
        },
        hooks: baton_runtime::hooks::load(&workspace.layout.hooks()),
        surroundings: Surroundings {
            own,
            program,
            data_dir: root,
            state_dir,
            variable: Box::new(|name| std::env::var(name).ok().filter(|value| !value.is_empty())),
        },
    }))
}

/// Paths as they are, or in the home of whoever runs this.
fn below_home(ctx: &Context, paths: &[String]) -> Vec<PathBuf> {
    let home = ctx.home().unwrap_or_default();
    paths.iter().map(|path| home.join(path)).filter(|path| path.is_absolute()).collect()
}

/// Sessions that run at most in one process, by hand and for tasks: each has threads, pipes and files of its own.
const SESSIONS_MAX: usize = 256;

/// The session that a word names: its id, or a beginning or an end of it that no other has. Sessions of one hour begin alike: their ends differ.
pub(crate) fn find(dir: &Path, word: &str) -> Result<Snapshot, CliError> {
    let missing =
        || CliError::new(Code::NoSession, format!("there is no session {word}")).hint("baton session ls");
    let load = |id: SessionId| Snapshot::load(&dir.join(id.to_string())).map_err(|_| missing());
    if let Ok(id) = word.parse::<SessionId>() {
        return load(id);
    }
    let digits = word.strip_prefix("sess_").unwrap_or(word);
    let is_word = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let entries = std::fs::read_dir(dir).ok().filter(|_| is_word).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_meant = |name: &String| {
        name.strip_prefix("sess_").is_some_and(|name| name.starts_with(digits)) || name.ends_with(word)
    };
    let mut fitting: Vec<SessionId> = names.filter(is_meant).filter_map(|name| name.parse().ok()).collect();
    fitting.sort_unstable();
    match fitting[..] {
        [] => Err(missing()),
        [id] => load(id),
        _ => {
            let shown: Vec<String> = fitting.iter().take(CANDIDATES_MAX).map(ToString::to_string).collect();
            let what = format!("{} sessions begin or end with {word}", fitting.len());
            let error = CliError::new(Code::Ambiguous, what).cause(shown.join(", "));
            Err(error.hint("baton session ls"))
        }
    }
}
