//! What can be typed about tasks, messages, exit signals and CI.

use std::path::PathBuf;
use std::time::Duration;

use baton_core::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use baton_core::task::{Phase, Priority, Status};
use baton_core::{AgentName, TaskId, Token};
use clap::{Args, Subcommand};

use crate::words::{first_phases, priorities, statuses};

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Create a task and print its id
    ///
    /// It starts in backlog; with --ready agents may take it at once. Its text is read
    /// from a file with -f, or from standard input with -f -.
    ///
    /// Example:
    ///   baton task new "Fix the login" --ready --priority high
    ///   baton task new "Fix the login" -f description.md
    #[command(verbatim_doc_comment)]
    New(TaskNew),
    /// List tasks
    ///
    /// Example:
    ///   baton task ls
    ///   baton task ls --status ready,in-progress
    #[command(verbatim_doc_comment)]
    Ls(TaskLs),
    /// Show a task with its text
    ///
    /// Example:
    ///   baton task show TASK-2026-02-09-057
    ///   baton task show 2026-02-09-057 --json
    #[command(verbatim_doc_comment)]
    Show(TaskName),
    /// Move a task to another status
    ///
    /// To the status that it has already: a success that changes nothing. Only
    /// `baton task claim` moves a task to in-progress.
    ///
    /// Example:
    ///   baton task move TASK-2026-02-09-057 ready --reason "worth doing now"
    ///   baton task move TASK-2026-02-09-057 blocked --reason "waiting for credentials"
    #[command(verbatim_doc_comment)]
    Move(TaskMove),
    /// Change a task: by flags, or in your editor
    ///
    /// Without flags the task's file is opened in VISUAL or EDITOR and then taken in,
    /// field by field. You may edit the file at any other time too.
    ///
    /// Example:
    ///   baton task edit TASK-2026-02-09-057
    ///   baton task edit TASK-2026-02-09-057 --priority critical
    #[command(verbatim_doc_comment)]
    Edit(TaskEdit),
    /// Add a line to the work log of a task
    ///
    /// Example:
    ///   baton task log TASK-2026-02-09-057 "talked to the infra team"
    #[command(verbatim_doc_comment)]
    Log(TaskLog),
    /// Let a task that was given up, or that waits, be tried again
    ///
    /// Example:
    ///   baton task retry TASK-2026-02-09-057
    #[command(verbatim_doc_comment)]
    Retry(TaskName),
    /// Let a task in review through
    ///
    /// The first approval lets it be merged, the second one makes it done; --all does
    /// both. A task that came to review by a report alone is done with one. Recorded
    /// with the signature of the operator's key.
    ///
    /// Example:
    ///   baton task approve TASK-2026-02-09-057
    ///   baton task approve TASK-2026-02-09-057 --all
    #[command(verbatim_doc_comment)]
    Approve(TaskApprove),
    /// Send a task in review back to work
    ///
    /// Example:
    ///   baton task reject TASK-2026-02-09-057 --reason "no test for the empty case"
    #[command(verbatim_doc_comment)]
    Reject(TaskReject),
    /// Take a task for an agent, and print the lease
    ///
    /// One agent holds a task at a time, and keeps it as long as it beats
    /// (`baton task beat`). The fence is a number that grows with every claim: whoever
    /// shows an older one has lost the task and is refused. Exit code 5: somebody else
    /// holds it.
    ///
    /// Example:
    ///   baton task claim TASK-2026-02-09-057 --agent swe-backend --ttl 10m
    #[command(verbatim_doc_comment)]
    Claim(TaskClaim),
    /// Say that the agent is alive, and keep the task
    ///
    /// Whoever is silent for longer than `scheduler.heartbeat_ttl` loses the task to
    /// the next one. Exit code 5: it is somebody else's by now, and so is the work.
    ///
    /// Example:
    ///   baton task beat TASK-2026-02-09-057 --agent swe-backend --fence 3
    #[command(verbatim_doc_comment)]
    Beat(TaskHolder),
    /// Give a task back without having finished it
    ///
    /// Example:
    ///   baton task release TASK-2026-02-09-057 --agent swe-backend --fence 3
    #[command(verbatim_doc_comment)]
    Release(TaskHolder),
}

