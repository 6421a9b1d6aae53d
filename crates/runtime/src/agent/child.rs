//! One agent's process: a thread that listens to it, writes to it, and sees it to its end.
//!
//! Two ends are waited for and neither for long: of the process, and of what it writes. Whoever still holds the pipes after the process has ended is a
//! child of its own, is ended with the group, and delays nothing. Start at [`Agent::start`].

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::session::{ProcessEnd, StderrCapture, StderrOutput};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use wait4::Wait4 as _;

use super::lines::{Line, Lines};
use super::memory::kernel_kills;
use super::rotating::RotatingFile;
use crate::limits::{
    AGENT_QUEUE_BYTES_MAX, AGENT_READ_BYTES, AGENT_UNREAD_BYTES_MAX, DRAIN, KILLED_WAIT,
    LAST_WORDS_BYTES_MAX, SHORT_GRACE,
};

/// A process to be started.
pub struct Launch {
    /// The program and its arguments, as they are.
    pub words: Vec<String>,
    pub dir: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Lines of its errors that are kept at each end.
    pub stderr_lines: usize,
    /// Gets everything that it writes beside the protocol.
    pub stderr_copy: Option<RotatingFile>,
    /// Between the request to end and the end.
    pub grace: Duration,
}

impl std::fmt::Debug for Launch {
    /// Without its environment, which holds secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch").field("words", &self.words).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// What a listener hears, in this order and from one thread.
#[derive(Debug)]
pub enum Heard {
    Line(Vec<u8>),
    /// A line that is longer than any message; how long.
    TooLong(u64),
    /// Nothing more will come, though the process may live.
    Closed,
    /// It takes no input any more, though there is some and it may live.
    Deaf,
    /// The last word.
    Ended(Box<Exit>),
}

/// How a process ended.
#[derive(Debug)]
pub struct Exit {
    pub process: ProcessEnd,
    /// Whether that was asked for.
    pub is_asked: bool,
    pub stderr: Option<StderrOutput>,
    pub took: Duration,
    pub max_rss_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
    /// Whether it was killed while the kernel ended something for want of memory.
    pub is_memory_short: bool,
}

impl Exit {
    /// An end without a process.
    pub fn without_process(process: ProcessEnd, is_asked: bool) -> Self {
        let (stderr, max_rss_bytes, cpu_ms) = (None, None, None);
        let took = Duration::ZERO;
        Exit { process, is_asked, stderr, took, max_rss_bytes, cpu_ms, is_memory_short: false }
    }
}

/// Why something was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    #[error("the agent does not read: {AGENT_QUEUE_BYTES_MAX} bytes wait for it")]
    Full,
    #[error("the agent takes no more input")]
    Closed,
}

/// A process that runs, to be talked to from any thread.
#[derive(Debug, Clone)]
pub struct Agent {
    shared: Arc<Shared>,
    pid: u32,
}

#[derive(Debug)]
struct Shared {
    asked: Mutex<Asked>,
    /// Wakes the thread that listens.
    wake: OwnedFd,
}

/// What others want of the process.
#[derive(Debug, Default)]
struct Asked {
    unwritten: VecDeque<u8>,
    is_input_over: bool,
    is_closed: bool,
    /// Whether it is not to be heard for now.
    is_held: bool,
    stops: Option<Ladder>,
}

/// How a process is brought to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ladder {
    /// Its input ends, it is asked, it is forced: all within its grace.
    Whole,
    /// It is asked at once and forced a moment later.
    Short,
}

