//! Guarded runs as their tasks see them: one begins, one ends, and what its rules forbid was tried.

use super::{Act, Decided, Moment, Rules, executor, system};
use crate::event::{Actor, Payload};
use crate::guard::{Begun, Outcome as Verdict, State, Step};
use crate::ids::{AgentName, Digest, RunId, TaskId, TraceId};
use crate::limits::{GUARD_REFUSALS_KEPT_MAX, REASON_CHARS_MAX};
use crate::roles::Role;
use crate::task::event::{GuardOpened, GuardRefused, Transitioned, Verified};
use crate::task::worklog::one_line;
use crate::task::{Board, Outcome, Refusal, Status, Task, TaskEvent};

/// A guarded run that is to begin, under a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardBegins {
    pub task: TaskId,
    pub fence: u64,
    pub begun: Begun,
}

/// A guarded run that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardEnded {
    pub task: TaskId,
    pub run: RunId,
    pub trace: TraceId,
    /// The last event of its trace.
    pub head: Digest,
    pub state: State,
    pub verdict: Option<Verdict>,
    pub why: String,
}

impl Board {
    /// Begins a guarded run in a trace of its own, or gives the one that was begun and did not come to its end.
    pub fn begin_guard(&self, begins: &GuardBegins, moment: Moment) -> Result<(TraceId, Decided), Refusal> {
        let mut act = Act::on(self, &begins.task, moment)?;
        let lease = act.task.lease.clone().filter(|lease| lease.fence == begins.fence);
        let Some(lease) = lease else { return Err(Refusal::NoLease) };
        if let Some(open) = act.task.guard {
            return Ok((open, Decided::nothing()));
        }
        let (by, trace) = (system(), act.ids.trace());
        act.emit(&by, &TaskEvent::GuardOpened(GuardOpened { trace, players: begins.begun.team.players() }));
        let title = Some(format!("guarded run of {}", act.task.id));
        let run = Some((lease.run, lease.fence));
        act.push(&by, trace, Payload::TraceOpened { title }, Vec::new(), run, lease.session.clone());
        let begun = Step::Begun(begins.begun.clone()).to_payload();
        act.push(&by, trace, begun, Vec::new(), run, lease.session);
        Ok((trace, act.done()))
    }

    /// Cites what a guarded run came to, and moves the task accordingly: completed to review or to its end, failed to blocked, aborted to cancelled.
    pub fn end_guard(&self, ended: &GuardEnded, rules: Rules, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &ended.task, moment)?;
        if act.task.guard != Some(ended.trace) {
            return Ok(Decided::nothing());
        }
        let by = system();
        let why: String = one_line(&ended.why).chars().take(REASON_CHARS_MAX).collect();
        let GuardEnded { trace, head, state, verdict, .. } = *ended;
        act.emit(&by, &TaskEvent::Verified(Verified { trace, head, state, verdict, why: why.clone() }));
        let is_its_own = act.task.lease.as_ref().is_none_or(|lease| lease.run == ended.run);
        if !is_its_own {
            return Ok(act.done());
        }
        match state {
            State::Completed => {
                let report = act.task.said.report.clone();
                let by = report.as_ref().map_or(by, |report| executor(&report.agent));
                let (outcome, why) =
                    report.map_or((Outcome::NeedsReview, String::new()), |said| (said.outcome, said.reason));
                super::recover::apply_outcome(&mut act, &by, outcome, &why, "verified", rules);
            }
            State::Aborted if act.task.status.may_become(Status::Cancelled) => {
                act.go(&by, Status::Cancelled, "aborted");
            }
            // Somebody has moved it meanwhile.
            State::Aborted => {}
            _ if !act.task.status.may_become(Status::Blocked) => {}
            _ => {
                let why = if why.is_empty() { "the guarded run failed".to_owned() } else { why };
                let moved = Transitioned {
                    from: act.task.status,
                    to: Status::Blocked,
                    reason: "verification_failed".into(),
                    block_reason: Some(why),
                    not_before: None,
                    by_report: false,
                    revived: false,
                };
                act.go_with(&by, Status::Blocked, moved);
            }
        }
        Ok(act.done())
    }

    /// Whether an agent plays a part in a guarded run that is open: what it makes for others is guarded too.
    pub fn is_in_a_guarded_run(&self, by: &Actor) -> bool {
        by.role == Role::Executor && self.runs_of(&by.agent).next().is_some()
    }

    /// The tasks whose guarded runs are open and have a part for this agent.
    pub fn runs_of<'a>(&'a self, agent: &'a AgentName) -> impl Iterator<Item = &'a Task> {
        self.tasks().filter(|task| task.guard.is_some() && task.players.contains(agent))
    }

    /// Records that the rules of guarded work kept somebody from something; of one run not more often than anybody would read.
    pub fn refuse_guarded(
        &self,
        task: &TaskId,
        agent: &AgentName,
        what: &str,
        rule: Option<&str>,
        why: &str,
        moment: Moment,
    ) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, task, moment)?;
        if act.task.refusals >= GUARD_REFUSALS_KEPT_MAX {
            return Ok(Decided::nothing());
        }
        let short = |text: &str| one_line(text).chars().take(REASON_CHARS_MAX).collect::<String>();
        let refused = GuardRefused {
            agent: agent.clone(),
            what: short(what),
            rule: rule.map(str::to_owned),
            why: short(why),
        };
        act.emit(&system(), &TaskEvent::GuardRefused(refused));
        Ok(act.done())
    }
}
