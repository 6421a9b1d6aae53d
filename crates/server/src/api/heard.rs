//! What the ledger tells of messages that were refused, and of agents: what programs they are, when they began, how often they failed. Read on from where
//! the last look ended, for a bounded time each: after a restart a long ledger is read in several looks, and how far it was read is told with the figures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use baton_core::ids::AgentName;
use baton_core::{Role, Timestamp};
use baton_ledger::record::Line;
use baton_runtime::session::BATON_DIED;
use serde_json::{Map, Value, json};

use crate::app::Server;
use crate::limits::{HEARD_READ_AT_ONCE, HEARD_SESSIONS_MAX, HEARD_WAIT};
use crate::problem::Problem;

/// What was heard up to a position.
#[derive(Debug, Default)]
pub struct Heard {
    pos: u64,
    /// How many events there were when it was last looked.
    size: u64,
    refused: BTreeMap<String, u64>,
    /// What each agent of the configuration last said that it is, with its version.
    programs: BTreeMap<AgentName, String>,
    worked: BTreeMap<AgentName, Worked>,
    /// Sessions that have begun and not ended, each with its agent, and whether what it says that it is says more than the configuration.
    begun: BTreeMap<String, (AgentName, bool)>,
    /// Attempts at tasks that have not been judged, each with its agent.
    held: BTreeMap<String, AgentName>,
}

/// What is known of one agent's work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Worked {
    pub last_start: Option<Timestamp>,
    pub last_failure: Option<Timestamp>,
    pub failures: u64,
}

impl Heard {
    /// Reads what came since the last look.
    pub fn catch_up(&mut self, server: &Server) -> Result<(), Problem> {
        let (journal, begin) = (&server.house.engine.ground().journal, Instant::now());
        let agents: BTreeSet<&AgentName> = server.house.broker.agents().keys().collect();
        self.size = journal.size();
        while self.pos < self.size && begin.elapsed() < HEARD_WAIT {
            let lines = journal.read(self.pos + 1, HEARD_READ_AT_ONCE);
            let lines = lines.map_err(|error| server.house.commands.explain(error.into()))?;
            let Some(last) = lines.last() else { break };
            self.pos = last.pos;
            for stored in lines.iter().filter(|stored| is_of_interest(&stored.text)) {
                // What does not read is for the verifier to say.
                if let Ok(line) = Line::parse(stored.text.as_bytes()) {
                    self.take(&line, &agents);
                }
            }
        }
        Ok(())
    }

    /// How far it has read, and how far there was to read.
    pub fn counted(&self) -> Value {
        json!({"to": self.pos, "of": self.size.max(self.pos)})
    }

    /// Messages that were refused, by reason.
    pub fn refused(&self) -> Vec<Value> {
        self.refused.iter().map(|(reason, count)| json!({"reason": reason, "count": count})).collect()
    }

    /// What an agent last said that it is.
    pub fn program(&self, agent: &AgentName) -> Option<&str> {
        self.programs.get(agent).map(String::as_str)
    }

    /// When an agent last began, and how often it failed.
    pub fn worked(&self, agent: &AgentName) -> Worked {
        self.worked.get(agent).copied().unwrap_or_default()
    }

    /// Takes an event in. Of agents that are not in the configuration any more nothing is kept.
    fn take(&mut self, line: &Line<'_>, agents: &BTreeSet<&AgentName>) {
        let fields: Map<String, Value> = serde_json::from_str(line.payload).unwrap_or_default();
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let agent = || text("agent")?.parse::<AgentName>().ok().filter(|agent| agents.contains(agent));
        // Of these only Baton itself tells; whoever appends by hand may call an event anything. Only a lease is taken in the name of its agent, and
        // nobody appends one by hand.
        if line.role != Role::System && line.event_type != ACQUIRED {
            return;
        }
        match (line.event_type, line.session) {
            (REFUSED, _) => {
                if let Some(reason) = text("reason") {
                    *self.refused.entry(reason.to_owned()).or_default() += 1;
                }
            }
            (STARTED, Some(session)) => {
                if let Some(agent) = agent() {
                    self.start(&agent, line.at);
                    // The word of a program that is run for each prompt is its own name, which is in the configuration.
                    let says_more = text("harness") != Some("exec");
                    keep(&mut self.begun, session, (agent, says_more));
                }
            }
            (READY, Some(session)) => {
                if let (Some((agent, true)), Some(program)) = (self.begun.get(session), text("agent")) {
                    self.programs.insert(agent.clone(), program.to_owned());
                }
            }
            (ENDED, Some(session)) => {
                if let (Some((agent, _)), Some(ERROR)) = (self.begun.remove(session), text("reason")) {
                    self.fail(agent, line.at);
                }
            }
            (ACQUIRED, _) => {
                if let (Some(agent), Some(run)) = (agent(), text("runId")) {
                    self.start(&agent, line.at);
                    keep(&mut self.held, run, agent);
                }
            }
            (FAILED, _) => {
                let agent = text("runId").and_then(|run| self.held.remove(run));
                let end = fields.get("termination").and_then(|end| end.get("reason")?.as_str());
                // Its session has told already; and that Baton died is no fault of an agent.
                if let Some(agent) =
                    agent.filter(|_| end != Some(ERROR) && text("reason") != Some(BATON_DIED))
                {
                    self.fail(agent, line.at);
                }
            }
            // Where an attempt has failed, that was told before. One that has expired is judged after.
            (RELEASED, _) => {
                text("runId").and_then(|run| self.held.remove(run));
            }
            _ => {}
        }
    }

    fn start(&mut self, agent: &AgentName, at: Timestamp) {
        let worked = self.worked.entry(agent.clone()).or_default();
        worked.last_start = worked.last_start.max(Some(at));
    }

    fn fail(&mut self, agent: AgentName, at: Timestamp) {
        let worked = self.worked.entry(agent).or_default();
        worked.failures += 1;
        worked.last_failure = worked.last_failure.max(Some(at));
    }
}

/// Keeps something under an id; of too many the oldest are forgotten, whose end nobody has told.
fn keep<T>(map: &mut BTreeMap<String, T>, id: &str, value: T) {
    map.insert(id.to_owned(), value);
    if map.len() > HEARD_SESSIONS_MAX {
        map.pop_first();
    }
}

const REFUSED: &str = "protocol.message.rejected";
const STARTED: &str = "session.started";
const READY: &str = "session.ready";
const ENDED: &str = "session.ended";
const ACQUIRED: &str = "lease.acquired";
const RELEASED: &str = "lease.released";
const FAILED: &str = "task.attempt_failed";

/// The reason of a session that failed.
const ERROR: &str = "error";

fn is_of_interest(text: &str) -> bool {
    [REFUSED, STARTED, READY, ENDED, ACQUIRED, RELEASED, FAILED].into_iter().any(|kind| text.contains(kind))
}
