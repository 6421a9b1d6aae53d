//! Every code that an error can carry, with its exit code and its page. One code, one exit code: the pages say which.

use baton_ledger::verify::Code as Finding;

use crate::exit::Exit;

/// Declares the codes of errors: name, text, exit code.
macro_rules! codes {
    ($($name:ident $text:literal $exit:ident,)*) => {
        /// What went wrong, as a short text that stays the same across versions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code {
            $($name,)*
        }

        impl Code {
            const ALL: &[Code] = &[$(Code::$name,)*];

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)*
                }
            }

            pub(crate) fn exit(self) -> Exit {
                match self {
                    $(Code::$name => Exit::$exit,)*
                }
            }

            pub(crate) fn of(text: &str) -> Option<Code> {
                Code::ALL.iter().find(|code| code.as_str() == text).copied()
            }

            fn page(self) -> &'static str {
                match self {
                    $(Code::$name => include_str!(concat!("../../../../docs/errors/", $text, ".md")),)*
                }
            }
        }
    };
}

codes! {
    Guard "G001" Refused,
    HooksFile "H001" Usage,
    NoLedger "L001" NotFound,
    LedgerExists "L002" Refused,
    LockHeld "L003" Conflict,
    Damaged "L004" VerificationFailed,
    Cut "L005" VerificationFailed,
    Newer "L006" CannotVerify,
    KeyMissing "L007" Unexpected,
    KeyExposed "L008" Refused,
    KeyUnusable "L009" Unexpected,
    DiskFull "L010" Unexpected,
    NotWritable "L011" Unexpected,
    Io "L012" Unexpected,
    Stopped "L013" Unexpected,
    NoTrace "L014" NotFound,
    NoEvent "L015" NotFound,
    Ambiguous "L016" Usage,
    TraceClosed "L017" Refused,
    HeadMoved "L018" Conflict,
    SignatureMissing "L019" Refused,
    SignatureInvalid "L020" Refused,
    KeyNotAllowed "L021" Refused,
    RoleNotAllowed "L022" Refused,
    SeenUnknown "L023" Refused,
    IdTaken "L024" Refused,
    Reserved "L025" Refused,
    Artifact "L026" Refused,
    ClockSkew "L027" Refused,
    EventForm "L028" Refused,
    HasKey "L029" Refused,
    NoKey "L030" NotFound,
    AgentReserved "L031" Refused,
    RecordDamaged "L032" VerificationFailed,
    SegmentAlone "L033" CannotVerify,
    NoPosition "L034" NotFound,
    OtherHistory "L035" VerificationFailed,
    NotEmpty "L036" Refused,
    NoSubject "L037" NotFound,
    OutcomeUnknown "S001" Unexpected,
    OtherVersion "S002" Conflict,
    NotServed "S003" Refused,
    Unreachable "S004" Unexpected,
    NoSession "A001" NotFound,
    NoAgent "A002" NotFound,
    SessionRefused "A003" Refused,
    AgentFailed "A004" AgentFailed,
    NotForAgents "A005" Refused,
    Occupied "A006" Conflict,
    NotStarted "A007" Refused,
    NoRequest "A008" NotFound,
    NoTask "T001" NotFound,
    TaskExists "T002" Refused,
    TaskField "T003" Refused,
    Transition "T004" Refused,
    DependenciesOpen "T005" Refused,
    NoDependency "T006" NotFound,
    DependencyCycle "T007" Refused,
    LeaseHeld "T008" Conflict,
    NotClaimable "T009" Refused,
    OwnWork "T010" Refused,
    LeaseLost "T011" Conflict,
    PhaseRefused "T012" Refused,
    NotWaiting "T013" Refused,
    TaskFiles "T014" Unexpected,
    Busy "T015" Conflict,
    Config "U001" Usage,
    TrustFile "U002" Usage,
    InputTooLarge "U003" Refused,
    InputForm "U004" Refused,
    FileNotFound "U005" NotFound,
    FileUnreadable "U006" Unexpected,
    NoPage "U007" NotFound,
    Output "U008" Unexpected,
    Value "U009" Usage,
    PublicKey "U010" Refused,
    OutputRefused "U011" Refused,
    Usage "U012" Usage,
    DemoFailed "U013" Unexpected,
    Token "W001" Refused,
    Scope "W002" Refused,
    Origin "W003" Refused,
    RequestForm "W004" Usage,
    RequestTooLarge "W005" Refused,
    NoRoute "W006" NotFound,
    Method "W007" Usage,
    NotAcceptable "W008" Usage,
    MediaType "W009" Usage,
    Precondition "W010" Conflict,
    KeyReused "W011" Refused,
    InProgress "W012" Conflict,
    TooManyWrong "W013" Conflict,
    Overloaded "W014" Conflict,
    TooSlow "W015" Unexpected,
    ServerEnds "W016" Conflict,
    ServerFailed "W017" Unexpected,
    Listen "W018" Refused,
    TokenFile "W019" Refused,
    NoAcpServer "W030" NotFound,
    OtherAcpAgent "W031" Conflict,
    NoAcpAnswer "W032" AgentFailed,
}

