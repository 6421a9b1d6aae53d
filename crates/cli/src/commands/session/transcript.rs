//! `baton session show --transcript`: all that was said in a session, from its transcript; hooks, permissions and errors from the ledger, between it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use baton_core::session::{RunStatus, SessionEvent};
use baton_core::{Payload, Timestamp};
use baton_runtime::limits::PIECE_WAIT;
use baton_runtime::session::{Snapshot, events, path_in};
use serde_json::{Map, Value, json};

use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Stop};
use crate::exit::Exit;
use crate::limits::{TRANSCRIPT_LINE_BYTES_MAX, TRANSCRIPT_OUTPUT_LINES};
use crate::sessions;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{count, printable};

/// Where the text after a label begins.
const INDENT: usize = 10;

/// Prints it, or about so many bytes from its end: no more than that is read of the transcript, and kept of the ledger.
pub(super) fn print(ctx: &Context, ui: &mut Ui, snapshot: &Snapshot, last_bytes: Option<u64>) -> Ended {
    let (mut beside, mut runs) = (Beside::new(last_bytes), Runs::new());
    events(&ctx.visit()?.reader, snapshot, &mut |at, event| {
        if let SessionEvent::ToolLifecycle(run) = event
            && run.status.is_terminal()
        {
            let ends = runs.entry(run.call_id.clone()).or_default();
            ends.push_back((run.status, run.error.clone()));
        }
        from_ledger(at, event).into_iter().for_each(|piece| beside.push(piece));
    })?;
    let mut beside = beside.pieces;
    let path = path_in(&sessions::dir_of(&ctx.layout()?).join(snapshot.id.to_string()));
    let fail = |error: io::Error| CliError::io("read", &path, &error);
    let mut teller = Teller { open: None, runs };
    let (mut lines, mut last) = (Lines::open(&path, last_bytes).map_err(fail)?, snapshot.started_at);
    let mut is_cut = lines.as_ref().is_some_and(|lines| lines.is_cut);
    while let Some(found) = lines.as_mut().map(Lines::next).transpose().map_err(fail)?.flatten() {
        let Some(piece) = Piece::read(&found, last) else { continue };
        last = piece.at;
        if std::mem::take(&mut is_cut) {
            // What was beside what is not shown is not shown either.
            while beside.pop_front_if(|other: &mut Piece| other.is_before(&piece)).is_some() {}
        }
        while beside.front().is_some_and(|other: &Piece| other.is_before(&piece)) {
            beside.pop_front().iter().try_for_each(|other| teller.tell(ui, other))?;
        }
        teller.tell(ui, &piece)?;
    }
    beside.iter().try_for_each(|other| teller.tell(ui, other))?;
    teller.end(ui)?;
    if !ui.json && lines.is_none() && beside.is_empty() {
        ui.note("nothing was said in it");
    }
    Ok(Exit::Ok)
}

/// One thing that was said or that happened.
#[derive(Debug)]
struct Piece {
    at: Timestamp,
    kind: String,
    fields: Map<String, Value>,
}

impl Piece {
    /// A line of the transcript; `None` for the beginning of one that is being written. `last` is when the one before it was.
    fn read(found: &Found, last: Timestamp) -> Option<Piece> {
        let Found::Line(bytes) = found else {
            return Some(Piece { at: last, kind: "left_out".to_owned(), fields: Map::new() });
        };
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(bytes) else { return None };
        let at = fields.remove("at")?.as_str()?.parse().ok()?;
        let kind = fields.remove("kind")?.as_str()?.to_owned();
        Some(Piece { at, kind, fields })
    }

    /// Whether this, of the ledger, comes before a piece of the transcript. What an agent says is written a moment later, and most often it says what
    /// it wants before it asks for it; and nothing of a turn is before its prompt, however quick it is.
    fn is_before(&self, said: &Piece) -> bool {
        let is_asked = self.kind.starts_with("permission_");
        let late_ms = match said.kind.as_str() {
            "text" | "thought" if is_asked => i64::try_from(PIECE_WAIT.as_millis()).unwrap_or(0),
            "prompt" => 1,
            _ => 0,
        };
        self.at.unix_ms() <= said.at.unix_ms() - late_ms
    }

