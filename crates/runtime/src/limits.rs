//! Bounds of what Baton does by itself, each with its unit and its reason. Those of the ledger and of messages are in `baton_core::limits`.

use std::time::Duration;

/// Longest line of an agent, in bytes. A message with a large file in it fits; what is longer is no message.
pub const AGENT_LINE_BYTES_MAX: usize = 8 << 20;

/// Most values in one message: each takes many times its bytes once it is read.
pub const AGENT_VALUES_MAX: usize = 100_000;

/// Requests of an agent that wait for an answer at the same time, by number and by bytes: more than the permissions and terminals that it may have.
pub const OPEN_REQUESTS_MAX: usize = 256;
pub const OPEN_REQUESTS_BYTES_MAX: usize = 8 << 20;

/// Bytes of answers that are being made for one agent at the same time, and that it has not read yet: beyond that it is not heard until it has.
pub const ANSWERS_BYTES_MAX: usize = 4 << 20;
pub const AGENT_UNREAD_BYTES_MAX: usize = 1 << 20;

/// Bytes of a file that an agent is answered with at once: written as JSON it may be six times as long, and still waits to be read as a whole.
pub const FILE_ANSWER_BYTES_MAX: usize = 2 << 20;

/// Bytes of something unknown that an agent said which are kept.
pub const UNKNOWN_BYTES_MAX: usize = 4096;

/// What is read of an agent at once, in bytes: each session has a place for it, and a larger one would not make it faster.
pub const AGENT_READ_BYTES: usize = 16 << 10;

/// Bytes that wait to be read by an agent. One that lets more pile up is stuck.
pub const AGENT_QUEUE_BYTES_MAX: usize = 16 << 20;

/// Bytes of what an agent writes beside its protocol, in each of two files.
pub const STDERR_FILE_BYTES_MAX: u64 = 8 << 20;

/// Between the end of an agent's output and its own end: what dies closes its output first. With the next two it is less than a second.
pub const CLOSED_GRACE: Duration = Duration::from_millis(300);

/// Between the request to end and the end, for an agent that is ended for what it did, since a hang is answered within a second of its deadline; and for what runs when its
/// session has ended.
pub const SHORT_GRACE: Duration = Duration::from_millis(300);

/// What an agent said last in its turn, in bytes: a command that fails says there why.
pub const SAID_TAIL_BYTES: usize = 512;

/// Between the word of a command that its turn is over and its end.
pub const EXEC_EXIT_GRACE: Duration = Duration::from_secs(10);

/// What a session said last that is kept for whoever follows: by number, and by size in bytes.
pub const FEED_ITEMS_MAX: usize = 2048;
pub const FEED_BYTES_MAX: usize = 384 << 10;

/// Bytes of a name or title that an agent gives, and of a message of its: what events hold and people read.
pub const TOLD_NAME_BYTES_MAX: usize = 512;
pub const TOLD_MESSAGE_BYTES_MAX: usize = 8 << 10;

/// Bytes of what an agent's own tool gave that are passed on, and of why it says no.
pub const TOLD_OUTPUT_BYTES_MAX: usize = 256 << 10;
pub const TOLD_ERROR_BYTES_MAX: usize = 4 << 10;

/// Bytes and depth of a value that an agent gives: what it used, what it calls a tool with.
pub const TOLD_VALUE_BYTES_MAX: usize = 16 << 10;
pub const TOLD_DEPTH_MAX: usize = 16;

/// Tools of one turn of an agent that are recorded, and what it may ask for at the same time.
pub const TURN_TOOLS_MAX: usize = 500;
pub const PERMISSIONS_MAX: usize = 64;

/// Names that one call of a guarded session may be given, and inputs.
pub const CALL_NAMES_MAX: usize = 16;

/// Bytes of a line of the protocol that are kept as they are: a file that an agent sends is in the workspace.
pub const WIRE_LINE_BYTES_MAX: usize = 64 << 10;

/// Largest file that says who a session is, in bytes: the ends of its errors are in it.
pub const SNAPSHOT_BYTES_MAX: u64 = 4 << 20;

