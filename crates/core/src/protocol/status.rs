//! `status.update`: what an agent says in the middle of its work.

use super::fields::{Fields, Read};
use crate::ids::AgentName;
use crate::limits::{BLOCKERS_MAX, NOTES_CHARS_MAX, PROGRESS_CHARS_MAX};
use crate::task::{Status, UnknownWord};

/// The payload of a `status.update`. It says at least one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The agent that the payload names; the envelope's sender is who is judged.
    pub agent: AgentName,
    pub status: Option<Status>,
    pub progress: Option<String>,
    pub blockers: Vec<String>,
    pub notes: Option<String>,
}

impl StatusUpdate {
    pub(super) fn read(payload: Fields<'_>) -> Read<Self> {
        let update = StatusUpdate {
            agent: payload.agent("agentId")?,
            status: match payload.get("status") {
                None => None,
                Some(_) => Some(
                    payload
                        .text("status")?
                        .parse()
                        .or_else(|e: UnknownWord| payload.refuse("status", e.expected))?,
                ),
            },
            progress: payload.optional_text("progress", PROGRESS_CHARS_MAX)?,
            blockers: payload.list("blockers", BLOCKERS_MAX)?,
            notes: payload.optional_text("notes", NOTES_CHARS_MAX)?,
        };
        if update.says_something() {
            Ok(update)
        } else {
            payload.refuse_as(
                "status",
                "a status, or progress, blockers or notes that are not empty",
                "none of them",
            )
        }
    }

    /// Blank texts and empty lists are not worth a line in the work log.
    fn says_something(&self) -> bool {
        let mut texts = self.progress.iter().chain(&self.notes).chain(&self.blockers);
        self.status.is_some() || texts.any(|text| !text.trim().is_empty())
    }
}
