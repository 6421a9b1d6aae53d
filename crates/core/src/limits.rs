//! Every bound of the ledger and of the messages in one place, each with its unit and its reason.

/// Longest line of the journal without its line feed. What is larger is an artifact.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Deepest nesting of a stored record; the record's own object is depth 1. Bounds every recursive reader.
pub const DEPTH_MAX: usize = 64;

/// Most artifacts one event may cite.
pub const ARTIFACTS_MAX: usize = 256;

/// Largest integer that every reader of JSON keeps exactly: 2^53 − 1.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

/// How many events back `seen` may reach. A verifier keeps this many hashes of each open trace.
pub const SEEN_BACK_MAX: u64 = 4096;

/// How far a signed event's `at` may be from Baton's clock when it is offered, in milliseconds.
pub const CLOCK_SKEW_MS_MAX: i64 = 5 * 60 * 1000;

/// Most events in one decision.
pub const DECISION_EVENTS_MAX: usize = 1024;

/// Most bytes of one decision, which is written at once and read back whole after a crash.
pub const DECISION_BYTES_MAX: usize = 16 << 20;

/// Bytes of one physical write, beyond which only a single larger decision goes. The rest waits for the next write.
pub const WRITE_BYTES_MAX: usize = 8 << 20;

/// Most bytes that a torn write can have left, pre-fill included. What is longer is no torn write, and is neither read through nor copied aside.
pub const TORN_BYTES_MAX: u64 = 256 << 20;

/// Most decisions that wait for the sequencer. Callers beyond this wait for room.
pub const QUEUE_DECISIONS_MAX: usize = 4096;

/// Ids remembered for noticing a doubled one without keeping all of them (verifier and sequencer).
pub const ID_WINDOW: usize = 1 << 13;

/// Ids that came too late for the window and are looked for in one further pass; more take more passes.
pub const LATE_IDS_MAX: usize = 1 << 20;

/// Findings that a report lists. More are counted, not listed.
pub const FINDINGS_MAX: usize = 100;

/// Largest signed note (checkpoint or trace head), in bytes.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;

/// Most signature lines of a note.
pub const NOTE_SIGNATURES_MAX: usize = 16;

/// Most hashes of a proof. A tree of 2^53 leaves needs 54.
pub const PROOF_HASHES_MAX: usize = 64;

/// Largest proof file: one line, the hashes, two notes.
pub const PROOF_BYTES_MAX: usize = LINE_BYTES_MAX + 64 * 1024;

/// Bytes of an artifact in one line of a bundle; base64 of it stays below the line limit.
pub const BUNDLE_CHUNK_BYTES: usize = 512 * 1024;

/// Longest line of a bundle: a record and its wrapping.
pub const BUNDLE_LINE_BYTES_MAX: usize = LINE_BYTES_MAX + 64;

/// Largest artifact that the store takes, in bytes.
pub const ARTIFACT_BYTES_MAX: u64 = 1 << 30;

/// Largest file of a private key, in bytes. Ours have about a hundred.
pub const KEY_FILE_BYTES_MAX: usize = 4096;

/// Largest file of configuration that is read.
pub const SMALL_FILE_BYTES_MAX: u64 = 1 << 20;

/// Largest task file: a body of 1 MiB, and room for the head and the work log.
pub const TASK_FILE_BYTES_MAX: usize = (1 << 20) + (256 << 10);

/// Largest head of a task file, between its fences. Ours have about a thousand bytes.
pub const TASK_HEAD_BYTES_MAX: usize = 64 << 10;

/// Deepest nesting of YAML that is read; the outermost mapping is depth 1. Bounds the recursion of the reader.
pub const YAML_DEPTH_MAX: usize = 16;

/// Largest YAML or JSON document beside a task, such as an evidence bundle.
pub const YAML_BYTES_MAX: usize = 256 << 10;

/// Most bytes `trace append` reads from a file or standard input.
pub const INPUT_BYTES_MAX: u64 = 64 << 20;

/// How long a command waits for the owner's lock, in milliseconds.
pub const LOCK_WAIT_MS: u64 = 10_000;

/// How long a task that a person stopped is not handed out by itself, in milliseconds: a quarter of an hour, as after many failures. By hand it goes on at once.
pub const STOPPED_WAIT_MS: i64 = 900_000;

