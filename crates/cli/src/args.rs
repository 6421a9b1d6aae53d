//! What can be typed. The doc comment of a command is its help: one imperative line, then prose and an example before the flags.

use std::path::PathBuf;

use baton_core::{AgentName, EventType, Role, Token};
use clap::{Arg, ArgAction, Args, Parser, Subcommand};

use crate::config::Flag;
use crate::task_args::{Ci, ExitSignal, Send, Task};
use crate::ui::color::When;

/// Hand work from one coding agent to the next, and prove what happened
///
/// `baton` alone says where you stand and what to type next.
///
/// Example:
///   baton init
///   baton task new "Fix the login" --ready
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
    /// Makes `.baton` (or --data-dir) with an empty ledger, a key that signs for it, and a
    /// `baton.toml` that names the agent programs found on PATH. The private key is kept outside,
    /// in the state directory: BATON_STATE_DIR, else `baton` in XDG_STATE_HOME or ~/.local/state.
    ///
    /// Example:
    ///   baton init
    #[command(verbatim_doc_comment)]
    Init,
    /// Show the life of a task in a throw-away directory
    ///
    /// A task is created, claimed, handed over in part, and passes CI and review; two other agents die
    /// and their tasks are recovered; then the trace is verified and one event proved. Every command is
    /// run by real processes and shown with what it prints. Nothing is left behind.
    ///
    /// Example:
    ///   baton demo
    #[command(verbatim_doc_comment)]
    Demo(Demo),
    /// Create tasks, take them, move them, approve them
    ///
    /// A task is a Markdown file in the data directory that you can read and edit; what happened to it is in
    /// the ledger. Any unique beginning of an id will do, with or without `TASK-`.
    ///
    /// Example:
    ///   baton task new "Fix the login" --ready
    ///   baton task ls
    #[command(verbatim_doc_comment, subcommand)]
    Task(Task),
    /// Route one AOF/1 message of an agent
    ///
    /// Prints whether it was accepted, and if not why. Exit code 4: it was refused.
    ///
    /// Example:
    ///   baton send report.json
    #[command(verbatim_doc_comment)]
    Send(Send),
    /// Check or submit the signal with which an agent ends a phase
    ///
    /// Off unless AGENT_EXIT_PROTOCOL_ENABLED is true, 1 or yes.
    ///
    /// Example:
    ///   baton exit submit --task TASK-2026-02-09-057 signal.json
    #[command(verbatim_doc_comment, subcommand)]
    Exit(ExitSignal),
    /// Report what CI found about a task
    ///
    /// Example:
    ///   baton ci report TASK-2026-02-09-057 --passed
    #[command(verbatim_doc_comment, subcommand)]
    Ci(Ci),
    /// Write and read traces: the record of one piece of work
    ///
    /// Any unique beginning of an id will do, with or without `trc_` and `evt_`.
    ///
    /// Example:
    ///   TRACE=$(baton trace new --title "Fix the login")
    ///   echo '{"type":"note","payload":{"text":"started"}}' | baton trace append $TRACE --agent me
    #[command(verbatim_doc_comment, subcommand)]
    Trace(Trace),
    /// Manage the keys that agents sign with
    ///
    /// Example:
    ///   baton agent key planner-1 --role planner
    #[command(verbatim_doc_comment, subcommand)]
    Agent(Agent),
    /// Show the ledger's events in order, and follow new ones
    ///
    /// With --json each line is the record exactly as it is stored.
    ///
    /// Example:
    ///   baton events --follow --type note
    #[command(verbatim_doc_comment)]
    Events(Events),
    /// Verify a ledger, a trace, a bundle or a proof, offline
    ///
    /// Needs nothing but the bytes and writes nothing. Without a target it verifies the data
    /// directory in use. A checkpoint and a key that you kept elsewhere show what the input alone
    /// cannot: that its end is not cut off, and that it is the ledger you know.
    ///
    /// Exit code 0: it passes (warnings are printed). 7: it fails. 8: it cannot be told.
    ///
    /// Example:
    ///   baton verify .baton --checkpoint kept.txt --trust keys.txt
    ///   baton verify trace.bundle
    ///   baton verify --proof event.proof
    #[command(verbatim_doc_comment)]
    Verify(Verify),
    /// Rebuild the state from the ledger and compare it with the live one
    ///
    /// Reads every event from the first on and takes no lock. Exit code 7 where they differ.
    ///
    /// Example:
    ///   baton replay --until 1000
    #[command(verbatim_doc_comment)]
    Replay(Replay),
    /// Check the installation, and mend what can be mended
    ///
    /// Each line is a verdict; what can be done about it stands below it. Whether events were altered
    /// is not looked at here: `baton verify` reads all of them. Exit code 1 if anything fails.
    ///
    /// Example:
    ///   baton doctor --fix
    #[command(verbatim_doc_comment)]
    Doctor(Doctor),
    /// Own the data directory, do what is due, and take other commands
    ///
    /// As long as it runs, every command that writes is done by it: with the same output and the same
    /// exit code, and without waiting for others. Leases and heartbeats that run out are acted on, and
    /// what a person changes in the files of tasks is taken in. Ctrl-C or SIGTERM ends it.
    ///
    /// Example:
    ///   baton serve
    #[command(verbatim_doc_comment)]
    Serve(Serve),
    /// Show the configuration and where it comes from
    ///
    /// A flag comes before a BATON_ variable, that before `baton.toml` in the data directory, that before
    /// `baton/config.toml` in XDG_CONFIG_HOME or ~/.config, that before what is built in.
    ///
    /// Example:
    ///   baton config show --origin
    #[command(verbatim_doc_comment, subcommand)]
    Config(Config),
    /// See which notifications could not be delivered, and try again
    ///
    /// People are told when a task comes to review, is blocked, done or given up: by `notify.command` and
    /// `notify.webhook` of the configuration.
    ///
    /// Example:
    ///   baton notify ls
    #[command(verbatim_doc_comment, subcommand)]
    Notify(Notify),
    /// Explain the code of an error or of a finding
    ///
    /// Without a code it lists them all.
    ///
    /// Example:
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
    /// End when the story has ended; this version always does
    #[arg(long)]
    pub(crate) no_serve: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Start a trace and print its id
    ///
    /// Example:
    ///   baton trace new --title "Fix the login"
    #[command(verbatim_doc_comment)]
    New(TraceNew),
    /// List the traces
    #[command(verbatim_doc_comment)]
    Ls,
    /// Show the events of a trace
    ///
    /// Example:
    ///   baton trace show trc_0192f0c1 --json
    #[command(verbatim_doc_comment)]
    Show(TraceId),
    /// Append events to a trace
    ///
    /// Takes one event, a JSON array (one decision: all or nothing), or one event per line (each its own
    /// decision), and prints each record once it is durable. Members of an event:
    ///   type, payload, artifacts, seen, task, run, session, fence, id, at, actor, sig, trace, v
    /// Only `type` is needed; `trace` and `v`, where given, say the trace named here and 1. An artifact
    /// is {"path"} of a file to store, or the {"sha256", "bytes", "media_type", "name"} of one that is
    /// stored. Signed with the agent's key; an event that already has `sig` is checked and taken as it
    /// is. Only an agent that never had a key may do without, for types that need no signature.
    ///
    /// Example:
    ///   echo '{"type":"note","payload":{"text":"started"}}' | baton trace append trc_0192f0c1 --agent me
    #[command(verbatim_doc_comment)]
    Append(TraceAppend),
    /// Prove that an event is in the ledger, or that the ledger only grew
    ///
    /// Prints a proof that `baton verify --proof` checks with nothing else at hand.
    ///
    /// Example:
    ///   baton trace prove evt_0192f0c1 > event.proof
    ///   baton trace prove --consistency kept.txt > growth.proof
    #[command(verbatim_doc_comment)]
    Prove(TraceProve),
    /// Write a trace with all that verifies it into one file
    ///
    /// Two exports at the same size of the ledger are equal to the byte.
    ///
    /// Example:
    ///   baton trace export trc_0192f0c1 -o login.bundle
    #[command(verbatim_doc_comment)]
    Export(TraceExport),
    /// Sign the present head of the ledger, or of one trace, and print it
    ///
    /// Whoever keeps a copy can later show that the history was rewritten or cut.
    ///
    /// Example:
    ///   baton trace checkpoint > kept.txt
    #[command(verbatim_doc_comment)]
    Checkpoint(TraceCheckpoint),
    /// End a trace: nothing can be appended to it afterwards
    ///
    /// Example:
    ///   baton trace close trc_0192f0c1 --reason "merged"
    #[command(verbatim_doc_comment)]
    Close(TraceClose),
}

