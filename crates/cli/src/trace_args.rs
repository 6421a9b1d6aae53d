//! What can be typed about traces.

use std::path::PathBuf;

use baton_core::{AgentName, Role};
use clap::{Args, Subcommand};

use crate::words::roles;

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Start a trace and print its id
    ///
    /// Example:
    ///   baton trace new --title "Fix the login"
    #[command(verbatim_doc_comment)]
    New(TraceNew),
    /// List the traces
    ///
    /// Example:
    ///   baton trace ls --json
    #[command(verbatim_doc_comment)]
    Ls,
    /// Show the events of a trace
    ///
    /// A guarded run is told as a story; --json gives its records.
    ///
    /// Example:
    ///   baton trace show trc_0192f0c1 --json
    ///   baton trace show TASK-2026-02-09-057
    #[command(verbatim_doc_comment)]
    Show(TraceOrTask),
    /// Append events to a trace
    ///
    /// Takes one event, a JSON array (one decision: all or nothing), or one event per
    /// line (each its own decision), and prints each record once it is on the disk.
    /// Members of an event:
    ///   type, payload, artifacts, seen, task, run, session, fence, id, at,
    ///   actor, sig, trace, v
    /// Only `type` is needed; `trace` and `v`, where given, say the trace named here
    /// and 1. An artifact is {"path"} of a file to store, or the {"sha256", "bytes",
    /// "media_type", "name"} of one that is stored. Signed with the agent's key; an
    /// event that already has `sig` is checked and taken as it is. Only an agent that
    /// never had a key may do without, for types that need no signature.
    ///
    /// Example:
    ///   baton trace append trc_0192f0c1 --agent me events.jsonl
    ///   echo '{"type":"note"}' | baton trace append trc_0192f0c1 --agent me
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
    /// Two exports at the same size of the ledger are equal to the byte. With --format
    /// in-toto it is an attestation in each line instead: one for each claim and each
    /// final statement, about the artifacts that are its evidence, signed with the
    /// ledger's key, for tools that read in-toto statements in DSSE envelopes.
    ///
    /// Example:
    ///   baton trace export trc_0192f0c1 -o login.bundle
    ///   baton trace export trc_0192f0c1 --format in-toto -o login.intoto.jsonl
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
    /// Review a proposal, an intent or a claim of a trace as a critic
    ///
    /// Signed with the operator's key. Approving says `approved`; blocking says
    /// `rejected` of a proposal, `blocked` of an intent. The reason is its rationale.
    ///
    /// Example:
    ///   baton trace review trc_0192f0c1 p1 approve --reason "small and tested"
    ///   baton trace review trc_0192f0c1 i7 block --reason "it deletes data"
    #[command(verbatim_doc_comment)]
    Review(TraceReview),
    /// Abort the work of a trace, which ends it
    ///
    /// Whoever aborts must have seen the last event. With --seen that is the one named,
    /// and if the trace has moved on since, nothing is recorded.
    ///
    /// Example:
    ///   baton trace abort trc_0192f0c1 --reason "superseded"
    #[command(verbatim_doc_comment)]
    Abort(TraceAbort),
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
pub(crate) struct TraceOrTask {
    /// Name the trace by its id or by its task's, or by a unique beginning of it
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
    #[arg(long, value_name = "ROLE", value_parser = roles())]
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

impl TraceProve {
    /// Whether the old checkpoint is in a file.
    pub(crate) fn names_file(&self) -> bool {
        self.consistency.as_ref().is_some_and(|old| old.parse::<u64>().is_err())
    }
}

#[derive(Debug, Args)]
pub(crate) struct TraceExport {
    #[command(flatten)]
    pub(crate) id: TraceOrTask,
    /// Write to this file, or to standard output for -
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Say what to write: all that verifies the trace, or its attestations
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Bundle)]
    pub(crate) format: Format,
    /// Leave the artifacts out; only their hashes are in the bundle then
    #[arg(long)]
    pub(crate) no_artifacts: bool,
}

/// What an export holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Bundle,
    InToto,
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

#[derive(Debug, Args)]
pub(crate) struct TraceReview {
    #[command(flatten)]
    pub(crate) id: TraceId,
    /// Name what is reviewed: the proposal_id, intent_id or claim_id of an event of the trace; to
    /// block a claim is to challenge it
    #[arg(value_name = "PROPOSAL|INTENT|CLAIM")]
    pub(crate) subject: String,
    /// Say what is thought of it
    #[arg(value_name = "VERDICT")]
    pub(crate) verdict: Verdict,
    /// Say why
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: String,
}

/// What a person says of a proposal or of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Verdict {
    Approve,
    Block,
}

impl Verdict {
    pub(crate) fn done(self) -> &'static str {
        match self {
            Verdict::Approve => "approved",
            Verdict::Block => "blocked",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct TraceAbort {
    #[command(flatten)]
    pub(crate) id: TraceId,
    /// Say why
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: String,
    /// Refuse if this is not the number of the trace's last event any more [default: whatever it is]
    #[arg(long, value_name = "SEQ")]
    pub(crate) seen: Option<u64>,
}
