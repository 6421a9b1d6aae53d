//! Decisions one after the other on a board that lives in the test: what an agent may not do for itself, and what becomes of sessions.

mod guarded;

use serde_json::{Value, json};

use super::*;
use crate::ids::{Digest, Token};
use crate::limits::{TAG_CHARS_MAX, TAGS_MAX};
use crate::protocol::exit_signal::{ExitReason, ExitSignal};
use crate::protocol::{self, Reason, Rejection};
use crate::task::Outcome;

/// A board, a clock, and everything that is decided applied at once.
struct Desk {
    board: Board,
    now: Timestamp,
    count: u8,
    rules: Rules,
}

impl Desk {
    fn new() -> Desk {
        let now = "2026-02-09T21:00:00.000Z".parse().unwrap();
        Desk { board: Board::default(), now, count: 0, rules: Rules { max_attempts: 3, has_ci: false } }
    }

    fn moment(&mut self) -> Moment {
        self.count += 1;
        self.now = self.now.plus_ms(1000);
        Moment { now: self.now, seed: [self.count; 10] }
    }

    fn take(&mut self, decided: &Decided) {
        let before = self.board.clone();
        for (i, event) in decided.events.iter().enumerate() {
            let earlier =
                decided.events[..i].iter().filter(|other| other.trace == event.trace).count() as u64;
            let seq = before.of_trace(event.trace).map_or(0, |task| task.seq) + earlier + 1;
            let at = At { pos: self.board.pos() + 1, trace: event.trace, seq, time: event.at };
            self.board.apply(event.task.as_ref().map(Token::as_str), &event.payload, at).unwrap();
        }
    }

    fn task(&mut self, change: impl FnOnce(&mut New)) -> TaskId {
        let mut new = New::titled("work");
        new.status = Status::Ready;
        change(&mut new);
        let moment = self.moment();
        let (id, decided) = self.board.create(&new, &operator(), moment).unwrap();
        self.take(&decided);
        id
    }

    fn claim(&mut self, id: &TaskId, agent: &str) -> Result<(), Refusal> {
        let claim = Claim {
            task: id.clone(),
            agent: agent.parse().unwrap(),
            ttl_ms: 600_000,
            beat_ttl_ms: 300_000,
            session: None,
            beaten_until: None,
        };
        let moment = self.moment();
        let (_, decided) = self.board.claim(&claim, moment)?;
        self.take(&decided);
        Ok(())
    }

    fn send(&mut self, kind: &str, id: &TaskId, from: &str, payload: &Value) -> Result<(), Rejection> {
        let message = json!({
            "protocol": "aof", "version": 1, "type": kind, "taskId": id.as_str(), "fromAgent": from,
            "toAgent": "dispatcher", "sentAt": "2026-02-09T21:00:00.000Z", "payload": payload,
        });
        let moment = self.moment();
        let told = Told {
            message: protocol::read(message.to_string().as_bytes())?,
            digest: Digest([self.count; 32]),
            original: None,
            has_summary: true,
            handoff_ref: None,
            has_session: false,
        };
        let (answer, decided) = self.board.tell(&told, self.rules, moment);
        self.take(&decided);
        answer
    }

    fn report(&mut self, id: &TaskId, from: &str, outcome: &str) -> Result<(), Rejection> {
        let payload = json!({
            "outcome": outcome, "summaryRef": "outputs/summary.md", "notes": "n",
            "tests": {"total": 1, "passed": 1, "failed": 0},
        });
        self.send("completion.report", id, from, &payload)
    }

    fn block(&mut self, id: &TaskId, from: &str) -> Result<(), Rejection> {
        let payload = json!({"taskId": id.as_str(), "agentId": from, "status": "blocked", "notes": "stuck"});
        self.send("status.update", id, from, &payload)
    }

    fn exit(
        &mut self,
        id: &TaskId,
        reason: ExitReason,
        agent: Option<&str>,
        fence: Option<u64>,
    ) -> Result<(), Refusal> {
        let signal = ExitSignal::new(self.board.get(id).unwrap().phase, reason);
        let moment = self.moment();
        let submit = Submit {
            task: id.clone(),
            session: None,
            agent: agent.map(|name| name.parse().unwrap()),
            fence,
            signal,
            digest: Digest([self.count; 32]),
            evidence: Vec::new(),
            artifacts: Vec::new(),
            warnings: Vec::new(),
        };
        let submitted = self.board.submit(&submit, moment)?;
        self.take(&submitted.decided);
        Ok(())
    }

