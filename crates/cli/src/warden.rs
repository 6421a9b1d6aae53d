//! Stands between Baton and a command that must not outlive it: the same binary, started as the leader of the command's group.
//!
//! When the command ends, it ends the same way. When whoever started it is gone, killed before it could end what it had started, it kills the whole group and
//! itself with it. Asked to end, it leaves that to the command, which was asked too.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use baton_runtime::process::WARDEN_WORD;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, getppid, kill_process_group, pidfd_open};
use signal_hook::consts::SIGTERM;

/// What a shell says where a command cannot be run.
const NOT_RUN: u8 = 126;

/// Does it where the arguments ask for that: the word, the number of whoever started it, the command. Nobody types it.
pub(crate) fn run(argv: &[OsString]) -> Option<ExitCode> {
    let [_, word, parent, program, arguments @ ..] = argv else { return None };
    if word != WARDEN_WORD {
        return None;
    }
    Some(guard(parent.to_str()?.parse().ok()?, program, arguments))
}

fn guard(parent: i32, program: &OsString, arguments: &[OsString]) -> ExitCode {
    // Only a handler: the signal interrupts the wait and nothing else.
    let _ = signal_hook::flag::register(SIGTERM, Arc::default());
    let parent = Pid::from_raw(parent);
    let watched = parent.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
    let Some(watched) = watched.filter(|_| getppid() == parent) else { return ExitCode::from(NOT_RUN) };
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{}: {error}", program.to_string_lossy());
            return ExitCode::from(NOT_RUN);
        }
    };
    let Ok(ended) = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) else { end_group() };
    loop {
        let mut waited = [PollFd::new(&ended, PollFlags::IN), PollFd::new(&watched, PollFlags::IN)];
        match poll(&mut waited, None) {
            Ok(_) => {}
            // The signal that asks to end, of which the command got one too.
            Err(Errno::INTR) => continue,
            // Whoever cannot watch does not leave the command unwatched.
            Err(_) => end_group(),
        }
        if !waited[1].revents().is_empty() {
            end_group();
        }
        if !waited[0].revents().is_empty() {
            break;
        }
    }
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => {
                let _ = signal_hook::low_level::emulate_default_handler(signal.unwrap_or(SIGTERM));
                ExitCode::from(NOT_RUN)
            }
        },
        Err(_) => ExitCode::from(NOT_RUN),
    }
}

/// Kills the group, and this process with it.
fn end_group() -> ! {
    loop {
        let _ = kill_process_group(getpgrp(), Signal::KILL);
    }
}