/// What waits in a session's mailbox. Beyond that an agent is held back. Full of the longest outputs of tools it holds 16 MiB.
pub const MAILBOX_MAX: usize = 64;

/// Largest transcript, in bytes. What an agent says beyond that is seen and not kept.
pub const TRANSCRIPT_BYTES_MAX: u64 = 64 << 20;

/// Longest part of what an agent says that goes through the mailbox at once, in bytes: what is told at once is shown at once.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// What of a piece of the transcript is only in memory: by size in bytes, and by time. More than that does not get lost with Baton.
pub const PIECE_BYTES_MAX: usize = 64 << 10;
pub const PIECE_WAIT: Duration = Duration::from_secs(1);

/// First bytes of a command's output that are kept in memory: what it started with.
pub const OUTPUT_HEAD_BYTES: usize = 16 << 10;

/// Last bytes of a command's output that are kept in memory: why it failed is usually there.
pub const OUTPUT_TAIL_BYTES: usize = 48 << 10;

/// Bytes of a command's output that are kept whole in a file. A build that prints more has a loop in it.
pub const OUTPUT_FILE_BYTES_MAX: u64 = 64 << 20;

/// Between the request to end and the end, for a process group. Long enough to write a report, short beside any deadline.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// How long the output of a command that has ended is waited for while something else still holds it: `tee` has finished by then.
pub const SETTLE: Duration = Duration::from_secs(1);

/// Bytes of an agent's output that are read after its end: as much as a pipe holds. What comes after that is not its own.
pub const LAST_WORDS_BYTES_MAX: usize = 64 << 10;

/// How long what is left in the pipe is read after the kill.
pub const DRAIN: Duration = Duration::from_millis(200);

/// How long is waited for the end of what was killed. Only a process that hangs inside the kernel takes longer.
pub const KILLED_WAIT: Duration = Duration::from_secs(1);

/// Most bytes of a process's environment that are looked at; the kernel gives a process about that much for it and its arguments.
pub const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// What a process that outlives its session gets to end by itself, and one that outlived Baton.
pub const LEFTOVERS_GRACE: Duration = Duration::from_millis(500);
pub const OUTLIVED_GRACE: Duration = Duration::from_secs(2);

/// Sessions that are looked at for one that can be gone on with: the task's last one is among the newest.
pub const SESSIONS_LOOKED_AT: usize = 256;

/// How much longer than its request a model's session waits: a server may ask for as much before another attempt.
pub const LLM_SLACK: Duration = Duration::from_secs(60);

/// How long git may take to make a worktree or to remove one: all of its files are written.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Files of a task's changes that are shown. More are for other tools.
pub const CHANGED_FILES_MAX: usize = 500;

/// Bytes of git's list of them, and of all patches together; and of one patch: what is longer nobody reads on a screen.
pub const CHANGES_LIST_BYTES_MAX: usize = 1 << 20;
pub const CHANGES_BYTES_MAX: usize = 4 << 20;
pub const PATCH_BYTES_MAX: usize = 256 << 10;

/// How long any other call of git for a worktree may take. Whoever hands out work waits for some of them.
pub const GIT_LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a task is not handed out again after its worktree could not be made: what is wrong there does not mend itself, and others wait meanwhile.
pub const WORKTREE_PAUSE: Duration = Duration::from_secs(300);

/// How often what outlived Baton is looked for anew. What starts itself again faster than this is beyond a signal.
pub const LEFTOVER_ROUNDS_MAX: usize = 3;

/// How often a running command looks whether it should stop.
pub const STOP_LOOK: Duration = Duration::from_millis(100);

/// How often an attempt looks at its session where nothing is heard of it, and at its lease.
pub const ATTEMPT_LOOK: Duration = Duration::from_millis(200);
pub const LEASE_LOOK: Duration = Duration::from_secs(1);

/// Bytes of a work log that an agent is told: the last part of it.
pub const PROMPT_LOG_BYTES_MAX: usize = 8 << 10;

