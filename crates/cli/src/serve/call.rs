//! The caller's side: hands a command over and ends as it ended there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use super::frame::{self, BEGUN, REFUSED, Request};
use crate::console::{Console, Stdin};
use crate::error::{CliError, Code};

/// A connection to the process that does a command instead of this one.
#[derive(Debug)]
pub(crate) struct HandOver {
    pub(crate) stream: UnixStream,
    pub(crate) feeding: Feeding,
}

/// What becomes of standard input.
#[derive(Debug)]
pub(crate) enum Feeding {
    /// The command does not read it, as far as is known.
    Nothing,
    /// The command reads it.
    Input,
    /// A part of the command's input was read here already: these bytes come before the rest.
    Rest(Vec<u8>, Rest),
}

/// Where the rest of a command's input is.
#[derive(Debug)]
pub(crate) enum Rest {
    Stdin(Stdin),
    File(std::fs::File),
}

/// How a hand-over ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Code(u8),
    /// The owner ended before it took the command: nothing has happened, and it can be tried anew.
    ///
    /// With the input, where a part of it was read already.
    NotBegun(Option<OwnedFd>),
}

/// Environment variables that Baton reads, beside those with its own prefixes.
const NAMES: [&str; 4] = ["AGENT_EXIT_PROTOCOL_ENABLED", "NO_COLOR", "CLICOLOR_FORCE", "HOME"];
const PREFIXES: [&str; 2] = ["BATON_", "XDG_"];

impl HandOver {
    /// Hands the command of this process over and waits for its end. `patience` is how long the owner may take to begin.
    pub(crate) fn run(
        self,
        argv: &[OsString],
        console: &Console,
        patience: Duration,
    ) -> Result<Ended, CliError> {
        let HandOver { stream, feeding } = self;
        let io = |error: io::Error| {
            CliError::new(Code::NotServed, "the command cannot be handed over").cause(error.to_string())
        };
        let here = std::env::current_dir().map_err(io)?;
        let request = Request {
            argv: argv.to_vec(),
            here,
            env: environment(),
            is_fed: matches!(feeding, Feeding::Rest(..)) || console.stdin.is_fed(),
            is_terminal: console.stdin.is_terminal() && !matches!(feeding, Feeding::Rest(..)),
        };
        let fed = feed(feeding, &console.stdin).map_err(io)?;
        let time = Some(patience.max(Duration::from_millis(1)));
        stream.set_read_timeout(time).and(stream.set_write_timeout(time)).map_err(io)?;
        let stdin = fed.as_ref().map_or(console.stdin.file().as_fd(), OwnedFd::as_fd);
        frame::send(&stream, &request, [stdin, console.stdout.as_fd(), console.stderr.as_fd()])?;
        match read_byte(&stream) {
            Ok(Some(BEGUN)) => {}
            Ok(Some(REFUSED)) => return Err(frame::read_refusal(&stream).map_err(io)?),
            Ok(Some(_)) => return Err(io(io::ErrorKind::InvalidData.into())),
            Ok(None) => return Ok(Ended::NotBegun(fed)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                // After this the owner cannot say that it begins, and without saying so it does not.
                let _ = stream.shutdown(Shutdown::Both);
                return match read_byte(&stream) {
                    Ok(Some(BEGUN)) => Err(unknown()),
                    _ => Err(silent(patience)),
                };
            }
            Err(_) => return Ok(Ended::NotBegun(fed)),
        }
        stream.set_read_timeout(None).map_err(io)?;
        match read_byte(&stream) {
            Ok(Some(code)) => Ok(Ended::Code(code)),
            Ok(None) | Err(_) => Err(unknown()),
        }
    }
}

pub(crate) fn unknown() -> CliError {
    let what = "outcome unknown: the process that owns the data directory ended in the middle of this call";
    CliError::new(Code::OutcomeUnknown, what).cause("the same call may be repeated").hint("baton events")
}

fn silent(patience: Duration) -> CliError {
    CliError::new(Code::LockHeld, "the process that owns the data directory does not answer")
        .cause(format!("waited {} ms for it; nothing was changed", patience.as_millis()))
        .hint("baton doctor")
}

/// A byte of the answer, or `None` at its end.
fn read_byte(mut stream: &UnixStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match stream.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn environment() -> BTreeMap<OsString, OsString> {
    let is_ours = |name: &OsStr| {
        NAMES.iter().any(|known| name == *known)
            || PREFIXES.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
    };
    std::env::vars_os().filter(|(name, _)| is_ours(name)).collect()
}

/// Standard input through a pipe, where the owner cannot read it itself: a terminal gives its input only to the process that is in its
/// foreground, and what was read here already is not there any more.
fn feed(feeding: Feeding, stdin: &Stdin) -> io::Result<Option<OwnedFd>> {
    let (before, rest) = match feeding {
        Feeding::Input if stdin.is_terminal() => (Vec::new(), Rest::Stdin(stdin.clone())),
        Feeding::Nothing | Feeding::Input => return Ok(None),
        Feeding::Rest(before, rest) => (before, rest),
    };
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut writer = std::fs::File::from(writer);
    // It ends with the process, or when nobody reads any more.
    std::thread::spawn(move || {
        writer.write_all(&before)?;
        match rest {
            Rest::Stdin(mut stdin) => io::copy(&mut stdin, &mut writer),
            Rest::File(mut file) => io::copy(&mut file, &mut writer),
        }
    });
    Ok(Some(reader))
}
