//! Messages of agents: who may send them, in which state, and what they lead to. What a message is made of was checked before.

use serde_json::{Map, Value};

use super::recover::{Rules, apply_outcome};
use super::{Act, Decided, Ids, Moment, OPERATOR, executor, system};
use crate::event::{Actor, ArtifactRef, Event};
use crate::ids::{AgentName, Digest, TaskId, TraceId};
use crate::protocol::{
    Body, CompletionReport, Detail, HandoffRejected, HandoffRequest, Message, Reason, Rejection, StatusUpdate,
};
use crate::roles::is_own_name;
use crate::task::event::{
    Completed, DelegationAnswered, DelegationRequested, Logged, MessageReceived, MessageRejected,
    MessageUnknown, MessageWarning, Transitioned,
};
use crate::task::{Board, Outcome, Phase, Refusal, Status, Task, TaskEvent};

/// A message with what the edge found out about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub message: Message,
    /// Of type, sender and payload: the same again is the same message.
    pub digest: Digest,
    /// The whole message, where it is too large to stand in the event.
    pub original: Option<ArtifactRef>,
    /// Whether the summary that a report names is there.
    pub has_summary: bool,
    /// `outputs/handoff.md`, where it is there.
    pub handoff_ref: Option<String>,
    /// Whether a session of Baton's own runs the task: then its end makes the transitions.
    pub has_session: bool,
}

/// The deepest chain of handoffs: a task that was handed over is not handed on.
const DELEGATION_DEPTH_MAX: u64 = 1;

type Checked = Result<(), Rejection>;

impl Board {
    /// Takes a message in. What is refused is recorded too, against the task where there is one.
    pub fn tell(&self, told: &Told, rules: Rules, moment: Moment) -> (Checked, Decided) {
        if self.is_repeated(told) {
            return (Ok(()), Decided::nothing());
        }
        match self.take(told, rules, moment) {
            Ok(decided) => (Ok(()), decided),
            Err(reason) => {
                let rejection = Rejection {
                    task: Some(told.message.task.clone()),
                    from: Some(told.message.from.clone()),
                    message_type: Some(told.message.type_name().to_owned()),
                    ..reason
                };
                let decided = self.reject_message(&rejection, moment);
                (Err(rejection), decided)
            }
        }
    }

    /// Records a message that was not taken, in the trace of its task or else in the ledger's own.
    pub fn reject_message(&self, rejection: &Rejection, moment: Moment) -> Decided {
        let from_agent = rejection.from.as_ref().map(ToString::to_string);
        let mut events = Vec::new();
        let is_unknown = rejection.reason == Reason::UnknownType;
        if is_unknown {
            let message_type = rejection.message_type.clone().unwrap_or_default();
            events.push(TaskEvent::MessageUnknown(MessageUnknown {
                message_type,
                from_agent: from_agent.clone(),
            }));
        } else {
            events.push(TaskEvent::MessageRejected(MessageRejected {
                reason: rejection.reason.as_str().to_owned(),
                detail: rejection.detail.as_ref().map_or(Value::Null, Detail::to_json),
                message_type: rejection.message_type.clone(),
                from_agent: from_agent.clone(),
            }));
            let is_request = rejection.message_type.as_deref() == Some("handoff.request");
            if let (true, Some(agent)) = (is_request, rejection.from.clone()) {
                let reason = Some(rejection.reason.as_str().to_owned());
                events.push(TaskEvent::DelegationRejected(DelegationAnswered {
                    agent,
                    reason,
                    digest: None,
                }));
            }
        }
        let by = system();
        match rejection.task.as_ref().and_then(|id| self.get(id)) {
            Some(task) => {
                let mut act = Act::of(self, task.clone(), moment);
                events.iter().for_each(|event| act.emit(&by, event));
                act.done()
            }
            None => {
                let mut ids = Ids::new(moment);
                let task = rejection.task.as_ref();
                let events =
                    events.iter().map(|event| loose_event(&mut ids, moment, task, &by, event)).collect();
                Decided { events, decided_on: Vec::new() }
            }
        }
    }