/// How often a CI run looks whether its task still waits for it.
pub const CI_LOOK: Duration = Duration::from_secs(1);

/// Notices that are kept until somebody asks. Whoever does not ask for this long does not want to know.
pub const NOTICES_MAX: usize = 256;

/// Notifications that wait to be written to the outbox. More at once than a person could read is dropped, and counted.
pub const NOTIFY_QUEUE_MAX: usize = 1024;

/// How long an end waits, if it must, for the queue to be written to the outbox. A full queue takes a tenth of a second on a machine at rest; on a
/// disk that hangs nothing would help.
pub const NOTIFY_KEEP_WAIT: Duration = Duration::from_secs(5);

/// Notifications in the outbox. A receiver that is away for this many gets the later ones as dead letters.
pub const NOTIFY_OUTBOX_MAX: usize = 1024;

/// Dead letters that are kept; the oldest go first, and are counted.
pub const NOTIFY_DEAD_MAX: usize = 1024;

/// Largest file of a notification, in bytes: title and reason are bounded far below it.
pub const NOTIFY_FILE_BYTES_MAX: u64 = 64 << 10;

/// How often a notification is tried. With the waits between, a receiver may be away for a minute and a half.
pub const NOTIFY_ATTEMPTS_MAX: u32 = 5;

/// The wait after the first failure, and by how much each later one is longer.
pub const NOTIFY_FIRST_WAIT: Duration = Duration::from_secs(1);
pub const NOTIFY_WAIT_FACTOR: u32 = 4;

/// The longest wait that a receiver can ask for.
pub const NOTIFY_RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// How long is waited before a look whether another process has sent what it was sending. Most deliveries take less.
pub const NOTIFY_ELSEWHERE_WAIT: Duration = Duration::from_secs(1);

/// Files that are being made are made within this time, or never: another process may be at it right now.
pub const NOTIFY_UNFINISHED_WAIT: Duration = Duration::from_secs(60);

/// How long one post may take, from looking up the name to the answer's head.
pub const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest head of a webhook's answer, in bytes. Its body is not read.
pub const WEBHOOK_HEAD_BYTES_MAX: usize = 16 << 10;

/// How long a notification's command may run.
pub const NOTIFY_COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest conversation with a model, in bytes of text. Beyond what any model takes.
pub const LLM_CONVERSATION_BYTES_MAX: usize = 8 << 20;

/// Largest answer of a model, in bytes, and the largest event of it.
pub const LLM_ANSWER_BYTES_MAX: usize = 8 << 20;
pub const LLM_EVENT_BYTES_MAX: usize = 4 << 20;

/// Bytes of a refusal that are read, and characters of its message that are kept.
pub const LLM_ERROR_BYTES_MAX: u64 = 64 << 10;
pub const LLM_MESSAGE_CHARS_MAX: usize = 500;

/// How long a connection to a model's server may take, and how long a busy one may ask to be left alone. More than that is a limit that was reached.
pub const LLM_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
pub const LLM_WAIT_MAX: Duration = Duration::from_secs(30);

/// The longest limit of a server that is believed, in seconds: forty days, a monthly one with room to spare.
pub const LLM_LIMIT_SECONDS_MAX: f64 = 86_400.0 * 40.0;

/// The shortest wait before a busy server is asked again.
pub const LLM_WAIT_MIN: Duration = Duration::from_millis(500);

/// How long a tool may take where nothing else is configured (seed 004).
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

/// Between the request to end and the end, for what a tool started. One that runs when its session ends has less, the short grace.
pub const TOOL_GRACE: Duration = Duration::from_secs(2);

/// How long the end of a session waits for the tools, hooks and terminals that run: a look, a short grace and the rest of their output. With that it is told within a second.
pub const RUNS_END_WAIT: Duration = Duration::from_millis(800);

/// Bytes of a tool's output that a model gets. The whole is an artifact.
pub const TOOL_OUTPUT_BYTES: usize = 256 << 10;

