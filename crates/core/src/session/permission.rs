//! What an agent asks for, and who answers. The first answer counts; nobody's is a no.

use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::event::{Resolved, SessionEvent};
use super::machine::{Machine, Step, Unfit};
use super::model::{Permission, PermissionKind};
use super::words::StateKind;

/// An answer to what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Allow,
    Deny,
    /// To a question.
    Text(String),
    /// Nothing is asked any more: the turn, or the session, is over.
    Canceled,
}

/// Who answers where nobody else does.
pub(super) const BY_BATON: &str = "baton";

impl Machine {
    pub(super) fn request_permission(
        &mut self,
        step: &mut Step,
        (id, kind, title, call_id): (String, PermissionKind, String, Option<String>),
    ) -> Result<(), Unfit> {
        match self.kind {
            StateKind::CallingLlm | StateKind::ExecutingTools => {}
            _ => return Err(Unfit::here(self.kind, "a permission is asked for in a turn")),
        }
        if self.permissions.iter().any(|pending| pending.id == id) {
            return Err(Unfit::here(self.kind, format!("permission {id} is asked for already")));
        }
        let requested_at_ms = step.now().unix_ms();
        let wait_ms = match kind {
            PermissionKind::Tool => self.rules.permission_ms,
            PermissionKind::Question => self.rules.question_ms,
        };
        let at = step.now().plus_ms(wait_ms);
        let permission =
            Permission { id: id.clone(), kind, title, call_id, requested_at_ms, expires_at_ms: at.unix_ms() };
        self.permissions.push(permission.clone());
        step.say(SessionEvent::PermissionRequested(permission));
        step.act(Effect::ExpirePermission { at, id });
        Ok(())
    }

    pub(super) fn answer_permission(
        &mut self,
        step: &mut Step,
        id: &str,
        answer: Answer,
        by: String,
    ) -> Result<(), Unfit> {
        let Some(at) = self.permissions.iter().position(|pending| pending.id == id) else {
            return Err(Unfit::here(self.kind, format!("nobody waits for permission {id}")));
        };
        let permission = self.permissions.remove(at);
        step.say(SessionEvent::PermissionResolved(Resolved {
            id: permission.id.clone(),
            answer: answer.clone(),
            by,
        }));
        step.act(Effect::AnswerPermission { id: permission.id, answer });
        Ok(())
    }

    /// Nobody is waited for any more.
    pub(super) fn cancel_permissions(&mut self, step: &mut Step) {
        for permission in std::mem::take(&mut self.permissions) {
            let answer = Answer::Canceled;
            let by = BY_BATON.to_owned();
            let id = permission.id;
            step.say(SessionEvent::PermissionResolved(Resolved {
                id: id.clone(),
                answer: answer.clone(),
                by,
            }));
            step.act(Effect::AnswerPermission { id, answer });
        }
    }
}
