//! The envelope of AOF/1 and the one way in: size, detection, JSON, envelope, type, payload, in this order.
//!
//! A message that comes out of here is well formed and nothing more: whether its task exists and its sender may say so is judged later.

use serde_json::{Map, Value};

use super::completion::CompletionReport;
use super::detect;
use super::fields::{Fields, Flaw, Read};
use super::handoff::{HandoffAccepted, HandoffRejected, HandoffRequest};
use super::reject::{Detail, Reason, Rejection, cut};
use super::status::StatusUpdate;
use crate::ids::{AgentName, TaskId};
use crate::limits::{ENVELOPE_BYTES_MAX, RECEIVER_CHARS_MAX};

/// A well-formed message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub task: TaskId,
    /// Who the envelope says it is from; where a token says otherwise, the token is right.
    pub from: AgentName,
    pub to: String,
    /// A moment of RFC 3339, as it was written.
    pub sent_at: String,
    /// Where it is there, it must be the lease's.
    pub fence: Option<u64>,
    pub body: Body,
    /// The whole envelope as it came, with every field that this version does not know.
    pub raw: Map<String, Value>,
}

/// The payload of a message by its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Completion(CompletionReport),
    Status(StatusUpdate),
    HandoffRequest(HandoffRequest),
    HandoffAccepted(HandoffAccepted),
    HandoffRejected(HandoffRejected),
}

/// Reads one message from a text, or says why it is none.
pub fn read(bytes: &[u8]) -> Result<Message, Rejection> {
    if bytes.len() > ENVELOPE_BYTES_MAX {
        let expected = format!("at most {ENVELOPE_BYTES_MAX} bytes");
        let detail = Detail::field("message", expected, format!("{} bytes", bytes.len()));
        return Err(Rejection::new(Reason::PayloadTooLarge, Some(detail)));
    }
    from_envelope(detect::in_text(bytes)?)
}

/// Reads one message from a value that was parsed with [`crate::json::parse`] before, and whose size its reader bounded.
pub fn read_value(value: Value) -> Result<Message, Rejection> {
    from_envelope(detect::in_value(value)?)
}

impl Message {
    /// The type as the envelope spells it.
    pub fn type_name(&self) -> &'static str {
        self.body.kind().as_str()
    }
}

impl Body {
    fn kind(&self) -> Kind {
        match self {
            Body::Completion(_) => Kind::Completion,
            Body::Status(_) => Kind::Status,
            Body::HandoffRequest(_) => Kind::HandoffRequest,
            Body::HandoffAccepted(_) => Kind::HandoffAccepted,
            Body::HandoffRejected(_) => Kind::HandoffRejected,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Completion,
    Status,
    HandoffRequest,
    HandoffAccepted,
    HandoffRejected,
}

impl Kind {
    const ALL: [Kind; 5] =
        [Kind::Completion, Kind::Status, Kind::HandoffRequest, Kind::HandoffAccepted, Kind::HandoffRejected];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Completion => "completion.report",
            Kind::Status => "status.update",
            Kind::HandoffRequest => "handoff.request",
            Kind::HandoffAccepted => "handoff.accepted",
            Kind::HandoffRejected => "handoff.rejected",
        }
    }
}

fn from_envelope(raw: Map<String, Value>) -> Result<Message, Rejection> {
    let fields = Fields { map: &raw, path: "" };
    match read_envelope(fields) {
        Ok((task, from, to, sent_at, fence, body)) => {
            Ok(Message { task, from, to, sent_at, fence, body, raw })
        }
        Err(flaw) => Err(Rejection {
            reason: flaw.reason,
            detail: Some(flaw.detail),
            task: fields.id("taskId").ok(),
            from: fields.agent("fromAgent").ok(),
            message_type: fields.text("type").ok().map(cut),
        }),
    }
}

type Parts = (TaskId, AgentName, String, String, Option<u64>, Body);

fn read_envelope(fields: Fields<'_>) -> Read<Parts> {
    if fields.get("version").and_then(Value::as_u64) != Some(1) {
        return fields.refuse("version", "1");
    }
    let name = fields.text("type")?;
    let task: TaskId = fields.id("taskId")?;
    let from = fields.agent("fromAgent")?;
    let to = fields.text_within("toAgent", RECEIVER_CHARS_MAX)?;
    if to.trim().is_empty() || to.contains(char::is_control) {
        return fields.refuse("toAgent", "a name without control characters");
    }
    let sent_at = fields.moment("sentAt")?;
    let fence = fields.get("fence").map(|_| fields.count("fence")).transpose()?;
    let payload = fields.object("payload", "payload.")?;

    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.as_str() == name) else {
        let expected = Kind::ALL.map(Kind::as_str).join(", ");
        let refused: Read<Parts> = fields.refuse("type", expected);
        return refused.map_err(|flaw| Flaw { reason: Reason::UnknownType, ..flaw });
    };
    check_same_task(payload, &task, kind)?;
    let body = match kind {
        Kind::Completion => Body::Completion(CompletionReport::read(payload)?),
        Kind::Status => Body::Status(StatusUpdate::read(payload)?),
        Kind::HandoffRequest => Body::HandoffRequest(HandoffRequest::read(payload)?),
        Kind::HandoffAccepted => Body::HandoffAccepted(HandoffAccepted::read(payload)?),
        Kind::HandoffRejected => Body::HandoffRejected(HandoffRejected::read(payload)?),
    };
    Ok((task, from, to.to_owned(), sent_at, fence, body))
}

/// A payload must not speak of another task than its envelope. Only a report may leave the task out.
fn check_same_task(payload: Fields<'_>, task: &TaskId, kind: Kind) -> Read<()> {
    if kind == Kind::Completion && payload.get("taskId").is_none() {
        return Ok(());
    }
    if payload.text("taskId")? == task.as_str() {
        return Ok(());
    }
    let refused: Read<()> = payload.refuse("taskId", task.as_str());
    refused.map_err(|flaw| Flaw { reason: Reason::TaskIdMismatch, ..flaw })
}

#[cfg(test)]
mod tests;