    /// Nobody speaks as Baton itself, and nobody's update for somebody else.
    fn expect_own_name(told: &Told) -> Checked {
        let from = &told.message.from;
        if is_own_name(from.as_str()) {
            let detail = Detail::Text(format!("the name {from} stands for Baton itself"));
            return Err(Rejection::new(Reason::UnauthorizedAgent, Some(detail)));
        }
        match &told.message.body {
            Body::Status(update) if update.agent != *from => Err(unauthorized(from, &update.agent)),
            _ => Ok(()),
        }
    }

    /// Whether this is what was last accepted, and so no news.
    fn is_repeated(&self, told: &Told) -> bool {
        let Some(task) = self.get(&told.message.task) else { return false };
        let digest = Some(told.digest);
        match &told.message.body {
            // In a guarded run the same words after another proposal are about other work.
            Body::Completion(_) => {
                task.guard.is_none() && task.said.report.as_ref().map(|report| report.digest) == digest
            }
            Body::Status(_) => task.said.update == digest,
            Body::HandoffRequest(_) => task.handoff.as_ref().map(|handoff| handoff.digest) == digest,
            Body::HandoffAccepted(_) | Body::HandoffRejected(_) => {
                task.handoff.as_ref().is_some_and(|handoff| handoff.answer == digest)
            }
        }
    }

    fn take(&self, told: &Told, rules: Rules, moment: Moment) -> Result<Decided, Rejection> {
        let message = &told.message;
        let task = self.get(&message.task).ok_or_else(|| refuse(Reason::TaskNotFound))?;
        Board::expect_own_name(told)?;
        let act = Act::of(self, task.clone(), moment);
        match &message.body {
            Body::Completion(report) => complete(act, told, report, rules),
            Body::Status(update) => update_status(act, told, update),
            Body::HandoffRequest(request) => hand_over(act, told, request),
            Body::HandoffAccepted(_) => answer(act, told, None),
            Body::HandoffRejected(rejected) => answer(act, told, Some(rejected)),
        }
    }
}

/// An event that belongs to no task that is there.
fn loose_event(ids: &mut Ids, moment: Moment, task: Option<&TaskId>, by: &Actor, event: &TaskEvent) -> Event {
    Event {
        trace: TraceId::Ledger,
        id: ids.event(),
        at: moment.now,
        actor: by.clone(),
        task: task.map(TaskId::to_token),
        run: None,
        session: None,
        fence: None,
        payload: event.to_payload(),
        artifacts: Vec::new(),
        seen: None,
    }
}

fn refuse(reason: Reason) -> Rejection {
    Rejection::new(reason, None)
}

fn unauthorized(expected: &AgentName, received: &AgentName) -> Rejection {
    let detail = Detail::Agents { expected: expected.to_string(), received: received.to_string() };
    Rejection::new(Reason::UnauthorizedAgent, Some(detail))
}

fn is_operator(agent: &AgentName) -> bool {
    agent.as_str() == OPERATOR
}

/// The holder of the lease may speak, or where there is none whoever the task is routed to; a person always.
fn expect_sender(task: &Task, message: &Message) -> Checked {
    if let Some(fence) = message.fence.filter(|fence| task.lease.as_ref().map(|l| l.fence) != Some(*fence)) {
        let now = match &task.lease {
            Some(lease) => format!("the lease has fence {}, the message {fence}", lease.fence),
            None => format!("nobody holds the task, the message has fence {fence}"),
        };
        return Err(Rejection::new(Reason::StaleFence, Some(Detail::Text(now))));
    }
    let holder = task.lease.as_ref().map(|lease| &lease.agent).or(task.routing.agent.as_ref());
    match holder {
        _ if is_operator(&message.from) => Ok(()),
        Some(holder) if *holder == message.from => Ok(()),
        Some(holder) => Err(unauthorized(holder, &message.from)),
        None => Err(refuse(Reason::UnassignedTask)),
    }
}

/// Starts the record of an accepted message.
fn receive(act: &mut Act<'_>, told: &Told) -> Actor {
    let message = &told.message;
    let by = executor(&message.from);
    let received = TaskEvent::MessageReceived(MessageReceived {
        message_type: message.type_name().to_owned(),
        from_agent: message.from.clone(),
        digest: told.digest,
        message: if told.original.is_some() { Map::new() } else { message.raw.clone() },
    });
    act.emit_with(&by, &received, told.original.iter().cloned().collect());
    by
}

fn warn(act: &mut Act<'_>, reason: &str, detail: Value) {
    let warning = MessageWarning { reason: reason.to_owned(), detail };
    act.emit(&system(), &TaskEvent::MessageWarning(warning));
}

