//! `baton trace prove` and `baton trace checkpoint`: what the ledger signs about itself, for others to keep.

use std::path::Path;

use baton_core::limits::NOTE_BYTES_MAX;
use baton_ledger::merkle::Frontier;
use baton_ledger::note::{Note, Statement};
use baton_store::{History as _, ReadError};
use serde_json::json;

use crate::commands::Ended;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::ids;
use crate::trace_args::TraceProve;
use crate::ui::Ui;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TraceProve) -> Ended {
    let proof = match (&args.event, &args.consistency) {
        (Some(event), _) => {
            let (_, pos) = ids::event(&ctx.visit()?, event)?;
            let writing = ctx.write(ui)?;
            let proof = writing.exporter().prove(pos)?;
            writing.close(ui)?;
            proof
        }
        (None, old) => {
            let old = Old::read(ctx, old.as_deref().unwrap_or_default())?;
            let writing = ctx.write(ui)?;
            let size = old.size_in(&writing)?;
            let proof = writing.exporter().prove_consistency(size)?;
            writing.close(ui)?;
            proof
        }
    };
    if ui.json {
        ui.object(&json!({"v": 1, "proof": proof}))?;
    } else {
        ui.raw(&proof)?;
    }
    Ok(Exit::Ok)
}

pub(super) fn checkpoint(ctx: &Context, ui: &mut Ui, trace: Option<&str>) -> Ended {
    let trace = trace.map(|text| ctx.trace(text)).transpose()?;
    let writing = ctx.write(ui)?;
    let (note, value) = match trace {
        None => {
            let (checkpoint, note) = writing.exporter().checkpoint()?;
            let value = json!({"v": 1, "checkpoint": note, "size": checkpoint.size, "root": checkpoint.root.to_string()});
            (note, value)
        }
        Some(trace) => {
            let gone = || CliError::new(Code::NoTrace, format!("no trace {trace}"));
            let note = writing.exporter().trace_head(trace)?.ok_or_else(gone)?;
            let summary = writing.journal.trace(trace).ok_or_else(gone)?;
            let head = summary.head.to_string();
            let value = json!({"v": 1, "checkpoint": note, "trace": trace.to_string(), "seq": summary.seq, "head": head});
            (note, value)
        }
    };
    writing.close(ui)?;
    if ui.json {
        ui.object(&value)?;
    } else {
        ui.raw(&note)?;
    }
    Ok(Exit::Ok)
}

/// The earlier state that growth is proved from.
enum Old {
    Size(u64),
    Note(Box<Note>),
}

impl Old {
    /// A number, or a file with a checkpoint.
    fn read(ctx: &Context, text: &str) -> Result<Old, CliError> {
        if let Ok(size) = text.parse() {
            return Ok(Old::Size(size));
        }
        let file = ctx.name(Path::new(text));
        let refuse = |why: String| {
            CliError::new(Code::Value, format!("{} is not a checkpoint", file.shown.display()))
                .cause(why)
                .hint("baton trace checkpoint")
        };
        let bytes = file.read_small(NOTE_BYTES_MAX as u64)?;
        let bytes = bytes.ok_or_else(|| refuse(format!("it has more than {NOTE_BYTES_MAX} bytes")))?;
        let note = Note::parse(&bytes).map_err(|error| refuse(error.to_string()))?;
        Ok(Old::Note(Box::new(note)))
    }

    /// The size to prove from, once it is known that the note is of this ledger and of this history.
    fn size_in(&self, writing: &Writing) -> Result<u64, Stop> {
        let note = match self {
            Old::Size(size) => return Ok(*size),
            Old::Note(note) => note,
        };
        let other = |why: String| {
            CliError::new(Code::OtherHistory, "the checkpoint is not one of this history")
                .cause(why)
                .hint("baton verify")
        };
        let ledger = writing.journal.ledger();
        note.check(&ledger.origin, &ledger.key).map_err(|error| other(error.to_string()))?;
        let Statement::Checkpoint(old) = &note.statement else {
            return Err(other("it is the head of a trace, not a checkpoint of the ledger".into()).into());
        };
        let have = writing.journal.size();
        if old.size > have {
            return Err(other(format!("it covers {} events, the ledger has {have}", old.size)).into());
        }
        let tree = Frontier::load(old.size, &mut |index| writing.journal.node(index));
        if tree.map_err(|error: ReadError| error)?.root() != old.root {
            return Err(other(format!("the first {} events were others when it was signed", old.size)).into());
        }
        Ok(old.size)
    }
}
