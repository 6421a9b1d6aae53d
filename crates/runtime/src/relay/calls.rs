//! Who waits for whom: what clients asked of the agent, and what the agent asked of them. Each side's ids stay its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::channel::oneshot::Sender;
use serde_json::{Map, Value};

/// The answer to a request, and the position up to which a client should have been told before it.
#[derive(Debug, Clone)]
pub struct Answered {
    pub text: Arc<str>,
    pub after: u64,
}

/// A request of a client that waits for the agent.
#[derive(Debug)]
pub(super) struct Call {
    /// Who waits: the id as that client knows it.
    pub(super) waits: Vec<(Value, Sender<Answered>)>,
    pub(super) method: String,
    /// The session that it is about, and the directory that it names.
    pub(super) session: Option<String>,
    pub(super) cwd: Option<String>,
}

/// A request of the agent that waits for a client.
#[derive(Debug)]
pub(super) struct Asked {
    /// The id as the agent knows it.
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) session: Option<String>,
    /// Whether the answer that is there, or else the next one, counts: it decides, or somebody has ended the turn.
    pub(super) is_due: bool,
    /// The last answer, and how many there were. One that decides nothing waits for whoever else may decide.
    pub(super) given: Option<(Map<String, Value>, usize)>,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    /// By the number that the agent knows.
    pub(super) waiting: BTreeMap<u64, Call>,
    last_asked: u64,
    /// By the name that clients know.
    pub(super) asked: BTreeMap<Arc<str>, Asked>,
}

impl Calls {
    /// Keeps a request, and gives the id that the agent gets.
    pub(super) fn add(&mut self, call: Call) -> u64 {
        self.last += 1;
        self.waiting.insert(self.last, call);
        self.last
    }

    pub(super) fn take(&mut self, id: &Value) -> Option<Call> {
        self.waiting.remove(&id.as_u64()?)
    }

    /// Keeps a request of the agent, and gives the name that clients know: a text, because their own ids are numbers.
    pub(super) fn ask(&mut self, asked: Asked) -> Arc<str> {
        self.last_asked += 1;
        let name: Arc<str> = format!("agent-{}", self.last_asked).into();
        self.asked.insert(name.clone(), asked);
        name
    }

    /// The call of this method that waits, where there is one.
    pub(super) fn find(&mut self, method: &str) -> Option<&mut Call> {
        self.waiting.values_mut().find(|call| call.method == method)
    }
}

/// Whether an answer decides nothing: what a client says that has nobody to ask, or does not know the method.
pub(super) fn is_abstention(body: &Map<String, Value>) -> bool {
    let outcome = body.get("result").and_then(|result| result.get("outcome")).and_then(|o| o.get("outcome"));
    body.contains_key("error") || outcome.is_some_and(|outcome| outcome == "cancelled")
}