fn complete(
    mut act: Act<'_>,
    told: &Told,
    report: &CompletionReport,
    rules: Rules,
) -> Result<Decided, Rejection> {
    expect_sender(&act.task, &told.message)?;
    match act.task.status {
        Status::InProgress | Status::Review | Status::Blocked => {}
        status
        @ (Status::Backlog | Status::Ready | Status::Done | Status::Cancelled | Status::Deadletter) => {
            let detail = format!("a report for a task in {status}; expected in-progress, review or blocked");
            return Err(Rejection::new(Reason::InvalidState, Some(Detail::Text(detail))));
        }
    }
    let by = receive(&mut act, told);
    if !told.has_summary {
        warn(&mut act, "summary_file_not_found", report.summary_ref.as_str().into());
    }
    let lease = act.task.lease.as_ref();
    let completed = Completed {
        agent: told.message.from.clone(),
        run_id: lease.map(|lease| lease.run),
        fence: lease.map_or(act.task.fence, |lease| lease.fence),
        outcome: report.outcome,
        digest: told.digest,
        report: report.fields(),
        handoff_ref: told.handoff_ref.clone(),
    };
    let why = crate::task::report::reason_of(&completed.report);
    act.emit(&by, &TaskEvent::Completed(completed));
    // Without a lease it is the word of somebody who is not at work: it moves only what waits for an implementation.
    let phase = act.task.phase_before_block.unwrap_or(act.task.phase);
    let may_move = act.task.lease.is_some() || matches!(phase, Phase::Draft | Phase::Implementation);
    // What a guarded run came to, its verification says.
    let may_move = may_move && (is_operator(&told.message.from) || !act.task.is_held_to_rules());
    if !told.has_session && may_move {
        let reason = match report.outcome {
            Outcome::Blocked if !why.is_empty() => crate::task::worklog::one_line(&why),
            outcome => format!("completion_{outcome}"),
        };
        let reason: String = reason.chars().take(crate::limits::REASON_CHARS_MAX).collect();
        apply_outcome(&mut act, &by, report.outcome, &why, &reason, rules);
    }
    Ok(act.done())
}

fn update_status(mut act: Act<'_>, told: &Told, update: &StatusUpdate) -> Result<Decided, Rejection> {
    expect_sender(&act.task, &told.message)?;
    let by = receive(&mut act, told);
    // An agent asks for a review, for help, or to be relieved. A person may also end a task; who works on it is said by a claim alone.
    let is_person = is_operator(&told.message.from);
    let may_ask = |to: Status| {
        let is_askable = match to {
            _ if act.task.guard.is_some() && !is_person => false,
            Status::Review | Status::Blocked | Status::Ready => true,
            Status::Done => is_person && act.board.open_dependencies(&act.task).next().is_none(),
            Status::Backlog | Status::Cancelled | Status::Deadletter => is_person,
            Status::InProgress => false,
        };
        is_askable && act.task.status.may_become(to)
    };
    match update.status.filter(|to| may_ask(*to)) {
        Some(to) => {
            let why = [update.blockers.join("; "), update.notes.clone().unwrap_or_default()];
            let progress = update.progress.clone().unwrap_or_default();
            let why = why.into_iter().chain([progress]).find(|text| !text.trim().is_empty());
            let reason = why.unwrap_or_else(|| format!("status_update_{to}"));
            let reason = crate::task::worklog::one_line(&reason);
            let reason: String = reason.chars().take(crate::limits::REASON_CHARS_MAX).collect();
            let moved = Transitioned {
                from: act.task.status,
                to,
                block_reason: (to == Status::Blocked).then(|| reason.clone()),
                reason,
                not_before: None,
                by_report: to == Status::Review,
                revived: false,
            };
            act.go_with(&by, to, moved);
        }
        None => {
            let logged = Logged {
                progress: update.progress.clone(),
                notes: update.notes.clone(),
                blockers: update.blockers.clone(),
            };
            if logged.progress.is_some() || logged.notes.is_some() || !logged.blockers.is_empty() {
                act.emit(&by, &TaskEvent::Logged(logged));
            }
        }
    }
    Ok(act.done())
}

