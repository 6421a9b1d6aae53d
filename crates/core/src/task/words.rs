//! The words of a task that people, files and agents use: statuses, phases, priorities, outcomes.

use crate::words::words;

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