    fn ci(&mut self, id: &TaskId, change: impl FnOnce(&mut CiVerdict)) -> Result<(), Refusal> {
        let mut verdict = CiVerdict {
            task: id.clone(),
            passed: false,
            exit_code: None,
            reason: String::new(),
            log: None,
            rework: false,
            since: None,
        };
        change(&mut verdict);
        let moment = self.moment();
        let decided = self.board.ci(&verdict, &system(), self.rules, moment)?;
        self.take(&decided);
        Ok(())
    }

    fn ci_passes(&mut self, id: &TaskId) {
        self.ci(id, |verdict| verdict.passed = true).unwrap();
    }

    fn move_to(&mut self, id: &TaskId, to: Status, reason: &str) -> Result<(), Refusal> {
        let asked = Move { task: id.clone(), to, reason: reason.into() };
        let moment = self.moment();
        let decided = self.board.transition(&asked, &operator(), moment)?;
        self.take(&decided);
        Ok(())
    }

    fn edit(&mut self, id: &TaskId, fields: &Value) -> Result<(), Refusal> {
        let fields = fields.as_object().cloned().unwrap();
        let moment = self.moment();
        let edit = Edit { task: id.clone(), fields, file: None };
        let decided = self.board.edit(&edit, &operator(), moment)?;
        self.take(&decided);
        Ok(())
    }

    fn approve(&mut self, id: &TaskId) -> Result<(), Refusal> {
        let moment = self.moment();
        let decided = self.board.approve(&Approve { task: id.clone(), all: false }, &operator(), moment)?;
        self.take(&decided);
        Ok(())
    }

    fn ends(&mut self, id: &TaskId, ending: Ending) -> AfterSession {
        let lease = self.board.get(id).unwrap().lease.clone().unwrap();
        let termination = json!({"exitCode": 3});
        let ended = SessionEnded {
            task: id.clone(),
            run: lease.run,
            fence: lease.fence,
            ending,
            result: None,
            termination,
        };
        let moment = self.moment();
        let after = self.board.session_end(&ended, self.rules, moment).unwrap();
        if let AfterSession::Decided(decided) = &after {
            self.take(decided);
        }
        after
    }

    fn stands(&self, id: &TaskId) -> (Status, Phase) {
        let task = self.board.get(id).unwrap();
        (task.status, task.phase)
    }
}

fn reason(answer: Result<(), Rejection>) -> Reason {
    answer.unwrap_err().reason
}

#[test]
fn whoever_reported_from_blocked_did_the_work_and_does_not_review_it() {
    let mut desk = Desk::new();
    let id = desk.task(|new| new.routing.agent = Some("ada".parse().unwrap()));
    desk.claim(&id, "ada").unwrap();
    desk.block(&id, "ada").unwrap();
    desk.report(&id, "ada", "done").unwrap();
    assert_eq!(desk.stands(&id), (Status::Review, Phase::ReadyForReview));
    assert!(matches!(desk.claim(&id, "ada"), Err(Refusal::OwnWork { .. })));
    desk.claim(&id, "eve").unwrap();
}

#[test]
fn whoever_did_the_work_neither_reviews_nor_merges_it() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    desk.exit(&id, ExitReason::Completed, None, None).unwrap();
    desk.ci_passes(&id);
    for (phase, next) in
        [(Phase::ReadyForReview, "eve"), (Phase::Review, "max"), (Phase::ReadyForMerge, "gus")]
    {
        assert_eq!(desk.stands(&id), (Status::Review, phase));
        assert!(matches!(desk.claim(&id, "ada"), Err(Refusal::OwnWork { .. })), "{phase}");
        desk.claim(&id, next).unwrap();
        desk.exit(&id, ExitReason::Completed, None, None).unwrap();
    }
    assert_eq!(desk.stands(&id), (Status::Done, Phase::Completed));
}

