//! What can be typed to run Baton itself: serving, checks of the place, the configuration, and what it tells about itself.

use std::path::PathBuf;

use baton_core::{AgentName, Role};
use clap::{Args, Subcommand};

use crate::words::roles;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Do not hand tasks to agents
    #[arg(long)]
    pub(crate) no_dispatch: bool,
    /// End once the last session has ended
    #[arg(long, hide = true)]
    pub(crate) until_idle: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Mend what can be mended: a write that was cut off, the index, permissions of keys
    #[arg(long)]
    pub(crate) fix: bool,
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
