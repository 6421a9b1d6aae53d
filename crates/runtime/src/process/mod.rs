//! Runs a configured command to its end, whatever it does: in a process group of its own, with bounded output, within a deadline.
//!
//! No shell stands between, and nothing of Baton's environment is passed on but an allow-list. The ladder at the end is always the same: ask the
//! group, wait for the grace, kill the group. Its leader is not reaped before that, so that its number cannot have become another group's.
//! Everything happens in the caller's thread. Start at [`Command::run`].

mod fate;
mod leftovers;
mod output;

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read as _, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

pub use fate::Fate;
pub use leftovers::{end_leftovers, variable_of};
pub use output::Output;

use crate::limits::{DRAIN, KILLED_WAIT, SETTLE, SHORT_GRACE, STOP_GRACE, STOP_LOOK};

/// Variables that every command gets where Baton has them: who and where one is, and how to talk. Whoever needs more names it.
pub const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// A command to be run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments, as they are.
    pub words: Vec<String>,
    /// Where it runs.
    pub dir: PathBuf,
    /// What it gets besides [`PASSED`].
    pub env: BTreeMap<String, String>,
    /// What it reads; nothing is an end at once.
    pub stdin: Vec<u8>,
    /// How long it may run.
    pub timeout: Duration,
    /// Between the request to end and the end.
    pub grace: Duration,
    /// A program that stands between and ends the whole group should this process be killed. It gets [`WARDEN_WORD`], the number of this process and
    /// the words.
    pub warden: Option<PathBuf>,
    /// With whom it ends.
    pub fate: Option<Arc<Fate>>,
    /// Whether its standard output is all that is wanted: what it says beside that is left out.
    pub is_quiet: bool,
}

/// What tells a warden that it is one.
pub const WARDEN_WORD: &str = "@warden";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exit(i32),
    Signal(i32),
    /// It had its time.
    TimedOut,
    /// The caller did not want it any more.
    Stopped,
}

impl Ended {
    /// The code that it ended with by itself.
    pub fn exit_code(self) -> Option<i32> {
        match self {
            Ended::Exit(code) => Some(code),
            Ended::Signal(_) | Ended::TimedOut | Ended::Stopped => None,
        }
    }
}

/// A command that ran.
#[derive(Debug)]
pub struct Ran {
    pub ended: Ended,
    pub output: Output,
    pub took: Duration,
    /// Why the copy of the output is not whole, where it is not.
    pub copy_failed: Option<io::Error>,
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no command")]
    Empty,
    #[error("what it was for has ended")]
    Over,
    #[error("not found: {0}")]
    NotFound(String),
    #[error("not executable: {0}")]
    NotExecutable(String),
    #[error("no directory: {0}")]
    NoDirectory(PathBuf),
    #[error("cannot be run: {0}")]
    Other(#[from] io::Error),
}

impl Command {
    pub fn new(words: Vec<String>, dir: impl Into<PathBuf>, timeout: Duration) -> Self {
        let (env, stdin) = (BTreeMap::new(), Vec::new());
        Command {
            words,
            dir: dir.into(),
            env,
            stdin,
            timeout,
            grace: STOP_GRACE,
            warden: None,
            fate: None,
            is_quiet: false,
        }
    }

    /// Runs it to its end, and whatever is left of its group with it.
    ///
    /// `copy` gets the output as it comes, up to a bound. `stop` is asked a few times a second, and so is its fate. After the deadline, a stop, or the end of the command
    /// itself, the answer takes no longer than the grace and a moment, whoever still holds the output.
    pub fn run(&self, copy: Option<&mut dyn Write>, stop: &mut dyn FnMut() -> bool) -> Result<Ran, Error> {
        let started = Instant::now();
        let _part = self.fate.as_ref().map(|fate| fate.join().ok_or(Error::Over)).transpose()?;
        let (child, pipe) = self.spawn()?;
        let mut running = Running::new(child, pipe, self, output::Copy::to(copy))?;
        let ended = running.follow(self, started, stop);
        let (output, copy_failed) = (running.output, running.copy.finish().err());
        Ok(Ran { ended, output, took: started.elapsed(), copy_failed })
    }

