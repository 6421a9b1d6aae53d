//! The agents by name: how each is driven and what it may do, as the configuration says.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_core::AgentName;

use super::exec::Profile;
use super::llm::Api;
use crate::agent::environment_of;

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpec {
    pub name: AgentName,
    pub drive: Drive,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// Variables that it inherits besides those of every process.
    pub env_pass: Vec<String>,
    /// The session mode that is set before the first prompt.
    pub mode: Option<String>,
    /// Whether Baton reads and writes files for it.
    pub fs: bool,
    /// Whether Baton runs commands for it.
    pub terminal: bool,
    /// Whether it is given Baton's own tools.
    pub mcp: bool,
    pub roles: Vec<String>,
    /// Whether it has to end each phase with an exit signal.
    pub exit_protocol: bool,
    pub max_sessions: Option<usize>,
    /// Whether each task gets a git worktree of its own.
    pub worktree: bool,
    pub waits: Waits,
}

/// How an agent is driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drive {
    Acp {
        command: Vec<String>,
    },
    Exec {
        command: Vec<String>,
        profile: Profile,
    },
    Llm {
        api: Api,
        base_url: Option<String>,
        model: String,
        api_key_env: Option<String>,
    },
    /// The built-in agent; the command that starts it.
    Mock {
        command: Vec<String>,
    },
}

/// How long is waited for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Until it takes input.
    pub handshake: Duration,
    /// In a turn, without a word.
    pub inactivity: Duration,
    /// For the end of a turn that was cancelled.
    pub cancel: Duration,
    /// For its end once its input is closed.
    pub exit: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Waits { handshake: seconds(30), inactivity: seconds(600), cancel: seconds(10), exit: seconds(5) }
    }
}

impl AgentSpec {
    /// An agent with nothing but a name and a way to be driven.
    pub fn new(name: AgentName, drive: Drive) -> Self {
        AgentSpec {
            name,
            drive,
            env: BTreeMap::new(),
            env_pass: Vec::new(),
            mode: None,
            fs: false,
            terminal: false,
            mcp: true,
            roles: Vec::new(),
            exit_protocol: false,
            max_sessions: None,
            worktree: false,
            waits: Waits::default(),
        }
    }

    /// The word for how it is driven.
    pub fn harness(&self) -> &'static str {
        match self.drive {
            Drive::Acp { .. } => "acp",
            Drive::Exec { .. } => "exec",
            Drive::Llm { .. } => "llm",
            Drive::Mock { .. } => "mock",
        }
    }

    /// Whether it takes work that is nobody's in particular. The mock does only what it is asked by name.
    pub fn takes_any(&self) -> bool {
        !matches!(self.drive, Drive::Mock { .. })
    }

    /// Whether it can be given Baton's own tools.
    pub fn takes_mcp(&self) -> bool {
        self.mcp && matches!(self.drive, Drive::Acp { .. } | Drive::Mock { .. })
    }

    /// Whether it makes sense to remind it of a report: it can give one, and remembers what it did.
    pub fn can_be_reminded(&self) -> bool {
        self.takes_mcp() || self.exit_protocol && !matches!(self.drive, Drive::Exec { .. })
    }

    /// Its whole environment: the few variables that every process needs, what is passed on to it, what is set for it.
    pub fn environment(&self, own: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
        environment_of(&self.env_pass, &self.env, own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_gets_what_is_allowed_and_nothing_else() {
        let mut spec = AgentSpec::new("ada".parse().unwrap(), Drive::Acp { command: vec!["x".into()] });
        spec.env_pass = vec!["TOKEN".into(), "MISSING".into()];
        spec.env = BTreeMap::from([("LANG".to_owned(), "C".to_owned())]);
        let own = |name: &str| match name {
            "PATH" | "LANG" | "TOKEN" | "SECRET" | "BATON_STATE_DIR" => Some(format!("own {name}")),
            _ => None,
        };
        let expected = [("LANG", "C"), ("PATH", "own PATH"), ("TOKEN", "own TOKEN")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(spec.environment(own), BTreeMap::from(expected));
    }
}
