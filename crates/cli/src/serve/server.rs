//! The owner's side: takes commands from the socket, one thread for each, and runs them as if they had been started for it.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::acting::Acting;
use super::frame::{self, BEGUN, Request};
use super::owner::Owner;
use super::socket::{Listening, is_ours};
use crate::args::{Agent, Cli, Command};
use crate::console::Console;
use crate::context::{Caller, Environment};
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::limits::{CALL_READ_MS, CALLS_MAX, DRAIN_MS_MAX};
use crate::remote;
use crate::trace_args::Trace;
use crate::{execute, help, prepare};

/// Takes commands until it is told to stop.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) owner: Arc<Owner>,
    pub(crate) listening: Listening,
    /// Gets a byte when something is to be shown.
    pub(crate) shown: UnixStream,
    /// Gets a byte when it is time to stop.
    pub(crate) stopped: UnixStream,
    /// The other end of `shown`.
    pub(crate) poke: Arc<Poke>,
}

/// Says that there is something to be shown.
#[derive(Debug)]
pub(crate) struct Poke(UnixStream);

impl Poke {
    /// The two ends.
    pub(crate) fn pair() -> io::Result<(Arc<Poke>, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        Ok((Arc::new(Poke(ours)), theirs))
    }

    pub(crate) fn poke(&self) {
        // Where there is no room, enough was said already.
        let _ = (&self.0).write(&[0]);
    }
}

/// How many commands run.
#[derive(Debug, Default)]
struct Active {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Active {
    fn count(&self) -> usize {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, change: impl FnOnce(&mut usize)) {
        change(&mut self.count.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn wait_for_none(&self, time: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(count, time, |count| *count > 0));
    }
}

/// How long to wait for one of too many commands to end before looking again.
const FULL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

impl Server {
    /// Takes commands until `stopped` says so, then waits for those that run, within a bound. `show` is called when there may be something.
    pub(crate) fn run(self, mut show: impl FnMut()) -> io::Result<()> {
        let active = Arc::new(Active::default());
        loop {
            let is_full = active.count() >= CALLS_MAX;
            let accepts = if is_full { PollFlags::empty() } else { PollFlags::IN };
            let mut watched = [
                PollFd::new(&self.stopped, PollFlags::IN),
                PollFd::new(&self.shown, PollFlags::IN),
                PollFd::new(&self.listening.listener, accepts),
            ];
            match poll(&mut watched, is_full.then_some(&FULL)) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            let [stops, shows, accepts] = watched.map(|watched| !watched.revents().is_empty());
            if stops {
                break;
            }
            if shows {
                io::Read::read(&mut &self.shown, &mut [0; 64]).unwrap_or_default();
                show();
            }
            if accepts {
                match self.listening.listener.accept() {
                    Ok((stream, _)) => self.take(stream, &active),
                    // Whoever came has gone again, or there are no descriptors left: others may end meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => std::thread::sleep(Duration::from_millis(20)),
                }
            }
        }
        // What is under way is finished, and nothing new begins: who is given a task now would lose it in a moment.
        self.owner.engine.end_claims();
        // Whoever comes now finds nobody, and waits for the lock.
        drop(self.listening);
        active.wait_for_none(Duration::from_millis(DRAIN_MS_MAX));
        show();
        Ok(())
    }

    fn take(&self, stream: UnixStream, active: &Arc<Active>) {
        let (owner, poke, counted) = (self.owner.clone(), self.poke.clone(), active.clone());
        active.add(|count| *count += 1);
        let answer = move || {
            // Nobody else suffers from a command that panics; its caller is told.
            let _ = catch_unwind(AssertUnwindSafe(|| answer(&owner, stream)));
            owner.wake.wake();
            poke.poke();
            drop(owner);
            counted.add(|count| *count -= 1);
        };
        if std::thread::Builder::new().name("call".into()).spawn(answer).is_err() {
            active.add(|count| *count -= 1);
        }
    }
}

/// Reads a command, runs it, and answers how it ended.
fn answer(owner: &Arc<Owner>, stream: UnixStream) {
    if !is_ours(&stream) {
        return;
    }
    let time = Some(Duration::from_millis(CALL_READ_MS));
    if stream
        .set_nonblocking(false)
        .and(stream.set_read_timeout(time))
        .and(stream.set_write_timeout(time))
        .is_err()
    {
        return;
    }
    let stream = Arc::new(stream);
    let acting = Acting::of(&stream, owner);
    let taken = frame::receive(&stream).and_then(|(request, fds)| {
        let acting = acting?;
        let session = acting.as_ref().and_then(|acting| acting.session);
        let place = session.map(|session| owner.agent_calls.enter(session)).transpose()?;
        let console = Console::of(fds, request.is_terminal, stream.clone());
        Ok((Call::read(owner, request, console, acting)?, place))
    });
    let (call, _place) = match taken {
        Ok(taken) => taken,
        Err(error) => return frame::refuse(&stream, &error),
    };
    // A caller that has given up does not hear this, and its command is not begun.
    if (&*stream).write_all(&[BEGUN]).is_err() {
        return;
    }
    let code = call.run();
    let _ = (&*stream).write_all(&[code]);
}

/// A command that was taken.
pub(super) struct Call {
    cli: Cli,
    caller: Caller,
    console: Console,
}

impl Call {
    fn read(
        owner: &Arc<Owner>,
        request: Request,
        console: Console,
        acting: Option<Acting>,
    ) -> Result<Call, CliError> {
        let cli = help::parse(&request.argv)
            .map_err(|error| CliError::new(Code::NotServed, error.to_string().trim_end()))?;
        if !is_taken(cli.command.as_ref()) {
            return Err(CliError::new(Code::NotServed, "this command is not done by another process"));
        }
        if let Some(acting) = &acting {
            acting.expect_may_in(owner, cli.command.as_ref())?;
        }
        let env = Environment { captured: Some(request.env) };
        let (here, is_fed, owner) = (request.here, request.is_fed, owner.clone());
        let caller = Caller { env, here, owner, is_fed, is_elsewhere: false, acting };
        Ok(Call { cli, caller, console })
    }