    /// Whether its program is there and may be run, as far as can be seen before.
    pub fn is_found(&self) -> bool {
        self.words.first().is_some_and(|program| self.is_runnable(program))
    }

    /// Starts it with one pipe for both of its outputs, so that they stay in order.
    fn spawn(&self) -> Result<(Child, PipeReader), Error> {
        let (program, arguments) = self.words.split_first().ok_or(Error::Empty)?;
        if !self.dir.is_dir() {
            // Else the system's error would be the same as for a program that is missing.
            return Err(Error::NoDirectory(self.dir.clone()));
        }
        let (pipe, stdout) = io::pipe()?;
        let stderr = stdout.try_clone()?;
        let mut command = match &self.warden {
            Some(warden) if self.is_runnable(program) => {
                let mut command = std::process::Command::new(warden);
                command.arg(WARDEN_WORD).arg(std::process::id().to_string()).arg(program);
                command
            }
            // What is missing or may not be run is told by the system itself.
            _ => std::process::Command::new(program),
        };
        command.args(arguments).current_dir(&self.dir).process_group(0).env_clear();
        command.envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(&self.env);
        command.stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(stdout).stderr(stderr);
        if self.is_quiet {
            command.stderr(Stdio::null());
        }
        let child = command.spawn().map_err(|error| match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::NOENT.raw_os_error() => Error::NotFound(program.clone()),
            Some(code) if code == rustix::io::Errno::ACCESS.raw_os_error() => {
                Error::NotExecutable(program.clone())
            }
            Some(code) if code == rustix::io::Errno::NOEXEC.raw_os_error() => {
                Error::NotExecutable(program.clone())
            }
            _ => Error::Other(error),
        })?;
        Ok((child, pipe))
    }

    /// Whether there is such a program, in the directory or on the path, and it may be run.
    fn is_runnable(&self, program: &str) -> bool {
        let may_run = |path: PathBuf| path.is_file() && access(&path, Access::EXEC_OK).is_ok();
        if program.contains('/') {
            return may_run(self.dir.join(program));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| may_run(self.dir.join(dir).join(program)))
    }
}

/// A command between its start and its end.
struct Running<'a, 'w> {
    /// `None` once it is reaped.
    child: Option<Child>,
    group: Pid,
    /// Readable once the leader has ended.
    leader: OwnedFd,
    has_ended: bool,
    /// `None` once everybody has closed it.
    pipe: Option<PipeReader>,
    stdin: Option<ChildStdin>,
    unread: &'a [u8],
    output: Output,
    copy: output::Copy<'w>,
    fate: Option<&'a Fate>,
    /// When it is killed at the latest, once it is over with those whose fate it shares.
    over_at: Option<Instant>,
}

impl<'a, 'w> Running<'a, 'w> {
    fn new(
        mut child: Child,
        pipe: PipeReader,
        command: &'a Command,
        copy: output::Copy<'w>,
    ) -> Result<Self, Error> {
        let group = Pid::from_child(&child);
        let prepared = (|| {
            let stdin = child.stdin.take();
            fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
            if let Some(stdin) = &stdin {
                fcntl_setfl(stdin, fcntl_getfl(stdin)? | OFlags::NONBLOCK)?;
            }
            Ok::<_, rustix::io::Errno>((pidfd_open(group, PidfdFlags::empty())?, stdin))
        })();
        match prepared {
            Ok((leader, stdin)) => Ok(Running {
                child: Some(child),
                group,
                leader,
                has_ended: false,
                pipe: Some(pipe),
                stdin,
                unread: &command.stdin,
                output: Output::default(),
                copy,
                fate: command.fate.as_deref(),
                over_at: None,
            }),
            Err(error) => {
                // Out of descriptors: what was started is not left behind.
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                Err(Error::Other(error.into()))
            }
        }
    }

