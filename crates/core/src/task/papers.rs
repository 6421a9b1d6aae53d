//! The texts of a task, which decisions do not need: folded from its events when its files are written or shown.

use serde_json::Value;

use super::TaskEvent;
use super::event::Completed;
use super::worklog;
use crate::protocol::HandoffRequest;
use crate::time::Timestamp;

/// What begins the part of a task's text that was said before it, in the conversation that it came from. Agents are given that apart from the
/// task's own text.
pub const EARLIER: &str = "\n\n<!-- earlier in ";

/// The body of a task, and what was handed over with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Papers {
    pub text: String,
    pub log: String,
    /// The last request to take it over, as `handoff.json` shows it.
    pub handoff: Option<HandoffRequest>,
    /// The last accepted report, and when.
    pub result: Option<(Completed, Timestamp)>,
}

impl Papers {
    /// The body as the file shows it.
    pub fn body(&self) -> String {
        worklog::join(&self.text, &self.log)
    }

    /// Takes one event of the task in.
    pub fn apply(&mut self, event: &TaskEvent, at: Timestamp) {
        match event {
            TaskEvent::Created(created) => {
                (self.text, self.log) = worklog::split(&created.body);
            }
            TaskEvent::Edited(edited) => {
                let text = |key| edited.fields.get(key).and_then(Value::as_str);
                if let Some(text) = text("body") {
                    self.text = worklog::tidy(text);
                }
                if let Some(log) = text("workLog") {
                    self.log = worklog::tidy(log);
                }
            }
            TaskEvent::Logged(logged) => {
                let (progress, notes) = (logged.progress.as_deref(), logged.notes.as_deref());
                if let Some(line) = worklog::line(at, progress, notes, &logged.blockers) {
                    self.log.push_str(&line);
                }
            }
            TaskEvent::Rejected(rejected) => {
                let notes = format!("rejected: {}", rejected.reason);
                self.log.push_str(&worklog::line(at, None, Some(&notes), &[]).unwrap_or_default());
            }
            TaskEvent::Verified(verified) => {
                let verdict =
                    verified.verdict.map(|verdict| format!(", verdict {verdict}")).unwrap_or_default();
                let why = if verified.why.is_empty() { String::new() } else { format!(": {}", verified.why) };
                let notes = format!("guarded run {} {}{verdict}{why}", verified.trace, verified.state);
                self.log.push_str(&worklog::line(at, None, Some(&notes), &[]).unwrap_or_default());
            }
            TaskEvent::GuardRefused(refused) => {
                let rule = refused.rule.as_ref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
                let notes = format!("{} refused to {}{rule}: {}", refused.what, refused.agent, refused.why);
                self.log.push_str(&worklog::line(at, None, Some(&notes), &[]).unwrap_or_default());
            }
            TaskEvent::Completed(completed) => self.result = Some((completed.clone(), at)),
            TaskEvent::DelegationRequested(requested) => {
                self.handoff = HandoffRequest::from_fields(&requested.handoff);
            }
            // A new run starts without a result.
            TaskEvent::LeaseAcquired(_) => self.result = None,
            TaskEvent::Transitioned(_)
            | TaskEvent::PhaseChanged(_)
            | TaskEvent::EditRefused(_)
            | TaskEvent::AttemptFailed(_)
            | TaskEvent::Approved(_)
            | TaskEvent::CiReported(_)
            | TaskEvent::LeaseRenewed(_)
            | TaskEvent::LeaseReleased(_)
            | TaskEvent::LeaseExpired(_)
            | TaskEvent::SessionCompleted(_)
            | TaskEvent::DelegationAccepted(_)
            | TaskEvent::DelegationRejected(_)
            | TaskEvent::MessageReceived(_)
            | TaskEvent::MessageRejected(_)
            | TaskEvent::MessageUnknown(_)
            | TaskEvent::MessageWarning(_)
            | TaskEvent::GuardOpened(_) => {}
        }
    }
}