#[derive(Debug, Args)]
pub(crate) struct TaskName {
    /// Name the task by its id, or by a unique beginning of it
    #[arg(value_name = "ID")]
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct TaskNew {
    /// Say in a line what is to be done
    #[arg(value_name = "TITLE")]
    pub(crate) title: String,
    /// Read the task's text from this file, or from standard input for -
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Give it this id instead of the day's next number
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<TaskId>,
    /// Offer it to this agent; a claim by hand is free to anybody
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Offer it to agents of this role; a claim by hand is free to anybody
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<AgentName>,
    /// Mark it with a word; may be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Say how soon
    #[arg(long, value_name = "PRIORITY", value_parser = priorities(), default_value = "normal")]
    pub(crate) priority: Priority,
    /// Let it wait until this task is done; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) depends_on: Vec<String>,
    /// Say which task it is a part of
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
    /// Let it be done without a review
    #[arg(long)]
    pub(crate) no_review: bool,
    /// Have it planned, reviewed and audited by agents with keys of their own
    #[arg(long)]
    pub(crate) guarded: bool,
    /// Start in this phase
    #[arg(long, value_name = "PHASE", value_parser = first_phases(), default_value = "IMPLEMENTATION")]
    pub(crate) phase: Phase,
    /// Let agents take it at once
    #[arg(long)]
    pub(crate) ready: bool,
    /// Let a lease of it last this long [default: scheduler.lease_ttl]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease_ttl: Option<Duration>,
    /// Take its agent for dead after this long without a beat [default: scheduler.heartbeat_ttl]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) heartbeat_ttl: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskLs {
    /// Show only tasks of this status; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = statuses(), value_delimiter = ',')]
    pub(crate) status: Vec<Status>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskMove {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Name the status
    #[arg(value_name = "STATUS", value_parser = statuses())]
    pub(crate) status: Status,
    /// Say why
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct TaskEdit {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Give it another title
    #[arg(long, value_name = "TITLE")]
    pub(crate) title: Option<String>,
    /// Give it another priority
    #[arg(long, value_name = "PRIORITY", value_parser = priorities())]
    pub(crate) priority: Option<Priority>,
    /// Offer it to this agent; a claim by hand is free to anybody
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Replace its text by this file's, or by standard input for -
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Let it wait for these tasks instead of the ones before
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub(crate) depends_on: Option<Vec<String>>,
    /// Do not open an editor; take in what was saved in the file
    #[arg(long)]
    pub(crate) no_editor: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskLog {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Say what happened
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
pub(crate) struct TaskApprove {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Let it through every phase that is left
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskReject {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Say what is missing
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct TaskClaim {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Take it for this agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: AgentName,
    /// Hold it for this long, such as 90s or 10m [default: scheduler.lease_ttl]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskHolder {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Name the agent that holds it
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: AgentName,
    /// Show the fence that the claim gave
    #[arg(long, value_name = "N")]
    pub(crate) fence: u64,
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let time = crate::config::parse_duration(text).ok_or("expected a time such as 90s, 10m or 1h30m")?;
    match i64::try_from(time.as_millis()).unwrap_or(i64::MAX) {
        ..LEASE_MS_MIN => Err("expected at least 1s".into()),
        LEASE_MS_MIN..=LEASE_MS_MAX => Ok(time),
        _ => Err("expected at most 7d".into()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Read the message from this file, or from standard input for -
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExitSignal {
    /// Check an exit signal without submitting it
    ///
    /// Example:
    ///   baton exit check signal.json
    #[command(verbatim_doc_comment)]
    Check(ExitCheck),
    /// Submit the exit signal of whoever holds a task
    ///
    /// The phase ends, the lease is released, and a fresh agent may take the next
    /// phase. Sent again, it is answered in the same way and changes nothing. An agent
    /// shows its name and its fence, so that a signal that comes too late does not end
    /// somebody else's work.
    ///
    /// Example:
    ///   baton exit submit --task TASK-2026-02-09-057 --agent ada --fence 3 signal.json
    #[command(verbatim_doc_comment)]
    Submit(ExitSubmit),
}

#[derive(Debug, Args)]
pub(crate) struct ExitCheck {
    /// Read the signal from this file, or from standard input for -
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ExitSubmit {
    /// Name the task by its id, or by a unique beginning of it
    #[arg(long, value_name = "ID")]
    pub(crate) task: String,
    /// Name the session that ends, where one of Baton's own works on the task
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<Token>,
    /// Say for which agent: it must hold the task
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Show the fence that the claim gave: an older one is refused
    #[arg(long, value_name = "N")]
    pub(crate) fence: Option<u64>,
    /// Read the signal from this file, or from standard input for -
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Ci {
    /// Report what CI found about a task that waits for it (CI_PENDING)
    ///
    /// Example:
    ///   baton ci report TASK-2026-02-09-057 --failed --log build.log
    #[command(verbatim_doc_comment)]
    Report(CiReport),
}

#[derive(Debug, Args)]
pub(crate) struct CiReport {
    #[command(flatten)]
    pub(crate) name: TaskName,
    #[command(flatten)]
    pub(crate) verdict: CiResult,
    /// Keep this output as evidence
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct CiResult {
    /// Everything passed
    #[arg(long)]
    pub(crate) passed: bool,
    /// Something failed
    #[arg(long)]
    pub(crate) failed: bool,
}
