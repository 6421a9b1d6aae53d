//! What can be typed to run Baton itself: serving, checks of the place, the configuration, and what it tells about itself.

use std::path::PathBuf;

use baton_core::{AgentName, Role};
use clap::{Args, Subcommand};

use crate::words::roles;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Listen here instead of at `server.listen`, such as 127.0.0.1:7433
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Listen beyond this machine without a certificate: whoever can read the network can read the tokens
    #[arg(long)]
    pub(crate) expose_tokens_unencrypted: bool,
    /// Do not hand tasks to agents
    #[arg(long)]
    pub(crate) no_dispatch: bool,
    /// End once the last session has ended
    #[arg(long, hide = true)]
    pub(crate) until_idle: bool,
    /// End once standard input has ended
    #[arg(long, hide = true, conflicts_with = "until_idle")]
    pub(crate) until_eof: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Mend what can be mended: a write that was cut off, the index, permissions of keys
    #[arg(long)]
    pub(crate) fix: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Show by which rules guarded tasks are done, and by whom
    ///
    /// Shows every rule of `[policy]` with what the profile says filled in, and who of
    /// `[team]` plays which part; and says what would keep a guarded task from being
    /// done: a critic who also executes, an agent that is not configured, reviews that
    /// nobody may write. Exit code 2: a task could not be done this way.
    ///
    /// Example:
    ///   baton policy check
    ///   baton policy check --json
    #[command(verbatim_doc_comment)]
    Check,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Hooks {
    /// Read hooks.json, and show every hook as it would run
    ///
    /// Says what is wrong with the file and where, or lists the hooks with every
    /// default filled in and whether their program is found. Exit code 2: the file does
    /// not read.
    ///
    /// Example:
    ///   baton hooks check
    ///   baton hooks check --json
    #[command(verbatim_doc_comment)]
    Check,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Notify {
    /// List what was given up
    ///
    /// Example:
    ///   baton notify ls
    #[command(verbatim_doc_comment)]
    Ls,
    /// Try what was given up again
    ///
    /// Example:
    ///   baton notify retry
    #[command(verbatim_doc_comment)]
    Retry,
    /// Deliver what waits, and end
    ///
    /// Done by itself after every command that moved a task, and by `baton serve`.
    /// Of several at once, one sends each.
    ///
    /// Example:
    ///   baton notify flush
    #[command(verbatim_doc_comment)]
    Flush(NotifyFlush),
}

#[derive(Debug, Args)]
pub(crate) struct NotifyFlush {
    /// Tell of what happened after this position, too, unless it was told already
    #[arg(long, value_name = "POS")]
    pub(crate) since: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Act as this agent [default: BATON_AGENT; without either, only tools that need none]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Offer the tools of this role [default: BATON_ROLE, else executor]
    #[arg(long, value_name = "ROLE", value_parser = roles())]
    pub(crate) role: Option<Role>,
}

#[derive(Debug, Args)]
pub(crate) struct Acp {
    /// Let this agent do what is asked for [default: the only one that is configured; those of the harness mock do not count]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Name the code, as in error[L003]
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Name the shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write one page for each command into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every key with its value, as TOML
    ///
    /// Works without a data directory too; what is set there is missing then. Passwords
    /// are masked.
    ///
    /// Example:
    ///   baton config show --origin
    #[command(verbatim_doc_comment)]
    Show(ConfigShow),
    /// Print the JSON Schema of baton.toml, for editors
    ///
    /// Example:
    ///   baton config schema > baton.schema.json
    #[command(verbatim_doc_comment)]
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigShow {
    /// Say where each value comes from
    #[arg(long)]
    pub(crate) origin: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Make a token, and print it once
    ///
    /// Only its digest is kept. The scopes: `admin` everything; `operator` what a
    /// person does; `agent` what one agent does about its task; `viewer` to look;
    /// `ci` to report what CI found.
    ///
    /// Example:
    ///   baton token new dashboard --scope viewer
    ///   baton token new worker --scope agent --agent ada --expires 8h
    #[command(verbatim_doc_comment)]
    New(TokenNew),
    /// List the tokens by name, without their secrets
    ///
    /// Example:
    ///   baton token ls
    #[command(verbatim_doc_comment)]
    Ls,
    /// Take a token back; from then on it opens nothing
    ///
    /// Example:
    ///   baton token revoke dashboard
    #[command(verbatim_doc_comment)]
    Revoke(TokenName),
}

#[derive(Debug, Args)]
pub(crate) struct TokenNew {
    #[command(flatten)]
    pub(crate) name: TokenName,
    /// What it opens
    #[arg(long, value_parser = ["admin", "operator", "agent", "viewer", "ci"])]
    pub(crate) scope: String,
    /// The agent that it is for, with --scope agent
    #[arg(long, value_name = "NAME", required_if_eq("scope", "agent"))]
    pub(crate) agent: Option<baton_core::AgentName>,
    /// The only task that it is for, with --scope agent
    #[arg(long, value_name = "ID", requires = "agent")]
    pub(crate) task: Option<baton_core::TaskId>,
    /// After how long it opens nothing any more, such as 8h
    #[arg(long, value_name = "DURATION", value_parser = crate::task_args::duration)]
    pub(crate) expires: Option<std::time::Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct TokenName {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) token: String,
}