impl Agent {
    /// Starts a process. `heard` is called from a thread of the process's own, and the last thing that it hears is the end.
    pub fn start(launch: Launch, heard: impl FnMut(Heard) + Send + 'static) -> io::Result<Agent> {
        let Some((program, arguments)) = launch.words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        if !launch.dir.is_dir() {
            let why = format!("no directory {}", launch.dir.display());
            return Err(io::Error::new(io::ErrorKind::NotADirectory, why));
        }
        let mut command = std::process::Command::new(program);
        command.args(arguments).current_dir(&launch.dir).process_group(0).env_clear().envs(&launch.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { asked: Mutex::default(), wake });
        let mut child = command.spawn().map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::NotFound => format!("{program}: not found"),
                io::ErrorKind::PermissionDenied => format!("{program}: not executable"),
                _ => format!("{program}: {error}"),
            };
            io::Error::new(error.kind(), why)
        })?;
        let pid = child.id();
        match Running::new(&mut child, launch, shared.clone()) {
            Ok(running) => {
                let end = KillOnDrop(Some(child));
                std::thread::Builder::new().name("agent".into()).spawn(move || running.listen(end, heard))?;
                Ok(Agent { shared, pid })
            }
            Err(error) => {
                // Out of descriptors: what was started is not left behind.
                drop(KillOnDrop(Some(child)));
                Err(error)
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes bytes, now or when the agent reads. They are not waited for.
    pub fn write(&self, bytes: &[u8]) -> Result<(), NotWritten> {
        let mut asked = self.asked();
        if asked.is_input_over || asked.is_closed || asked.stops.is_some() {
            return Err(NotWritten::Closed);
        }
        if asked.unwritten.len() + bytes.len() > AGENT_QUEUE_BYTES_MAX {
            return Err(NotWritten::Full);
        }
        asked.unwritten.extend(bytes);
        drop(asked);
        self.wake();
        Ok(())
    }

    /// Hears nothing of it until it is released; what is written to it, and its end, go on.
    pub fn hold(&self) {
        self.asked().is_held = true;
    }

    pub fn release(&self) {
        self.asked().is_held = false;
        self.wake();
    }

    /// Ends its input, after what is still to be written.
    pub fn end_input(&self) {
        self.asked().is_input_over = true;
        self.wake();
    }

    /// Ends the process: its input, then a request, then by force, all within the grace.
    pub fn stop(&self) {
        self.asked().stops.get_or_insert(Ladder::Whole);
        self.wake();
    }

    /// Ends the process for what it did: what does not answer is not given the time to end by itself.
    pub fn end(&self) {
        self.asked().stops = Some(Ladder::Short);
        self.wake();
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Full means that it is awake.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
    }
}

/// A child that is not left behind, whatever happens to the thread that looks after it.
struct KillOnDrop(Option<Child>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

/// The process as its own thread sees it.
struct Running {
    shared: Arc<Shared>,
    group: Pid,
    /// Readable once the leader has ended.
    leader: OwnedFd,
    has_ended: bool,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    lines: Lines,
    /// What was read, and not heard yet.
    unheard: VecDeque<Line>,
    /// What was read since the leader has ended, in bytes.
    last_words: usize,
    /// What is read at once.
    buffer: Box<[u8]>,
    capture: StderrCapture,
    copy: Option<RotatingFile>,
    grace: Duration,
    started: Instant,
    /// What the kernel had ended for want of memory when this began.
    kills: Option<u64>,
}

fn unblock(fd: impl AsFd) -> io::Result<()> {
    fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    Ok(())
}

impl Running {
    fn new(child: &mut Child, launch: Launch, shared: Arc<Shared>) -> io::Result<Self> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let (Some(stdin), Some(stdout), Some(stderr)) = (&stdin, &stdout, &stderr) {
            unblock(stdin)?;
            unblock(stdout)?;
            unblock(stderr)?;
        }
        let group = Pid::from_child(child);
        Ok(Running {
            shared,
            group,
            leader: pidfd_open(group, PidfdFlags::empty())?,
            has_ended: false,
            stdin,
            stdout,
            stderr,
            lines: Lines::default(),
            unheard: VecDeque::new(),
            last_words: 0,
            buffer: vec![0; AGENT_READ_BYTES].into(),
            capture: StderrCapture::new(launch.stderr_lines),
            copy: launch.stderr_copy,
            grace: launch.grace,
            started: Instant::now(),
            kills: kernel_kills(),
        })
    }

    /// The life of the process.
    fn listen(mut self, mut end: KillOnDrop, mut heard: impl FnMut(Heard)) {
        let asked = loop {
            self.step(None, &mut heard);
            if self.has_ended {
                break None;
            }
            if let Some(ladder) = self.asked(|asked| asked.stops) {
                break Some(ladder);
            }
        };
        let is_asked = asked.is_some();
        if let Some(ladder) = asked {
            let (alone, grace) = match ladder {
                // Most end when their input does; the rest is asked.
                Ladder::Whole => (self.grace / 4, self.grace),
                Ladder::Short => (Duration::ZERO, self.grace.min(SHORT_GRACE)),
            };
            let now = Instant::now();
            self.stdin = None;
            self.until(now + alone, &mut heard);
            if !self.has_ended {
                self.signal(Signal::TERM);
                self.until(now + grace, &mut heard);
            }
        } else {
            // What it wrote last is in the pipe, unless a child of its own still holds that.
            self.until(Instant::now() + DRAIN, &mut heard);
        }
        let is_killed = !self.has_ended;
        self.signal(Signal::KILL);
        self.until(Instant::now() + DRAIN, &mut heard);
        // Whoever holds the pipes now has left the group, and is not waited for.
        self.stderr = None;
        self.close_output(&mut heard);
        if is_killed {
            self.until(Instant::now() + KILLED_WAIT, &mut heard);
        }
        let exit = self.finish(end.0.take(), is_asked);
        heard(Heard::Ended(Box::new(exit)));
    }

    fn finish(self, child: Option<Child>, is_asked: bool) -> Exit {
        self.asked(|asked| asked.is_closed = true);
        let (took, stderr) = (self.started.elapsed(), self.capture.finish());
        let mut exit = Exit { stderr, took, ..Exit::without_process(lost(), is_asked) };
        let Some(child) = child else { return exit };
        if !self.has_ended {
            // One that even a kill does not end is left to a thread, so that others go on.
            let _ = std::thread::Builder::new().name("reap".into()).spawn(move || child.wait4());
            exit.process = ProcessEnd::Lost("it does not end".into());
            return exit;
        }
        match child.wait4() {
            Ok(ended) => {
                exit.process = match (ended.status.code(), ended.status.signal()) {
                    (Some(code), _) => ProcessEnd::Exited(code),
                    (None, signal) => ProcessEnd::Signalled(signal.unwrap_or_default()),
                };
                let cpu = ended.rusage.utime + ended.rusage.stime;
                exit.cpu_ms = u64::try_from(cpu.as_millis()).ok();
                exit.max_rss_bytes = Some(ended.rusage.maxrss);
                let is_killed = matches!(exit.process, ProcessEnd::Signalled(9) | ProcessEnd::Exited(137));
                let is_risen = self.kills.zip(kernel_kills()).is_some_and(|(before, now)| now > before);
                exit.is_memory_short = is_killed && !is_asked && is_risen;
            }
            Err(error) => exit.process = ProcessEnd::Lost(error.to_string()),
        }
        exit
    }

    fn asked<T>(&self, look: impl FnOnce(&mut Asked) -> T) -> T {
        look(&mut self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone needs nothing more. One whose leader has left it is signalled there too.
        let _ = kill_process_group(self.group, signal);
        if !self.has_ended {
            let _ = pidfd_send_signal(&self.leader, signal);
        }
    }

    /// Goes on until the process has ended and its output is closed, at most until `end`.
    fn until(&mut self, end: Instant, heard: &mut impl FnMut(Heard)) {
        while !self.has_ended || self.stdout.is_some() || self.stderr.is_some() {
            let now = Instant::now();
            if now >= end {
                return;
            }
            self.step(Some(end - now), heard);
        }
    }

    /// Waits for something to happen, and takes it.
    fn step(&mut self, at_most: Option<Duration>, heard: &mut impl FnMut(Heard)) {
        let (has_unwritten, is_over) = self.asked(|asked| (!asked.unwritten.is_empty(), asked.is_input_over));
        if is_over && !has_unwritten {
            self.stdin = None;
        }
        self.hear(heard);
        // A place for each, whether it is waited for or not; what is closed never happens.
        let none = &self.shared.wake;
        let mut waited = [
            PollFd::new(&self.shared.wake, PollFlags::IN),
            PollFd::new(none, PollFlags::empty()),
            PollFd::new(none, PollFlags::empty()),
            PollFd::new(none, PollFlags::empty()),
            PollFd::new(none, PollFlags::empty()),
        ];
        if !self.has_ended {
            waited[1] = PollFd::new(&self.leader, PollFlags::IN);
        }
        if let Some(stdout) = self.stdout.as_ref().filter(|_| !self.is_held()) {
            waited[2] = PollFd::new(stdout, PollFlags::IN);
        }
        if let Some(stderr) = &self.stderr {
            waited[3] = PollFd::new(stderr, PollFlags::IN);
        }
        if let (Some(stdin), true) = (&self.stdin, has_unwritten) {
            waited[4] = PollFd::new(stdin, PollFlags::OUT);
        }
        // Rounded up, so that a rest of less than a millisecond is no busy loop.
        let at_most = at_most.and_then(|time| Timespec::try_from(time + Duration::from_millis(1)).ok());
        if poll(&mut waited, at_most.as_ref()).is_err() {
            // Interrupted: the next step looks again.
            return;
        }
        let [is_woken, is_ended, has_output, has_errors, _] = waited.map(|fd| !fd.revents().is_empty());
        self.has_ended |= is_ended;
        if is_woken {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.shared.wake, &mut count);
        }
        self.write(heard);
        if has_errors {
            self.read_errors();
        }
        if has_output {
            self.read_lines(heard);
        }
    }

    fn write(&mut self, heard: &mut impl FnMut(Heard)) {
        let Some(stdin) = &mut self.stdin else { return };
        let mut asked = self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (part, _) = asked.unwritten.as_slices();
        if part.is_empty() {
            return;
        }
        match stdin.write(part) {
            Ok(count) => drop(asked.unwritten.drain(..count)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => {
                // It does not read any more.
                asked.unwritten.clear();
                asked.is_input_over = true;
                drop(asked);
                self.stdin = None;
                heard(Heard::Deaf);
            }
        }
    }

    /// Takes a part of what was written; more of it comes in the next step, so that one that never pauses keeps nothing else out.
    fn read_errors(&mut self) {
        let Some(stderr) = &mut self.stderr else { return };
        match read(stderr, &mut self.buffer) {
            Some(0) => self.stderr = None,
            Some(count) => {
                self.capture.take(&self.buffer[..count]);
                if let Some(copy) = &mut self.copy
                    && copy.push(&self.buffer[..count]).is_err()
                {
                    self.copy = None;
                }
            }
            None => {}
        }
    }

    fn read_lines(&mut self, heard: &mut impl FnMut(Heard)) {
        let Some(stdout) = &mut self.stdout else { return };
        match read(stdout, &mut self.buffer) {
            Some(0) => self.close_output(heard),
            Some(count) => {
                self.lines.take(&self.buffer[..count], |line| self.unheard.push_back(line));
                self.hear(heard);
                if self.has_ended {
                    self.last_words += count;
                }
                if self.last_words >= LAST_WORDS_BYTES_MAX {
                    // A child of its own goes on; that is nobody's word.
                    self.close_output(heard);
                }
            }
            None => {}
        }
    }

    /// Says what was read, as far as it is to be heard now.
    fn hear(&mut self, heard: &mut impl FnMut(Heard)) {
        while !self.is_held() {
            let Some(line) = self.unheard.pop_front() else { return };
            heard(said(line));
        }
    }

    /// Whether nothing of it is heard for now: because somebody wants that, or because it does not read what it asked for. Whoever has ended is heard.
    fn is_held(&self) -> bool {
        let is_held = |asked: &mut Asked| asked.is_held || asked.unwritten.len() > AGENT_UNREAD_BYTES_MAX;
        !self.has_ended && self.asked(is_held)
    }

    fn close_output(&mut self, heard: &mut impl FnMut(Heard)) {
        if self.stdout.take().is_some() {
            self.unheard.extend(self.lines.finish());
            self.unheard.drain(..).for_each(|line| heard(said(line)));
            heard(Heard::Closed);
        }
    }
}

fn said(line: Line) -> Heard {
    match line {
        Line::Whole(line) => Heard::Line(line),
        Line::TooLong(bytes) => Heard::TooLong(bytes),
    }
}

fn lost() -> ProcessEnd {
    ProcessEnd::Lost("nobody waited for it".into())
}

/// Bytes that are there; `None` where there are none at this moment, zero at the end.
fn read(from: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    match from.read(buffer) {
        Ok(count) => Some(count),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        Err(_) => Some(0),
    }
}
