//! Checkpoints and trace heads beside a journal: what they promise, and whether it was kept.

use super::Options;
use super::code::Code;
use super::join::{Join, Promise, Scope};
use super::report::Finding;
use crate::keyring::LedgerIdentity;
use crate::note::{Note, Statement};

/// The notes to compare with: what they promise, and how to judge their signatures once the ledger's key is known.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) list: Vec<(String, bool, Result<Note, String>)>,
}

impl Notes {
    pub(super) fn read(options: &Options, join: &mut Join) -> Notes {
        let given = options
            .checkpoint
            .iter()
            .map(|bytes| ("the given checkpoint".to_owned(), true, bytes.as_slice()));
        let kept = options.kept.iter().map(|kept| (kept.name.clone(), false, kept.bytes.as_slice()));
        let mut notes = Notes::default();
        for (name, is_given, bytes) in given.chain(kept) {
            let note = Note::parse(bytes).map_err(|e| e.to_string()).and_then(|note| {
                if is_given || file_name(&note.statement) == name {
                    Ok(note)
                } else {
                    Err(format!("the file is named {name}, its content is {}", file_name(&note.statement)))
                }
            });
            if let Ok(note) = &note {
                expect(join, &note.statement);
            }
            notes.list.push((name, is_given, note));
        }
        notes
    }
}

/// The name under which a note is kept in `checkpoints/`.
pub fn file_name(statement: &Statement) -> String {
    match statement {
        Statement::Checkpoint(checkpoint) => format!("{:020}", checkpoint.size),
        Statement::TraceHead(head) => format!("traces/{}-{:020}", head.trace, head.seq),
    }
}

fn expect(join: &mut Join, statement: &Statement) {
    match statement {
        Statement::Checkpoint(c) => {
            let is_kept = (c.size == 0).then(|| c.root == join.frontier.root());
            join.roots.entry(c.size).or_default().push(Promise { digest: c.root, is_kept });
        }
        Statement::TraceHead(head) => {
            // No event has the number 0, so nothing keeps such a promise.
            let is_kept = (head.seq == 0).then_some(false);
            join.heads
                .entry((head.trace, head.seq))
                .or_default()
                .push(Promise { digest: head.hash, is_kept });
        }
    }
}

/// `Ok` where the note holds, with whether it covers the last event; `Err(None)` where it concerns something else.
pub(super) fn judge_note(
    join: &Join,
    ledger: &LedgerIdentity,
    scope: Scope,
    is_given: bool,
    note: &Result<Note, String>,
) -> Result<bool, Option<Finding>> {
    let mismatch = |found: String| {
        Some(Finding::new(Code::CheckpointMismatch).expected("a note that fits").found(found))
    };
    let note = note.as_ref().map_err(|why| mismatch(why.clone()))?;
    note.check(&ledger.origin, &ledger.key).map_err(|e| mismatch(e.to_string()))?;
    let (kept, number, last) = match &note.statement {
        Statement::Checkpoint(_) if scope != Scope::Journal => return Err(None),
        Statement::Checkpoint(c) => {
            let kept = join.roots.get(&c.size).and_then(|list| list.iter().find(|p| p.digest == c.root));
            (kept, c.size, join.line())
        }
        Statement::TraceHead(head) => {
            if matches!(scope, Scope::Trace(trace) if trace != head.trace) {
                // Heads of other traces lie beside every journal; one that the reader gave is a mistake to be told.
                return Err(is_given.then(|| mismatch("the head of another trace".into())).flatten());
            }
            let kept = join.heads.get(&(head.trace, head.seq));
            let kept = kept.and_then(|list| list.iter().find(|p| p.digest == head.hash));
            (kept, head.seq, join.events_of(head.trace))
        }
    };
    match kept.and_then(|promise| promise.is_kept) {
        // The head of one trace says nothing about the end of a whole journal.
        Some(true) => Ok(number == last && (note.checkpoint().is_some() || scope != Scope::Journal)),
        Some(false) => Err(mismatch(format!("another history at {number}"))),
        None if number > last => {
            let finding = Finding::new(Code::TailCut).expected(format!("at least {number} events"));
            Err(Some(finding.found(format!("{last} events"))))
        }
        // The lines up to there could not be read; they have their own findings.
        None => Err(None),
    }
}
