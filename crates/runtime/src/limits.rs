//! Bounds of what Baton does by itself, each with its unit and its reason. Those of the ledger and of messages are in `baton_core::limits`.

use std::time::Duration;

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

/// How often a running command looks whether it should stop.
pub const STOP_LOOK: Duration = Duration::from_millis(100);

/// How often a CI run looks whether its task still waits for it.
pub const CI_LOOK: Duration = Duration::from_secs(1);

/// Notices that are kept until somebody asks. Whoever does not ask for this long does not want to know.
pub const NOTICES_MAX: usize = 256;