/// Declares the pages of what the verifier can find.
macro_rules! findings {
    ($($name:ident $text:literal,)*) => {
        const FINDINGS: &[Finding] = &[$(Finding::$name,)*];

        /// Without a wildcard, so that a new finding asks for its page here.
        fn finding_page(code: Finding) -> &'static str {
            match code {
                $(Finding::$name => include_str!(concat!("../../../../docs/errors/", $text, ".md")),)*
            }
        }
    };
}

findings! {
    SchemaInvalid "SCHEMA_INVALID",
    HashMismatch "HASH_MISMATCH",
    SequenceGap "SEQUENCE_GAP",
    ChainBreak "CHAIN_BREAK",
    SigMissing "SIG_MISSING",
    KeyUnknown "KEY_UNKNOWN",
    KeyRevoked "KEY_REVOKED",
    SigInvalid "SIG_INVALID",
    RoleViolation "ROLE_VIOLATION",
    OrderViolation "ORDER_VIOLATION",
    StateViolation "STATE_VIOLATION",
    UnapprovedAction "UNAPPROVED_ACTION",
    ClaimUnproven "CLAIM_UNPROVEN",
    FinalizationIncomplete "FINALIZATION_INCOMPLETE",
    ClaimDisputed "CLAIM_DISPUTED",
    OverrideRecorded "OVERRIDE_RECORDED",
    ArtifactMissing "ARTIFACT_MISSING",
    ArtifactHashMismatch "ARTIFACT_HASH_MISMATCH",
    CheckpointMismatch "CHECKPOINT_MISMATCH",
    TailCut "TAIL_CUT",
    ReportMismatch "REPORT_MISMATCH",
    TornTail "TORN_TAIL",
    NoCheckpoint "NO_CHECKPOINT",
    KeyUnpinned "KEY_UNPINNED",
    ArtifactUnchecked "ARTIFACT_UNCHECKED",
    VersionNewer "VERSION_NEWER",
    Unreadable "UNREADABLE",
    NoEvents "NO_EVENTS",
}

/// A code and its page, for `baton explain`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) code: &'static str,
    pub(crate) text: &'static str,
}

impl Page {
    /// The page's heading without the code.
    pub(crate) fn title(&self) -> &'static str {
        let heading = self.text.lines().next().unwrap_or_default();
        heading.split_once(": ").map_or(heading, |(_, title)| title)
    }
}

/// Every page: errors first, then what the verifier finds.
pub(crate) fn pages() -> impl Iterator<Item = Page> {
    let errors = Code::ALL.iter().map(|code| Page { code: code.as_str(), text: code.page() });
    let findings = FINDINGS.iter().map(|code| Page { code: code.as_str(), text: finding_page(*code) });
    errors.chain(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors");
        let files = std::fs::read_dir(dir).unwrap();
        let files: BTreeSet<String> =
            files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let codes: Vec<String> = pages().map(|page| format!("{}.md", page.code)).collect();
        assert_eq!(codes.iter().cloned().collect::<BTreeSet<_>>(), files);
        assert_eq!(codes.len(), files.len(), "no code twice");
    }

    #[test]
    fn pages_start_with_their_code_and_say_what_to_do() {
        for page in pages() {
            assert!(page.text.starts_with(&format!("# {}: ", page.code)), "{}", page.code);
            assert!(!page.title().ends_with('.'), "{}: no full stop in a heading", page.code);
            assert!(page.text.contains("**What to do.**"), "{}", page.code);
        }
        for code in Code::ALL {
            let exit = format!("Exit code: {}.", code.exit().code());
            assert!(code.page().contains(&exit), "{} must say: {exit}", code.as_str());
        }
    }
}
