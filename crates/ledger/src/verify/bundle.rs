//! Verifies a bundle: the same checks as for a journal, on the lines of one trace, then its head, checkpoint, proof and report.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::{BUNDLE_CHUNK_BYTES, BUNDLE_LINE_BYTES_MAX, PROOF_HASHES_MAX};
use baton_core::{Digest, TraceId};
use serde_json::{Map, Value};

use super::code::{Check, Code};
use super::join::{Join, Judged, Pending, Scope};
use super::late::Ids;
use super::report::{Finding, Report, Subject, Vouched};
use super::signatures::Checker;
use super::workers::bad_signatures;
use super::{Options, identity, judge_key};
use crate::bundle::{Header, Summary, artifact_chunks};
use crate::canonical::{self, scan};
use crate::hash::{Hasher, leaf};
use crate::key::PublicKey;
use crate::keyring::LedgerIdentity;
use crate::merkle::check_inclusion;
use crate::note::{Checkpoint, Note, Statement, TraceHead, parse_digest};
use crate::record::Flaw;

/// Where a bundle's bytes come from: some more of them, or an empty answer at the end.
pub(crate) type ReadBytes<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<usize, String>;

/// Verifies a bundle as it is read.
pub fn verify_bundle(read: ReadBytes<'_>, options: &Options) -> Report {
    let mut lines = LineReader { read, buffer: Vec::new(), start: 0, line: 0 };
    match Bundle::verify(&mut lines, options) {
        Ok(report) => report,
        Err(Stop::Unreadable(why)) => Report::cannot_tell(Code::Unreadable, why),
        Err(Stop::Invalid(report)) => *report,
    }
}

/// Why verification ended early.
enum Stop {
    Unreadable(String),
    Invalid(Box<Report>),
}

/// How much is asked for at once.
const READ_BYTES: usize = 64 << 10;

/// Whole lines from a stream, each bounded.
struct LineReader<'a> {
    read: ReadBytes<'a>,
    buffer: Vec<u8>,
    start: usize,
    line: u64,
}

impl LineReader<'_> {
    /// The next line without its line feed; `Ok(None)` at the end, `Err` for what cannot be a line.
    fn next(&mut self) -> Result<Option<Result<&[u8], &'static str>>, String> {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let (start, end) = (self.start, searched + at);
                self.start = end + 1;
                self.line += 1;
                return Ok(Some(Ok(&self.buffer[start..end])));
            }
            if self.buffer.len() - self.start > BUNDLE_LINE_BYTES_MAX {
                return Ok(Some(Err("a line that is too long")));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            self.buffer.resize(searched + READ_BYTES, 0);
            let count = (self.read)(&mut self.buffer[searched..])?;
            self.buffer.truncate(searched + count);
            if count == 0 {
                return Ok(if self.buffer.is_empty() {
                    None
                } else {
                    Some(Err("a last line without a line feed"))
                });
            }
        }
    }
}

/// What has been read so far.
struct Bundle {
    header: Header,
    join: Join,
    checker: Checker,
    pending: Vec<Pending>,
    /// Cited artifacts with their sizes, in the order in which they must come, and let go as they come. They come after all events, in another order,
    /// so each distinct one is kept until then: 40 bytes for a citation of more than 100.
    cited: BTreeMap<Digest, u64>,
    /// How many distinct ones there are.
    artifacts: u64,
    last_pos: u64,
    positions: Hasher,
    root: Option<Digest>,
    /// The trace head that the reader gave, and the hash that this bundle has there.
    given: Option<u64>,
    hash_at_given: Option<Digest>,
}

impl Bundle {
    fn verify(lines: &mut LineReader<'_>, options: &Options) -> Result<Report, Stop> {
        let header = match lines.next().map_err(Stop::Unreadable)? {
            None => return Ok(Report::cannot_tell(Code::NoEvents, "an empty file")),
            Some(line) => match line.and_then(read_header) {
                Ok(header) => header,
                Err(expected) => return Ok(not_a_bundle(expected)),
            },
        };
        let mut join = Join::new(Scope::Trace(header.trace), Some(header.ledger.clone()));
        // There is no second pass: a bundle is read once, from a pipe for instance.
        join.ids = Ids::all();
        let given = match options.checkpoint.as_deref().map(Note::parse) {
            Some(Ok(Note { statement: Statement::TraceHead(head), .. })) => Some(head.seq),
            _ => None,
        };
        let mut bundle = Bundle {
            header,
            join,
            checker: Checker::new(options.each),
            pending: Vec::new(),
            cited: BTreeMap::new(),
            artifacts: 0,
            last_pos: 0,
            positions: Hasher::default(),
            root: None,
            given,
            hash_at_given: None,
        };
        bundle.read_events(lines)?;
        bundle.artifacts = bundle.cited.len() as u64;
        if bundle.header.inline {
            bundle.read_artifacts(lines)?;
        } else if bundle.artifacts > 0 {
            let found = format!("only the hashes of what is cited; artifacts: {}", bundle.artifacts);
            bundle.join.findings.push(Finding::new(Code::ArtifactUnchecked).found(found));
        }
        bundle.read_end(lines, options)
    }

