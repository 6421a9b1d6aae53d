//! Commands that this process does for whoever asks over HTTP, a person or an agent: the very same, with files in memory for their streams.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::sync::Arc;

use baton_server::house::Ran;
use baton_server::limits::OUTPUT_BYTES_MAX;
use rustix::fs::{MemfdFlags, memfd_create};

use super::acting::Acting;
use super::owner::Owner;
use super::server::Call;
use crate::console::Console;
use crate::error::{CliError, Code};
use crate::exit::Exit;

/// Does a command as `baton --json WORDS` would, in the name of an agent where one asks. Blocks.
pub(crate) fn run(owner: &Arc<Owner>, words: &[String], input: &[u8], acting: Option<Acting>) -> Ran {
    try_run(owner, words, input, acting).unwrap_or_else(|error| {
        let error = CliError::new(Code::Io, "the command cannot be done").cause(error.to_string());
        Ran { exit: Exit::Unexpected.code(), out: Vec::new(), err: printed(&error) }
    })
}

fn try_run(owner: &Arc<Owner>, words: &[String], input: &[u8], acting: Option<Acting>) -> io::Result<Ran> {
    let [mut stdin, mut stdout, mut stderr] = [kept("in")?, kept("out")?, kept("err")?];
    stdin.write_all(input)?;
    stdin.rewind()?;
    let console = Console::kept(stdin, stdout.try_clone()?, stderr.try_clone()?);
    let session = acting.as_ref().and_then(|acting| acting.session);
    let place = session.map(|session| owner.agent_calls.enter(session)).transpose();
    let taken_up = place.and_then(|place| {
        let call = Call::in_house(owner, &argv(&["--json"], words), console, acting)?;
        Ok((call, place))
    });
    let exit = match taken_up {
        Ok((call, _place)) => call.run(),
        Err(error) => {
            return Ok(Ran { exit: error.exit().code(), out: Vec::new(), err: printed(&error) });
        }
    };
    Ok(Ran { exit, out: taken(&mut stdout)?, err: taken(&mut stderr)? })
}

pub(super) fn argv(flags: &[&str], words: &[String]) -> Vec<OsString> {
    let first = ["baton"].iter().chain(flags).map(OsString::from);
    first.chain(words.iter().map(OsString::from)).collect()
}

/// A file that is nowhere.
fn kept(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

fn taken(file: &mut File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    let read = file.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match read as u64 > OUTPUT_BYTES_MAX {
        true => Err(io::Error::other("it prints more than is shown")),
        false => Ok(bytes),
    }
}

/// An error as `--json` prints it.
pub(super) fn printed(error: &CliError) -> Vec<u8> {
    let mut out = Vec::new();
    error.print(&mut out, true, crate::ui::color::Paint::plain(), &crate::ui::shell::Place::new(None));
    out
}
