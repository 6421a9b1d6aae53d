//! The codes of findings on one page: how bad each is, which check finds it, what to do about it.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Warning,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// What was found. The order is that of the checks within one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    SchemaInvalid,
    HashMismatch,
    SequenceGap,
    ChainBreak,
    SigMissing,
    KeyUnknown,
    KeyRevoked,
    SigInvalid,
    RoleViolation,
    OrderViolation,
    StateViolation,
    UnapprovedAction,
    ClaimUnproven,
    FinalizationIncomplete,
    ClaimDisputed,
    ArtifactMissing,
    ArtifactHashMismatch,
    CheckpointMismatch,
    TailCut,
    ReportMismatch,
    OverrideRecorded,
    TornTail,
    NoCheckpoint,
    KeyUnpinned,
    ArtifactUnchecked,
    VersionNewer,
    Unreadable,
    NoEvents,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Code::SchemaInvalid => "SCHEMA_INVALID",
            Code::HashMismatch => "HASH_MISMATCH",
            Code::SequenceGap => "SEQUENCE_GAP",
            Code::ChainBreak => "CHAIN_BREAK",
            Code::SigMissing => "SIG_MISSING",
            Code::KeyUnknown => "KEY_UNKNOWN",
            Code::KeyRevoked => "KEY_REVOKED",
            Code::SigInvalid => "SIG_INVALID",
            Code::RoleViolation => "ROLE_VIOLATION",
            Code::OrderViolation => "ORDER_VIOLATION",
            Code::StateViolation => "STATE_VIOLATION",
            Code::UnapprovedAction => "UNAPPROVED_ACTION",
            Code::ClaimUnproven => "CLAIM_UNPROVEN",
            Code::FinalizationIncomplete => "FINALIZATION_INCOMPLETE",
            Code::ClaimDisputed => "CLAIM_DISPUTED",
            Code::OverrideRecorded => "OVERRIDE_RECORDED",
            Code::ArtifactMissing => "ARTIFACT_MISSING",
            Code::ArtifactHashMismatch => "ARTIFACT_HASH_MISMATCH",
            Code::CheckpointMismatch => "CHECKPOINT_MISMATCH",
            Code::TailCut => "TAIL_CUT",
            Code::ReportMismatch => "REPORT_MISMATCH",
            Code::TornTail => "TORN_TAIL",
            Code::NoCheckpoint => "NO_CHECKPOINT",
            Code::KeyUnpinned => "KEY_UNPINNED",
            Code::ArtifactUnchecked => "ARTIFACT_UNCHECKED",
            Code::VersionNewer => "VERSION_NEWER",
            Code::Unreadable => "UNREADABLE",
            Code::NoEvents => "NO_EVENTS",
        }
    }

    /// How bad it is where nothing else is said. Two of them are as bad as the policy of their run says.
    pub fn severity(self) -> Severity {
        match self {
            Code::SigInvalid
            | Code::SigMissing
            | Code::ChainBreak
            | Code::SequenceGap
            | Code::HashMismatch
            | Code::CheckpointMismatch
            | Code::TailCut
            | Code::KeyUnknown
            | Code::KeyRevoked
            | Code::VersionNewer
            | Code::Unreadable
            | Code::NoEvents => Severity::Critical,
            Code::ArtifactMissing
            | Code::ArtifactHashMismatch
            | Code::OrderViolation
            | Code::StateViolation
            | Code::UnapprovedAction
            | Code::ClaimUnproven
            | Code::FinalizationIncomplete
            | Code::ClaimDisputed
            | Code::ReportMismatch => Severity::High,
            Code::RoleViolation | Code::SchemaInvalid => Severity::Medium,
            Code::TornTail
            | Code::NoCheckpoint
            | Code::KeyUnpinned
            | Code::ArtifactUnchecked
            | Code::OverrideRecorded => Severity::Warning,
        }
    }

    /// Whether nothing can be judged because of it.
    pub(super) fn is_unknown(self) -> bool {
        matches!(self, Code::VersionNewer | Code::Unreadable | Code::NoEvents)
    }

    /// The check that finds it.
    pub(super) fn check(self) -> Check {
        match self {
            Code::SchemaInvalid | Code::VersionNewer | Code::Unreadable | Code::NoEvents => Check::Schema,
            Code::HashMismatch => Check::EventHash,
            Code::ChainBreak => Check::Chain,
            Code::SequenceGap => Check::Sequence,
            Code::SigMissing | Code::SigInvalid => Check::Signature,
            Code::KeyUnknown | Code::KeyRevoked | Code::KeyUnpinned => Check::KeyStatus,
            Code::RoleViolation => Check::Role,
            Code::OrderViolation => Check::Order,
            Code::StateViolation => Check::State,
            Code::ClaimUnproven => Check::Evidence,
            Code::UnapprovedAction | Code::OverrideRecorded => Check::Approval,
            Code::FinalizationIncomplete | Code::ClaimDisputed => Check::Finalization,
            Code::ArtifactMissing | Code::ArtifactUnchecked => Check::ArtifactExists,
            Code::ArtifactHashMismatch => Check::ArtifactHash,
            Code::CheckpointMismatch
            | Code::TailCut
            | Code::NoCheckpoint
            | Code::TornTail
            | Code::ReportMismatch => Check::Checkpoint,
        }
    }

    /// What the reader of the report should do.
    pub fn action(self) -> &'static str {
        match self {
            Code::TailCut
            | Code::ChainBreak
            | Code::SequenceGap
            | Code::HashMismatch
            | Code::SchemaInvalid => {
                "Treat everything after the last trusted event as unproven; compare with another copy or an earlier bundle."
            }
            Code::SigInvalid | Code::SigMissing | Code::KeyUnknown | Code::KeyRevoked => {
                "Do not rely on this event as its actor's; ask the actor, and look for who could write the ledger."
            }
            Code::CheckpointMismatch => {
                "The history is not the one that was signed; keep both, and ask whoever holds other checkpoints."
            }
            Code::RoleViolation | Code::OrderViolation | Code::StateViolation => {
                "The event breaks the protocol; disregard it and what rests on it."
            }
            Code::ArtifactMissing | Code::ArtifactHashMismatch => {
                "Fetch the artifact again from where it was made; its hash must be the cited one."
            }
            Code::UnapprovedAction => {
                "Treat what this tool did as not allowed: look at what it changed, and ask the critic."
            }
            Code::ClaimUnproven => "Do not rely on this claim; ask for the artifacts that show it.",
            Code::FinalizationIncomplete => {
                "Do not take the run as finished; ask for its final statement and its verification."
            }
            Code::ClaimDisputed => "Read the challenge before you rely on the claim; nobody has answered it.",
            Code::OverrideRecorded => {
                "Ask the person who signed it: something was let through that the rules held up."
            }
            Code::ReportMismatch => "Disregard the bundle's own report; this one was made from its events.",
            Code::TornTail => {
                "Open the ledger once with Baton: it keeps the torn bytes aside and records a recovery."
            }
            Code::NoCheckpoint => {
                "Give a checkpoint that you kept (--checkpoint FILE); without one, neither a cut-off tail nor a history that was written anew can be excluded."
            }
            Code::KeyUnpinned => {
                "Name the ledger's key that you trust (--trust FILE); obtain it by another way than this input."
            }
            Code::ArtifactUnchecked => "Ask for a bundle with its artifacts, or check them by their hashes.",
            Code::VersionNewer => "Use a newer version of Baton.",
            Code::Unreadable => "Make the input readable, then verify again.",
            Code::NoEvents => "Check the path: there are no events here.",
        }
    }
}