fn hand_over(mut act: Act<'_>, told: &Told, request: &HandoffRequest) -> Result<Decided, Rejection> {
    let parent = act.board.get(&request.parent).ok_or_else(|| refuse(Reason::ParentNotFound))?;
    let from = &told.message.from;
    match &parent.lease {
        _ if is_operator(from) => {}
        None => return Err(refuse(Reason::UnassignedTask)),
        Some(lease) if lease.agent != *from => return Err(unauthorized(&lease.agent, from)),
        Some(lease) if told.message.fence.is_some_and(|fence| fence != lease.fence) => {
            let now = format!("the parent's lease has fence {}", lease.fence);
            return Err(Rejection::new(Reason::StaleFence, Some(Detail::Text(now))));
        }
        Some(_) => {}
    }
    if request.from != *from {
        return Err(unauthorized(from, &request.from));
    }
    let depth = parent.delegation_depth() + 1;
    if depth > DELEGATION_DEPTH_MAX {
        return Err(refuse(Reason::NestedDelegation));
    }
    if let Some(other) = act.task.parent.as_ref().filter(|other| **other != parent.id) {
        let detail = format!("it is a part of {other}");
        return Err(Rejection::new(Reason::InvalidState, Some(Detail::Text(detail))));
    }
    if let Some(routed) = act.task.routing.agent.as_ref()
        && *routed != request.to
        && *routed != *from
        && !is_operator(from)
        // Where this agent routed it itself, it may choose again.
        && act.task.handoff.as_ref().is_none_or(|before| before.from != *from)
    {
        return Err(unauthorized(routed, &request.to));
    }
    // A task that somebody blocked is not taken over, unless refusing this very handoff blocked it.
    let is_refused = act.task.handoff.as_ref().is_some_and(|handoff| handoff.answer.is_some());
    let is_free = match act.task.status {
        Status::Backlog | Status::Ready => act.task.lease.is_none(),
        Status::Blocked => is_refused || is_operator(from),
        Status::InProgress | Status::Review | Status::Done | Status::Cancelled | Status::Deadletter => false,
    };
    if let Some(circle) = act.board.parent_cycle(&act.task.id, &parent.id) {
        let detail = Refusal::ParentCycle(circle).to_string();
        return Err(Rejection::new(Reason::InvalidState, Some(Detail::Text(detail))));
    }
    if !is_free {
        let detail = format!("a task in {} cannot be handed over", act.task.status);
        return Err(Rejection::new(Reason::InvalidState, Some(Detail::Text(detail))));
    }
    act.rests_on(parent);
    let by = receive(&mut act, told);
    for warning in &request.warnings {
        warn(&mut act, warning.reason, warning.detail.to_json());
    }
    act.emit(
        &by,
        &TaskEvent::DelegationRequested(DelegationRequested {
            parent_task_id: request.parent.clone(),
            from_agent: request.from.clone(),
            to_agent: request.to.clone(),
            depth,
            digest: told.digest,
            handoff: request.fields(),
        }),
    );
    Ok(act.done())
}

fn answer(mut act: Act<'_>, told: &Told, rejected: Option<&HandoffRejected>) -> Result<Decided, Rejection> {
    let handoff = act.task.handoff.clone().ok_or_else(|| refuse(Reason::NoHandoff))?;
    let from = &told.message.from;
    if *from != handoff.to && !is_operator(from) {
        return Err(unauthorized(&handoff.to, from));
    }
    let digest = Some(told.digest);
    match rejected {
        None => {
            let by = receive(&mut act, told);
            let accepted = DelegationAnswered { agent: from.clone(), reason: None, digest };
            act.emit(&by, &TaskEvent::DelegationAccepted(accepted));
        }
        Some(HandoffRejected { reason }) => {
            let status = act.task.status;
            if status != Status::Blocked && !status.may_become(Status::Blocked) {
                let detail = format!("a task in {status} cannot be refused any more");
                return Err(Rejection::new(Reason::InvalidState, Some(Detail::Text(detail))));
            }
            let by = receive(&mut act, told);
            if status != Status::Blocked {
                let reason = crate::task::worklog::one_line(reason);
                act.go(&by, Status::Blocked, &reason);
            }
            let reason = Some(reason.clone());
            let refused = DelegationAnswered { agent: from.clone(), reason, digest };
            act.emit(&by, &TaskEvent::DelegationRejected(refused));
        }
    }
    Ok(act.done())
}
