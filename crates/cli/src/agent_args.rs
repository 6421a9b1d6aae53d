//! What can be typed about agents.

use std::path::PathBuf;

use baton_core::{AgentName, Role};
use clap::{Args, Subcommand};

use crate::words::roles;

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// List the agents that are configured
    ///
    /// Example:
    ///   baton agent ls
    #[command(verbatim_doc_comment)]
    Ls,
    /// Add an agent to the configuration
    ///
    /// Writes an `[agents.NAME]` table at the end of `baton.toml`. With a command it is
    /// driven over ACP; --profile makes it a program that is run once for each prompt.
    ///
    /// Example:
    ///   baton agent add opencode -- opencode acp
    ///   baton agent add claude --profile claude -- \
    ///     claude -p --output-format stream-json --verbose
    ///   baton agent add local --api openai --model m \
    ///     --base-url http://127.0.0.1:8080/v1
    #[command(verbatim_doc_comment)]
    Add(AgentAdd),
    /// Start an agent and say what works
    ///
    /// Really starts it, in an empty directory, and ends it; paths in its command are
    /// those of the workspace. With --turn it also gets a small prompt, which may cost
    /// something; a model and a program that is run once for each prompt get it always,
    /// since nothing else would start them.
    ///
    /// Example:
    ///   baton agent check opencode
    #[command(verbatim_doc_comment)]
    Check(AgentCheck),
    /// Make, show, rotate or revoke the key of an agent
    ///
    /// Makes a key where the agent has none, and shows it otherwise. The private half
    /// is kept in the state directory (BATON_STATE_DIR; `baton init --help` tells
    /// more). With --public the agent keeps its private key to itself and only the
    /// public half is registered. What was signed before a rotation or a revocation
    /// stays valid; what is signed afterwards is refused.
    ///
    /// Example:
    ///   baton agent key planner-1 --role planner
    ///   baton agent key planner-1 --revoke --reason "laptop lost"
    #[command(verbatim_doc_comment)]
    Key(AgentKey),
}

#[derive(Debug, Args)]
pub(crate) struct AgentAdd {
    /// Name the agent
    #[arg(value_name = "NAME")]
    pub(crate) name: AgentName,
    /// Run it once for each prompt, and understand what it prints in this way
    #[arg(long, value_name = "PROFILE", value_parser = ["claude", "codex", "gemini", "plain"], conflicts_with = "api")]
    pub(crate) profile: Option<String>,
    /// Talk to a model's server with this protocol
    #[arg(long, value_name = "API", value_parser = ["openai", "anthropic"], requires = "model")]
    pub(crate) api: Option<String>,
    /// Say where that server is
    #[arg(long, value_name = "URL", requires = "api")]
    pub(crate) base_url: Option<String>,
    /// Name the model
    #[arg(long, value_name = "MODEL", requires = "api")]
    pub(crate) model: Option<String>,
    /// Name the variable that holds the key
    #[arg(long, value_name = "VARIABLE", requires = "api")]
    pub(crate) api_key_env: Option<String>,
    /// Start it like this
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "api", conflicts_with = "api")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentCheck {
    /// Name the agent
    #[arg(value_name = "NAME")]
    pub(crate) agent: AgentName,
    /// Send it a small prompt too
    #[arg(long)]
    pub(crate) turn: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentKey {
    /// Name the agent
    #[arg(value_name = "AGENT")]
    pub(crate) agent: AgentName,
    /// Allow the key to sign in this role; may be repeated [default: executor]
    #[arg(long, value_name = "ROLE", value_parser = roles(), value_delimiter = ',')]
    pub(crate) role: Vec<Role>,
    /// Register the public key in this file instead of making one
    #[arg(long, value_name = "FILE")]
    pub(crate) public: Option<PathBuf>,
    /// Replace the key by a new one
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) rotate: bool,
    /// End the key without a successor
    #[arg(long, requires = "reason", conflicts_with_all = ["role", "public"])]
    pub(crate) revoke: bool,
    /// Say why the key is revoked
    #[arg(long, value_name = "REASON", requires = "revoke")]
    pub(crate) reason: Option<String>,
}
