//! Becomes a tool's program, once it has shut itself in: the same binary, started between Baton and the program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use baton_runtime::tools::WALL_WORD;
use baton_runtime::tools::wall::{Wall, enter, uncarried};

/// What a shell says where a program cannot be run, and where there is none.
const NOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Does it where the arguments ask for that: the word, the wall, the program. Nobody types it.
pub(crate) fn run(argv: &[OsString]) -> Option<ExitCode> {
    let [_, word, wall, program, arguments @ ..] = argv else { return None };
    if word != WALL_WORD {
        return None;
    }
    let wall = Wall::from_text(wall.to_str()?)?;
    if let Err(why) = enter(&wall) {
        // Without its wall it does not run.
        eprintln!("the wall could not be put up: {why}");
        return Some(ExitCode::from(NOT_RUN));
    }
    let mut command = Command::new(program);
    command.args(arguments);
    for (carried, value) in std::env::vars_os() {
        if let Some(name) = uncarried(&carried) {
            command.env_remove(&carried).env(name, value);
        }
    }
    let error = command.exec();
    eprintln!("{}: {error}", program.to_string_lossy());
    Some(ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }))
}
