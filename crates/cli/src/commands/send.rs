//! `baton send`: routes one message of an agent.

use std::path::Path;

use baton_core::limits::ENVELOPE_BYTES_MAX;
use baton_core::protocol::Reason;
use baton_core::task::Task;
use baton_store::clock;
use serde_json::json;

use crate::commands::{Ended, guarded};
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::input::read_bytes;
use crate::serve::Acting;
use crate::task_args::Send;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::shell;
use crate::ui::text::printable;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Send) -> Ended {
    // One byte more than a message may have, so that too large is seen as such.
    let bytes = read_bytes(ctx, &args.file, ENVELOPE_BYTES_MAX as u64 + 1)?;
    if !ui.json && bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(nothing_came(ctx, ui, &args.file).into());
    }
    if let Some(acting) = ctx.acting() {
        expect_sender(ctx, acting, &bytes)?;
    }
    let tasks = ctx.tasks(ui)?;
    let sent = tasks.send(&bytes).map_err(Into::into);
    let sent = tasks.finish(ui, sent)?;
    if ui.json {
        let mut out = json!({"v": 1, "accepted": sent.rejected.is_none(), "events": sent.events});
        if let Some(rejection) = &sent.rejected {
            out["reason"] = rejection.reason.as_str().into();
            if let Some(detail) = &rejection.detail {
                out["detail"] = detail.to_json();
            }
        }
        ui.object(&out)?;
    } else {
        match &sent.rejected {
            None => ui.line(&ui.paint.mark(Mark::Good, "accepted"))?,
            Some(rejection) => {
                let is_prose = rejection.reason == Reason::NotAMessage;
                let why = match &rejection.detail {
                    Some(detail) => detail.to_string(),
                    None if is_prose => {
                        "expected one AOF/1 message, a JSON object with protocol, version, type, \
                                         taskId, fromAgent, toAgent, sentAt and payload"
                            .to_owned()
                    }
                    None => String::new(),
                };
                let word = ui.paint.mark(Mark::Bad, "rejected");
                let gap = if why.is_empty() { "" } else { ": " };
                ui.line(&format!("{word} {}{gap}{}", rejection.reason.as_str(), printable(&why)))?;
                if is_prose {
                    ui.hint("baton send --help");
                }
            }
        }
        for event in &sent.events {
            ui.note(&format!("  {event}"));
        }
    }
    Ok(if sent.rejected.is_none() { Exit::Ok } else { Exit::Refused })
}

/// A process of a session speaks for its own agent, whatever it writes, and for no guarded run but its own.
fn expect_sender(ctx: &Context, acting: &Acting, bytes: &[u8]) -> Result<(), CliError> {
    let Ok(message) = baton_core::protocol::read(bytes) else { return Ok(()) };
    if message.from == acting.agent {
        let is_own = acting.task.as_ref() == Some(&message.task);
        if is_own || !guarded::is_open(ctx, &message.task) {
            return Ok(());
        }
        let what = format!("taskId: {} is guarded, and is worked on in a session of its own", message.task);
        let error =
            CliError::new(Code::NotForAgents, what).cause(format!("the call comes from {}", acting.place()));
        guarded::note_about(ctx, &message.task, "a message about another run", &error);
        return Err(error);
    }
    let what = format!("fromAgent: expected {}, got {}", acting.agent, message.from);
    Err(CliError::new(Code::NotForAgents, what).cause(format!("the call comes from {}", acting.place())))
}

/// A person who sends nothing is shown what a message looks like; programs get the answer that the protocol has for it.
fn nothing_came(ctx: &Context, ui: &Ui, file: &Path) -> CliError {
    let source = if file == Path::new("-") { "standard input".to_owned() } else { shell::path(file) };
    let what = format!("{source} is empty: expected one AOF/1 message in JSON");
    let error = CliError::new(Code::InputForm, what);
    let board = ctx.board().ok();
    let held = board.as_ref().and_then(|read| read.board.tasks().find(|task| task.lease.is_some()));
    match held.and_then(example) {
        Some(message) => error.hint(format!("echo {} | {}", shell::word(&message), ui.command("baton send"))),
        None => error
            .cause("a message is about a task that an agent holds, and nobody holds one")
            .hint("baton send --help"),
    }
}

/// A message that is accepted now: a word about a task, from whoever holds it.
fn example(task: &Task) -> Option<String> {
    let lease = task.lease.as_ref()?;
    let message = json!({
        "protocol": "aof",
        "version": 1,
        "type": "status.update",
        "taskId": task.id.as_str(),
        "fromAgent": lease.agent.as_str(),
        "toAgent": "baton",
        "sentAt": clock::now().to_string(),
        "fence": lease.fence,
        "payload": {"taskId": task.id.as_str(), "agentId": lease.agent.as_str(), "progress": "half done"},
    });
    Some(message.to_string())
}
