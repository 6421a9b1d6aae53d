//! The words of a task that people, files and agents use: statuses, phases, priorities, outcomes.

use std::fmt;
use std::str::FromStr;

/// Why a text is none of a set of words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got:?}")]
pub struct UnknownWord {
    pub expected: &'static str,
    pub got: String,
}

/// Declares an enum whose variants are written as fixed words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $expected:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(UnknownWord { expected: $expected, got: text.chars().take(80).collect() }),
                }
            }
        }

        crate::as_text!($name);
    };
}

words!(
    /// Where a task stands; also the name of the folder that its file is in.
    Status, "backlog, ready, in-progress, blocked, review, done, cancelled or deadletter" {
        Backlog = "backlog",
        Ready = "ready",
        InProgress = "in-progress",
        Blocked = "blocked",
        Review = "review",
        Done = "done",
        Cancelled = "cancelled",
        Deadletter = "deadletter",
    }
);

words!(
    /// Where the delivery of a task stands.
    Phase,
    "DRAFT, IMPLEMENTATION, CI_PENDING, READY_FOR_REVIEW, REVIEW, READY_FOR_MERGE, COMPLETED or BLOCKED" {
        Draft = "DRAFT",
        Implementation = "IMPLEMENTATION",
        CiPending = "CI_PENDING",
        ReadyForReview = "READY_FOR_REVIEW",
        Review = "REVIEW",
        ReadyForMerge = "READY_FOR_MERGE",
        Completed = "COMPLETED",
        Blocked = "BLOCKED",
    }
);

words!(
    /// How soon a task should be taken; the first is the most urgent.
    Priority, "critical, high, normal or low" {
        Critical = "critical",
        High = "high",
        Normal = "normal",
        Low = "low",
    }
);

words!(
    /// What an agent says of its own work when it reports.
    Outcome, "done, blocked, needs_review or partial" {
        Done = "done",
        Blocked = "blocked",
        NeedsReview = "needs_review",
        Partial = "partial",
    }
);
