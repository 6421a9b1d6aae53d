//! The sessions of one agent's process, as its messages make them.

use std::collections::BTreeMap;

use baton_core::Timestamp;
use baton_core::session::SessionEndedData;
use serde_json::{Value, json};

use crate::harness::bounds::cut;
use crate::limits::{RELAY_NAME_BYTES_MAX, RELAY_SESSIONS_MAX};

/// The key of `_meta` under which Baton says what it knows.
pub(super) const META: &str = "sandboxagent.dev";

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct AcpSession {
    pub(super) cwd: Option<String>,
    pub(super) title: Option<String>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) events: u64,
    pub(super) ended: Option<SessionEndedData>,
}

#[derive(Debug, Default)]
pub(super) struct AcpSessions(BTreeMap<String, AcpSession>);

impl AcpSessions {
    /// Whether there is room for another one.
    pub(super) fn has_room(&self) -> bool {
        self.0.len() < RELAY_SESSIONS_MAX
    }

    /// One that begins, or goes on.
    pub(super) fn begin(&mut self, id: &str, cwd: Option<&str>, now: Timestamp) {
        if id.len() > RELAY_NAME_BYTES_MAX || !self.0.contains_key(id) && !self.has_room() {
            return;
        }
        let cwd = cwd.map(bounded);
        let session = self.0.entry(id.to_owned()).or_insert(AcpSession {
            cwd: None,
            title: None,
            created_at: now,
            updated_at: now,
            events: 0,
            ended: None,
        });
        (session.updated_at, session.ended) = (now, None);
        session.cwd = cwd.or_else(|| session.cwd.take());
    }

    /// Something happened in one.
    pub(super) fn update(&mut self, id: &str, update: &Value, now: Timestamp) {
        let Some(session) = self.0.get_mut(id) else { return };
        session.events += 1;
        session.updated_at = now;
        if update["sessionUpdate"] == "session_info_update"
            && let Some(title) = update["title"].as_str()
        {
            session.title = Some(bounded(title));
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&AcpSession> {
        self.0.get(id)
    }

    /// Ends one, once; gives whether that was now.
    pub(super) fn end(&mut self, id: &str, data: &SessionEndedData, now: Timestamp) -> bool {
        match self.0.get_mut(id) {
            Some(session) if session.ended.is_none() => {
                (session.ended, session.updated_at) = (Some(data.clone()), now);
                true
            }
            _ => false,
        }
    }

    /// Those that have not ended.
    pub(super) fn living(&self) -> Vec<String> {
        self.0.iter().filter(|(_, session)| session.ended.is_none()).map(|(id, _)| id.clone()).collect()
    }

    /// All of them as `session/list` has them.
    pub(super) fn list(&self, agent: &str, baton: &str) -> Vec<Value> {
        let mut all: Vec<(&String, &AcpSession)> = self.0.iter().collect();
        all.sort_by_key(|(_, session)| std::cmp::Reverse(session.created_at));
        let entry = |(id, session): (&String, &AcpSession)| {
            let mut entry = json!({
                "sessionId": id, "cwd": session.cwd.as_deref().unwrap_or("/"),
                "updatedAt": session.updated_at.to_string(), "_meta": session.meta(agent, baton),
            });
            if let Some(title) = &session.title {
                entry["title"] = title.as_str().into();
            }
            entry
        };
        all.into_iter().map(entry).collect()
    }

    /// Adds what Baton knows to what an agent lists.
    pub(super) fn add_meta(&self, listed: &mut Value, agent: &str, baton: &str) {
        for entry in listed["sessions"].as_array_mut().into_iter().flatten() {
            let known = entry["sessionId"].as_str().and_then(|id| self.0.get(id));
            let (Some(known), Some(entry)) = (known, entry.as_object_mut()) else { continue };
            let meta = entry.entry("_meta").or_insert_with(|| json!({}));
            match meta.as_object_mut() {
                Some(meta) => drop(meta.insert(META.to_owned(), known.meta(agent, baton)[META].clone())),
                None => *meta = known.meta(agent, baton),
            }
        }
    }
}

impl AcpSession {
    fn meta(&self, agent: &str, baton: &str) -> Value {
        let mut known = json!({
            "agent": agent, "batonSessionId": baton, "createdAt": self.created_at.unix_ms(),
            "updatedAt": self.updated_at.unix_ms(), "ended": self.ended.is_some(), "eventCount": self.events,
        });
        if let Some(ended) = &self.ended {
            known["terminationInfo"] = serde_json::to_value(ended).unwrap_or_default();
        }
        json!({META: known})
    }
}

fn bounded(text: &str) -> String {
    let mut text = text.to_owned();
    cut(&mut text, RELAY_NAME_BYTES_MAX);
    text
}