/// Bytes of one argument of a tool: a large file fits.
pub const TOOL_ARGUMENT_BYTES_MAX: usize = 8 << 20;

/// Bytes of a file that a tool reads or changes, in memory.
pub const TOOL_FILE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of a file that is searched for text. What is larger is data.
pub const TOOL_GREP_FILE_BYTES_MAX: u64 = 4 << 20;

/// Bytes of a regular expression or glob.
pub const TOOL_PATTERN_BYTES_MAX: usize = 4096;

/// Lines of a list or of matches. Whoever needs more asks more narrowly.
pub const TOOL_ENTRIES_MAX: usize = 2000;

/// Characters of a matching line that are shown.
pub const TOOL_LINE_CHARS_MAX: usize = 500;

/// Files and directories that one walk looks at.
pub const TOOL_WALK_ENTRIES_MAX: usize = 200_000;

/// Directories within each other. Deeper ones are a trap.
pub const TOOL_DEPTH_MAX: usize = 128;

/// Symbolic links that are followed for one file, as many as the kernel does.
pub const TOOL_LINKS_MAX: usize = 40;

/// How often the kernel is asked again when something was renamed while it looked.
pub const TOOL_OPEN_TRIES_MAX: usize = 64;

/// Files in one patch.
pub const TOOL_PATCH_FILES_MAX: usize = 1000;

/// Characters of what a person is asked about, and of why a tool has bad news.
pub const TOOL_TITLE_CHARS_MAX: usize = 200;

/// Bytes of a call's arguments that go into the transcript. A file that is written is in the workspace.
pub const TOOL_ARGUMENTS_KEPT_BYTES_MAX: usize = 64 << 10;

/// How long a look at the work tree may take, before and after a turn.
pub const TREE_LOOK_TIME: Duration = Duration::from_secs(3);

/// Bytes of git's answer about a work tree, and files of it that are looked at.
pub const TREE_STATUS_BYTES_MAX: usize = 4 << 20;
pub const TREE_FILES_MAX: usize = 20_000;

/// Terminals of one agent that are open at the same time.
pub const TERMINALS_MAX: usize = 32;

/// Bytes of a terminal's output that are kept, also where the agent wants more.
pub const TERMINAL_BYTES_MAX: usize = 1 << 20;

/// Variables that an agent gives a program, and their bytes together: far below what the kernel passes on.
pub const PROGRAM_ENV_MAX: usize = 256;
pub const PROGRAM_ENV_BYTES_MAX: usize = 64 << 10;

/// How long a terminal's program may run. It ends with its session before.
pub const TERMINAL_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Largest `hooks.json`, in bytes. All the hooks below fit, with short commands.
pub const HOOKS_FILE_BYTES_MAX: u64 = 256 << 10;

/// Most hooks: they run one after the other, after every batch of tools.
pub const HOOKS_MAX: usize = 64;

/// Longest name of a hook, in characters. It stands in events, logs and lists.
pub const HOOK_NAME_CHARS_MAX: usize = 64;

/// Most words of a hook's command, and the longest one in characters.
pub const HOOK_WORDS_MAX: usize = 256;
pub const HOOK_WORD_CHARS_MAX: usize = 4096;

/// Most tools that a hook names, and the longest name in characters.
pub const HOOK_TOOLS_MAX: usize = 64;
pub const HOOK_TOOL_CHARS_MAX: usize = 128;

/// How long a hook runs at most where it does not say, and the most that it can say, in milliseconds: two minutes and a day.
pub const HOOK_TIMEOUT_MS: u64 = 120_000;
pub const HOOK_TIMEOUT_MS_MAX: u64 = 86_400_000;

/// Most attempts of a hook, and the longest wait between two of them in milliseconds. Whoever needs more has something to mend.
pub const HOOK_ATTEMPTS_MAX: u64 = 10;
pub const HOOK_DELAY_MS_MAX: u64 = 3_600_000;

/// Spans that are open at once; those of more sessions than ever run.
pub const SPANS_OPEN_MAX: usize = 8192;

