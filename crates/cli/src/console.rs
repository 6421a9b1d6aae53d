//! The three streams of a command: this process's own, or those of a caller who handed its command over.
//!
//! A command takes its streams from here and from nowhere else, so that it runs the same in the process that was started for it and in the one
//! that owns the data directory.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use baton_server::house::{STDERR, STDOUT, piece_head};
use baton_server::limits::PIECE_BYTES_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Standard input, output and error of one command.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) stdin: Stdin,
    pub(crate) stdout: Out,
    pub(crate) stderr: Out,
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
            stdout: Out::to(stdout.into()),
            stderr: Out::to(stderr.into()),
        })
    }

    /// Those of a caller. `is_terminal` says what its standard input was before it was fed through a pipe.
    pub(crate) fn of(fds: [OwnedFd; 3], is_terminal: bool, caller: Arc<UnixStream>) -> Console {
        let [stdin, stdout, stderr] = fds;
        Console {
            stdin: Stdin { file: Arc::new(stdin.into()), is_terminal, is_fed: false, caller: Some(caller) },
            stdout: Out::to(stdout.into()),
            stderr: Out::to(stderr.into()),
        }
    }

    /// Those of a caller on another machine: what is printed goes into one pipe, piece by piece, in the order in which it is printed.
    pub(crate) fn elsewhere(
        stdin: OwnedFd,
        printed: OwnedFd,
        is_terminal: bool,
        caller: UnixStream,
    ) -> Console {
        let (stdin, caller) = (Arc::new(stdin.into()), Some(Arc::new(caller)));
        let (pipe, turn) = (Arc::new(File::from(printed)), Arc::new(Mutex::new(())));
        let out = |stream| Out { pipe: pipe.clone(), shared: Some((stream, turn.clone())) };
        Console {
            stdin: Stdin { file: stdin, is_terminal, is_fed: false, caller },
            stdout: out(STDOUT),
            stderr: out(STDERR),
        }
    }

    /// Files that nobody waits at: the input is all there, and what is printed is looked at afterwards.
    pub(crate) fn kept(stdin: File, stdout: File, stderr: File) -> Console {
        let stdin = Stdin { file: Arc::new(stdin), is_terminal: false, is_fed: true, caller: None };
        Console { stdin, stdout: Out::to(stdout), stderr: Out::to(stderr) }
    }
}

/// Where a command prints: a file of its own, or a pipe that both streams share.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    pipe: Arc<File>,
    /// Which of the two streams this is, and whose turn it is to write a piece.
    shared: Option<(u8, Arc<Mutex<()>>)>,
}

impl Out {
    fn to(file: File) -> Out {
        Out { pipe: Arc::new(file), shared: None }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.shared.is_none() && self.pipe.is_terminal()
    }
}

impl AsFd for Out {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Write for &Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some((stream, turn)) = &self.shared else { return (&*self.pipe).write(bytes) };
        let piece = &bytes[..bytes.len().min(PIECE_BYTES_MAX)];
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        (&*self.pipe).write_all(&piece_head(*stream, piece.len()))?;
        (&*self.pipe).write_all(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.pipe).flush()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
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
