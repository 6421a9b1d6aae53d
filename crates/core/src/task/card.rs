//! What is shown of a task at a glance and is not in its file: who is at it and until when, how the last attempt went, and what was said of it.

use serde_json::{Map, Value, json};

use super::Task;

impl Task {
    /// The card, as clients read it. What there is not is absent.
    pub fn card(&self) -> Value {
        let mut card = Map::new();
        let mut say = |name: &str, value: Value| drop(card.insert(name.to_owned(), value));
        if let Some(lease) = &self.lease {
            if let Some(session) = &lease.session {
                say("session", session.as_str().into());
            }
            say("heartbeatBy", lease.beat_until.to_string().into());
            say("leaseTtlMs", lease.ttl_ms.into());
            say("beatTtlMs", lease.beat_ttl_ms.into());
        }
        if let Some(run) = &self.run {
            let mut shown = json!({
                "id": run.id.to_string(), "agent": run.agent.as_str(), "startedAt": run.started_at.to_string(),
            });
            if let Some(end) = &run.ended {
                shown["endedAt"] = end.at.to_string().into();
                shown["failed"] = end.failed.into();
                shown["reason"] = end.reason.as_str().into();
            }
            say("run", shown);
        }
        if let Some(tests) = &self.tests {
            say("tests", json!({"total": tests.total, "passed": tests.passed, "failed": tests.failed}));
        }
        if let Some(verified) = &self.verified {
            let mut shown = json!({"trace": verified.trace.to_string(), "state": verified.state.as_str()});
            if let Some(verdict) = verified.verdict {
                shown["verdict"] = verdict.as_str().into();
            }
            say("verified", shown);
        }
        if let Some(guard) = &self.guard {
            say("guard", guard.to_string().into());
        }
        Value::Object(card)
    }
}
