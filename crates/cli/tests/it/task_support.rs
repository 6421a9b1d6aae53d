//! Tasks through the binary: made, claimed, told, shown; and what messages and signals look like.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Ended, Home};

pub(crate) const STATUSES: [&str; 8] =
    ["backlog", "ready", "in-progress", "blocked", "review", "done", "cancelled", "deadletter"];

/// The person's clock is nobody's: every message of a test is sent at this moment.
pub(crate) const SENT_AT: &str = "2026-02-09T21:00:00.000Z";

impl Home {
    /// With a ledger in it, and the exit signal switched on.
    pub(crate) fn with_signals() -> Self {
        Home::new().with_env("AGENT_EXIT_PROTOCOL_ENABLED", "true")
    }

    /// With a ledger in it, and leases that are over at once unless somebody beats.
    pub(crate) fn with_short_beats() -> Self {
        Home::new().with_env("BATON_SCHEDULER_HEARTBEAT_TTL", "200ms")
    }

    /// A ready task.
    pub(crate) fn task(&self, args: &[&str]) -> String {
        let made = self.run(&[&["task", "new", "a task", "--ready", "--json"], args].concat());
        text(&made.value(0)["id"])
    }

    /// A ready task with an id of its own.
    pub(crate) fn named_task(&self, id: &str, args: &[&str]) {
        assert_eq!(self.task(&[&["--id", id], args].concat()), id);
    }

    /// The task as scripts see it.
    #[track_caller]
    pub(crate) fn show(&self, id: &str) -> Value {
        self.run(&["task", "show", id, "--json"]).value(0)
    }

    #[track_caller]
    pub(crate) fn status(&self, id: &str) -> String {
        text(&self.show(id)["status"])
    }

    #[track_caller]
    pub(crate) fn phase(&self, id: &str) -> String {
        text(&self.show(id)["phase"])
    }

    /// Takes a task for an agent and gives the lease.
    #[track_caller]
    pub(crate) fn claim(&self, id: &str, agent: &str) -> Value {
        self.run(&["task", "claim", id, "--agent", agent, "--json"]).value(0)
    }

    #[expect(clippy::needless_pass_by_value, reason = "a message is handed over, whatever it is made of")]
    pub(crate) fn send(&self, message: impl ToString) -> Ended {
        self.run_with(&["send", "--json"], message.to_string())
    }

    /// Sends a message that is taken, and gives the types of what it led to.
    #[track_caller]
    pub(crate) fn accepted(&self, message: impl ToString) -> Vec<String> {
        let ended = self.send(message);
        let answer = ended.value(0);
        assert_eq!(answer["accepted"], true, "{answer}");
        assert_eq!(answer["v"], 1, "{answer}");
        assert!(answer.get("reason").is_none(), "{answer}");
        texts(&answer["events"])
    }

    /// Sends a message that is refused for a reason, and gives the whole answer.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a message is handed over, whatever it is made of")]
    pub(crate) fn rejected(&self, message: impl ToString, reason: &str) -> Value {
        let message = message.to_string();
        let shown: String = message.chars().take(400).collect();
        let ended = self.send(&message);
        assert_eq!(ended.code, Some(4), "{shown}: {ended:?}");
        let answer = ended.value(4);
        assert_eq!(
            (&answer["accepted"], &answer["reason"]),
            (&json!(false), &json!(reason)),
            "{answer} {shown}"
        );
        answer
    }

    /// Everything that is recorded of a task, in its order.
    pub(crate) fn records(&self, id: &str) -> Vec<Value> {
        let ended = self.run(&["events", "--json", "--task", id]);
        ended.expect(0);
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The types of everything that is recorded of a task.
    pub(crate) fn types(&self, id: &str) -> Vec<String> {
        self.records(id).iter().map(|record| text(&record["type"])).collect()
    }

    /// The last record of a type.
    #[track_caller]
    pub(crate) fn last(&self, id: &str, event_type: &str) -> Value {
        let all = self.records(id);
        all.into_iter().rev().find(|record| record["type"] == event_type).expect(event_type)
    }

    /// How a task went: from, to and why of every transition.
    pub(crate) fn moves(&self, id: &str) -> Vec<String> {
        let moves = self.records(id).into_iter().filter(|record| record["type"] == "task.transitioned");
        moves
            .map(|record| {
                let payload = &record["payload"];
                format!("{} → {}: {}", text(&payload["from"]), text(&payload["to"]), text(&payload["reason"]))
            })
            .collect()
    }

    /// The one file of a task, where its status says.
    #[track_caller]
    pub(crate) fn task_file(&self, id: &str) -> PathBuf {
        let path = |status: &str| self.data().join("tasks").join(status).join(format!("{id}.md"));
        let found: Vec<PathBuf> = STATUSES.iter().map(|s| path(s)).filter(|path| path.exists()).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        let status = self.status(id);
        assert_eq!(found[0], path(&status), "where its status says");
        found.into_iter().next().unwrap()
    }

    /// The folder of a task in a status.
    pub(crate) fn folder(&self, status: &str, id: &str) -> PathBuf {
        self.data().join("tasks").join(status).join(id)
    }

    #[track_caller]
    pub(crate) fn run_file(&self, id: &str, name: &str) -> Value {
        let path = self.data().join("runs").join(id).join(name);
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&bytes).unwrap()
    }

    pub(crate) fn submit(&self, id: &str, signal: &Value) -> Ended {
        self.run_with(&["exit", "submit", "--task", id, "--json"], signal.to_string())
    }

    /// Submits a signal that is accepted, and gives the answer.
    #[track_caller]
    pub(crate) fn submitted(&self, id: &str, signal: &Value) -> Value {
        let answer = self.submit(id, signal).value(0);
        assert_eq!(answer["accepted"], true, "{answer}");
        answer
    }