/// Spans that wait to be sent. What comes while the collector is away finds no room, and is left out.
pub const SPANS_QUEUED_MAX: usize = 4096;

/// Spans that are sent at once.
pub const SPANS_BUNDLE_MAX: usize = 512;

/// How long spans are gathered before they are sent.
pub const SPANS_SEND_AFTER: Duration = Duration::from_secs(2);

/// How long a collector may take, also at the end.
pub const SPANS_SEND_WAIT: Duration = Duration::from_secs(5);

/// What a relayed agent said last that is kept for whoever follows or comes again: by number, and by size in bytes. A long answer, word by word, fits.
pub const RELAY_RING_ITEMS_MAX: usize = 4096;
pub const RELAY_RING_BYTES_MAX: usize = 4 << 20;

/// What a follower of a relay takes at once.
pub const RELAY_TAKE_ITEMS: usize = 256;

/// Requests of clients that wait for one relayed agent, and requests of the agent that wait for its clients.
pub const RELAY_CALLS_MAX: usize = 256;
pub const RELAY_ASKED_MAX: usize = 256;

/// Sessions of the protocol that one relayed process may have, ended ones too: each is told of its end by a message of its own, and all of those are kept.
pub const RELAY_SESSIONS_MAX: usize = 256;

/// Bytes of a session's name, title or directory that are kept of what an agent or a client says.
pub const RELAY_NAME_BYTES_MAX: usize = 4096;

/// Relays at once, those included whose agent has ended and that nobody has deleted yet.
pub const RELAYS_MAX: usize = 128;

/// How long an ended relay is kept for whoever comes later, and how long one may live that nobody follows and nobody speaks to.
pub const RELAY_ENDED_KEPT: Duration = Duration::from_secs(60 * 60);
pub const RELAY_IDLE_MAX: Duration = Duration::from_secs(60 * 60);

/// How often is looked whether a relay's time is over.
pub const RELAY_LOOK: Duration = Duration::from_secs(30);

/// How long whoever waits in a guarded run waits before it looks again.
pub const GUARD_LOOK: Duration = Duration::from_millis(100);

/// How often something is said anew because a key changed in the same moment.
pub const GUARD_SAYINGS_MAX: usize = 16;

/// How often a player is told that its answer does not fit, and how many proposals may be rejected.
pub const GUARD_CORRECTIONS_MAX: usize = 3;
pub const GUARD_PROPOSALS_MAX: usize = 3;

/// How often a challenge is answered by another claim.
pub const GUARD_ROUNDS_MAX: usize = 3;

/// How often an executor is set to work in one attempt: each time it has ended its turn and something is left.
pub const GUARD_TURNS_MAX: usize = 5;

/// How often an executor is asked in an attempt what came of its work: whoever goes on working after each claim does not come to an end.
pub const GUARD_CLAIMINGS_MAX: usize = 16;

/// How often a verification is made again because the run went on meanwhile.
pub const GUARD_AUDITS_MAX: usize = 8;

/// How much of what a player says is looked at for its answer: the end of it.
pub const GUARD_TEXT_BYTES_MAX: usize = 256 << 10;

/// How much evidence a critic is shown in one prompt, and of one artifact.
pub const GUARD_SHOWN_BYTES_MAX: usize = 64 << 10;
pub const GUARD_SHOWN_EACH_BYTES: usize = 8 << 10;

/// How long a tool of a guarded run waits for its review before it is denied: a week, which no run takes.
pub const GATED_PERMISSION_MS: i64 = 7 * 86_400_000;

/// How often somebody may be refused something in one run before that ends it.
pub const GUARD_REFUSALS_MAX: usize = 200;

/// How much of a tool's input is looked at to show it to a critic, how many members of it are shown, and how much of each end of one.
pub const GUARD_INPUT_BYTES_MAX: usize = 8 << 20;
pub const GUARD_INPUT_MEMBERS_MAX: usize = 64;
pub const GUARD_INPUT_SHOWN_BYTES: usize = 32 << 10;
