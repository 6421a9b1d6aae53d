//! What a failure of tasks means to a person.

use baton_core::task::Refusal;
use baton_runtime::Fault;

use super::{CliError, Code};

impl From<Fault> for CliError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(refusal) => refusal.into(),
            Fault::Append(error) => error.into(),
            Fault::Read(error) => error.into(),
            Fault::Registry(error) => error.into(),
            Fault::Key(error) => error.into(),
            Fault::Files { what, source } => {
                CliError::new(Code::TaskFiles, format!("cannot use the files of {what}"))
                    .cause(source.to_string())
                    .hint("baton doctor")
            }
            Fault::InTheWay(found) => CliError::in_the_way(Code::TaskFiles, &found),
            Fault::Busy => CliError::new(Code::Busy, fault.to_string()),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> Self {
        let (code, hint) = match &refusal {
            Refusal::NotFound(_) => (Code::NoTask, Some("baton task ls".to_owned())),
            Refusal::Exists(id) => (Code::TaskExists, Some(format!("baton task show {id}"))),
            Refusal::Field { .. } | Refusal::Limit(_) => (Code::TaskField, None),
            Refusal::ByClaimOnly => (Code::Transition, Some("baton task claim ID --agent NAME".to_owned())),
            Refusal::Transition { .. } => (Code::Transition, None),
            Refusal::DependenciesOpen(ids) => {
                (Code::DependenciesOpen, ids.first().map(|id| format!("baton task show {id}")))
            }
            Refusal::DependencyNotFound(_) | Refusal::ParentNotFound(_) => {
                (Code::NoDependency, Some("baton task ls".to_owned()))
            }
            Refusal::Cycle(_) | Refusal::ParentCycle(_) => (Code::DependencyCycle, None),
            Refusal::Held { .. } => (Code::LeaseHeld, Some("baton task ls --status ready".to_owned())),
            Refusal::NotClaimable { .. } => {
                (Code::NotClaimable, Some("baton task ls --status ready".to_owned()))
            }
            Refusal::OwnWork { .. } => (Code::OwnWork, None),
            Refusal::LostLease { .. } => (Code::LeaseLost, None),
            Refusal::NoLease
            | Refusal::OtherSession { .. }
            | Refusal::PhaseMismatch { .. }
            | Refusal::NoNextPhase(_)
            | Refusal::CiPending => (Code::PhaseRefused, None),
            Refusal::NotRetryable(_) => {
                (Code::NotWaiting, Some("baton task ls --status deadletter".to_owned()))
            }
            Refusal::NotInCi { .. } | Refusal::LateVerdict | Refusal::NotInReview { .. } => {
                (Code::NotWaiting, Some("baton task ls --status review".to_owned()))
            }
        };
        let error = CliError::new(code, refusal.to_string());
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