    /// Ends with what was found so far and one finding about the bundle's form.
    fn invalid(&mut self, expected: &str, found: &str) -> Stop {
        let line = self.join.line() + 1;
        self.join.findings.push(Finding::new(Code::SchemaInvalid).expected(expected).found(found).at(line));
        self.stop()
    }

    /// Ends with what was found so far; the signatures before this place count.
    fn stop(&mut self) -> Stop {
        self.check_signatures();
        let join = std::mem::replace(&mut self.join, Join::new(Scope::Journal, None));
        let subject = self.subject(&join);
        Stop::Invalid(Box::new(Report::conclude(subject, &join.counts, join.findings, Vouched::default())))
    }

    fn check_signatures(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.join.findings.extend(bad_signatures(&mut self.checker, &pending));
    }

    fn subject(&self, join: &Join) -> Subject {
        Subject {
            origin: Some(self.header.ledger.origin.to_string()),
            trace: Some(self.header.trace),
            head: join.head,
            events: join.line(),
            run: join.run_of(self.header.trace),
        }
    }

    fn next_line<'a>(&mut self, lines: &'a mut LineReader<'_>, expected: &str) -> Result<&'a [u8], Stop> {
        match lines.next().map_err(Stop::Unreadable)? {
            Some(Ok(line)) => Ok(line),
            Some(Err(found)) => Err(self.invalid(expected, found)),
            None => Err(self.invalid(expected, "the end of the file")),
        }
    }

    fn read_events(&mut self, lines: &mut LineReader<'_>) -> Result<(), Stop> {
        for _ in 0..self.header.events {
            let line = self.next_line(lines, "an event")?;
            let Some(record) = line.strip_prefix(b"{\"event\":").and_then(|rest| rest.strip_suffix(b"}"))
            else {
                return Err(self.invalid("an event", "another line"));
            };
            let judged = Judged::new(record).and_then(|judged| {
                let expected = "the bundle's trace";
                if judged.line.trace == self.header.trace {
                    Ok(judged)
                } else {
                    Err(Flaw::Field { field: "trace", expected })
                }
            });
            self.pending.extend(self.join.accept(judged.as_ref(), None));
            if let Ok(judged) = &judged {
                self.take_in(judged);
            }
            if self.join.has_stopped {
                return Err(self.stop());
            }
            if self.pending.len() >= 4096 {
                self.check_signatures();
            }
        }
        self.check_signatures();
        Ok(())
    }

    fn take_in(&mut self, judged: &Judged<'_>) {
        let line = &judged.line;
        self.last_pos = line.pos;
        self.positions.update(format!("{}\n", line.pos).as_bytes());
        if self.given == Some(line.seq) {
            self.hash_at_given = Some(line.hash);
        }
        for artifact in &line.artifacts {
            // One hash has one size; a second claim about it is wrong whichever is right.
            let known = *self.cited.entry(artifact.sha256).or_insert(artifact.bytes);
            if known != artifact.bytes {
                let finding = Finding::new(Code::ArtifactHashMismatch).expected(format!("{known} bytes"));
                self.join.findings.push(finding.found(artifact.bytes).at(self.join.line()).event(line.id));
            }
        }
        if line.trace == TraceId::Ledger && line.seq == 1 && line.event_type == "ledger.created" {
            let named = identity(line);
            if named.as_ref() != Ok(&self.header.ledger) {
                let finding = Finding::new(Code::KeyUnknown).expected("the origin and key of the header");
                self.join
                    .findings
                    .push(finding.found("others in ledger.created").at(self.join.line()).event(line.id));
            }
        }
    }

    fn read_artifacts(&mut self, lines: &mut LineReader<'_>) -> Result<(), Stop> {
        for (sha256, bytes) in std::mem::take(&mut self.cited) {
            self.join.counts.add(Check::ArtifactExists, 1);
            self.join.counts.add(Check::ArtifactHash, 1);
            let mut hasher = Hasher::default();
            for chunk in 1..=artifact_chunks(bytes) {
                let line = self.next_line(lines, "an artifact")?;
                let Some(data) = read_artifact(line, &sha256, bytes, chunk) else {
                    return Err(self.invalid(&format!("chunk {chunk} of artifact {sha256}"), "another line"));
                };
                hasher.update(&data);
            }
            let found = hasher.finish();
            if found != sha256 {
                self.join
                    .findings
                    .push(Finding::new(Code::ArtifactHashMismatch).expected(sha256).found(found));
            }
        }
        Ok(())
    }

