//! What can be typed about sessions and runs.

use std::path::PathBuf;

use baton_core::AgentName;
use baton_core::ids::{HookRunId, SessionId, ToolRunId};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Say what is to be done
    #[arg(value_name = "PROMPT", required_unless_present_any = ["task", "driven"], conflicts_with = "task")]
    pub(crate) prompt: Option<String>,
    /// Work on this task instead of a new one
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Let this agent do it [default: the task's own, else the only one that is configured; those of the harness mock do not count]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Allow what the agent asks for, once each
    #[arg(long)]
    pub(crate) yes: bool,
    /// Be driven by a program: JSON lines on standard input say what to do and answer what is asked for
    #[arg(long, conflicts_with = "yes")]
    pub(crate) driven: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// List sessions, the newest first
    ///
    /// Shows all of them, or with --limit the newest of those. With --json `next` is
    /// what to give --before for those that come after; how a session ended is there
    /// without what it wrote on its standard error, which `session show` has.
    ///
    /// Example:
    ///   baton session ls
    ///   baton session ls --limit 20
    #[command(verbatim_doc_comment)]
    Ls(SessionLs),
    /// Show a session: its state, what it did, how it ended
    ///
    /// With --transcript all that was said: prompts, words, thoughts, tools with the
    /// beginnings of their outputs, hooks and permissions. With --json that is one
    /// object per line, and outputs are whole.
    ///
    /// Example:
    ///   baton session show c0ffee42
    ///   baton session show c0ffee42 --transcript
    #[command(verbatim_doc_comment)]
    Show(SessionShow),
    /// Start an agent without a task
    ///
    /// The session lives in the process that serves the data directory; where none
    /// does, one is started that ends with its last session.
    ///
    /// Example:
    ///   baton session start --agent mock
    #[command(verbatim_doc_comment)]
    Start(SessionStart),
    /// Send a session a prompt
    ///
    /// Example:
    ///   baton session send c0ffee42 "Fix the login"
    #[command(verbatim_doc_comment)]
    Send(SessionSend),
    /// Follow a session that runs, until it ends or you do
    ///
    /// At a terminal a line that you type is sent to it, once it is ready; where it
    /// asks for something, allow (or y) and deny (or n) answer that. Without a terminal
    /// it is only watched: `session send` and `session permit` talk to it.
    ///
    /// Example:
    ///   baton session attach c0ffee42
    #[command(verbatim_doc_comment)]
    Attach(SessionOne),
    /// End a session and all that it started
    ///
    /// Example:
    ///   baton session stop c0ffee42
    #[command(verbatim_doc_comment)]
    Stop(SessionOne),
    /// Run a tool again that failed
    ///
    /// Example:
    ///   baton session retry-tool c0ffee42 \
    ///     toolrun_019b76da-addc-7101-8101-010101010101
    #[command(verbatim_doc_comment)]
    RetryTool(RetryTool),
    /// Run a hook again that failed
    ///
    /// Example:
    ///   baton session retry-hook c0ffee42 \
    ///     hookrun_019b76da-addc-7101-8101-010101010101
    #[command(verbatim_doc_comment)]
    RetryHook(RetryHook),
    /// Answer what a session asks for
    ///
    /// `baton session show` lists what it waits for. A question is answered by a text.
    ///
    /// Example:
    ///   baton session permit c0ffee42 0 allow
    ///   baton session permit c0ffee42 question-1 "use the second one"
    #[command(verbatim_doc_comment)]
    Permit(Permit),
    /// Ask a person something, for an agent
    ///
    /// What Baton's tool server calls; the answer is what a person says.
    ///
    /// Example:
    ///   baton session ask c0ffee42 --text "Which of the two?"
    #[command(hide = true, verbatim_doc_comment)]
    Ask(SessionAsk),
    /// Hand in what a player of a guarded run says
    ///
    /// What Baton's tool server calls: a JSON object of the form that
    /// docs/reference/roles.md describes, on standard input.
    ///
    /// Example:
    ///   baton session submit c0ffee42 < proposal.json
    #[command(hide = true, verbatim_doc_comment)]
    Submit(SessionOne),
}

#[derive(Debug, Args)]
pub(crate) struct SessionLs {
    /// Show those that run, and no others
    #[arg(long)]
    pub(crate) live: bool,
    /// Show this many at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Show those that began before this one, by its whole id
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<SessionId>,
    /// Show these, by their whole ids, as far as they are there
    #[arg(long = "id", value_name = "ID", value_delimiter = ',')]
    pub(crate) ids: Vec<SessionId>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionOne {
    /// Name the session: its id, or a beginning or an end of it that no other has
    #[arg(value_name = "ID")]
    pub(crate) session: String,
}

#[derive(Debug, Args)]
pub(crate) struct SessionShow {
    #[command(flatten)]
    pub(crate) one: SessionOne,
    /// Show all that was said in it
    #[arg(long)]
    pub(crate) transcript: bool,
    /// Show no more than the end of it, of about so many bytes
    #[arg(long, hide = true, value_name = "BYTES", requires = "transcript")]
    pub(crate) last: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionStart {
    /// Name the agent [default: the only one that is configured; those of the harness mock do not count]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Work in this directory [default: the workspace]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Go on with the conversation of a session that has ended: its id, or a beginning or an end of it
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionSend {
    #[command(flatten)]
    pub(crate) one: SessionOne,
    /// Say this
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
pub(crate) struct RetryTool {
    #[command(flatten)]
    pub(crate) one: SessionOne,
    /// Name the run of the tool
    #[arg(value_name = "RUN")]
    pub(crate) run: ToolRunId,
}

#[derive(Debug, Args)]
pub(crate) struct RetryHook {
    #[command(flatten)]
    pub(crate) one: SessionOne,
    /// Name the run of the hook
    #[arg(value_name = "RUN")]
    pub(crate) run: HookRunId,
}

#[derive(Debug, Args)]
pub(crate) struct Permit {
    #[command(flatten)]
    pub(crate) one: SessionOne,
    /// Name what is asked for
    #[arg(value_name = "REQ")]
    pub(crate) request: String,
    /// Answer: allow, deny, or a text for a question
    #[arg(value_name = "ANSWER")]
    pub(crate) answer: String,
}

#[derive(Debug, Args)]
pub(crate) struct SessionAsk {
    #[command(flatten)]
    pub(crate) one: SessionOne,
    /// Ask this; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: String,
}
