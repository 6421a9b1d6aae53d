//! The three streams of a command: this process's own, or those of a caller who handed its command over.
//!
//! A command takes its streams from here and from nowhere else, so that it runs the same in the process that was started for it and in the one
//! that owns the data directory.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Standard input, output and error of one command.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) stdin: Stdin,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

impl Console {
    /// This process's own. Where a part of its input was read already, `fed` has that part again, and the rest.
    pub(crate) fn own(fed: Option<&OwnedFd>) -> io::Result<Console> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let own = |fd: BorrowedFd<'_>| fd.try_clone_to_owned();
        let [stdin, stdout, stderr] = [own(stdin.as_fd())?, own(stdout.as_fd())?, own(stderr.as_fd())?];
        let stdin = fed.map_or(Ok(stdin), |fed| own(fed.as_fd()))?;
        let is_terminal = stdin.is_terminal();
        Ok(Console {
            stdin: Stdin { file: Arc::new(stdin.into()), is_terminal, is_fed: fed.is_some(), caller: None },
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    /// Those of a caller. `is_terminal` says what its standard input was before it was fed through a pipe.
    pub(crate) fn of(fds: [OwnedFd; 3], is_terminal: bool, caller: Arc<UnixStream>) -> Console {
        let [stdin, stdout, stderr] = fds;
        Console {
            stdin: Stdin { file: Arc::new(stdin.into()), is_terminal, is_fed: false, caller: Some(caller) },
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    /// Files that nobody waits at: the input is all there, and what is printed is looked at afterwards.
    pub(crate) fn kept(stdin: File, stdout: File, stderr: File) -> Console {
        let stdin = Stdin { file: Arc::new(stdin), is_terminal: false, is_fed: true, caller: None };
        Console { stdin, stdout, stderr }
    }
}

/// Standard input. Waiting for it ends when the caller, if there is one, has gone.
#[derive(Debug, Clone)]
pub(crate) struct Stdin {
    file: Arc<File>,
    is_terminal: bool,
    is_fed: bool,
    caller: Option<Arc<UnixStream>>,
}

impl Stdin {
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Whether it is what the command reads, whatever file it names.
    pub(crate) fn is_fed(&self) -> bool {
        self.is_fed
    }

    /// Whether something can be read at once.
    pub(crate) fn is_ready(&self) -> bool {
        is_ready(&self.file)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether nobody waits for the outcome any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| {
            poll(&mut [PollFd::new(caller, PollFlags::RDHUP)], Some(&NOW)).is_ok_and(|count| count > 0)
        })
    }

    fn wait(&self, caller: &UnixStream) -> io::Result<()> {
        loop {
            let mut watched =
                [PollFd::new(&*self.file, PollFlags::IN), PollFd::new(caller, PollFlags::RDHUP)];
            match poll(&mut watched, None) {
                Ok(_) if !watched[1].revents().is_empty() => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the caller has gone"));
                }
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Whether reading from a file would not wait.
pub(crate) fn is_ready(file: &File) -> bool {
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&NOW)).is_ok_and(|count| count > 0)
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(caller) = &self.caller {
            self.wait(caller)?;
        }
        (&*self.file).read(buffer)
    }
}
