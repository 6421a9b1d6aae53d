//! `baton trace export ID -o FILE`: one trace with all that verifies it, or its attestations, put in place whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::TraceId;
use baton_core::limits::LINE_BYTES_MAX;
use baton_store::ArtifactStore;
use baton_store::export::Error as ExportError;
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::ids;
use crate::input::file::Named;
use crate::trace_args::{Format, TraceExport};
use crate::ui::shell;
use crate::ui::text::{bytes, count, printable};
use crate::ui::{Ui, output_error};

/// Of the first line of what a server sent, this much is read: a record in base64, and room for what stands around it.
const FETCHED_LINE_BYTES_MAX: u64 = 4 * LINE_BYTES_MAX as u64;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TraceExport) -> Ended {
    if args.no_artifacts && args.format == Format::InToto {
        let what = "--no-artifacts is for bundles: attestations have the hashes of artifacts, and nothing else of them";
        return Err(CliError::new(Code::Value, what).hint("leave out --no-artifacts").into());
    }
    let trace = ids::trace_of(&ctx.visit()?, &args.id.trace)?;
    if args.output == Path::new("-") {
        if ui.json {
            let what = "-o - writes the export itself to standard output; --json has no room beside it";
            return Err(CliError::new(Code::Value, what).hint("leave out --json").into());
        }
        let writing = ctx.write(ui)?;
        write_export(&writing, trace, args, ui.writer(), output_error)?;
        writing.close(ui)?;
        return Ok(Exit::Ok);
    }
    let target = Target::new(ctx.name(&args.output), ctx.layout()?.root())?;
    let writing = ctx.write(ui)?;
    let written =
        target.write(|out| write_export(&writing, trace, args, out, |error| target.fail(error).into()));
    writing.close(ui)?;
    let (number, length) = written?;
    let told = Told { format: args.format, trace: trace.to_string(), number, length };
    tell(ui, &args.output, &told)?;
    Ok(Exit::Ok)
}

/// What was written.
struct Told {
    format: Format,
    trace: String,
    /// Of events in a bundle, else of attestations.
    number: u64,
    length: u64,
}

/// Says what was written where.
fn tell(ui: &mut Ui, output: &Path, told: &Told) -> Result<(), Stop> {
    let path = output.display().to_string();
    let Told { format, trace, number, length } = told;
    let (noun, member) = match format {
        Format::Bundle => ("event", "events"),
        Format::InToto => ("attestation", "attestations"),
    };
    if ui.json {
        return ui.object(&json!({"v": 1, "trace": trace, member: number, "file": path, "bytes": length}));
    }
    ui.note(&format!("wrote {} of {trace} ({}) to {path}", count(*number, noun), bytes(*length)));
    if *format == Format::Bundle {
        ui.hint(&format!("baton verify {}", shell::path(output)));
    }
    Ok(())
}

/// Says the same of an export that a server elsewhere made. Its first line says what it is.
pub(crate) fn tell_fetched(ui: &mut Ui, output: &Path, format: Format) -> Result<(), Stop> {
    let failed = |error| Stop::from(CliError::io("read", output, &error));
    let (head, length, lines) = look_at(output).map_err(failed)?;
    let head: Value = serde_json::from_slice(&head).unwrap_or_default();
    let (trace, number) = match format {
        Format::Bundle => (head["trace"].clone(), head["events"].as_u64().unwrap_or(0)),
        Format::InToto => {
            let statement = BASE64.decode(head["payload"].as_str().unwrap_or_default()).unwrap_or_default();
            let statement: Value = serde_json::from_slice(&statement).unwrap_or_default();
            (statement["predicate"]["record"]["trace"].clone(), lines)
        }
    };
    let trace = printable(trace.as_str().unwrap_or("a trace"));
    tell(ui, output, &Told { format, trace, number, length })
}

/// The first line of a file, its length, and the number of its lines.
fn look_at(path: &Path) -> io::Result<(Vec<u8>, u64, u64)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut head = Vec::new();
    file.by_ref().take(FETCHED_LINE_BYTES_MAX).read_until(b'\n', &mut head)?;
    let (mut length, mut lines) = (head.len() as u64, u64::from(head.ends_with(b"\n")));
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok((head, length, lines));
        }
        let piece_length = piece.len();
        lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        length += piece_length as u64;
        file.consume(piece_length);
    }
}

