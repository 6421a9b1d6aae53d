//! Bounds of the command line itself, each with its unit and its reason. Those of the ledger are in `baton_core::limits`.

use std::time::Duration;

use baton_core::limits::LINE_BYTES_MAX;

/// Longest line of input that `trace append` reads. An event is smaller once it is stored: this leaves room for every character of it to be
/// written as an escape.
pub(crate) const INPUT_LINE_BYTES_MAX: usize = 6 * LINE_BYTES_MAX;

/// Longest title of a trace, in characters.
pub(crate) const TITLE_CHARS_MAX: usize = 200;

/// Longest reason for ending a trace or a key, in characters.
pub(crate) const REASON_CHARS_MAX: usize = 512;

/// Candidates that an error lists when an id is ambiguous.
pub(crate) const CANDIDATES_MAX: usize = 8;

/// Lines that are read at once from a journal through its index; each may be as long as a record.
pub(crate) const READ_LINES: usize = 64;

/// How often something that looks broken beside a live writer is looked at again before it is believed.
pub(crate) const LIVE_RETRIES: u32 = 5;

/// Pause between two such looks, in milliseconds.
pub(crate) const LIVE_RETRY_MS: u64 = 50;

/// How often `events --follow` looks for more, in milliseconds.
pub(crate) const FOLLOW_POLL_MS: u64 = 100;

/// How long `trace append` keeps the data directory to itself while more input is waiting, in milliseconds. Short beside the time that others
/// wait for it, long beside opening it anew.
pub(crate) const HOLD_MS_MAX: u64 = 250;

/// Longest text that a setting takes, in characters: a command line fits, a file does not.
pub(crate) const SETTING_CHARS_MAX: usize = 4096;

/// Most items of a list or a table in the configuration.
pub(crate) const SETTING_ITEMS_MAX: usize = 256;

/// Free space below which `doctor` warns, in bytes.
pub(crate) const DISK_FREE_MIN: u64 = 100 << 20;

/// How often an append is made anew when the register of keys moved on meanwhile.
pub(crate) const DECISIONS_MAX: u32 = 16;

/// Longest command that is handed over to the owner of the data directory, in bytes: arguments and environment.
pub(crate) const CALL_BYTES_MAX: usize = 1 << 20;

/// Commands that an owner takes at once; more wait until one of them ends.
pub(crate) const CALLS_MAX: usize = 256;

/// Commands that one session's processes have done at once. More than an agent needs, and few beside those of all.
pub(crate) const AGENT_CALLS_MAX: usize = 16;

/// How long a caller may take to say what it wants, and at least how long it waits for the owner to begin, in milliseconds.
pub(crate) const CALL_READ_MS: u64 = 5_000;

/// How often a held lock makes one look for its owner's socket, in milliseconds.
pub(crate) const SOCKET_RETRY_MS: u64 = 50;

/// How often a command is begun anew because the owner ended before it took it.
pub(crate) const HAND_OVERS_MAX: u32 = 8;

/// How long an owner that ends waits for the commands that it has taken, in milliseconds.
pub(crate) const DRAIN_MS_MAX: u64 = 5_000;

/// Longest path of a socket, in bytes; the system's own bound is 107.
pub(crate) const SOCKET_PATH_BYTES_MAX: usize = 100;

/// How long a caller waits for room in the queue of an owner's socket before it tries again, in milliseconds.
pub(crate) const CONNECT_MS_MAX: u64 = 1_000;

/// Descriptors that an owner may have open: its own, and five for each command at most.
pub(crate) const OWNER_FDS: u64 = 4_096;

/// Lines that are read at once when what happened to tasks is looked for.
pub(crate) const NOTABLE_LINES: usize = 1024;

/// Most that is told of what happened while nobody was there to tell; of more, the newest.
pub(crate) const MISSED_MAX: usize = 1000;

/// How long a turn to tell is waited for; each is a moment.
pub(crate) const TELLING_WAIT: Duration = Duration::from_secs(30);

/// How long a server that starts waits for it. What it has to tell it tells later; whoever waits for the server does not wait for that.
pub(crate) const TELLING_START_WAIT: Duration = Duration::from_secs(1);

/// How often a turn that another process has is tried again: the system says nothing when a name becomes free.
pub(crate) const TELLING_RETRY: Duration = Duration::from_millis(5);

/// How long a process that only tells stays.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(120);

/// How long a server that ends waits for deliveries that are under way; the rest is kept.
pub(crate) const TOLD_WAIT: Duration = Duration::from_secs(2);

/// How often a server looks for checks to run, whatever nobody told it of.
pub(crate) const CHECKS_POLL: Duration = Duration::from_secs(5);

/// How often what lies in the way is looked for anew after it was moved aside. Directories of Baton's own are two deep; what comes back more often is
/// put there by somebody.
pub(crate) const CLEAR_ROUNDS_MAX: usize = 8;

/// How long is waited at the end for threads that have done their work.
pub(crate) const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Longest answer that is typed to a question, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Lines that are typed to a session and wait until it is ready; what is typed beyond that is lost.
pub(crate) const WORDS_WAITING_MAX: usize = 16;

/// Longest line that a program says to the run that it drives, in bytes: the longest text of a task fits, however it is escaped.
pub(crate) const DRIVEN_LINE_BYTES_MAX: usize = 1 << 20;