    /// About how long it is as text.
    fn bytes(&self) -> u64 {
        let fields = self.fields.iter().map(|(name, value)| match value {
            Value::String(text) => name.len() + text.len(),
            _ => name.len() + 16,
        });
        (self.kind.len() + fields.sum::<usize>()) as u64
    }

    fn text(&self, key: &str) -> &str {
        self.fields.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// What the ledger has that the transcript has not: ends of hooks, permissions, errors.
fn from_ledger(at: Timestamp, event: &SessionEvent) -> Option<Piece> {
    match event {
        SessionEvent::HookLifecycle(run) if !run.status.is_terminal() => return None,
        SessionEvent::StateChanged(_) | SessionEvent::ToolLifecycle(_) => return None,
        SessionEvent::HookLifecycle(_)
        | SessionEvent::Error(_)
        | SessionEvent::Warning(_)
        | SessionEvent::PermissionRequested(_)
        | SessionEvent::PermissionResolved(_) => {}
    }
    let Payload::Other { event_type, mut fields } = event.to_payload() else { return None };
    // A piece has a kind of its own.
    if let Some(kind) = fields.remove("kind") {
        fields.insert("permissionKind".to_owned(), kind);
    }
    Some(Piece { at, kind: event_type.as_str().to_owned(), fields })
}

/// What is of the ledger, and how much of it is kept: the oldest goes where it is too much.
struct Beside {
    pieces: VecDeque<Piece>,
    bytes: u64,
    bytes_max: u64,
}

impl Beside {
    fn new(bytes_max: Option<u64>) -> Beside {
        Beside { pieces: VecDeque::new(), bytes: 0, bytes_max: bytes_max.unwrap_or(u64::MAX) }
    }

    fn push(&mut self, piece: Piece) {
        self.bytes += piece.bytes();
        self.pieces.push_back(piece);
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.pieces.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }
}

/// How the runs of each call ended, in order, as the ledger has it. The transcript has what the agent made of that.
type Runs = BTreeMap<String, VecDeque<(RunStatus, Option<String>)>>;

/// Shows one piece after the other.
struct Teller {
    runs: Runs,
    /// The words that may go on in the next piece: a message is several of them.
    open: Option<String>,
}

impl Teller {
    fn tell(&mut self, ui: &mut Ui, piece: &Piece) -> Result<(), Stop> {
        if ui.json {
            let mut object = json!({"v": 1, "at": piece.at.to_string(), "kind": piece.kind});
            if let Some(object) = object.as_object_mut() {
                object.extend(piece.fields.clone());
            }
            return ui.object(&object);
        }
        let text = |key: &str| piece.text(key);
        match piece.kind.as_str() {
            "text" => self.words(ui, &piece.kind, "says", None, text("text")),
            "thought" => self.words(ui, &piece.kind, "thinks", Some(Mark::Dim), text("text")),
            "prompt" => self.block(ui, "prompt", text("text"), usize::MAX),
            "tool" => {
                let status = match self.runs.get_mut(text("callId")).and_then(VecDeque::pop_front) {
                    // An agent calls it a failure that somebody said no.
                    Some((RunStatus::Canceled, why)) if !text("error").is_empty() => {
                        format!("canceled{}", why.map(|why| format!(": {why}")).unwrap_or_default())
                    }
                    _ if text("error").is_empty() => "done".to_owned(),
                    _ => "failed".to_owned(),
                };
                let head = format!("{}  {status}", text("toolName"));
                self.block(ui, "tool", &head, usize::MAX)?;
                let said = if text("output").is_empty() { text("error") } else { text("output") };
                self.block(ui, "", said, TRANSCRIPT_OUTPUT_LINES)
            }
            "hook_lifecycle" => {
                let error = text("error");
                let error = if error.is_empty() { String::new() } else { format!(": {error}") };
                let head = format!("{}  {}{error}", text("hookName"), text("status"));
                self.block(ui, "hook", &head, usize::MAX)?;
                self.block(ui, "", text("output"), TRANSCRIPT_OUTPUT_LINES)
            }
            "permission_requested" => {
                let label = if text("permissionKind") == "question" { "asks" } else { "wants" };
                self.block(ui, label, &format!("{}  ({})", text("title"), text("id")), usize::MAX)
            }
            "permission_resolved" => {
                let answer = piece.fields.get("answer").cloned().unwrap_or_default();
                let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
                let line = format!("{answer}  ({}) by {}", text("id"), text("by"));
                self.block(ui, "answered", &line, usize::MAX)
            }
            "session_error" | "session_warning" => {
                let label = if piece.kind == "session_error" { "error" } else { "warning" };
                self.block(ui, label, &format!("{}: {}", text("code"), text("message")), usize::MAX)
            }
            "plan" => {
                let entries = piece.fields.get("entries").and_then(Value::as_array).into_iter().flatten();
                let word = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
                let lines =
                    entries.map(|entry| format!("{}  {}", word(entry, "status"), word(entry, "content")));
                self.block(ui, "plan", &lines.collect::<Vec<_>>().join("\n"), TRANSCRIPT_OUTPUT_LINES)
            }
            "unknown" => {
                let line = format!("{}: {}", text("what"), text("raw"));
                self.block(ui, "unknown", &line, TRANSCRIPT_OUTPUT_LINES)
            }
            "left_out" => self.block(ui, "left out", "a piece that is too long to be shown", 1),
            "full" => self.block(ui, "full", "what was said later is not kept", 1),
            other => self.block(ui, other, &Value::Object(piece.fields.clone()).to_string(), 1),
        }
    }

    /// A part of a message; the next part goes on where it ended.
    fn words(
        &mut self,
        ui: &mut Ui,
        kind: &str,
        label: &str,
        mark: Option<Mark>,
        text: &str,
    ) -> Result<(), Stop> {
        if self.open.as_deref() != Some(kind) {
            self.end(ui)?;
            ui.raw(&format!("{label:<INDENT$}"))?;
            self.open = Some(kind.to_owned());
        }
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 {
                ui.raw(&format!("\n{:INDENT$}", ""))?;
            }
            let line = printable(line);
            ui.raw(&mark.map_or(line.clone(), |mark| ui.paint.mark(mark, &line)))?;
        }
        Ok(())
    }

    /// A text of its own under a label; of more lines than `lines_max` the rest is counted.
    fn block(&mut self, ui: &mut Ui, label: &str, text: &str, lines_max: usize) -> Result<(), Stop> {
        self.end(ui)?;
        let text = text.trim_end();
        if text.is_empty() && label.is_empty() {
            return Ok(());
        }
        for (i, line) in text.lines().take(lines_max).enumerate() {
            let label = if i == 0 { printable(label) } else { String::new() };
            ui.line(&format!("{label:<INDENT$}{}", printable(line)))?;
        }
        match text.lines().count().saturating_sub(lines_max) {
            0 => Ok(()),
            more => ui.line(&format!("{:INDENT$}… and {}", "", count(more as u64, "more line"))),
        }
    }

    fn end(&mut self, ui: &mut Ui) -> Result<(), Stop> {
        if self.open.take().is_some() { ui.line("") } else { Ok(()) }
    }
}

/// The lines of a transcript.
struct Lines {
    file: BufReader<File>,
    /// Whether something before is left out.
    is_cut: bool,
}

enum Found {
    Line(Vec<u8>),
    TooLong,
}

impl Lines {
    /// `None` where there is no transcript. Links and pipes in its place are not followed.
    fn open(path: &Path, last_bytes: Option<u64>) -> io::Result<Option<Lines>> {
        use rustix::fs::OFlags;
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut file = BufReader::new(file);
        let cut = last_bytes.and_then(|last| metadata.len().checked_sub(last)).filter(|cut| *cut > 0);
        if let Some(cut) = cut {
            // To the first line that begins after it; one may begin right there.
            file.seek(SeekFrom::Start(cut - 1))?;
            file.skip_until(b'\n')?;
        }
        Ok(Some(Lines { file, is_cut: cut.is_some() }))
    }

    fn next(&mut self) -> io::Result<Option<Found>> {
        let mut line = Vec::new();
        let max = TRANSCRIPT_LINE_BYTES_MAX as u64;
        let read = (&mut self.file).take(max).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') || (read as u64) < max {
            return Ok(Some(Found::Line(line)));
        }
        self.file.skip_until(b'\n')?;
        Ok(Some(Found::TooLong))
    }
}