    /// One that came another way than over the socket, and was judged there.
    pub(super) fn in_house(
        owner: &Arc<Owner>,
        argv: &[OsString],
        console: Console,
        acting: Option<Acting>,
    ) -> Result<Call, CliError> {
        let cli =
            help::parse(argv).map_err(|error| CliError::new(Code::Usage, error.to_string().trim_end()))?;
        if let Some(acting) = &acting {
            acting.expect_may_in(owner, cli.command.as_ref())?;
        }
        let here = owner.engine.ground().workspace.clone();
        // This process's own surroundings, and this data directory, however it was found.
        let root = owner.workspace.layout.root().as_os_str().to_owned();
        let env = std::env::vars_os().chain([("BATON_DATA_DIR".into(), root)]).collect();
        let env = Environment { captured: Some(env) };
        let caller = Caller { env, here, owner: owner.clone(), is_fed: true, is_elsewhere: true, acting };
        Ok(Call { cli, caller, console })
    }

    /// Refuses what makes no sense from another machine: what concerns the process itself, and what names files, which are not there.
    pub(super) fn expect_remote(&self, is_admin: bool) -> Result<(), CliError> {
        let refused = |why: &str| Err(CliError::new(Code::NotServed, why));
        match (remote::place(self.cli.command.as_ref()), &self.cli.command) {
            (remote::Place::There, Some(Command::Agent(Agent::Add(_) | Agent::Check(_)))) if !is_admin => {
                refused("this command has programs run on the server's machine, which takes an admin's token")
            }
            (remote::Place::There, Some(Command::Trace(Trace::Export(args))))
                if args.output != Path::new("-") =>
            {
                refused("a bundle is written where it was asked for: to standard output here, -o -")
            }
            (remote::Place::There, Some(Command::Trace(Trace::Prove(args)))) if args.names_file() => {
                refused("the file with the checkpoint is not on this machine: name a number of events")
            }
            (remote::Place::There, _) => Ok(()),
            _ => refused("this command is not done by another machine"),
        }
    }

    pub(super) fn run(self) -> u8 {
        let Call { cli, caller, console } = self;
        let (owner, mut err) = (caller.owner.clone(), console.stderr.clone());
        let run = || {
            let (ctx, mut ui) = prepare(&cli.globals, console, Some(caller), Arc::new(AtomicBool::new(true)));
            let ended = ctx.layout().and_then(|layout| owner.expect(&layout));
            match ended {
                Ok(()) => {
                    ctx.unheeded().iter().for_each(|text| ui.warn(text));
                    execute(&ctx, &mut ui, cli.command).unwrap_or(Exit::Unexpected.code())
                }
                Err(error) => {
                    ui.fail(&error);
                    error.exit().code()
                }
            }
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            let _ =
                err.write_all(b"error: the command panicked in the process that owns the data directory\n");
            Exit::Unexpected.code()
        })
    }
}

/// Whether a command may be handed over: those that never write do not need it, and some would concern the owner itself.
fn is_taken(command: Option<&Command>) -> bool {
    !matches!(
        command,
        None | Some(
            Command::Init
                | Command::Demo(_)
                | Command::Serve(_)
                | Command::Acp(_)
                | Command::MockAgent
                | Command::Agent(Agent::Ls | Agent::Check(_))
                | Command::Events(_)
                | Command::Verify(_)
                | Command::Replay(_)
                | Command::Config(_)
                | Command::Explain(_)
                | Command::Completions(_)
                | Command::Man(_)
        )
    )
}