    fn read_end(&mut self, lines: &mut LineReader<'_>, options: &Options) -> Result<Report, Stop> {
        let head = self.text_line(lines, "head")?;
        let checkpoint = self.text_line(lines, "checkpoint")?;
        let (index, path) = self.proof_line(lines)?;
        self.join.counts.add(Check::Checkpoint, 3);
        self.judge_head(&head);
        self.root = self.judge_checkpoint(&checkpoint, index, &path);
        let counted = Summary {
            artifacts: self.artifacts,
            closed: self.join.is_closed(self.header.trace),
            events: self.header.events,
            head: self.join.head.unwrap_or(Digest::ZERO),
            positions: std::mem::take(&mut self.positions).finish(),
            signed: self.join.signed,
            trace: self.header.trace,
        };
        let report = self.next_line(lines, "a report")?;
        let is_canonical = std::str::from_utf8(report).is_ok_and(|text| scan::check(text).is_ok());
        if !report.starts_with(b"{\"report\":{") || !is_canonical {
            return Err(self.invalid("a report", "another line"));
        }
        if counted.to_line().strip_suffix(b"\n") != Some(report) {
            self.join
                .findings
                .push(Finding::new(Code::ReportMismatch).found("another summary than the events give"));
        }
        if lines.next().map_err(Stop::Unreadable)?.is_some() {
            return Err(self.invalid("the end of the file", "another line"));
        }
        Ok(self.conclude(options))
    }

    fn text_line(&mut self, lines: &mut LineReader<'_>, name: &'static str) -> Result<String, Stop> {
        let line = self.next_line(lines, name)?;
        match canonical_object(line).as_ref().and_then(|object| only(object, name)?.as_str()) {
            Some(text) => Ok(text.to_owned()),
            None => Err(self.invalid(name, "another line")),
        }
    }

    fn proof_line(&mut self, lines: &mut LineReader<'_>) -> Result<(u64, Vec<Digest>), Stop> {
        let line = self.next_line(lines, "a proof")?;
        let read = |line| {
            let object = canonical_object(line)?;
            let proof = only(&object, "proof")?.as_object().filter(|proof| proof.len() == 2)?;
            let hashes = proof.get("hashes")?.as_array().filter(|hashes| hashes.len() <= PROOF_HASHES_MAX)?;
            let hashes: Option<Vec<Digest>> =
                hashes.iter().map(|hash| parse_digest(hash.as_str()?)).collect();
            Some((proof.get("index")?.as_u64()?, hashes?))
        };
        read(line).ok_or_else(|| self.invalid("a proof", "another line"))
    }

    fn mismatch(&mut self, expected: &str, found: impl ToString) {
        let finding = Finding::new(Code::CheckpointMismatch).expected(expected).found(found);
        self.join.findings.push(finding);
    }

    fn judge_head(&mut self, note: &str) {
        let ledger = &self.header.ledger;
        let expected = Statement::TraceHead(TraceHead {
            origin: ledger.origin.clone(),
            trace: self.header.trace,
            seq: self.header.events,
            hash: self.join.head.unwrap_or(Digest::ZERO),
        });
        match Note::parse(note.as_bytes())
            .and_then(|note| note.check(&ledger.origin, &ledger.key).map(|()| note))
        {
            Ok(note) if note.statement == expected => {}
            Ok(_) => self.mismatch("the last event of the bundle", "a head note for another event"),
            Err(error) => self.mismatch("a good head note", error),
        }
    }

    /// Gives the root that the checkpoint states, where it could be read.
    fn judge_checkpoint(&mut self, note: &str, index: u64, path: &[Digest]) -> Option<Digest> {
        let ledger = &self.header.ledger;
        let read = Note::parse(note.as_bytes())
            .and_then(|note| note.check(&ledger.origin, &ledger.key).map(|()| note));
        let Checkpoint { size, root, .. } = match read.as_ref().map(Note::checkpoint) {
            Ok(Some(checkpoint)) => checkpoint.clone(),
            Ok(None) => {
                self.mismatch("a checkpoint", "the head of a trace");
                return None;
            }
            Err(error) => {
                self.mismatch("a good checkpoint", error);
                return None;
            }
        };
        let leaf = leaf(&self.join.head.unwrap_or(Digest::ZERO));
        if size != self.header.size {
            self.mismatch(&format!("a checkpoint of size {}", self.header.size), format!("size {size}"));
        } else if index.checked_add(1) != Some(self.last_pos)
            || !check_inclusion(index, size, leaf, path, &root)
        {
            self.mismatch(
                "a proof that leads from the last event to the checkpoint",
                "one that leads elsewhere",
            );
        }
        Some(root)
    }