/// Errors of a session that are shown; the ledger has all.
pub(crate) const ERRORS_SHOWN_MAX: usize = 50;

/// Longest piece of a transcript that is read, in bytes: an output of a tool fits, however it is escaped. What is longer is left out, and that is said.
pub(crate) const TRANSCRIPT_LINE_BYTES_MAX: usize = 16 << 20;

/// Lines of a tool's or a hook's output that are shown in a transcript.
pub(crate) const TRANSCRIPT_OUTPUT_LINES: usize = 20;

/// Largest summary of a run that is read to be shown, in bytes; of a larger one its place is said.
pub(crate) const SUMMARY_BYTES_MAX: u64 = 64 << 10;

/// Characters of its first line that are shown.
pub(crate) const SUMMARY_CHARS: usize = 160;

/// How long an agent's question waits for a person; the session itself gives up a little earlier.
pub(crate) const QUESTION_WAIT: Duration = Duration::from_secs(11 * 60);

/// How long a server that a command starts may take until it takes commands.
pub(crate) const SERVE_START_WAIT: Duration = Duration::from_secs(10);

/// Longest message of a client of `baton mcp`, in bytes: the longest text of a task fits, however it is escaped. What is longer is refused.
pub(crate) const MCP_LINE_BYTES_MAX: usize = 16 << 20;

/// Messages of a client that wait to be looked at. Beyond that it is held back.
pub(crate) const MCP_WAITING_MAX: usize = 64;

/// Commands that `baton mcp` runs at once; further calls wait for their turn.
pub(crate) const MCP_CALLS_MAX: usize = 8;

/// Questions to people that wait at once in one `baton mcp`. They have places of their own, so that they hold up nothing else.
pub(crate) const MCP_QUESTIONS_MAX: usize = 4;

/// How long a command of a tool may take. Longer than the wait for the owner's lock, shorter than the patience of clients.
pub(crate) const MCP_CALL_WAIT: Duration = Duration::from_secs(60);

/// How long a question to a person waits, and a moment for its command to say that nobody answered.
pub(crate) const MCP_QUESTION_WAIT: Duration = Duration::from_secs(10 * 60 + 15);

/// Most that a command of a tool may print, in bytes. A list of some ten thousand tasks fits.
pub(crate) const MCP_OUTPUT_BYTES_MAX: u64 = 32 << 20;

/// Fences that `baton mcp` remembers of the claims that were made through it.
pub(crate) const MCP_FENCES_MAX: usize = 256;

/// Longest summary of a completion and longest question to a person, in characters.
pub(crate) const MCP_SUMMARY_CHARS_MAX: usize = 32_000;
pub(crate) const MCP_QUESTION_CHARS_MAX: usize = 4_000;

/// Longest message of an editor to `baton acp`, in bytes: a prompt with files in it fits, also where it is too long to be a task, so that this can be said.
pub(crate) const ACP_LINE_BYTES_MAX: usize = 16 << 20;

/// Messages from and to an editor that wait. Beyond that whoever sends is held back.
pub(crate) const ACP_WAITING_MAX: usize = 64;

/// Sessions that an editor may have open in one `baton acp`.
pub(crate) const ACP_SESSIONS_MAX: usize = 256;

/// What `baton acp` does at once: prompts, and conversations that are looked for. Each is a process or two.
pub(crate) const ACP_WORK_MAX: usize = 32;

/// Longest prompt of an editor, in bytes. A task's text fits, with room for what was said before.
pub(crate) const ACP_PROMPT_BYTES_MAX: usize = 112 << 10;

/// What is kept of a conversation for the next prompt in it, in bytes: its end.
pub(crate) const ACP_HISTORY_BYTES_MAX: usize = 12 << 10;

/// Longest event of a run that is told to an editor, in bytes: an output of a tool fits, however it is escaped. What is longer is left out.
pub(crate) const ACP_EVENT_BYTES_MAX: usize = 16 << 20;

/// What is kept of a run's standard error, in bytes; its last line says why it did not begin.
pub(crate) const ACP_STDERR_BYTES_MAX: usize = 64 << 10;

/// How long a command that reads or moves tasks for an editor may take.
pub(crate) const ACP_CALL_WAIT: Duration = Duration::from_secs(60);

/// How long a run that is to stop may take. Longer than the grace that agents have.
pub(crate) const ACP_STOP_WAIT: Duration = Duration::from_secs(20);

/// How long a process of ours may take to end once its work is done.
pub(crate) const ACP_END_WAIT: Duration = Duration::from_secs(10);

/// Tasks that `list_ready` gives where nothing else is asked for, and at most.
pub(crate) const MCP_LIST_DEFAULT: u64 = 20;
pub(crate) const MCP_LIST_MAX: u64 = 100;

/// How long a server elsewhere may take to answer at first.
pub(crate) const REMOTE_WAIT: Duration = Duration::from_secs(10);

/// A piece of what a command reads or prints, on its way to or from a server elsewhere.
pub(crate) const REMOTE_PIECE_BYTES: usize = 128 << 10;

/// What a tool server over HTTP may have said that was not read yet.
pub(crate) const MCP_STREAM_BYTES: usize = 256 << 10;