/// Writes the export; a failure of the output itself is told apart from one of the ledger. Gives how many things it holds.
fn write_export(
    writing: &Writing,
    trace: TraceId,
    args: &TraceExport,
    out: &mut dyn Write,
    output_failed: impl Fn(&io::Error) -> Stop,
) -> Result<u64, Stop> {
    let exporter = writing.exporter();
    let written = match args.format {
        Format::Bundle => {
            // Signed and kept first: what fails after this is the output.
            exporter.checkpoint()?;
            exporter.trace_head(trace)?;
            let artifacts = (!args.no_artifacts).then_some(&writing.artifacts as &dyn ArtifactStore);
            exporter.bundle(trace, artifacts, out)
        }
        Format::InToto => exporter.attestations(trace, out),
    };
    match written {
        Ok(Some(0)) => {
            let what = format!("{trace} has no claim and no final statement that could be attested");
            let hint = format!("baton trace export {trace} -o {}", shell::path(&args.output));
            Err(CliError::new(Code::NoSubject, what).hint(hint).into())
        }
        Ok(Some(number)) => out.flush().map(|()| number).map_err(|error| output_failed(&error)),
        Ok(None) => {
            Err(CliError::new(Code::NoTrace, format!("no trace {trace}")).hint("baton trace ls").into())
        }
        Err(ExportError::Write(error)) => Err(output_failed(&error)),
        Err(ExportError::Artifact { sha256, source }) => {
            let hint = format!("baton trace export {trace} -o {} --no-artifacts", shell::path(&args.output));
            let what = format!("artifact {sha256} is cited and cannot be read");
            Err(CliError::new(Code::Artifact, what).cause(source.to_string()).hint(hint).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Exports that this process has begun: whoever owns the data directory may do several at once.
static EXPORTS: AtomicU64 = AtomicU64::new(0);

/// A file that appears under its name only when it is whole.
struct Target {
    file: Named,
    /// The file's own name; what is not whole yet is named after it and the process that writes it.
    name: String,
    parent: PathBuf,
}

impl Target {
    /// A new file or an old one, and nothing that a rename would take away from others: no device, no link, nothing of the ledger's own.
    fn new(file: Named, data_dir: &Path) -> Result<Target, CliError> {
        let path = &file.shown;
        let Some(name) = path.file_name().filter(|_| !file.real.is_dir()) else {
            let what = format!("{} is a directory", path.display());
            return Err(CliError::new(Code::Output, what)
                .hint(format!("-o {}", shell::path(&path.join("trace.bundle")))));
        };
        if fs::symlink_metadata(&file.real).is_ok_and(|found| !found.is_file()) {
            let what = format!("{} is not a regular file", path.display());
            return Err(CliError::new(Code::OutputRefused, what).hint("-o - writes to standard output"));
        }
        let parent =
            file.real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_inside =
            |dir: &Path| Some(dir.canonicalize().ok()?.starts_with(data_dir.canonicalize().ok()?));
        if is_inside(parent) == Some(true) {
            let what = format!("{} lies in the data directory", path.display());
            return Err(CliError::new(Code::OutputRefused, what).hint("choose a place outside of it"));
        }
        let name = name.to_string_lossy().into_owned();
        let parent = parent.to_owned();
        Ok(Target { file, name, parent })
    }

    /// Where this process writes its `n`th export until the file is whole.
    fn beside(&self, n: u64) -> PathBuf {
        self.parent.join(format!(".{}.{}-{n}.tmp", self.name, std::process::id()))
    }

    /// The process that writes, or wrote, a file beside ours.
    fn writer(&self, file_name: &str) -> Option<u32> {
        let rest = file_name.strip_prefix('.')?.strip_prefix(&self.name)?.strip_prefix('.')?;
        rest.strip_suffix(".tmp")?.split('-').next()?.parse().ok()
    }

    /// Removes what exports to the same name left behind when they were interrupted. Failing at it is no reason to fail.
    fn remove_leftovers(&self, n: u64) {
        let processes = Path::new("/proc");
        // Without a list of processes nobody can be told to be gone.
        if !processes.join("self").exists() {
            return;
        }
        let Ok(entries) = fs::read_dir(&self.parent) else { return };
        for entry in entries.flatten() {
            let writer = entry.file_name().to_str().and_then(|name| self.writer(name));
            // At the first export nothing can be our own yet: it was written by a process that had our id before us.
            let is_old = |pid: u32| n == 0 && pid == std::process::id();
            let is_gone = |pid: u32| is_old(pid) || !processes.join(pid.to_string()).exists();
            if writer.is_some_and(is_gone) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn fail(&self, error: &io::Error) -> CliError {
        CliError::new(Code::Output, format!("cannot write {}", self.file.shown.display()))
            .cause(error.to_string())
    }

    fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<u64, Stop>) -> Result<(u64, u64), Stop> {
        let n = EXPORTS.fetch_add(1, Ordering::Relaxed);
        self.remove_leftovers(n);
        let beside = self.beside(n);
        let file = File::create_new(&beside).map_err(|error| self.fail(&error))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let written = write(&mut out).and_then(|events| {
            let length = self.put_in_place(&beside, out).map_err(|error| self.fail(&error))?;
            Ok((events, length))
        });
        if written.is_err() {
            // The error that matters is the first one.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn put_in_place(&self, beside: &Path, out: BufWriter<File>) -> io::Result<u64> {
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        let length = file.metadata()?.len();
        fs::rename(beside, &self.file.real)?;
        Ok(length)
    }
}
