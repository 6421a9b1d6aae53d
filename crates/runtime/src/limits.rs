//! Bounds of what Baton does by itself, each with its unit and its reason. Those of the ledger and of messages are in `baton_core::limits`.

use std::time::Duration;

/// Longest line of an agent, in bytes. A message with a large file in it fits; what is longer is no message.
pub const AGENT_LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes that wait to be read by an agent. One that lets more pile up is stuck.
pub const AGENT_QUEUE_BYTES_MAX: usize = 32 << 20;

/// Bytes of what an agent writes beside its protocol, in each of two files.
pub const STDERR_FILE_BYTES_MAX: u64 = 8 << 20;

/// What a session said last that is kept for whoever follows: by number, and by size in bytes.
pub const FEED_ITEMS_MAX: usize = 2048;
pub const FEED_BYTES_MAX: usize = 512 << 10;

/// What waits in a session's mailbox. Beyond that an agent is held back.
pub const MAILBOX_MAX: usize = 256;

/// Largest transcript, in bytes. What an agent says beyond that is seen and not kept.
pub const TRANSCRIPT_BYTES_MAX: u64 = 64 << 20;

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

/// How long what is left in the pipe is read after the kill.
pub const DRAIN: Duration = Duration::from_millis(200);

/// How long is waited for the end of what was killed. Only a process that hangs inside the kernel takes longer.
pub const KILLED_WAIT: Duration = Duration::from_secs(1);

/// Most bytes of a process's environment that are looked at; the kernel gives a process about that much for it and its arguments.
pub const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// How often what outlived Baton is looked for anew. What starts itself again faster than this is beyond a signal.
pub const LEFTOVER_ROUNDS_MAX: usize = 3;

/// How often a running command looks whether it should stop.
pub const STOP_LOOK: Duration = Duration::from_millis(100);

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