/// Longest title of a task, in characters. It is one line of a list.
pub const TITLE_CHARS_MAX: usize = 256;

/// Longest text of a task, in bytes. Escaped as JSON it still fits one line of the journal; what is longer is a file in `inputs/`.
pub const BODY_BYTES_MAX: usize = 128 << 10;

/// Most tasks that one depends on.
pub const DEPENDENCIES_MAX: usize = 256;

/// Largest `metadata` of a task, in bytes of JSON.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// Most tags of a task, and the longest one in characters.
pub const TAGS_MAX: usize = 64;
pub const TAG_CHARS_MAX: usize = 64;

/// Longest entry of the work log, in characters.
pub const LOG_CHARS_MAX: usize = 10_000;

/// Largest text of one AOF/1 message, in bytes. An envelope holds words and paths; work itself travels as files.
pub const ENVELOPE_BYTES_MAX: usize = 10 << 20;

/// Longest name of a receiver in an envelope, in characters. Receivers need not be agents that Baton knows.
pub const RECEIVER_CHARS_MAX: usize = 256;

/// Longest path in a message, `summaryRef` first of all, in characters.
pub const PATH_CHARS_MAX: usize = 256;

/// Longest `notes` of a message, in characters. They end up in a task's work log, which people read.
pub const NOTES_CHARS_MAX: usize = 10_000;

/// Longest `progress` of a status update, in characters. It is one line of the work log.
pub const PROGRESS_CHARS_MAX: usize = 1_000;

/// Longest reason of a transition or of a refused handoff, in characters.
pub const REASON_CHARS_MAX: usize = 512;

/// Longest item of a list in a message, in characters.
pub const LIST_ITEM_CHARS_MAX: usize = 256;

/// Most items of a list in a message.
pub const LIST_ITEMS_MAX: usize = 50;

/// Most blockers of a message. Whoever has more is blocked by something that they have in common.
pub const BLOCKERS_MAX: usize = 20;

/// Most of a refused value that an answer repeats, in characters.
pub const SHOWN_CHARS_MAX: usize = 80;

/// Largest exit signal, in bytes; also what the scanner of an agent's output keeps at a time.
pub const EXIT_SIGNAL_BYTES_MAX: usize = 64 << 10;

/// Longest `version` of an exit signal, in bytes. The versions that exist have five.
pub const EXIT_VERSION_BYTES_MAX: usize = 64;

/// Longest `pr_url` of an exit signal, in bytes: about what browsers and servers take.
pub const EXIT_URL_BYTES_MAX: usize = 2 << 10;

/// Longest `evidence_bundle_ref` of an exit signal, in bytes.
pub const EXIT_EVIDENCE_BYTES_MAX: usize = 2 << 10;

/// Longest `notes` of an exit signal, in bytes.
pub const EXIT_NOTES_BYTES_MAX: usize = 10 << 10;

/// Most items of an evidence bundle; one event cites all of them.
pub const EVIDENCE_ITEMS_MAX: usize = 200;

/// Largest file of an evidence bundle that is stored, in bytes.
pub const EVIDENCE_ITEM_BYTES_MAX: u64 = 64 << 20;

/// Shortest and longest lease that can be asked for, in milliseconds: a second and a week. Whoever needs more beats.
pub const LEASE_MS_MIN: i64 = 1000;
pub const LEASE_MS_MAX: i64 = 7 * 86_400_000;

/// Longest text of a step of guarded work, in characters.
pub const GUARD_TEXT_CHARS_MAX: usize = 10_000;

/// Most items of a list in a step of guarded work: assumptions, tools, claims.
pub const GUARD_ITEMS_MAX: usize = 100;

/// Most proposals, most intents and most claims of one guarded run. Whoever judges the next step keeps all of them in memory.
pub const GUARD_THINGS_MAX: usize = 10_000;

/// Most claims or challenges of one answer, and most beginnings of an object that are looked at in a text that should hold one.
pub const GUARD_REPLY_ITEMS_MAX: usize = 32;
pub const GUARD_REPLY_TRIES_MAX: usize = 1000;

/// Refusals of one guarded run, and after it, that are recorded.
pub const GUARD_REFUSALS_KEPT_MAX: u32 = 1000;
