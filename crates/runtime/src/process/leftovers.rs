//! Processes of a run that outlived Baton, found by a variable that only that run was given.
//!
//! A number in a file could have become somebody else's process; a variable is inherited by everything a command starts, also by what left its
//! group, and cannot be anybody else's. A process that wiped its environment is not found.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::limits::{ENVIRONMENT_BYTES_MAX, KILLED_WAIT, LEFTOVER_ROUNDS_MAX};

/// Ends every process that has the variable: asked, given the grace, killed. Gives how many there were.
///
/// What starts new ones while it is ended is looked for again, a few times.
pub fn end_leftovers(name: &str, value: &str, grace: Duration) -> usize {
    let mut count = 0;
    for _ in 0..LEFTOVER_ROUNDS_MAX {
        let found = find(name, value);
        if found.is_empty() {
            break;
        }
        count += found.len();
        signal(&found, Signal::TERM);
        let living = wait(found, grace);
        signal(&living, Signal::KILL);
        wait(living, KILLED_WAIT);
    }
    count
}

/// A variable that a process was started with; nothing where it has none, or may not be looked at.
pub fn variable_of(pid: i32, name: &str) -> Option<Vec<u8>> {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value =
        |variable: &[u8]| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    variables.find_map(value)
}

fn find(name: &str, value: &str) -> Vec<OwnedFd> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let others = numbers.filter_map(Pid::from_raw).filter(|pid| *pid != getpid());
    let holds = |pid: Pid| {
        // Held before it is looked at: what is looked at is then what will be ended.
        let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let found = variable_of(pid.as_raw_nonzero().get(), name)?;
        (found == value.as_bytes()).then_some(held)
    };
    others.filter_map(holds).collect()
}

fn signal(processes: &[OwnedFd], signal: Signal) {
    for process in processes {
        // One that is gone needs nothing more.
        let _ = pidfd_send_signal(process, signal);
    }
}

/// Waits for their ends, and gives those that live on.
fn wait(mut living: Vec<OwnedFd>, at_most: Duration) -> Vec<OwnedFd> {
    let end = Instant::now() + at_most;
    while let Some(first) = living.last() {
        let left = end.saturating_duration_since(Instant::now());
        let mut waited = [PollFd::new(first, PollFlags::IN)];
        let left = Timespec::try_from(left).ok();
        match poll(&mut waited, left.as_ref()) {
            Ok(0) => break,
            Ok(_) => drop(living.pop()),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // Those behind one that lives on may have ended too; a signal to them does nothing.
    living
}
