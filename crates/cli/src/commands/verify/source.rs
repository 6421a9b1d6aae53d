//! What there is to verify: a data directory, one trace in it, a bundle, or a single segment. Found by looking, read without writing.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::TraceId;
use baton_core::limits::LINE_BYTES_MAX;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::record::{Flaw, Line};
use baton_ledger::verify::{
    Artifacts, Code as FindingCode, Counts, Finding, Findings, Options, Report, Segments, Subject, Verdict,
    Vouched, identity, verify_bundle, verify_journal, verify_trace,
};
use baton_store::artifacts::ArtifactDir;
use baton_store::disk::Mode;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::journal::recover::Tail;
use baton_store::journal::segments::{self, Found, LineReader, SegmentReader};
use baton_store::layout::parse_segment_name;
use baton_store::{History as _, Layout};

use crate::context::{Activity, Context, disk, visit};
use crate::error::{CliError, Code};
use crate::ids;
use crate::input::file::{file_error, open};
use crate::limits::{LIVE_RETRIES, LIVE_RETRY_MS};

/// Something that can be verified.
pub(super) enum Source {
    Directory(Layout),
    Trace(Layout, TraceId),
    Bundle(Option<PathBuf>),
    Segment(PathBuf),
    /// It is there, and the operating system does not let us look.
    Unreadable(String),
}

