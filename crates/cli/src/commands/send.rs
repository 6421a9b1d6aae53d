//! `baton send`: routes one message of an agent.

use baton_core::limits::ENVELOPE_BYTES_MAX;
use baton_core::protocol::Detail;
use serde_json::json;

use crate::commands::Ended;
use crate::context::Context;
use crate::exit::Exit;
use crate::input::read_bytes;
use crate::task_args::Send;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::printable;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Send) -> Ended {
    // One byte more than a message may have, so that too large is seen as such.
    let bytes = read_bytes(ctx, &args.file, ENVELOPE_BYTES_MAX as u64 + 1)?;
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
                let why = rejection.detail.as_ref().map(Detail::to_string).unwrap_or_default();
                let word = ui.paint.mark(Mark::Bad, "rejected");
                let gap = if why.is_empty() { "" } else { ": " };
                ui.line(&format!("{word} {}{gap}{}", rejection.reason.as_str(), printable(&why)))?;
            }
        }
        for event in &sent.events {
            ui.note(&format!("  {event}"));
        }
    }
    Ok(if sent.rejected.is_none() { Exit::Ok } else { Exit::Refused })
}
