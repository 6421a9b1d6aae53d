//! The rules of guarded work, asked again of what was written: the same questions as before it was sealed, with a code for each answer.

use std::sync::Arc;

use baton_core::guard::{Breach, Profile, Question, Rule, Run, State, Step};
use baton_core::{Role, TraceId};

use super::code::{Check, Code, Severity};
use super::join::Scope;
use super::report::{Counts, Finding};
use crate::guard::{Broken, Heard, Speaker};
use crate::record::Line;

/// What one trace is as far as these rules are concerned.
#[derive(Debug, Default)]
pub(super) enum Guarded {
    /// Not a guarded run, or not yet.
    #[default]
    No,
    Open(Arc<Run>),
    /// Nothing can follow; what is left is where it stood.
    Closed(State, Profile),
}

impl Guarded {
    /// Judges the next line of the trace, and takes it in whatever comes of that.
    pub(super) fn check(&mut self, line: &Line<'_>, counts: &mut Counts, found: &mut Vec<Finding>) {
        let is_closed = line.event_type == "trace.closed";
        let mut run = match std::mem::take(self) {
            Guarded::Open(run) => Some(run),
            // In another role it begins nothing, which is found as that.
            Guarded::No if line.event_type == "session_initialized" && line.role == Role::System => None,
            other => {
                *self = other;
                return;
            }
        };
        count(line.event_type, counts);
        let (heard, by) = (Heard::of_line(line), Speaker::of_line(line));
        match heard.admit(run.as_deref(), &by) {
            Ok(()) => {}
            Err(Broken::Form(why)) => found.push(Finding::new(Code::SchemaInvalid).found(why)),
            Err(Broken::Rule(breach)) => found.push(finding(&breach)),
        }
        if let (Some(run), Some(Ok(step))) = (&run, heard.step.as_deref()) {
            found.extend(warning(run, step));
        }
        heard.apply(&mut run, &by);
        *self = match run {
            Some(run) if is_closed => Guarded::Closed(run.state(), run.policy().profile),
            Some(run) => Guarded::Open(run),
            None => Guarded::No,
        };
    }

    /// Where the run stands, and by which rules.
    pub(super) fn standing(&self) -> Option<(State, Profile)> {
        match self {
            Guarded::No => None,
            Guarded::Open(run) => Some((run.state(), run.policy().profile)),
            Guarded::Closed(state, profile) => Some((*state, *profile)),
        }
    }

    /// Whether nothing is missing but what the auditor says in the end.
    pub(super) fn is_being_audited(&self) -> bool {
        matches!(self, Guarded::Open(run) if run.is_audit_open())
    }

    /// What is missing at the end of the input. In a whole ledger runs may be under way; of one trace more can be asked.
    pub(super) fn unfinished(&self, trace: TraceId, scope: Scope) -> Option<Finding> {
        let Guarded::Open(run) = self else { return None };
        if run.state().is_end() {
            return None;
        }
        let severity = match (scope, run.policy().profile) {
            (Scope::Trace(_), Profile::Strict) => Severity::High,
            _ => Severity::Warning,
        };
        let finding = Finding::new(Code::FinalizationIncomplete).severity(severity);
        let found = format!("{trace} is {}", run.state());
        Some(finding.expected("a verification, or an abort, at the end of a run").found(found))
    }
}

/// Counts what each question is asked of.
fn count(event_type: &str, counts: &mut Counts) {
    counts.add(Check::State, 1);
    match event_type {
        "tool_execution_started" => counts.add(Check::Approval, 1),
        "claim_issued" | "tool_execution_completed" | "tool_execution_failed" => {
            counts.add(Check::Evidence, 1);
        }
        "final_statement_signed" | "verification_run_completed" => counts.add(Check::Finalization, 1),
        _ => {}
    }
}

/// The code under which a broken rule is found.
pub fn code_of(rule: Rule) -> Code {
    match (rule, rule.question()) {
        (Rule::ExecutionEvidence | Rule::Cited, _) => Code::ArtifactMissing,
        (_, Question::Role) => Code::RoleViolation,
        (_, Question::Order) => Code::OrderViolation,
        (_, Question::State) => Code::StateViolation,
        (_, Question::Evidence) => Code::ClaimUnproven,
        (_, Question::Approval) => Code::UnapprovedAction,
        (_, Question::Finalization) => Code::FinalizationIncomplete,
        (_, Question::Dispute) => Code::ClaimDisputed,
    }
}

fn finding(breach: &Breach) -> Finding {
    let found = format!("{} (rule {})", breach.found, breach.rule.as_str());
    Finding::new(code_of(breach.rule)).expected(&breach.expected).found(found)
}

/// What is allowed, and what a reader should know of all the same.
fn warning(run: &Run, step: &Step) -> Option<Finding> {
    match step {
        Step::Overridden(over) => {
            let found = format!("{}: {}", over.target, over.reason);
            Some(Finding::new(Code::OverrideRecorded).found(found))
        }
        Step::Finished(_) => {
            let disputed: Vec<&str> = run.disputed().map(|claim| claim.as_str()).collect();
            let finding = || {
                Finding::new(Code::ClaimDisputed)
                    .severity(Severity::Warning)
                    .expected("an answer to every challenge")
                    .found(disputed.join(", "))
            };
            (!disputed.is_empty()).then(finding)
        }
        _ => None,
    }
}