    /// Compares with what the reader brought along.
    fn conclude(&mut self, options: &Options) -> Report {
        let ledger = self.header.ledger.clone();
        let mut vouched = Vouched {
            by_key: judge_key(&mut self.join.findings, options.trust.as_deref(), &ledger.key),
            by_checkpoint: false,
        };
        match options.checkpoint.as_deref().map(Note::parse) {
            None => {
                let expected = "a checkpoint kept by the reader";
                self.join.findings.push(Finding::new(Code::NoCheckpoint).expected(expected));
            }
            Some(Err(error)) => self.mismatch("a note", error),
            Some(Ok(note)) => match note.check(&ledger.origin, &ledger.key) {
                Err(error) => self.mismatch("a note of this ledger", error),
                Ok(()) => vouched.by_checkpoint = self.compare(&note.statement),
            },
        }
        let join = std::mem::replace(&mut self.join, Join::new(Scope::Journal, None));
        Report::conclude(self.subject(&join), &join.counts, join.findings, vouched)
    }

    /// Whether the reader's note covers the bundle's last event; says so where it contradicts it.
    fn compare(&mut self, statement: &Statement) -> bool {
        let events = self.header.events;
        match statement {
            Statement::TraceHead(head) if head.trace == self.header.trace => {
                if head.seq > events {
                    let finding =
                        Finding::new(Code::TailCut).expected(format!("at least {} events", head.seq));
                    self.join.findings.push(finding.found(format!("{events} events")));
                } else if self.hash_at_given != Some(head.hash) {
                    self.mismatch("the history that was signed", "another one");
                }
                head.seq == events
            }
            Statement::TraceHead(_) => {
                self.mismatch("a head of the bundle's trace", "a head of another trace");
                false
            }
            // Later events of this trace may lie in the same tree, so a checkpoint of the ledger never vouches for a trace's end.
            Statement::Checkpoint(checkpoint) => {
                if checkpoint.size != self.header.size {
                    let expected = "a head of this trace kept by the reader";
                    self.join.findings.push(Finding::new(Code::NoCheckpoint).expected(expected));
                } else if self.root.is_some_and(|root| root != checkpoint.root) {
                    self.mismatch("the history that was signed", "another one");
                }
                false
            }
        }
    }
}

fn not_a_bundle(why: &'static str) -> Report {
    let mut findings = super::Findings::default();
    findings.push(Finding::new(Code::SchemaInvalid).expected("a bundle").found(why).at(1));
    Report::conclude(Subject::default(), &super::Counts::default(), findings, Vouched::default())
}

/// A line's object, where the line is canonical.
fn canonical_object(line: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(line).ok()?;
    scan::check(text).ok()?;
    match canonical::parse(line).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn only<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|_| object.len() == 1)
}

fn read_header(line: &[u8]) -> Result<Header, &'static str> {
    let object = canonical_object(line).ok_or("a first line that is not canonical JSON")?;
    let text = |name| object.get(name).and_then(Value::as_str);
    let number = |name| object.get(name).and_then(Value::as_u64);
    let read = || {
        let origin = text("origin")?.parse().ok()?;
        let key = PublicKey::parse(text("public")?).ok()?;
        Some(Header {
            ledger: LedgerIdentity { origin, key },
            trace: text("trace")?.parse().ok()?,
            events: number("events").filter(|events| *events >= 1)?,
            size: number("size")?,
            inline: object.get("inline")?.as_bool()?,
        })
    };
    let header = read().filter(|_| object.len() == 7 && number("bundle") == Some(1));
    header.ok_or("a first line that is not the header of a bundle of version 1")
}

fn read_artifact(line: &[u8], sha256: &Digest, bytes: u64, chunk: u64) -> Option<Vec<u8>> {
    let object = canonical_object(line)?;
    let artifact = only(&object, "artifact")?.as_object().filter(|artifact| artifact.len() == 5)?;
    let number = |name| artifact.get(name).and_then(Value::as_u64);
    let fits = artifact.get("sha256")?.as_str()? == sha256.to_string()
        && number("bytes") == Some(bytes)
        && number("chunk") == Some(chunk)
        && number("chunks") == Some(artifact_chunks(bytes));
    let data = BASE64.decode(artifact.get("data")?.as_str()?).ok()?;
    let expected = (bytes - (chunk - 1) * BUNDLE_CHUNK_BYTES as u64).min(BUNDLE_CHUNK_BYTES as u64);
    (fits && data.len() as u64 == expected).then_some(data)
}