    /// The life of a command: until it ends or is ended, then the ladder.
    fn follow(&mut self, command: &Command, started: Instant, stop: &mut dyn FnMut() -> bool) -> Ended {
        let deadline = started + command.timeout;
        let mut cut = None;
        while !self.has_ended {
            if stop() || self.is_over() {
                cut = Some(Ended::Stopped);
                break;
            }
            let now = Instant::now();
            if now >= deadline {
                cut = Some(Ended::TimedOut);
                break;
            }
            self.step((deadline - now).min(STOP_LOOK));
        }
        let kill_at = Instant::now() + command.grace;
        if cut.is_some() {
            self.signal(Signal::TERM);
        } else {
            // What was printed last may still be on its way through something like `tee`.
            self.until_over(kill_at.min(Instant::now() + SETTLE));
            if self.pipe.is_some() {
                self.signal(Signal::TERM);
            }
        }
        self.until_over(kill_at);
        self.signal(Signal::KILL);
        self.until(Instant::now() + DRAIN);
        // From here on whoever still holds the output has left the group, and is not waited for.
        self.pipe = None;
        self.until(Instant::now() + KILLED_WAIT);
        let status = self.reap();
        match (cut, status) {
            (Some(cut), _) => cut,
            (None, Some(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exit(code),
                (None, signal) => Ended::Signal(signal.unwrap_or_default()),
            },
            // It had ended, or this would be a cut.
            (None, None) => Ended::TimedOut,
        }
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs nothing more.
        let _ = kill_process_group(self.group, signal);
    }

    /// Whether it is over with those whose fate it shares: then there is not much time.
    fn is_over(&mut self) -> bool {
        if self.over_at.is_none() && self.fate.is_some_and(Fate::is_over) {
            self.over_at = Some(Instant::now() + SHORT_GRACE);
        }
        self.over_at.is_some()
    }

    /// Goes on until the command has ended and its output is closed, at most until `end`.
    fn until(&mut self, end: Instant) {
        while !self.has_ended || self.pipe.is_some() {
            let now = Instant::now();
            if now >= end {
                return;
            }
            self.step(end - now);
        }
    }

    /// The same, for those who get a grace: a short one, once it is over.
    fn until_over(&mut self, end: Instant) {
        while !self.has_ended || self.pipe.is_some() {
            let end = if self.is_over() { self.over_at.map_or(end, |at| at.min(end)) } else { end };
            let now = Instant::now();
            if now >= end {
                return;
            }
            self.step((end - now).min(STOP_LOOK));
        }
    }

    /// Waits for something to happen, and takes it.
    fn step(&mut self, at_most: Duration) {
        let mut waited = Vec::with_capacity(3);
        if !self.has_ended {
            waited.push(PollFd::new(&self.leader, PollFlags::IN));
        }
        if let Some(pipe) = &self.pipe {
            waited.push(PollFd::new(pipe, PollFlags::IN));
        }
        if let Some(stdin) = &self.stdin {
            waited.push(PollFd::new(stdin, PollFlags::OUT));
        }
        // Rounded up, so that a rest of less than a millisecond is no busy loop.
        let at_most = Timespec::try_from(at_most + Duration::from_millis(1)).ok();
        if poll(&mut waited, at_most.as_ref()).is_err() {
            // Interrupted: the next step looks again.
            return;
        }
        if !self.has_ended {
            self.has_ended = !waited[0].revents().is_empty();
        }
        self.write();
        self.read();
    }

    /// Takes a part of what was printed; more of it comes in the next step, so that one that never pauses does not keep the deadline out.
    fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 1 << 16];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.output.push(&buffer[..count]);
                self.copy.push(&buffer[..count]);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
    }

    fn write(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(self.unread) {
            Ok(count) => self.unread = &self.unread[count..],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // It does not want to read: that is its business.
            Err(_) => self.unread = &[],
        }
        if self.unread.is_empty() {
            self.stdin = None;
        }
    }

    /// How the leader ended. One that even a kill does not end is left to a thread, so that the caller goes on.
    fn reap(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        if self.has_ended {
            return child.wait().ok();
        }
        // Without a thread it stays a zombie until Baton ends, which harms nobody.
        let _ = std::thread::Builder::new().name("reap".into()).spawn(move || child.wait());
        None
    }
}

/// A duration as the configuration writes it.
pub(crate) fn short(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        _ if ms >= 3_600_000 && ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms >= 60_000 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms >= 1000 && ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_the_configuration() {
        let check = |ms, text| assert_eq!(short(Duration::from_millis(ms)), text);
        check(30 * 60_000, "30m");
        check(90_000, "90s");
        check(7_200_000, "2h");
        check(1500, "1500ms");
        check(0, "0ms");
    }
}