#[derive(Debug, Args)]
pub(crate) struct TraceNew {
    /// Say in a line what the work is
    #[arg(long, value_name = "TITLE")]
    pub(crate) title: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TraceId {
    /// Name the trace by its id, or by a unique beginning of it
    #[arg(value_name = "ID")]
    pub(crate) trace: String,
}

#[derive(Debug, Args)]
pub(crate) struct TraceAppend {
    #[command(flatten)]
    pub(crate) id: TraceId,
    /// Read events from this file, or from standard input for -
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// Act as this agent [default: operator]
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Act in this role [default: what the event's type requires if the agent's key has it, else the
    /// first role of its key; without a key executor, for the operator operator]
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<Role>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TraceProve {
    /// Name the event by its id, or by a unique beginning of it
    #[arg(value_name = "EVENT")]
    pub(crate) event: Option<String>,
    /// Prove growth since this checkpoint: a file with one, or a number of events
    #[arg(long, value_name = "OLD")]
    pub(crate) consistency: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TraceExport {
    #[command(flatten)]
    pub(crate) id: TraceId,
    /// Write the bundle to this file, or to standard output for -
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Leave the artifacts out; only their hashes are in the bundle then
    #[arg(long)]
    pub(crate) no_artifacts: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceCheckpoint {
    /// Sign the head of this trace instead of the whole ledger's
    #[arg(value_name = "ID")]
    pub(crate) trace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TraceClose {
    #[command(flatten)]
    pub(crate) id: TraceId,
    /// Say why the trace ends
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Make, show, rotate or revoke the key of an agent
    ///
    /// Makes a key where the agent has none, and shows it otherwise. The private half is kept in the
    /// state directory (BATON_STATE_DIR; `baton init --help` tells more). With --public the agent keeps
    /// its private key to itself and only the public half is registered. What was signed before a
    /// rotation or a revocation stays valid; what is signed afterwards is refused.
    ///
    /// Example:
    ///   baton agent key planner-1 --role planner
    ///   baton agent key planner-1 --revoke --reason "laptop lost"
    #[command(verbatim_doc_comment)]
    Key(AgentKey),
}

#[derive(Debug, Args)]
pub(crate) struct AgentKey {
    /// Name the agent
    #[arg(value_name = "AGENT")]
    pub(crate) agent: AgentName,
    /// Allow the key to sign in this role; may be repeated [default: executor]
    #[arg(long, value_name = "ROLE", value_delimiter = ',')]
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
    /// Verify a data directory, a bundle, a segment (.jsonl), - for a bundle on standard input, or a trace by its id
    #[arg(value_name = "PATH|TRACE")]
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

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Start no agents by itself
    #[arg(long)]
    pub(crate) no_dispatch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Mend what can be mended: torn tail, index, permissions of keys
    #[arg(long)]
    pub(crate) fix: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Notify {
    /// List what was given up
    #[command(verbatim_doc_comment)]
    Ls,
    /// Try what was given up again
    #[command(verbatim_doc_comment)]
    Retry,
    /// Deliver what waits, and end
    ///
    /// Done by itself after every command that moved a task, and by `baton serve`.
    /// Of several at once, one sends each.
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
    /// Works without a data directory too; what is set there is missing then. Passwords are masked.
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

/// `--set`, which goes with every command. Of a global argument clap keeps only what stands behind the innermost command; this one is given
/// to each command anew, so that nothing is lost.
pub(crate) fn set_flag() -> Arg {
    Arg::new("set")
        .long("set")
        .value_name("KEY=VALUE")
        .help("Use this value for a key of the configuration; may be repeated")
        .help_heading("Global options")
        .action(ArgAction::Append)
        .value_parser(parse_setting)
}

/// Reads `section.key=value`; whether there is such a key is judged with the rest of the configuration.
fn parse_setting(text: &str) -> Result<Flag, String> {
    let (path, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as scheduler.poll=5s")?;
    Ok(Flag { flag: "--set", path: path.trim().to_owned(), value: value.trim().to_owned() })
}
