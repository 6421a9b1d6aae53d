//! What a failure of tasks means to a person.

use baton_core::TaskId;
use baton_core::task::{Refusal, Status, Task};
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
            Fault::Busy | Fault::Changed { .. } => CliError::new(Code::Busy, fault.to_string()),
            Fault::Ending => CliError::new(Code::ServerEnds, fault.to_string()).hint("baton serve"),
        }
    }
}

impl CliError {
    /// The same where it is known which task it is about: the hint is a command about that one.
    pub(crate) fn about(fault: Fault, id: &TaskId, task: Option<&Task>) -> CliError {
        let hint = match &fault {
            Fault::Refused(refusal) => next_step(refusal, id, task),
            _ => None,
        };
        match hint {
            Some(hint) => CliError::from(fault).hint(hint),
            None => fault.into(),
        }
    }
}

/// What to do about a task that was refused something.
fn next_step(refusal: &Refusal, id: &TaskId, task: Option<&Task>) -> Option<String> {
    let show = || format!("baton task show {id}");
    let claim = || format!("baton task claim {id} --agent NAME");
    let ready = |why: &str| format!("baton task move {id} ready --reason \"{why}\"");
    let status = task.map(|task| task.status);
    Some(match refusal {
        Refusal::ByClaimOnly => claim(),
        Refusal::NotClaimable { status: Status::Backlog, .. } => ready("worth doing now"),
        Refusal::NotClaimable { status: Status::Blocked, .. } => ready("…"),
        Refusal::NotClaimable { status: Status::Deadletter, .. } => format!("baton task retry {id}"),
        Refusal::NotClaimable { status: Status::Review, .. } | Refusal::CiPending => show(),
        // To in-progress nobody gets by a move, from wherever.
        Refusal::Transition { to: Status::InProgress, from } => match from {
            Status::Backlog => ready("worth doing now"),
            Status::Blocked => ready("…"),
            Status::Deadletter => format!("baton task retry {id}"),
            _ => show(),
        },
        Refusal::Transition { .. } => show(),
        // It names the run, which can be aborted.
        Refusal::Guarded(_) if status == Some(Status::InProgress) => show(),
        Refusal::Guarded(_) => format!("baton run --task {id}"),
        // Somebody else may.
        Refusal::OwnWork { .. } => claim(),
        Refusal::LostLease { .. } | Refusal::NoLease if status == Some(Status::Ready) => claim(),
        Refusal::LostLease { .. }
        | Refusal::NoLease
        | Refusal::OtherSession { .. }
        | Refusal::PhaseMismatch { .. }
        | Refusal::NoNextPhase(_) => show(),
        Refusal::NotFound(_)
        | Refusal::Exists(_)
        | Refusal::Field { .. }
        | Refusal::Limit(_)
        | Refusal::DependenciesOpen(_)
        | Refusal::DependencyNotFound(_)
        | Refusal::ParentNotFound(_)
        | Refusal::Cycle(_)
        | Refusal::ParentCycle(_)
        | Refusal::Held { .. }
        | Refusal::NotClaimable { .. }
        | Refusal::NotRetryable(_)
        | Refusal::NotInCi { .. }
        | Refusal::LateVerdict
        | Refusal::NotInReview { .. } => return None,
    })
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
            Refusal::Guarded(_) => (Code::NotClaimable, Some("baton run --task ID".to_owned())),
            Refusal::OwnWork { .. } => (Code::OwnWork, Some("baton task ls --status review".to_owned())),
            Refusal::LostLease { .. } => (Code::LeaseLost, Some("baton task ls".to_owned())),
            Refusal::NoLease
            | Refusal::OtherSession { .. }
            | Refusal::PhaseMismatch { .. }
            | Refusal::NoNextPhase(_)
            | Refusal::CiPending => (Code::PhaseRefused, Some("baton task ls".to_owned())),
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
