//! What can be typed. The doc comment of a command is its help: one imperative line, then prose and an example before the flags.

use std::path::PathBuf;

use baton_core::{EventType, Token};
use clap::{Arg, ArgAction, Args, Parser, Subcommand};

pub(crate) use crate::agent_args::{Agent, AgentAdd, AgentCheck, AgentKey};
use crate::config::Flag;
pub(crate) use crate::operate_args::{
    Acp, Completions, Config, ConfigShow, Doctor, Explain, Hooks, Man, Mcp, Notify, NotifyFlush, Policy,
    Serve, Tokens,
};
use crate::session_args::{Run, Session};
use crate::task_args::{Ci, ExitSignal, Send, Task};
use crate::trace_args::Trace;
use crate::ui::color::When;

/// Hand work from one coding agent to the next, and prove what happened
///
/// `baton` alone says where you stand and what to type next.
///
/// Example:
///   baton init
///   baton run "Fix the login"
#[derive(Debug, Parser)]
#[command(name = "baton", version, verbatim_doc_comment, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Use this data directory [default: BATON_DATA_DIR, else .baton here or above, else the user's own]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Let this server do it, such as http://127.0.0.1:7433 [default: BATON_SERVER]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "data_dir")]
    pub(crate) server: Option<String>,
    /// Show this token to the server [default: BATON_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Print data as JSON: one object, or one per line for what streams
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing but data and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more about what is being done
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// What every `--set` says, in order; see [`set_flag`].
    #[arg(skip)]
    pub(crate) set: Vec<Flag>,
    /// Use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a data directory here
    ///
    /// Makes `.baton` (or --data-dir) with an empty ledger, a key that signs for it,
    /// and a `baton.toml` that names the agent programs found on PATH. The private key
    /// is kept outside, in the state directory: BATON_STATE_DIR, else `baton` in
    /// XDG_STATE_HOME or ~/.local/state.
    ///
    /// Example:
    ///   baton init
    #[command(verbatim_doc_comment)]
    Init,
    /// Show the life of a task in a throw-away directory
    ///
    /// A task is created, claimed, handed over in part, and passes CI and review; an
    /// agent works in a session, asks for a permission and crashes; two others die and
    /// their tasks are recovered; four plan, work, doubt and verify by the rules of
    /// guarded work; then the trace is verified and one event proved. Every command
    /// is run by real processes and shown with what it prints. In a terminal, the page
    /// is served at the end, with all of it. Nothing is left behind.
    ///
    /// Example:
    ///   baton demo
    #[command(verbatim_doc_comment)]
    Demo(Demo),
    /// Create tasks, take them, move them, approve them
    ///
    /// A task is a Markdown file in the data directory that you can read and edit; what
    /// happened to it is in the ledger. A new task waits in backlog until it is ready;
    /// an agent claims it and works on it; it goes to review and is done once it is
    /// approved. Any unique beginning of an id will do, with or without `TASK-`.
    ///
    /// Example:
    ///   baton task new "Fix the login" --ready
    ///   baton task ls
    ///   baton task show 2026-02-09-057
    #[command(verbatim_doc_comment, subcommand)]
    Task(Task),
    /// Hand in one message of an agent, such as a report (AOF/1)
    ///
    /// Reads one JSON object from a file or from standard input, and prints whether it
    /// was accepted, and if not why. `docs/protocol/aof.md` describes the five types of
    /// messages. Exit code 4: it was refused.
    ///
    /// Example:
    ///   baton send report.json
    ///   echo '{"protocol":"aof","version":1,"type":"status.update",
    ///   "taskId":"TASK-2026-02-09-057","fromAgent":"ada","toAgent":"baton",
    ///   "sentAt":"2026-02-09T10:00:00Z","payload":{"agentId":"ada",
    ///   "taskId":"TASK-2026-02-09-057","progress":"half done"}}' | baton send
    #[command(verbatim_doc_comment)]
    Send(Send),
    /// Check or submit the signal with which an agent ends a phase
    ///
    /// An agent that has finished its phase says so in a small JSON object;
    /// `docs/protocol/exit-signal.md` describes it. Off unless the variable
    /// AGENT_EXIT_PROTOCOL_ENABLED is true, 1 or yes; where `baton serve` runs, in its
    /// surroundings.
    ///
    /// Example:
    ///   baton exit check signal.json
    ///   baton exit submit --task TASK-2026-02-09-057 signal.json
    #[command(verbatim_doc_comment, subcommand)]
    Exit(ExitSignal),
    /// Report what CI found about a task
    ///
    /// For checks that run elsewhere. Where `ci.command` is configured, `baton serve`
    /// runs it and reports.
    ///
    /// Example:
    ///   baton ci report TASK-2026-02-09-057 --passed
    #[command(verbatim_doc_comment, subcommand)]
    Ci(Ci),
    /// Write and read traces: the record of one piece of work
    ///
    /// A trace is a chain of events that agents record and sign. Every task has one of
    /// its own. Any unique beginning of an id will do, with or without `trc_` and
    /// `evt_`.
    ///
    /// Example:
    ///   TRACE=$(baton trace new --title "Fix the login")
    ///   echo '{"type":"note"}' | baton trace append $TRACE --agent me
    #[command(verbatim_doc_comment, subcommand)]
    Trace(Trace),
    /// Let an agent work on a task now, and follow it
    ///
    /// Makes a task of the prompt (or takes the one that is named), gives it to an
    /// agent and shows what happens: its words, its tools, what it asks for, and how it
    /// ended. Permissions are asked for here; where there is no terminal they are
    /// denied. Exit code 0: done, or to be reviewed; 4: blocked; 6: the attempt failed.
    ///
    /// With --driven a program does what a person does at a terminal: a first line
    /// {"prompt": TEXT} on standard input, where neither a prompt nor a task is
    /// named, then {"permit": ID, "answer": "allow"} for what is asked for. Where
    /// another agent is at work in the workspace it waits. When the input ends, the
    /// attempt is stopped.
    ///
    /// Example:
    ///   baton run "Fix the login"
    ///   baton run --task 2026-02-09-057 --agent opencode
    #[command(verbatim_doc_comment)]
    Run(Run),
    /// Start, follow, answer and end sessions of agents
    ///
    /// A session is one supervised conversation with one agent. Any unique beginning
    /// or end of an id will do: sessions of one hour begin alike.
    ///
    /// Example:
    ///   baton session ls
    ///   baton session show c0ffee42
    #[command(verbatim_doc_comment, subcommand)]
    Session(Session),
    /// Configure agents, try them, and manage the keys they sign with
    ///
    /// Example:
    ///   baton agent ls
    ///   baton agent check opencode
    ///   baton agent key planner-1 --role planner
    #[command(verbatim_doc_comment, subcommand)]
    Agent(Agent),
    /// Show the ledger's events in order, and follow new ones
    ///
    /// With --json each line is the record exactly as it is stored.
    ///
    /// Example:
    ///   baton events --task TASK-2026-02-09-057
    ///   baton events --follow --type task.transitioned
    #[command(verbatim_doc_comment)]
    Events(Events),
    /// Verify a ledger, a trace, a bundle or a proof, offline
    ///
    /// Needs nothing but the bytes and writes nothing. Without a target it verifies the
    /// data directory in use. A checkpoint and a key that you kept elsewhere show what
    /// the input alone cannot: that its end is not cut off, and that it is the ledger
    /// you know.
    ///
    /// Exit code 0: it passes (warnings are printed). 7: it fails. 8: it cannot be
    /// told.
    ///
    /// Example:
    ///   baton verify .baton --checkpoint kept.txt --trust keys.txt
    ///   baton verify trace.bundle
    ///   baton verify --proof event.proof
    #[command(verbatim_doc_comment)]
    Verify(Verify),
    /// Rebuild the state from the ledger and compare it with the live one
    ///
    /// Reads every event from the first on and takes no lock. Exit code 7 where they
    /// differ.
    ///
    /// Example:
    ///   baton replay
    ///   baton replay --until 1000
    #[command(verbatim_doc_comment)]
    Replay(Replay),
    /// Check the installation, and mend what can be mended
    ///
    /// Each line is a verdict; what can be done about it stands below it. Whether
    /// events were altered is not looked at here: `baton verify` reads all of them.
    /// Exit code 1 if anything fails.
    ///
    /// Example:
    ///   baton doctor
    ///   baton doctor --fix
    #[command(verbatim_doc_comment)]
    Doctor(Doctor),
    /// Run the server: hand tasks to agents, recover them, run the checks
    ///
    /// As long as it runs, it owns the data directory. It gives ready tasks to the
    /// agents of the configuration and supervises their sessions, acts on leases and
    /// heartbeats that run out, takes in what a person changes in the files of tasks,
    /// runs `ci.command` and delivers notifications.
    ///
    /// Every other command that writes is done by it: with the same output and the same
    /// exit code, and without waiting for others. Its configuration rules then; a
    /// command whose --set differs says so. Ctrl-C or SIGTERM ends it.
    ///
    /// It answers requests over HTTP at `server.listen`, and prints a link there with
    /// the administrator's token. `docs/reference/http.md` lists the routes.
    ///
    /// Example:
    ///   baton serve
    ///   baton serve --listen 127.0.0.1:8000
    ///   baton serve --set scheduler.lease_ttl=30m
    #[command(verbatim_doc_comment)]
    Serve(Serve),
    /// Make and revoke the tokens that the server asks for
    ///
    /// Every request over HTTP needs one. `baton init` makes one for the administrator,
    /// which `baton serve` prints as a link; make others for programs and people, with
    /// no more rights than they need.
    ///
    /// Example:
    ///   baton token new dashboard --scope viewer
    #[command(verbatim_doc_comment, subcommand)]
    Token(Tokens),
    /// Show the configuration and where it comes from
    ///
    /// The first of these that has a key counts: --set, its BATON_ variable,
    /// `baton.toml` in the data directory, `baton/config.toml` in XDG_CONFIG_HOME or
    /// ~/.config, what is built in. `docs/reference/config.md` lists the keys.
    ///
    /// Example:
    ///   baton config show --origin
    ///   BATON_SCHEDULER_POLL=2s baton serve
    #[command(verbatim_doc_comment, subcommand)]
    Config(Config),
    /// Check what runs after the tools of agents
    ///
    /// `hooks.json` in the data directory names commands that run after a batch of
    /// tools has changed something; `docs/reference/hooks.md` describes it. A session
    /// that finds it faulty goes on without hooks.
    ///
    /// Example:
    ///   baton hooks check
    #[command(verbatim_doc_comment, subcommand)]
    Hooks(Hooks),
    /// Check what guarded tasks have to observe
    ///
    /// `[policy]` and `[team]` of the configuration say by which rules guarded tasks
    /// are done, and by whom; `docs/reference/guarded.md` describes them.
    ///
    /// Example:
    ///   baton policy check
    #[command(verbatim_doc_comment, subcommand)]
    Policy(Policy),
    /// See which notifications could not be delivered, and try again
    ///
    /// People are told when a task comes to review, is blocked, done or given up: by
    /// `notify.command` and `notify.webhook` of the configuration.
    ///
    /// Example:
    ///   baton notify ls
    #[command(verbatim_doc_comment, subcommand)]
    Notify(Notify),
    /// Be a tool server for an agent or a person's own client (MCP)
    ///
    /// Speaks the Model Context Protocol over its standard streams, until its input
    /// ends. Each tool does what a command of Baton does: read a task, report, hand
    /// over. Where a session starts it, BATON_TASK_ID, BATON_AGENT and BATON_FENCE bind
    /// it to that session's task, and it offers nothing else. Otherwise --agent says in
    /// whose name it acts. `docs/reference/mcp.md` lists the tools.
    ///
    /// Example:
    ///   baton mcp --agent ada
    #[command(verbatim_doc_comment)]
    Mcp(Mcp),
    /// Be an agent in an editor that speaks the Agent Client Protocol (ACP)
    ///
    /// Speaks the protocol over its standard streams, until its input ends. A prompt
    /// becomes a task that an agent of the configuration works on now; its words,
    /// plan, tools and permissions stream back, and cancelling stops it. Conversations
    /// can be loaded again: the tasks know them. `docs/reference/acp.md` says how an
    /// editor is set up, and what becomes what.
    ///
    /// Example:
    ///   baton acp --agent opencode
    #[command(verbatim_doc_comment)]
    Acp(Acp),
    /// Be an agent that does what its prompt says, for trying things out
    ///
    /// Speaks the Agent Client Protocol over its standard streams. Words of the prompt
    /// choose what happens: echo, tool, write, plan, permission, crash, signal, hang,
    /// exit-signal PHASE, complete OUTCOME, slow, flood, garbage, fork, limit; without
    /// one of them it says the prompt back. `docs/reference/harnesses.md` describes
    /// them.
    ///
    /// Example:
    ///   baton mock-agent
    #[command(verbatim_doc_comment)]
    MockAgent,
    /// Explain the code of an error or of a finding
    ///
    /// Without a code it lists them all.
    ///
    /// Example:
    ///   baton explain T004
    ///   baton explain TAIL_CUT
    #[command(verbatim_doc_comment)]
    Explain(Explain),
    /// Print completions for a shell
    ///
    /// Example:
    ///   mkdir -p ~/.local/share/bash-completion/completions
    ///   baton completions bash > ~/.local/share/bash-completion/completions/baton
    #[command(verbatim_doc_comment)]
    Completions(Completions),
    /// Print the manual page
    ///
    /// With --dir it writes one page for each command instead.
    ///
    /// Example:
    ///   baton man | man -l -
    ///   baton man --dir ~/.local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// End when the story has ended, instead of serving the page with it
    #[arg(long)]
    pub(crate) no_serve: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    /// Go on with new events as they come, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Show only what comes after this position
    #[arg(long, value_name = "POS", default_value_t = 0)]
    pub(crate) since: u64,
    /// Show only events of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<EventType>,
    /// Show only events of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<Token>,
    /// Show only events of this trace
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Verify a data directory, a bundle, a segment (.jsonl), - for a bundle on standard input, or a trace by its id or its task's
    #[arg(value_name = "PATH|TRACE|TASK")]
    pub(crate) target: Option<String>,
    /// Verify a proof made by `baton trace prove`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "each", "threads"])]
    pub(crate) proof: Option<PathBuf>,
    /// Compare with a checkpoint or a trace head that you kept
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Trust only the ledger keys in this file: one `ed25519:…` per line
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: Option<PathBuf>,
    /// Treat warnings as failures
    #[arg(long)]
    pub(crate) strict: bool,
    /// Check signatures one by one instead of in batches
    #[arg(long)]
    pub(crate) each: bool,
    /// Use this many threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Rebuild the state as it was at this position
    #[arg(long, value_name = "POS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) until: Option<u64>,
}

/// `--set`, which goes with every command. Of a global argument clap keeps only what stands behind the innermost command; this one is given
/// to each command anew, so that nothing is lost.
pub(crate) fn set_flag() -> Arg {
    Arg::new("set")
        .long("set")
        .value_name("KEY=VALUE")
        .help("Use this value for a key of the configuration, such as scheduler.poll=5s; may be repeated")
        .help_heading("Global options")
        .action(ArgAction::Append)
        .value_parser(parse_setting)
}

/// Reads `section.key=value`; whether there is such a key is judged with the rest of the configuration.
fn parse_setting(text: &str) -> Result<Flag, String> {
    let (path, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as scheduler.poll=5s")?;
    Ok(Flag { flag: "--set", path: path.trim().to_owned(), value: value.trim().to_owned() })
}
