//! Every bound of the server, with its unit and its reason.

use std::time::Duration;

use baton_runtime::relay;

/// How long is waited for those who are slow, or do not come again. The same for everybody who serves; what tests it has no time to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a reader that takes none of what is there for it.
    pub write: Duration,
    /// For the answer of an agent, before the head of the response is sent.
    pub held_head: Duration,
    /// And then between two blanks.
    pub held_blank: Duration,
    /// For whoever uses an agent.
    pub relays: relay::Patience,
}

impl Default for Patience {
    fn default() -> Self {
        let relays = relay::Patience::default();
        Patience { write: WRITE_WAIT, held_head: HELD_HEAD, held_blank: HEARTBEAT, relays }
    }
}

/// A body of JSON. The largest thing that one may hold is the text of a task, 1 MiB, escaped.
pub const JSON_BODY_BYTES_MAX: usize = 4 << 20;

/// An artifact, or a bundle that is to be verified: it is held in memory until it is stored.
pub const RAW_BODY_BYTES_MAX: usize = 64 << 20;

/// Values in a body. A few bytes of text make a value of many bytes in memory.
pub const JSON_VALUES_MAX: usize = 100_000;

/// How long a body may take to arrive.
pub const BODY_WAIT: Duration = Duration::from_secs(20);

/// How long the head of a request may take to arrive, and how long a connection may wait for its next one.
pub const HEAD_WAIT: Duration = Duration::from_secs(10);

/// How long a reader may take none of what is there for it.
pub const WRITE_WAIT: Duration = Duration::from_secs(30);

/// The head of a request.
pub const HEAD_BYTES_MAX: usize = 32 << 10;

/// Header fields of a request.
pub const HEADERS_MAX: usize = 64;

/// A file with a certificate and those above it, or with a key.
pub const PEM_BYTES_MAX: u64 = 1 << 20;

/// Connections at once; fewer where the system allows fewer descriptors.
pub const CONNECTIONS_MAX: usize = 1024;

/// Descriptors that are left for everything that is not a connection.
pub const DESCRIPTORS_LEFT: u64 = 256;

/// Requests that are worked on at once, streams aside.
pub const REQUESTS_MAX: usize = 256;

/// Wishes about tasks that are granted together.
pub const TOGETHER_MAX: usize = 256;

/// Where many ask without a pause, the files of a task follow what was recorded of it by no more than this and the time it takes to write them.
pub const FILES_LATE: Duration = Duration::from_millis(200);

/// Streams at once.
pub const STREAMS_MAX: usize = 512;

/// Messages to agents that wait for their answers at once. A turn takes as long as it takes, and nobody else is to wait for it.
pub const HELD_MAX: usize = 512;

/// How long an answer may take before its head is sent: clients give up on a head that does not come, and before that the status is still open.
pub const HELD_HEAD: Duration = Duration::from_secs(45);

/// How long an answer waits for those who follow to be told what came before it.
pub const TOLD_WAIT: Duration = Duration::from_millis(100);

/// How long a stream waits for the message that begins its agent: clients open it first.
pub const SERVER_WAIT: Duration = Duration::from_secs(2);

/// Characters of the name that a client gives to its agent.
pub const SERVER_ID_CHARS_MAX: usize = 200;

/// What waits to be taken by the client of a WebSocket, in bytes, beside one message.
pub const SOCKET_WRITE_BYTES_MAX: usize = 1 << 20;

/// Wrong tokens within a second, before all of them have to wait.
pub const REFUSALS_PER_SECOND_MAX: u32 = 20;

/// How long a command from elsewhere may go on when the server ends; less than all of them together have.
pub const COMMANDS_WAIT: Duration = Duration::from_secs(2);

/// Items of a page, where nobody asks for fewer.
pub const PAGE_DEFAULT: u64 = 100;

/// Items of a page at most.
pub const PAGE_MAX: u64 = 1000;

/// Tasks or sessions that are asked for by their ids at once: what a screen shows, and their ids fit the head of a request.
pub const IDS_MAX: usize = 200;