/// A group of questions, asked in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    Schema,
    EventHash,
    Chain,
    Sequence,
    Signature,
    KeyStatus,
    Role,
    Order,
    State,
    ArtifactExists,
    ArtifactHash,
    Evidence,
    Approval,
    Finalization,
    Checkpoint,
}

impl Check {
    pub const ALL: [Check; 15] = [
        Check::Schema,
        Check::EventHash,
        Check::Chain,
        Check::Sequence,
        Check::Signature,
        Check::KeyStatus,
        Check::Role,
        Check::Order,
        Check::State,
        Check::ArtifactExists,
        Check::ArtifactHash,
        Check::Evidence,
        Check::Approval,
        Check::Finalization,
        Check::Checkpoint,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Check::Schema => "SCHEMA",
            Check::EventHash => "EVENT_HASH",
            Check::Chain => "CHAIN",
            Check::Sequence => "SEQUENCE",
            Check::Signature => "SIGNATURE",
            Check::KeyStatus => "KEY_STATUS",
            Check::Role => "ROLE",
            Check::Order => "ORDER",
            Check::State => "STATE",
            Check::Evidence => "EVIDENCE",
            Check::Approval => "APPROVAL",
            Check::Finalization => "FINALIZATION",
            Check::ArtifactExists => "ARTIFACT_EXISTS",
            Check::ArtifactHash => "ARTIFACT_HASH",
            Check::Checkpoint => "CHECKPOINT",
        }
    }
}
