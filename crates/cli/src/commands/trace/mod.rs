//! `baton trace`: the record of one piece of work, written, read, proved and handed out.

mod append;
mod change;
mod cite;
mod export;
mod judge;
mod list;
mod prove;
mod show;
mod speaker;
pub(super) mod story;

use baton_core::TraceId;
use baton_ledger::seal::Receipt;
use serde_json::{Value, json};

pub(super) use change::expect_length;
pub(crate) use export::tell_fetched;

use crate::commands::Ended;
use crate::context::Context;
use crate::trace_args::Trace;
use crate::ui::Ui;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: Trace) -> Ended {
    match command {
        Trace::New(args) => change::new(ctx, ui, args.title),
        Trace::Ls => list::run(ctx, ui),
        Trace::Show(id) => show::run(ctx, ui, &id.trace),
        Trace::Append(args) => append::run(ctx, ui, &args),
        Trace::Prove(args) => prove::run(ctx, ui, &args),
        Trace::Export(args) => export::run(ctx, ui, &args),
        Trace::Checkpoint(args) => prove::checkpoint(ctx, ui, args.trace.as_deref()),
        Trace::Review(args) => judge::review(ctx, ui, &args),
        Trace::Abort(args) => judge::abort(ctx, ui, &args),
        Trace::Close(args) => change::close(ctx, ui, &args),
    }
}

/// Where events ended up, as every command that appends prints it.
fn receipts_json<'a>(trace: TraceId, receipts: impl IntoIterator<Item = &'a Receipt>) -> Value {
    let events: Vec<Value> = receipts
        .into_iter()
        .map(|receipt| {
            json!({
                "id": receipt.id.to_string(),
                "pos": receipt.pos,
                "seq": receipt.seq,
                "hash": receipt.hash.to_string(),
            })
        })
        .collect();
    json!({"v": 1, "trace": trace.to_string(), "events": events})
}