#[test]
fn a_report_without_a_lease_does_not_undo_a_reviewer_and_shortens_nothing() {
    let mut desk = Desk::new();
    desk.rules.has_ci = true;
    let id = desk.task(|new| new.routing.agent = Some("ada".parse().unwrap()));
    desk.claim(&id, "ada").unwrap();
    desk.exit(&id, ExitReason::Completed, None, None).unwrap();
    desk.ci_passes(&id);
    desk.claim(&id, "eve").unwrap();
    desk.exit(&id, ExitReason::Blocked, None, None).unwrap();
    desk.report(&id, "ada", "done").unwrap();
    assert_eq!(desk.stands(&id), (Status::Blocked, Phase::Blocked), "it is recorded, and moves nothing");
    desk.move_to(&id, Status::Review, "sorted out").unwrap();
    desk.approve(&id).unwrap();
    assert_eq!(desk.stands(&id), (Status::Review, Phase::ReadyForMerge), "one approval is one step");
}

#[test]
fn a_late_exit_signal_does_not_end_somebody_else_s_run() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    let holder = Holder { task: id.clone(), agent: "ada".parse().unwrap(), fence: 1, beaten_until: None };
    let moment = desk.moment();
    let decided = desk.board.release(&holder, moment).unwrap();
    desk.take(&decided);
    desk.claim(&id, "bob").unwrap();
    for (agent, fence) in
        [(Some("ada"), None), (None, Some(1)), (Some("ada"), Some(2)), (Some("bob"), Some(1))]
    {
        let refused = desk.exit(&id, ExitReason::Completed, agent, fence).unwrap_err();
        assert!(matches!(refused, Refusal::LostLease { .. }), "{agent:?} {fence:?}: {refused}");
    }
    desk.exit(&id, ExitReason::Completed, Some("bob"), Some(2)).unwrap();
}

#[test]
fn a_handoff_takes_nobody_else_s_task_over() {
    let mut desk = Desk::new();
    let parent = desk.task(|_| {});
    desk.claim(&parent, "ada").unwrap();
    let ask = |child: &TaskId, to: &str| {
        json!({
            "taskId": child.as_str(), "parentTaskId": parent.as_str(), "fromAgent": "ada", "toAgent": to,
            "dueBy": "2026-02-10T12:00:00.000Z",
        })
    };
    let routed = desk.task(|new| new.routing.agent = Some("bob".parse().unwrap()));
    assert_eq!(
        reason(desk.send("handoff.request", &routed, "ada", &ask(&routed, "ada"))),
        Reason::UnauthorizedAgent
    );
    let other = desk.task(|_| {});
    let part = desk.task(|new| new.parent = Some(other.clone()));
    assert_eq!(reason(desk.send("handoff.request", &part, "ada", &ask(&part, "eve"))), Reason::InvalidState);
    let held = desk.task(|_| {});
    desk.move_to(&held, Status::Blocked, "hold").unwrap();
    assert_eq!(reason(desk.send("handoff.request", &held, "ada", &ask(&held, "eve"))), Reason::InvalidState);
    let free = desk.task(|_| {});
    desk.send("handoff.request", &free, "ada", &ask(&free, "eve")).unwrap();
    let answer = json!({"taskId": free.as_str(), "accepted": false, "reason": "no test plan"});
    desk.send("handoff.rejected", &free, "eve", &answer).unwrap();
    assert_eq!(desk.stands(&free).0, Status::Blocked);
    desk.send("handoff.request", &free, "ada", &ask(&free, "gus")).unwrap();
}

#[test]
fn reserved_names_claim_nothing_and_nobody_updates_for_another() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    for name in ["baton", "operator"] {
        assert!(matches!(desk.claim(&id, name), Err(Refusal::Field { field: "agent", .. })), "{name}");
    }
    desk.claim(&id, "ada").unwrap();
    assert_eq!(reason(desk.block(&id, "baton")), Reason::UnauthorizedAgent);
    let payload = json!({"taskId": id.as_str(), "agentId": "bob", "notes": "x"});
    assert_eq!(reason(desk.send("status.update", &id, "ada", &payload)), Reason::UnauthorizedAgent);
}

#[test]
fn the_end_of_a_session_applies_what_was_reported_and_nothing_of_another_run() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    let past = desk.board.get(&id).unwrap().lease.clone().unwrap();
    desk.claim(&id, "ada").unwrap();
    let ended = SessionEnded {
        task: id.clone(),
        run: past.run,
        fence: past.fence,
        ending: Ending::Failed { cause: "crashed".into() },
        result: None,
        termination: Value::Null,
    };
    let moment = desk.moment();
    let after = desk.board.session_end(&ended, desk.rules, moment).unwrap();
    assert_eq!(after, AfterSession::Decided(Decided::nothing()), "a session of an earlier run");
    assert_eq!(desk.stands(&id).0, Status::InProgress);
}

