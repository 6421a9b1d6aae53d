//! Guarded tasks: who may work on one, where it goes, and what is left of a run that was cut short.

use super::*;
use crate::event::Payload;

/// A guarded task that is being worked on, with its run begun; and that run.
fn guarded(desk: &mut Desk) -> (TaskId, TraceId) {
    use crate::guard::{Begun, Policy, Profile, Team};
    let id = desk.task(|new| new.guarded = true);
    assert_eq!(desk.claim(&id, "bob"), Err(Refusal::Guarded("nobody claims it from outside")));
    let name = |name: &str| name.parse().unwrap();
    let session = Some("sess_1".parse().unwrap());
    let (ttl_ms, beat_ttl_ms) = (600_000, 300_000);
    let claim =
        Claim { task: id.clone(), agent: name("bob"), ttl_ms, beat_ttl_ms, session, beaten_until: None };
    let moment = desk.moment();
    let (_, decided) = desk.board.claim(&claim, moment).unwrap();
    desk.take(&decided);
    let team =
        Team { planner: name("ada"), executor: name("bob"), critic: name("cleo"), auditor: name("dora") };
    let begins = GuardBegins {
        task: id.clone(),
        fence: 1,
        begun: Begun { policy: Policy::of(Profile::Default), team },
    };
    let stale = GuardBegins { fence: 7, ..begins.clone() };
    let moment = desk.moment();
    assert_eq!(desk.board.begin_guard(&stale, moment), Err(Refusal::NoLease));
    let (trace, decided) = desk.board.begin_guard(&begins, moment).unwrap();
    assert_eq!(decided.types(), ["task.guard_opened", "trace.opened", "session_initialized"]);
    assert!(decided.events[1..].iter().all(|event| event.trace == trace));
    desk.take(&decided);
    // The same again is the same run.
    let moment = desk.moment();
    assert_eq!(desk.board.begin_guard(&begins, moment), Ok((trace, Decided::nothing())));
    (id, trace)
}

fn guard_ended(desk: &Desk, id: &TaskId, trace: TraceId, state: crate::guard::State) -> GuardEnded {
    let run = desk.board.get(id).unwrap().lease.as_ref().unwrap().run;
    GuardEnded {
        task: id.clone(),
        run,
        trace,
        head: Digest([1; 32]),
        state,
        verdict: None,
        why: "why\nnot".into(),
    }
}

#[test]
fn a_guarded_task_goes_where_its_run_says_and_nowhere_else() {
    use crate::guard::State;
    for (state, report, status) in [
        (State::Completed, Some("done"), Status::Review),
        (State::Completed, Some("partial"), Status::Review),
        (State::Completed, None, Status::Review),
        (State::Failed, Some("done"), Status::Blocked),
        (State::Aborted, None, Status::Cancelled),
    ] {
        let mut desk = Desk::new();
        let (id, trace) = guarded(&mut desk);
        // Neither a report nor a word about its status nor a signal moves it.
        if let Some(outcome) = report {
            desk.report(&id, "bob", outcome).unwrap();
        }
        desk.block(&id, "bob").unwrap();
        let refused = Err(Refusal::Guarded("it ends with its verification, and with no signal"));
        assert_eq!(desk.exit(&id, ExitReason::Completed, None, None), refused);
        assert_eq!(desk.board.get(&id).unwrap().status, Status::InProgress, "{state} {report:?}");
        let (ended, moment) = (guard_ended(&desk, &id, trace, state), desk.moment());
        let decided = desk.board.end_guard(&ended, desk.rules, moment).unwrap();
        assert_eq!(decided.types()[0], "task.verified");
        desk.take(&decided);
        let task = desk.board.get(&id).unwrap();
        assert_eq!((task.status, task.guard), (status, None), "{state} {report:?}");
        if status == Status::Blocked {
            assert_eq!(task.metadata["blockReason"], "why not");
        }
        // Once.
        let moment = desk.moment();
        assert_eq!(desk.board.end_guard(&ended, desk.rules, moment), Ok(Decided::nothing()));
    }
}

#[test]
fn an_attempt_that_ends_before_its_run_leaves_the_run_open_for_the_next() {
    let mut desk = Desk::new();
    let (id, trace) = guarded(&mut desk);
    desk.report(&id, "bob", "done").unwrap();
    let lease = desk.board.get(&id).unwrap().lease.clone().unwrap();
    let ended = SessionEnded {
        task: id.clone(),
        run: lease.run,
        fence: lease.fence,
        ending: Ending::Failed { cause: "baton_died".into() },
        result: None,
        termination: Value::Null,
    };
    let moment = desk.moment();
    let AfterSession::Decided(decided) = desk.board.session_end(&ended, desk.rules, moment).unwrap() else {
        panic!("a reminder")
    };
    desk.take(&decided);
    let task = desk.board.get(&id).unwrap();
    assert_eq!((task.status, task.guard, task.attempts), (Status::Ready, Some(trace), 1));
    // Whoever plays a part is in it between two attempts, too; and the task is not cancelled behind its back.
    assert!(desk.board.is_in_a_guarded_run(&executor(&"ada".parse().unwrap())));
    let asked = Move { task: id.clone(), to: Status::Cancelled, reason: "no more".into() };
    let moment = desk.moment();
    let refused = desk.board.transition(&asked, &operator(), moment);
    assert_eq!(refused, Err(Refusal::Guarded(UNENDED)));
}

#[test]
fn what_the_rules_forbid_is_recorded_in_the_task_s_own_trace() {
    let mut desk = Desk::new();
    let (id, _) = guarded(&mut desk);
    let moment = desk.moment();
    let agent = "bob".parse().unwrap();
    let decided =
        desk.board.refuse_guarded(&id, &agent, "write\u{1b}[31m_file", Some("intent-blocked"), "no", moment);
    let decided = decided.unwrap();
    let Payload::Other { fields, .. } = &decided.events[0].payload else { panic!() };
    assert_eq!(
        Value::Object(fields.clone()),
        json!({
            "agent": "bob", "what": "write [31m_file", "rule": "intent-blocked", "why": "no",
        })
    );
    assert_eq!(decided.events[0].trace, desk.board.get(&id).unwrap().trace);
}

#[test]
fn whoever_plays_a_part_is_in_the_run_until_it_ends() {
    let mut desk = Desk::new();
    let (id, trace) = guarded(&mut desk);
    let is_in = |desk: &Desk, name: &str| desk.board.is_in_a_guarded_run(&executor(&name.parse().unwrap()));
    for (name, expected) in [("ada", true), ("bob", true), ("cleo", true), ("dora", true), ("eve", false)] {
        assert_eq!(is_in(&desk, name), expected, "{name}");
    }
    // A person is not, whatever the name.
    let person = Actor { role: Role::Operator, ..executor(&"ada".parse().unwrap()) };
    assert!(!desk.board.is_in_a_guarded_run(&person));
    let (ended, moment) = (guard_ended(&desk, &id, trace, crate::guard::State::Completed), desk.moment());
    let decided = desk.board.end_guard(&ended, desk.rules, moment).unwrap();
    desk.take(&decided);
    assert!(!is_in(&desk, "ada") && desk.board.get(&id).unwrap().players.is_empty());
}
