//! What the ledger tells of messages that were refused, and of the programs that agents are: read on from where the last look ended, for a bounded time each.

use std::collections::BTreeMap;
use std::time::Instant;

use baton_core::Role;
use baton_core::ids::AgentName;
use baton_ledger::record::Line;
use serde_json::{Map, Value, json};

use crate::app::Server;
use crate::limits::{HEARD_READ_AT_ONCE, HEARD_SESSIONS_MAX, HEARD_WAIT};
use crate::problem::Problem;

/// What was heard up to a position.
#[derive(Debug, Default)]
pub struct Heard {
    pos: u64,
    refused: BTreeMap<String, u64>,
    /// What each agent last said that it is, with its version.
    programs: BTreeMap<AgentName, String>,
    /// Sessions that have begun and not said what they are, each with its agent.
    begun: BTreeMap<String, AgentName>,
}

impl Heard {
    /// Reads what came since the last look.
    pub fn catch_up(&mut self, server: &Server) -> Result<(), Problem> {
        let (journal, begin) = (&server.house.engine.ground().journal, Instant::now());
        while self.pos < journal.size() && begin.elapsed() < HEARD_WAIT {
            let lines = journal.read(self.pos + 1, HEARD_READ_AT_ONCE);
            let lines = lines.map_err(|error| server.house.commands.explain(error.into()))?;
            let Some(last) = lines.last() else { break };
            self.pos = last.pos;
            for stored in lines.iter().filter(|stored| is_of_interest(&stored.text)) {
                // What does not read is for the verifier to say.
                if let Ok(line) = Line::parse(stored.text.as_bytes()) {
                    self.take(&line);
                }
            }
        }
        Ok(())
    }

    /// Messages that were refused, by reason.
    pub fn refused(&self) -> Vec<Value> {
        self.refused.iter().map(|(reason, count)| json!({"reason": reason, "count": count})).collect()
    }

    /// What an agent last said that it is.
    pub fn program(&self, agent: &AgentName) -> Option<&str> {
        self.programs.get(agent).map(String::as_str)
    }

    fn take(&mut self, line: &Line<'_>) {
        let fields: Map<String, Value> = serde_json::from_str(line.payload).unwrap_or_default();
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        // Of these only Baton itself tells; whoever appends by hand may call an event anything.
        if line.role != Role::System {
            return;
        }
        match (line.event_type, line.session) {
            (REFUSED, _) => {
                if let Some(reason) = text("reason") {
                    *self.refused.entry(reason.to_owned()).or_default() += 1;
                }
            }
            (STARTED, Some(session)) => {
                // The word of a program that is run for each prompt is its own name, which is in the configuration.
                let agent = text("agent").filter(|_| text("harness") != Some("exec"));
                if let Some(agent) = agent.and_then(|agent| agent.parse().ok()) {
                    self.begun.insert(session.to_owned(), agent);
                }
                if self.begun.len() > HEARD_SESSIONS_MAX {
                    self.begun.pop_first();
                }
            }
            (READY, Some(session)) => {
                if let (Some(agent), Some(program)) = (self.begun.remove(session), text("agent")) {
                    self.programs.insert(agent, program.to_owned());
                }
            }
            (ENDED, Some(session)) => {
                self.begun.remove(session);
            }
            _ => {}
        }
    }
}

const REFUSED: &str = "protocol.message.rejected";
const STARTED: &str = "session.started";
const READY: &str = "session.ready";
const ENDED: &str = "session.ended";

fn is_of_interest(text: &str) -> bool {
    [REFUSED, STARTED, READY, ENDED].into_iter().any(|kind| text.contains(kind))
}
