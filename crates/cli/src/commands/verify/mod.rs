//! `baton verify`: the verifier's report, from bytes that are only read. Needs no data directory, no lock and no key.
//!
//! [`source`] finds out what was named, [`print`] shows the report.

mod print;
mod source;

use std::path::Path;
use std::time::{Duration, Instant};

use baton_core::limits::{NOTE_BYTES_MAX, PROOF_BYTES_MAX, SMALL_FILE_BYTES_MAX};
use baton_ledger::key::PublicKey;
use baton_ledger::proof::verify_proof;
use baton_ledger::verify::{Code as FindingCode, Options, Report, Verdict};

use crate::args::Verify;
use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::input::file::read_small;
use crate::ui::Ui;
use crate::ui::time::duration;
use source::Source;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Verify) -> Ended {
    let trust = args.trust.as_deref().map(read_trust).transpose()?;
    let start = Instant::now();
    let given = args.checkpoint.as_deref().map(|file| read_evidence(file, NOTE_BYTES_MAX)).transpose()?;
    let report = match (&args.proof, given) {
        (_, Some(Err(unreadable))) => *unreadable,
        (Some(file), given) => match read_evidence(file, PROOF_BYTES_MAX)? {
            Ok(bytes) => {
                let given = given.and_then(Result::ok);
                verify_proof(&bytes, trust.as_deref(), given.as_deref())
            }
            Err(unreadable) => *unreadable,
        },
        (None, given) => Source::find(ctx, args.target.as_deref())?.verify(Options {
            trust,
            checkpoint: given.and_then(Result::ok),
            kept: Vec::new(),
            each: args.each,
            links_only: false,
            audits: false,
            threads: threads(args),
        })?,
    };
    if ui.json {
        ui.object(&report.to_json())?;
    } else {
        print::report(ui, &report)?;
    }
    let took = start.elapsed();
    if took > Duration::from_secs(2) {
        ui.note(&format!("took {}", duration(took.as_secs())));
    }
    Ok(exit(&report, args.strict))
}

fn exit(report: &Report, strict: bool) -> Exit {
    match report.verdict {
        Verdict::Pass => Exit::Ok,
        Verdict::PassWithWarnings if strict => Exit::VerificationFailed,
        Verdict::PassWithWarnings => Exit::Ok,
        Verdict::Fail => Exit::VerificationFailed,
        Verdict::Unknown => Exit::CannotVerify,
    }
}

fn threads(args: &Verify) -> usize {
    match args.threads {
        Some(threads) => usize::from(threads),
        None => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    }
}

/// A proof or a checkpoint as it is, since whether it is one is the verifier's to say; or the report that it cannot be read. What is too long
/// to be one stays too long.
fn read_evidence(path: &Path, bytes_max: usize) -> Result<Result<Vec<u8>, Box<Report>>, CliError> {
    match read_small(path, bytes_max as u64) {
        Ok(bytes) => Ok(Ok(bytes.unwrap_or_else(|| vec![b'x'; bytes_max + 1]))),
        Err(error) if error.code == Code::FileUnreadable => {
            let why = format!("{}: {}", error.what, error.causes.join(", "));
            Ok(Err(Box::new(Report::cannot_tell(FindingCode::Unreadable, why))))
        }
        Err(error) => Err(error),
    }
}

/// Keys that the reader trusts: one `ed25519:…` per line, the rest of the line is a comment.
fn read_trust(path: &Path) -> Result<Vec<PublicKey>, CliError> {
    let refuse = |what: String| {
        CliError::new(Code::TrustFile, what)
            .cause("expected one public key per line: `ed25519:` and base64, as in keys/*.pub; # starts a comment")
            .hint("baton explain U002")
    };
    let bytes = read_small(path, SMALL_FILE_BYTES_MAX)?;
    let too_long = || refuse(format!("{} has more than {SMALL_FILE_BYTES_MAX} bytes", path.display()));
    let bytes = bytes.ok_or_else(too_long)?;
    let text = String::from_utf8(bytes).map_err(|_| refuse(format!("{} is not text", path.display())))?;
    let mut keys = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(word) = line.split_whitespace().next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        let key = PublicKey::parse(word).map_err(|error| {
            let error = error.to_string();
            refuse(format!("line {number} of {} names no key", path.display())).cause(error)
        })?;
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(refuse(format!("{} names no key", path.display())));
    }
    Ok(keys)
}
