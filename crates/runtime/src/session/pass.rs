//! What opens the server to a session: made for it, known to its processes alone, and of no use once it has ended.
//!
//! Only digests are kept, and only in memory: a pass stands in no file, no record and no message, and a session that goes on after a restart gets another.

use baton_core::Digest;
use baton_core::ids::{AgentName, SessionId};
use baton_ledger::hash::sha256;
use baton_store::clock;

use super::broker::{Begin, Broker};
use super::recorder::Bound;

/// Where a session finds the server over HTTP. Not `BATON_SERVER`: by that the agent's own `baton` would ask there, as a person's does, instead of asking
/// the process that started it and knows it.
pub const API_URL_VARIABLE: &str = "BATON_API_URL";

/// The token that it has there.
pub const API_TOKEN_VARIABLE: &str = "BATON_API_TOKEN";

const PREFIX: &str = "baton_";

/// A session that may call the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    pub session: SessionId,
    pub agent: AgentName,
    pub bound: Bound,
    sha256: Digest,
}

impl Broker {
    /// Says where the server listens. Sessions that begin from now on for a task may call it.
    pub fn open_door(&self, url: &str) {
        // There is one server in a process, and it listens at one place as long as it lives.
        let _ = self.door.set(url.to_owned());
    }

    /// The session whose pass this is, while it lives.
    pub fn admitted(&self, text: &str) -> Option<Pass> {
        // How long digests take to compare says nothing of what they are made of.
        let digest = sha256(text.as_bytes());
        self.running().passes.values().find(|pass| pass.sha256 == digest).cloned()
    }

    /// Whether a session that had a pass still has it.
    pub fn has_pass(&self, session: SessionId) -> bool {
        self.running().passes.contains_key(&session)
    }

    /// Makes the pass of a session that begins: what its processes have in their environment. Without a task or a server there is none.
    pub(super) fn issue(&self, id: SessionId, begin: &Begin) -> Vec<(String, String)> {
        let (Some(url), Some(bound)) = (self.door.get(), &begin.bound) else { return Vec::new() };
        let text = new_text();
        let pass = Pass {
            session: id,
            agent: begin.agent.clone(),
            bound: bound.clone(),
            sha256: sha256(text.as_bytes()),
        };
        self.running().passes.insert(id, pass);
        vec![(API_URL_VARIABLE.to_owned(), url.clone()), (API_TOKEN_VARIABLE.to_owned(), text)]
    }

    /// Takes it back.
    pub(super) fn revoke(&self, id: SessionId) {
        self.running().passes.remove(&id);
    }
}

/// As long as a secret key, and as hard to guess.
fn new_text() -> String {
    let seed = clock::new_seed();
    seed.iter().fold(PREFIX.to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