    /// Submits a signal that is refused, with a text that has this in it.
    #[track_caller]
    pub(crate) fn not_submitted(&self, id: &str, signal: &Value, error: &str) -> Value {
        let answer = self.submit(id, signal).value(4);
        assert_eq!(answer["accepted"], false, "{answer}");
        assert!(text(&answer["error"]).contains(error), "expected {error:?}: {answer}");
        answer
    }

    /// Asserts that what is refused appends nothing.
    #[track_caller]
    pub(crate) fn appends_nothing<T>(&self, run: impl FnOnce(&Home) -> T) -> T {
        let before = self.events().len();
        let answer = run(self);
        assert_eq!(self.events().len(), before, "something was appended");
        answer
    }

    /// Asserts that the whole ledger verifies.
    #[track_caller]
    pub(crate) fn verifies(&self) {
        let data = self.data();
        let ended = self.run(&["verify", data.to_str().unwrap(), "--json"]);
        let verdict = text(&ended.value(0)["verdict"]);
        assert!(verdict.starts_with("pass"), "{verdict}: {}", ended.stdout);
    }

    /// Asserts that the state rebuilt from the ledger is the live one.
    #[track_caller]
    pub(crate) fn replays(&self) {
        let ended = self.run(&["replay", "--json"]);
        assert_eq!(ended.value(0)["equal"], true, "{}", ended.stdout);
    }
}

impl Ended {
    /// The one JSON value that was printed by a command that ended so.
    #[track_caller]
    pub(crate) fn value(&self, code: i32) -> Value {
        self.expect(code);
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {:?} {:?}", self.stdout, self.stderr))
    }

    /// Asserts an error of ours that names something; not every one has a hint.
    #[track_caller]
    pub(crate) fn refused_with(&self, exit: i32, code: &str, names: &str) -> &Self {
        self.expect(exit);
        assert!(self.stderr.contains(&format!("error[{code}]: ")), "expected error[{code}]: {}", self.stderr);
        assert!(self.stderr.contains(names), "expected {names:?} in: {}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert!(!self.stderr.contains('\u{1b}'), "{:?}", self.stderr);
        self
    }
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

#[track_caller]
pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}")).iter().map(text).collect()
}

/// Milliseconds between two moments as they are written.
#[track_caller]
pub(crate) fn ms_between(from: &Value, to: &Value) -> i64 {
    let ms = |value: &Value| text(value).parse::<baton_core::Timestamp>().unwrap().unix_ms();
    ms(to) - ms(from)
}

/// A message from `fixtures/envelopes`, as it stands there.
pub(crate) fn fixture(name: &str) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/envelopes");
    fs::read_to_string(format!("{dir}/{name}.json")).unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub(crate) fn envelope(kind: &str, task: &str, from: &str, payload: &Value) -> Value {
    json!({
        "protocol": "aof", "version": 1, "type": kind, "taskId": task, "fromAgent": from,
        "toAgent": "dispatcher", "sentAt": SENT_AT, "payload": payload,
    })
}

/// A completion report.
pub(crate) fn report(task: &str, from: &str, outcome: &str) -> Value {
    let payload = json!({
        "outcome": outcome, "summaryRef": "outputs/summary.md", "deliverables": [],
        "tests": {"total": 3, "passed": 2, "failed": 1}, "blockers": [], "notes": "that is that",
    });
    envelope("completion.report", task, from, &payload)
}

/// A status update with these fields beside the task and the agent.
pub(crate) fn update(task: &str, from: &str, fields: &Value) -> Value {
    envelope("status.update", task, from, &merged(&json!({"taskId": task, "agentId": from}), fields))
}

/// A handoff request of `from` to `to`.
pub(crate) fn handoff(child: &str, parent: &str, from: &str, to: &str) -> Value {
    let payload = json!({
        "taskId": child, "parentTaskId": parent, "fromAgent": from, "toAgent": to,
        "acceptanceCriteria": ["All tests pass"], "expectedOutputs": ["tests/report.md"], "contextRefs": [],
        "constraints": [], "dueBy": "2026-02-10T12:00:00.000Z",
    });
    envelope("handoff.request", child, from, &payload)
}

/// A child's answer to a handoff.
pub(crate) fn answer(child: &str, from: &str, reason: Option<&str>) -> Value {
    match reason {
        None => envelope("handoff.accepted", child, from, &json!({"taskId": child, "accepted": true})),
        Some(reason) => {
            let payload = json!({"taskId": child, "accepted": false, "reason": reason});
            envelope("handoff.rejected", child, from, &payload)
        }
    }
}

/// An exit signal.
pub(crate) fn signal(phase: &str, reason: &str) -> Value {
    json!({
        "protocol": "apm2_agent_exit", "version": "1.0.0", "phase_completed": phase, "exit_reason": reason,
    })
}

/// An object with the members of another set in it.
pub(crate) fn merged(base: &Value, more: &Value) -> Value {
    let mut out = base.as_object().unwrap().clone();
    out.extend(more.as_object().unwrap().clone());
    Value::Object(out)
}

/// A value with one place set, named like `payload.tests.total`.
pub(crate) fn with(mut value: Value, place: &str, to: Value) -> Value {
    let pointer = format!("/{}", place.replace('.', "/"));
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap_or_else(|| panic!("no {place}"));
    parent.as_object_mut().unwrap().insert(name.to_owned(), to);
    value
}

/// A value without one place.
pub(crate) fn without(mut value: Value, place: &str) -> Value {
    let pointer = format!("/{}", place.replace('.', "/"));
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    value
}