#[test]
fn a_session_without_a_report_is_reminded_once_then_reviewed_and_never_done() {
    let mut desk = Desk::new();
    let id = desk.task(|new| drop(new.metadata.insert("reviewRequired".into(), false.into())));
    desk.claim(&id, "ada").unwrap();
    let first = Ending::Finished { is_reminded: false, needs_signal: false };
    assert_eq!(desk.ends(&id, first), AfterSession::Remind);
    desk.ends(&id, Ending::Finished { is_reminded: true, needs_signal: false });
    let task = desk.board.get(&id).unwrap();
    assert_eq!((task.status, task.attempts), (Status::Review, 0));
    assert_eq!(
        task.said.report.as_ref().map(|report| (report.outcome, report.agent.as_str())),
        Some((Outcome::NeedsReview, "baton"))
    );
}

#[test]
fn failures_count_as_attempts_a_permanent_one_ends_at_once_and_a_limit_is_none() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    let until = desk.now.plus_ms(3_600_000);
    desk.ends(&id, Ending::Limited { until });
    let task = desk.board.get(&id).unwrap();
    assert_eq!((task.status, task.attempts, task.not_before), (Status::Ready, 0, Some(until)));
    for attempt in 1..=3 {
        desk.claim(&id, "ada").unwrap();
        let ending = match attempt {
            1 => Ending::Finished { is_reminded: true, needs_signal: true },
            _ => Ending::Failed { cause: "crashed".into() },
        };
        desk.ends(&id, ending);
        let task = desk.board.get(&id).unwrap();
        assert_eq!(task.attempts, attempt);
        assert_eq!(task.status, if attempt < 3 { Status::Ready } else { Status::Deadletter });
    }
    let other = desk.task(|_| {});
    desk.claim(&other, "ada").unwrap();
    desk.ends(&other, Ending::Permanent { cause: "command not found".into() });
    assert_eq!(desk.stands(&other).0, Status::Deadletter);
}

#[test]
fn a_person_does_not_move_past_ci_by_accident() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    desk.exit(&id, ExitReason::Completed, None, None).unwrap();
    assert_eq!(desk.move_to(&id, Status::Done, "looks fine"), Err(Refusal::CiPending));
    assert_eq!(desk.approve(&id), Err(Refusal::CiPending));
}

#[test]
fn work_that_ci_sends_back_is_a_failed_attempt_like_any_other() {
    let mut desk = Desk::new();
    desk.rules.has_ci = true;
    let id = desk.task(|_| {});
    for attempt in 1..=3 {
        desk.claim(&id, "ada").unwrap();
        desk.exit(&id, ExitReason::Completed, None, None).unwrap();
        desk.ci(&id, |verdict| verdict.rework = true).unwrap();
        let task = desk.board.get(&id).unwrap();
        assert_eq!((task.attempts, task.phase), (attempt, Phase::Implementation));
        assert_eq!(task.status, if attempt < 3 { Status::Ready } else { Status::Deadletter });
        assert_eq!(task.not_before.is_some(), attempt < 3, "another one after a while");
        let ended = task.run.as_ref().and_then(|run| run.ended.clone()).unwrap();
        assert!(!ended.failed, "the run itself ended well: {ended:?}");
    }
}

#[test]
fn a_verdict_counts_only_for_the_wait_that_its_run_began_with() {
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    desk.exit(&id, ExitReason::Completed, None, None).unwrap();
    let first = desk.board.get(&id).unwrap().last_transition_at;
    desk.move_to(&id, Status::Blocked, "hold").unwrap();
    desk.move_to(&id, Status::Review, "go on").unwrap();
    assert_eq!(desk.stands(&id), (Status::Review, Phase::CiPending));
    let late = desk.ci(&id, |verdict| (verdict.passed, verdict.since) = (true, Some(first)));
    assert_eq!(late, Err(Refusal::LateVerdict));
    let now = desk.board.get(&id).unwrap().last_transition_at;
    desk.ci(&id, |verdict| (verdict.passed, verdict.since) = (true, Some(now))).unwrap();
}