impl Source {
    /// Finds what a text names: a path if there is one, else a trace of the data directory in use.
    pub(super) fn find(ctx: &Context, target: Option<&str>) -> Result<Source, CliError> {
        let Some(target) = target else { return Ok(Source::Directory(ctx.layout()?)) };
        if target == "-" {
            return Ok(Source::Bundle(None));
        }
        let path = Path::new(target);
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(Source::Directory(directory(path))),
            Ok(metadata) if metadata.is_file() => file(path),
            // What can be read only once is not looked at first: only a bundle is read in one go.
            Ok(_) => Ok(Source::Bundle(Some(path.to_owned()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !target.contains('/') => {
                trace(ctx, target).map_err(|error| error.cause(format!("and there is no file {target}")))
            }
            Err(error) if is_absent(&error) => Err(file_error(path, &error)),
            Err(error) => Ok(Source::unreadable(path, &error)),
        }
    }

    fn unreadable(path: &Path, error: &io::Error) -> Source {
        Source::Unreadable(format!("{}: {error}", path.display()))
    }

    pub(super) fn verify(self, mut options: Options) -> Result<Report, CliError> {
        match self {
            Source::Bundle(None) => Ok(bundle(&mut io::stdin(), &options)),
            Source::Bundle(Some(path)) => match open(&path) {
                Ok(mut file) => Ok(bundle(&mut file, &options)),
                Err(error) => Source::unreadable(&path, &error).verify(options),
            },
            Source::Unreadable(why) => Ok(Report::cannot_tell(FindingCode::Unreadable, why)),
            Source::Segment(path) => segment(&path, &options),
            Source::Directory(layout) => Ok(believe(&layout, |layout| {
                let artifacts = ArtifactDir::new(disk(), layout.artifacts());
                match read_notes(layout, &mut options) {
                    Ok(()) => {
                        verify_journal(&|| open_journal(layout), Some(&artifacts as &dyn Artifacts), &options)
                    }
                    Err(report) => *report,
                }
            })),
            Source::Trace(layout, trace) => Ok(believe(&layout, |layout| {
                let artifacts = ArtifactDir::new(disk(), layout.artifacts());
                let open = || open_journal(layout);
                match read_notes(layout, &mut options).and_then(|()| ledger_identity(layout)) {
                    Ok(ledger) => {
                        verify_trace(&open, Some(&artifacts as &dyn Artifacts), &options, trace, ledger)
                    }
                    Err(report) => *report,
                }
            })),
        }
    }
}

/// A data directory, or a working directory that has one.
fn directory(path: &Path) -> Layout {
    let layout = Layout::new(path);
    let inner = Layout::new(path.join(".baton"));
    if !layout.events().is_dir() && inner.events().is_dir() { inner } else { layout }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn file(path: &Path) -> Result<Source, CliError> {
    let mut start = [0; 20];
    let count = match File::open(path).and_then(|mut file| file.read(&mut start)) {
        Ok(count) => count,
        Err(error) => return Ok(Source::unreadable(path, &error)),
    };
    if [&b"baton/proof/"[..], b"baton/consistency/"].iter().any(|kind| start[..count].starts_with(kind)) {
        let what = format!("{} is a proof", path.display());
        return Err(CliError::new(Code::Value, what).hint(format!("baton verify --proof {}", path.display())));
    }
    let is_named_segment = path.extension().is_some_and(|extension| extension == "jsonl");
    if start[..count].starts_with(b"{\"bundle\"")
        || !(is_named_segment || start[..count].starts_with(b"{\"actor\""))
    {
        return Ok(Source::Bundle(Some(path.to_owned())));
    }
    let first = path.file_name().and_then(|name| parse_segment_name(&name.to_string_lossy()));
    if first.is_some_and(|first| first > 1) {
        let what =
            format!("{} is not the first segment of its ledger and cannot be judged alone", path.display());
        let around = path.parent().and_then(Path::parent).unwrap_or(Path::new(".."));
        return Err(
            CliError::new(Code::SegmentAlone, what).hint(format!("baton verify {}", around.display()))
        );
    }
    Ok(Source::Segment(path.to_owned()))
}

/// A trace by its id. A whole id is verified also where the index does not know it: that it is gone may be the finding.
fn trace(ctx: &Context, text: &str) -> Result<Source, CliError> {
    let layout = ctx.layout()?;
    let opened = visit(&layout);
    if let Ok(id) = text.parse::<TraceId>() {
        let is_plainly_absent = match &opened {
            Ok(visit) => {
                !matches!(visit.reader.tail, Tail::Damaged { .. })
                    && visit.reader.trace(id).is_none()
                    && !has_kept_head(&layout, id)
            }
            Err(_) => false,
        };
        if !is_plainly_absent {
            return Ok(Source::Trace(layout, id));
        }
    }
    let trace = ids::trace_of(&opened?, text)?;
    Ok(Source::Trace(layout, trace))
}

fn has_kept_head(layout: &Layout, trace: TraceId) -> bool {
    let names = baton_store::disk::Disk::list(&*disk(), &layout.trace_heads()).unwrap_or_default();
    names.iter().any(|name| name.starts_with(&trace.to_string()))
}

/// Verifies beside a writer that may be at work: a failure at the end may be a line that is just being written, so it is looked at again
/// while something changes.
fn believe(layout: &Layout, mut verify: impl FnMut(&Layout) -> Report) -> Report {
    let mut tries = 0;
    loop {
        let before = Activity::observe(layout);
        let report = verify(layout);
        tries += 1;
        if !is_at_the_end(&report) || tries >= LIVE_RETRIES || !before.goes_on(layout) {
            return report;
        }
        std::thread::sleep(Duration::from_millis(LIVE_RETRY_MS));
    }
}

/// How many lines before the last one can be part of a write that is under way.
const WRITE_LINES_MAX: u64 = 8192;

fn is_at_the_end(report: &Report) -> bool {
    let has = |code| report.findings.iter().any(|finding| finding.code == code);
    match report.verdict {
        Verdict::Pass => false,
        Verdict::PassWithWarnings => has(FindingCode::TornTail),
        Verdict::Unknown => true,
        Verdict::Fail => {
            report.first_broken.is_none_or(|line| line + WRITE_LINES_MAX > report.subject.events)
        }
    }
}

/// The kept notes, read before the journal: a checkpoint that is made meanwhile would promise more than was read.
fn read_notes(layout: &Layout, options: &mut Options) -> Result<(), Box<Report>> {
    options.kept = NoteDir::new(disk(), layout).all().map_err(|error| {
        // Leaving them out would hide exactly what they are kept for.
        let why = format!("{}: {error}", layout.checkpoints().display());
        Box::new(Report::cannot_tell(FindingCode::Unreadable, why))
    })?;
    Ok(())
}

fn open_journal(layout: &Layout) -> Result<Box<dyn Segments>, String> {
    match SegmentReader::open(disk(), layout) {
        Ok(reader) => Ok(Box::new(reader)),
        Err(error) => Err(format!("{}: {error}", layout.events().display())),
    }
}

fn bundle(source: &mut dyn Read, options: &Options) -> Report {
    let mut read = |buffer: &mut [u8]| loop {
        match source.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(|error| error.to_string()),
        }
    };
    verify_bundle(&mut read, options)
}

/// One file as a whole journal; without what lies beside it, since only this file was named.
fn segment(path: &Path, options: &Options) -> Result<Report, CliError> {
    let open = || -> Result<Box<dyn Segments>, String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Box::new(OneSegment { file, is_started: false }))
    };
    Ok(verify_journal(&open, None, options))
}

