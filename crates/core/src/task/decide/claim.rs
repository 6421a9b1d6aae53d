//! Leases: taken, kept by beats, given back. Every acquisition raises the fence by one, and whoever shows an older one is refused.

use super::{Act, Decided, Moment, OPERATOR, executor};
use crate::ids::{AgentName, RunId, TaskId, Token};
use crate::roles::{OWN_AGENT, is_own_name};
use crate::task::event::{LeaseAcquired, LeaseEnded, LeaseRenewed};
use crate::task::{Board, Lease, Refusal, Status, Task, TaskEvent};
use crate::time::Timestamp;

/// A wish to work on a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub task: TaskId,
    pub agent: AgentName,
    pub ttl_ms: i64,
    pub beat_ttl_ms: i64,
    pub session: Option<Token>,
    /// How far the present holder's last beat reaches, where the ledger does not know of it.
    pub beaten_until: Option<Timestamp>,
}

/// Whoever says that it holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub task: TaskId,
    pub agent: AgentName,
    pub fence: u64,
    /// How far its last beat reaches, where the ledger does not know of it.
    pub beaten_until: Option<Timestamp>,
}

/// What a beat leads to: new ends, which are always kept, and an event where they moved far enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Beat {
    pub expires_at: Timestamp,
    pub beat_until: Timestamp,
    pub decided: Decided,
}

/// A lease is recorded anew when its end moves by this part of its length.
const RECORD_PART: i64 = 4;

impl Board {
    /// Gives a task to an agent, or says who has it.
    pub fn claim(&self, claim: &Claim, moment: Moment) -> Result<(RunId, Decided), Refusal> {
        let mut act = Act::on(self, &claim.task, moment)?;
        if is_own_name(claim.agent.as_str()) || claim.agent.as_str() == OPERATOR {
            let expected = format!("an agent's name; {OWN_AGENT} is Baton itself and {OPERATOR} a person");
            return Err(Refusal::Field { field: "agent", expected, got: claim.agent.to_string() });
        }
        if let Some(lease) = &act.task.lease
            && lease.agent != claim.agent
            && !lease.is_over(moment.now, claim.beaten_until)
        {
            return Err(held(lease));
        }
        let task = &act.task;
        let from = task.status;
        let is_claimable = match from {
            Status::Ready | Status::Review => task.phase.is_claimable() && task.phase.waits_in() == from,
            Status::InProgress => true,
            Status::Backlog | Status::Blocked | Status::Done | Status::Cancelled | Status::Deadletter => {
                false
            }
        };
        if !is_claimable {
            return Err(Refusal::NotClaimable { status: from, phase: task.phase });
        }
        if task.is_held_to_rules() && claim.session.is_none() {
            return Err(Refusal::Guarded("nobody claims it from outside"));
        }
        expect_other_hands(task, &claim.agent, claim.session.as_ref())?;
        act.expect_dependencies_done()?;
        for dependency in act.task.depends_on.clone() {
            if let Some(other) = self.get(&dependency) {
                act.rests_on(other);
            }
        }
        let by = executor(&claim.agent);
        if let Some(lease) = act.task.lease.clone() {
            let reason = if lease.agent == claim.agent { "claimed_again" } else { "lease_expired" };
            act.emit(&by, &TaskEvent::LeaseExpired(ended(&lease, reason)));
        }
        let run_id = act.ids.run();
        act.emit(
            &by,
            &TaskEvent::LeaseAcquired(LeaseAcquired {
                agent: claim.agent.clone(),
                run_id,
                fence: act.task.fence + 1,
                expires_at: moment.now.plus_ms(claim.ttl_ms),
                beat_until: moment.now.plus_ms(claim.beat_ttl_ms),
                ttl_ms: claim.ttl_ms,
                beat_ttl_ms: claim.beat_ttl_ms,
                session: claim.session.clone(),
            }),
        );
        if from != Status::InProgress {
            act.go(&by, Status::InProgress, "claimed");
        }
        Ok((run_id, act.done()))
    }

    /// Keeps a lease alive.
    pub fn beat(&self, holder: &Holder, moment: Moment) -> Result<Beat, Refusal> {
        let mut act = Act::on(self, &holder.task, moment)?;
        let lease = expect_holder(&act.task, holder, moment.now)?.clone();
        let expires_at = moment.now.plus_ms(lease.ttl_ms).max(lease.expires_at);
        let beat_until = moment.now.plus_ms(lease.beat_ttl_ms).max(lease.beat_until);
        let moved_ms = expires_at.unix_ms() - lease.expires_at.unix_ms();
        let beat_moved_ms = beat_until.unix_ms() - lease.beat_until.unix_ms();
        if moved_ms * RECORD_PART >= lease.ttl_ms || beat_moved_ms * RECORD_PART >= lease.beat_ttl_ms {
            act.emit(
                &executor(&holder.agent),
                &TaskEvent::LeaseRenewed(LeaseRenewed {
                    fence: lease.fence,
                    expires_at,
                    beat_until,
                    renew_count: lease.renew_count + 1,
                    bad_result: None,
                }),
            );
        }
        Ok(Beat { expires_at, beat_until, decided: act.done() })
    }

    /// Gives a task back: no attempt failed, somebody else may go on.
    pub fn release(&self, holder: &Holder, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &holder.task, moment)?;
        expect_holder(&act.task, holder, moment.now)?;
        if act.task.guard.is_some() {
            return Err(Refusal::Guarded("it goes where its run says, and is not given back"));
        }
        let to = act.task.waiting_status();
        act.go(&executor(&holder.agent), to, "released");
        Ok(act.done())
    }
}

pub(super) fn held(lease: &Lease) -> Refusal {
    Refusal::Held { agent: lease.agent.clone(), until: lease.ends_at(), fence: lease.fence }
}

pub(super) fn ended(lease: &Lease, reason: &str) -> LeaseEnded {
    LeaseEnded {
        agent: lease.agent.clone(),
        fence: lease.fence,
        run_id: lease.run,
        reason: reason.to_owned(),
    }
}

/// The lease, if this is who holds it.
pub(super) fn expect_holder<'t>(
    task: &'t Task,
    holder: &Holder,
    now: Timestamp,
) -> Result<&'t Lease, Refusal> {
    let lost = |now: String| Refusal::LostLease { agent: holder.agent.clone(), fence: holder.fence, now };
    match &task.lease {
        None => Err(lost(format!("nobody does, the task is in {}", task.status))),
        Some(lease) if lease.agent != holder.agent || lease.fence != holder.fence => {
            Err(lost(format!("{} does with fence {}", lease.agent, lease.fence)))
        }
        Some(lease) if lease.is_over(now, holder.beaten_until) => {
            Err(lost(format!("the lease ended at {}", lease.ends_at())))
        }
        Some(lease) => Ok(lease),
    }
}

/// Nobody judges what they made themselves.
fn expect_other_hands(task: &Task, agent: &AgentName, session: Option<&Token>) -> Result<(), Refusal> {
    let did = |phase| {
        task.workers.get(&phase).is_some_and(|worker| {
            worker.agent == *agent || (session.is_some() && worker.session.as_ref() == session)
        })
    };
    let is_own = task.phase.before().is_some_and(did)
        || (task.phase.is_judgement() && did(crate::task::Phase::Implementation));
    match is_own {
        true => Err(Refusal::OwnWork { agent: agent.clone(), phase: task.phase }),
        false => Ok(()),
    }
}