#[test]
fn no_task_is_a_part_of_itself() {
    let mut desk = Desk::new();
    let top = desk.task(|_| {});
    let middle = desk.task(|new| new.parent = Some(top.clone()));
    let low = desk.task(|new| new.parent = Some(middle.clone()));
    for parent in [&top, &middle, &low] {
        let refused = desk.edit(&top, &json!({"parentId": parent.as_str()})).unwrap_err();
        let Refusal::ParentCycle(way) = &refused else { panic!("{refused}") };
        assert_eq!((way.first(), way.last()), (Some(&top), Some(&top)), "{refused}");
    }
    desk.claim(&low, "ada").unwrap();
    let ask = json!({
        "taskId": top.as_str(), "parentTaskId": low.as_str(), "fromAgent": "ada", "toAgent": "eve",
        "dueBy": "2026-02-10T12:00:00.000Z",
    });
    assert_eq!(reason(desk.send("handoff.request", &top, "ada", &ask)), Reason::InvalidState);
    desk.edit(&low, &json!({"parentId": top.as_str()})).unwrap();
}

#[test]
fn a_block_that_ends_with_the_dependencies_needs_an_open_one() {
    let mut desk = Desk::new();
    let first = desk.task(|_| {});
    let second = desk.task(|new| new.depends_on = vec![first.clone()]);
    let alone = desk.move_to(&first, Status::Blocked, "dependencies").unwrap_err();
    assert!(matches!(alone, Refusal::Field { field: "reason", .. }), "{alone}");
    desk.move_to(&second, Status::Blocked, "dependencies").unwrap();
}

#[test]
fn what_is_stored_of_a_signal_is_what_the_guide_of_it_says() {
    use crate::protocol::exit_signal::AgentSessionCompleted;
    let mut desk = Desk::new();
    let id = desk.task(|_| {});
    desk.claim(&id, "ada").unwrap();
    let run = desk.board.get(&id).unwrap().lease.as_ref().unwrap().run.to_string();
    let signal = ExitSignal::new(Phase::Implementation, ExitReason::Completed)
        .with_pr_url("https://example.org/pull/1")
        .with_notes("done");
    let submit = Submit {
        task: id.clone(),
        session: None,
        agent: None,
        fence: None,
        signal: signal.clone(),
        digest: Digest([1; 32]),
        evidence: Vec::new(),
        artifacts: Vec::new(),
        warnings: Vec::new(),
    };
    let moment = desk.moment();
    let stored = desk.board.submit(&submit, moment).unwrap().decided.events[0].payload.fields().into_owned();
    for (key, value) in AgentSessionCompleted::from_exit_signal(run, "ada", signal).unwrap().fields() {
        assert_eq!(stored.get(&key), Some(&value), "{key}");
    }
}

#[test]
fn a_new_task_has_no_more_and_no_longer_tags_than_an_edit_could_give_it_and_a_date_that_there_is() {
    let mut desk = Desk::new();
    let moment = desk.moment();
    let create = |change: &dyn Fn(&mut New)| {
        let mut new = New::titled("work");
        change(&mut new);
        desk.board.create(&new, &operator(), moment)
    };
    let tags = |tags: Vec<String>| create(&|new| new.routing.tags = tags.clone());
    assert!(tags(vec!["é".repeat(TAG_CHARS_MAX)]).is_ok());
    assert!(tags(vec!["t".to_owned(); TAGS_MAX]).is_ok());
    for wrong in
        [vec!["é".repeat(TAG_CHARS_MAX + 1)], vec!["t".to_owned(); TAGS_MAX + 1], vec![String::new()]]
    {
        let refused = tags(wrong).unwrap_err();
        assert!(matches!(refused, Refusal::Field { field: "routing", .. }), "{refused}");
    }
    let named = |id: &str| create(&|new| new.id = Some(id.parse().unwrap()));
    assert!(named("TASK-2024-02-29-001").is_ok());
    for id in ["TASK-2026-99-99-001", "TASK-2026-02-29-001", "TASK-2026-00-10-abcd"] {
        let refused = named(id).unwrap_err();
        assert!(matches!(refused, Refusal::Field { field: "id", .. }), "{refused}");
        assert!(refused.to_string().contains("TASK-YYYY-MM-DD"), "{refused}");
    }
}