struct OneSegment {
    file: File,
    is_started: bool,
}

impl Segments for OneSegment {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        Ok((!std::mem::replace(&mut self.is_started, true)).then_some(1))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(|error| error.to_string()),
            }
        }
    }
}

/// The name and key of a ledger from its first record, which must hold by itself; else the report that says why not.
fn ledger_identity(layout: &Layout) -> Result<LedgerIdentity, Box<Report>> {
    let unreadable = |why: String| Box::new(Report::cannot_tell(FindingCode::Unreadable, why));
    let broken = |code, expected: String, found: String| {
        let mut findings = Findings::default();
        findings.push(Finding::new(code).expected(expected).found(found).at(1));
        Box::new(Report::conclude(Subject::default(), &Counts::default(), findings, Vouched::default()))
    };
    let disk = disk();
    let firsts = segments::list(&*disk, layout).map_err(|error| unreadable(error.to_string()))?;
    let Some(first) = firsts.first() else {
        return Err(Box::new(Report::cannot_tell(FindingCode::NoEvents, "no events")));
    };
    let file =
        disk.open(&layout.segment(*first), Mode::Read).map_err(|error| unreadable(error.to_string()))?;
    let mut lines = LineReader::new(file, 0);
    let line = match lines.next_line().map_err(|error| unreadable(error.to_string()))? {
        Found::Line(line, _) => line,
        Found::Broken(_) => {
            let found = format!("a first line without an end, or longer than {LINE_BYTES_MAX} bytes");
            return Err(broken(FindingCode::SchemaInvalid, "ledger.created".into(), found));
        }
        Found::End => return Err(Box::new(Report::cannot_tell(FindingCode::NoEvents, "no events"))),
    };
    let line = Line::parse(line).map_err(|flaw| match flaw {
        Flaw::Newer(version) => {
            Box::new(Report::cannot_tell(FindingCode::VersionNewer, format!("format version {version}")))
        }
        flaw => broken(FindingCode::SchemaInvalid, "ledger.created".into(), flaw.to_string()),
    })?;
    let body = line.body_digest();
    let hash = line.link_hash(&body);
    if hash != line.hash {
        return Err(broken(FindingCode::HashMismatch, hash.to_string(), line.hash.to_string()));
    }
    let ledger = identity(&line)
        .map_err(|why| broken(FindingCode::KeyUnknown, "the ledger's name and key".into(), why))?;
    let is_signed =
        line.sig.is_some_and(|sig| sig.key == ledger.key.id() && ledger.key.verify_event(&body, &sig.value));
    if !is_signed {
        let expected = format!("a signature by {}", ledger.key.id());
        return Err(broken(FindingCode::SigInvalid, expected, "none that checks".into()));
    }
    Ok(ledger)
}
