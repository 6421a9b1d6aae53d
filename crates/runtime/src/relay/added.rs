//! The methods that Baton adds to the protocol: how a session ended, that one is to end, and which there are.

use baton_core::session::{Ended, ProcessEnd, SessionEndedData};
use serde_json::{Value, json};

use super::message::{ERROR_ENDED, ERROR_NOT_FOUND, ERROR_PARAMS, error, notification, result};
use super::ring::Kind;
use super::sessions::META;
use super::state::{Relay, State};

/// Tells that a session has ended, and how.
pub(super) const ENDED: &str = "_sandboxagent/session/ended";
/// Asks to end a session.
pub(super) const TERMINATE: &str = "_sandboxagent/session/terminate";

/// Whether an agent has no business to use this method: what is said by it is said by Baton alone.
pub(super) fn is_own(method: &str) -> bool {
    method.starts_with("_sandboxagent/session/") || method.starts_with("_adapter/")
}

impl Relay {
    /// Tells everybody how a session of the protocol ended. Its id is there in both spellings: the one of the notification, and the one of the protocol.
    pub(super) fn tell_ended(&self, state: &mut State, session: &str, data: &SessionEndedData) {
        let params = json!({
            "session_id": session, "sessionId": session,
            "data": serde_json::to_value(data).unwrap_or_default(),
            "_meta": {META: {"batonSessionId": self.session.to_string(), "agent": self.agent.as_str(), "serverId": self.server}},
        });
        state.tell(Kind::Notification, &notification(ENDED, &params));
    }

    /// That something cannot be asked any more, with how it ended.
    pub(super) fn gone(&self, id: &Value, data: &SessionEndedData) -> Value {
        let what = data.message.clone().unwrap_or_else(|| format!("the session has ended: {}", data.reason));
        let mut told = serde_json::to_value(data).unwrap_or_default();
        told["_meta"] = json!({META: {"batonSessionId": self.session.to_string()}});
        error(id, ERROR_ENDED, &what, Some(told))
    }

    /// The sessions, as Baton knows them.
    pub(super) fn list(&self, state: &State, id: &Value) -> Value {
        let sessions = state.sessions.list(self.agent.as_str(), &self.session.to_string());
        result(id, &json!({"sessions": sessions}))
    }

    /// Ends a session, once. With the last one the process ends too: nothing that was ended goes on behind its client's back.
    pub(super) fn terminate(&self, state: &mut State, id: &Value, session: Option<&str>) -> Value {
        let Some(session) = session else {
            return error(id, ERROR_PARAMS, "sessionId: expected the session that is to end", None);
        };
        let answer = |terminated: bool, data: &SessionEndedData| {
            let told = json!({
                "terminated": terminated, "alreadyEnded": !terminated,
                "reason": data.reason, "terminatedBy": data.terminated_by,
            });
            result(id, &told)
        };
        match state.sessions.get(session).map(|known| known.ended.clone()) {
            None => return error(id, ERROR_NOT_FOUND, "there is no such session", None),
            Some(Some(data)) => return answer(false, &data),
            Some(None) => {}
        }
        let mut ended = Ended::new(ProcessEnd::Absent);
        ended.is_asked = true;
        let data = ended.classify();
        state.sessions.end(session, &data, self.clock.now());
        let _ = self.write(&notification("session/cancel", &json!({"sessionId": session})));
        self.let_go(state, session, &data);
        self.tell_ended(state, session, &data);
        if state.sessions.living().is_empty() {
            self.stop_in(state);
        }
        answer(true, &data)
    }

    /// Answers everything that waits on account of one session, on both sides.
    fn let_go(&self, state: &mut State, session: &str, data: &SessionEndedData) {
        let is_about = |known: &Option<String>| known.as_deref() == Some(session);
        let asked: Vec<_> = state.calls.asked.extract_if(.., |_, asked| is_about(&asked.session)).collect();
        for (_, asked) in asked {
            let cancelled = json!({"outcome": {"outcome": "cancelled"}});
            let answer = match asked.method.as_str() {
                "session/request_permission" => result(&asked.id, &cancelled),
                _ => error(&asked.id, ERROR_ENDED, "the session was ended", None),
            };
            let _ = self.write(&answer);
        }
        let calls: Vec<_> = state.calls.waiting.extract_if(.., |_, call| is_about(&call.session)).collect();
        for (_, call) in calls {
            state.answer(call.waits, self.gone(&Value::Null, data));
        }
    }
}
