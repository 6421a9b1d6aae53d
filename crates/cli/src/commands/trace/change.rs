//! `baton trace new` and `baton trace close`: the beginning and the end of a trace, both signed by the ledger.

use baton_core::TraceId;
use baton_core::task::Board;
use serde_json::json;

use super::receipts_json;
use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::ids;
use crate::limits::{REASON_CHARS_MAX, TITLE_CHARS_MAX};
use crate::trace_args::TraceClose;
use crate::ui::Ui;

pub(super) fn new(ctx: &Context, ui: &mut Ui, title: Option<String>) -> Ended {
    if let Some(title) = &title {
        expect_length("the title", title, TITLE_CHARS_MAX)?;
    }
    let writing = ctx.write(ui)?;
    let receipt = writing.new_trace(title)?;
    if ui.json {
        ui.object(&json!({"v": 1, "trace": receipt.trace.to_string()}))?;
    } else {
        ui.line(&receipt.trace.to_string())?;
    }
    // The id reaches the caller before anything else can go wrong.
    ui.flush()?;
    writing.close(ui)?;
    Ok(Exit::Ok)
}

pub(super) fn close(ctx: &Context, ui: &mut Ui, args: &TraceClose) -> Ended {
    expect_length("the reason", &args.reason, REASON_CHARS_MAX)?;
    let read = ctx.board()?;
    let trace = ids::trace(&read.visit.reader, &args.id.trace)?;
    expect_own_end(&read.board, trace)?;
    let writing = ctx.write(ui)?;
    let receipt = writing.close_trace(trace, &args.reason)?;
    if ui.json {
        ui.object(&receipts_json(trace, [&receipt]))?;
    } else {
        ui.line(&format!("closed {trace}"))?;
    }
    ui.flush()?;
    writing.close(ui)?;
    Ok(Exit::Ok)
}

/// Refuses to end by hand what never ends, or ends with its task.
pub(super) fn expect_own_end(board: &Board, trace: TraceId) -> Result<(), CliError> {
    if trace == TraceId::Ledger {
        let error = CliError::new(Code::Reserved, "the trace `ledger` is never closed");
        return Err(error.hint("baton trace ls"));
    }
    let Some(task) = board.of_trace(trace) else { return Ok(()) };
    let what = format!("this is the trace of {}, and ends with it", task.id);
    let hint = format!("baton task move {} cancelled --reason \"…\"", task.id);
    Err(CliError::new(Code::Reserved, what).hint(hint))
}

/// Refuses text that is empty or longer than a line of it should be.
pub(crate) fn expect_length(name: &str, text: &str, chars_max: usize) -> Result<(), CliError> {
    let chars = text.chars().count();
    if (1..=chars_max).contains(&chars) {
        return Ok(());
    }
    Err(CliError::new(Code::Value, format!("{name} has {chars} characters, expected 1 to {chars_max}")))
}
