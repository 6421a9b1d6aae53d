//! Every bound of the ledger in one place, each with its unit and its reason.

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