/// For how long what the doctor said is told again: looking takes a while.
pub const CHECKS_KEPT: Duration = Duration::from_secs(10);

/// Leases in the status, those that end first.
pub const LEASES_SHOWN_MAX: usize = 200;

/// Events that are read at once to count what was refused and to hear what agents are, and for how long in one request; the next one goes on.
pub const HEARD_READ_AT_ONCE: usize = 1024;
pub const HEARD_WAIT: Duration = Duration::from_millis(500);

/// Sessions that have begun and not ended, and attempts that nobody has judged yet: more of either are not under way at once.
pub const HEARD_SESSIONS_MAX: usize = 10_000;

/// Requests at once for which git is run.
pub const COMPARING_MAX: usize = 2;

/// Files of a task that are shown, how deep they are looked for, and how much of one and of all of them.
pub const TASK_FILES_SHOWN_MAX: usize = 200;
pub const TASK_FILES_DEPTH_MAX: usize = 8;
pub const TASK_FILE_SHOWN_BYTES_MAX: u64 = 256 << 10;
pub const TASK_FILES_SHOWN_BYTES_MAX: u64 = 2 << 20;

/// How often it is looked whether the token of a stream is still good.
pub const WELCOME_EVERY: Duration = Duration::from_secs(5);

/// How often a stream says that it is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// Events of a stream that are sent in one piece.
pub const STREAM_CHUNK_EVENTS: usize = 256;

/// And their bytes: one event more than fits at most.
pub const STREAM_CHUNK_BYTES: usize = 256 << 10;

/// Events that are read at once before it is looked how large they are.
pub const READ_AT_ONCE: usize = 16;

/// Bytes of records on one page.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// The last events of the ledger that are kept in memory for whoever follows.
pub const TAIL_EVENTS_MAX: usize = 4096;

/// And their bytes.
pub const TAIL_BYTES_MAX: usize = 8 << 20;

/// How far somebody who has followed may fall behind before they are told.
pub const LAG_EVENTS_MAX: u64 = 20_000;

/// Answers that are kept for requests that come again.
pub const ANSWERS_KEPT_MAX: usize = 20_000;

/// For how long.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// An answer that is larger is not kept; who asks again is told how it is now.
pub const ANSWER_KEPT_BYTES_MAX: usize = 64 << 10;

/// And all of them together: they are in memory.
pub const ANSWERS_KEPT_BYTES_MAX: usize = 64 << 20;

/// Characters of an idempotency key.
pub const KEY_CHARS_MAX: usize = 255;

/// What a command may print as an answer.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// How long requests may go on once the server ends.
pub const DRAIN_WAIT: Duration = Duration::from_secs(5);

/// A message of a socket over which a command is given: a piece of one of its streams.
pub const PIECE_BYTES_MAX: usize = 64 << 10;

/// The first message, with the arguments.
pub const ARGUMENTS_BYTES_MAX: usize = 4 << 20;

/// How long the arguments of a command may take to arrive.
pub const ARGUMENTS_WAIT: Duration = Duration::from_secs(10);

/// Conversations of the Model Context Protocol at once.
pub const MCP_CONVERSATIONS_MAX: usize = 64;

/// How long one may be silent before its place is given away.
pub const MCP_IDLE: Duration = Duration::from_secs(30 * 60);

/// Calls of one conversation that wait for an answer.
pub const MCP_PENDING_MAX: usize = 32;

/// How long a call may take: a question to a person waits for ten minutes.
pub const MCP_CALL_WAIT: Duration = Duration::from_secs(11 * 60);

/// What is told of a session that is over, at most; all of it is in the ledger.
pub const OVER_BYTES_MAX: usize = 16 << 20;

/// Bytes of a transcript that are given, from its end.
pub const TRANSCRIPT_BYTES_MAX: usize = 4 << 20;

/// Characters of the id that a proposal, an intent or a claim was given by whoever made it.
pub const SUBJECT_CHARS_MAX: usize = 256;
