//! Watches the folders of tasks, so that what a person does there is taken in soon after. Whatever it misses, looking at everything finds.

use std::collections::BTreeSet;
use std::io;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_core::TaskId;
use baton_core::task::Status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::engine::Engine;

/// Events come in bunches: an editor writes, renames and removes. They are looked at when it has been quiet for this long.
const QUIET: Duration = Duration::from_millis(100);

/// Where it is never quiet, they are looked at all the same.
const QUIET_WAIT_MAX: Duration = Duration::from_millis(1_000);

/// Tasks that are looked at one by one; where there are more, everything is looked at.
const TOUCHED_MAX: usize = 4096;

/// How much more often everything is looked at where the kernel does not tell.
const BLIND_SHARE: u32 = 10;

/// A watch that goes on until it is ended.
#[derive(Debug)]
pub struct Watch {
    end: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Looks at everything, then at what is touched, and at everything again after each `every`. `told` hears what a person should know, also
    /// where there is nothing.
    pub fn start(
        engine: Arc<Engine>,
        every: Duration,
        told: impl Fn(Vec<String>) + Send + 'static,
    ) -> io::Result<Watch> {
        let (end, ended) = UnixStream::pair()?;
        let root = engine.ground().layout.root().join("tasks");
        let watching = Watching { engine, root, every, ended, told };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || watching.run())?;
        Ok(Watch { end, thread: Some(thread) })
    }

    /// Ends it and waits for that.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = self.end.write(&[0]);
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.finish();
    }
}

/// What is known to have been touched.
#[derive(Debug, Default, PartialEq, Eq)]
struct Touched {
    ids: BTreeSet<TaskId>,
    /// Whether events were lost, or folders came and went.
    is_unsure: bool,
}

impl Touched {
    fn is_empty(&self) -> bool {
        self.ids.is_empty() && !self.is_unsure
    }
}

struct Watching<T> {
    engine: Arc<Engine>,
    root: PathBuf,
    every: Duration,
    ended: UnixStream,
    told: T,
}

impl<T: Fn(Vec<String>)> Watching<T> {
    fn run(&self) {
        let mut kernel = subscribe(&self.root).ok();
        self.reconcile();
        let mut looked = Instant::now();
        loop {
            // Without the kernel's help one has to look oneself, and more often.
            let every = if kernel.is_some() { self.every } else { self.every / BLIND_SHARE };
            let left = every.saturating_sub(looked.elapsed());
            let Some(touched) = self.wait(kernel.as_ref(), left) else { return };
            if touched.is_unsure || kernel.is_none() {
                // Folders may be new ones.
                kernel = subscribe(&self.root).ok();
            }
            if touched.is_unsure || touched.ids.len() > TOUCHED_MAX || looked.elapsed() >= every {
                self.reconcile();
                looked = Instant::now();
            } else {
                self.look_at(touched.ids);
            }
        }
    }

    fn reconcile(&self) {
        (self.told)(match self.engine.reconcile_while(&|| !self.is_ended()) {
            Ok(found) => found.notices,
            Err(fault) => vec![format!("the files of tasks could not be looked at: {fault}")],
        });
    }

    fn look_at(&self, ids: BTreeSet<TaskId>) {
        let mut notices = Vec::new();
        for id in ids {
            if self.is_ended() {
                break;
            }
            // One that cannot be read is no reason to leave the others.
            if let Err(fault) = self.engine.look_at(&BTreeSet::from([id.clone()])) {
                notices.push(format!("{id}: its file could not be looked at: {fault}"));
            }
        }
        (self.told)(notices);
    }

    fn is_ended(&self) -> bool {
        let mut ended = [PollFd::new(&self.ended, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut ended, Some(&at_once)), Ok(1..))
    }

    /// What was touched until it became quiet, nothing after the time is over, or `None` at the end.
    fn wait(&self, kernel: Option<&OwnedFd>, time: Duration) -> Option<Touched> {
        let (mut touched, mut since) = (Touched::default(), None::<Instant>);
        loop {
            let time = match since {
                None => time,
                Some(since) => QUIET.min(QUIET_WAIT_MAX.saturating_sub(since.elapsed())),
            };
            let timeout = Timespec::try_from(time).ok();
            let mut watched = vec![PollFd::new(&self.ended, PollFlags::IN)];
            watched.extend(kernel.map(|kernel| PollFd::new(kernel, PollFlags::IN)));
            match poll(&mut watched, timeout.as_ref()) {
                Ok(0) => return Some(touched),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => {
                    touched.is_unsure = true;
                    std::thread::sleep(QUIET_WAIT_MAX);
                    return Some(touched);
                }
            }
            if !watched[0].revents().is_empty() {
                return None;
            }
            if let Some(kernel) = kernel {
                read(kernel, &mut touched);
            }
            if !touched.is_empty() {
                since.get_or_insert_with(Instant::now);
            }
        }
    }
}

/// Asks the kernel to tell what happens in each folder. One that was removed is made again.
fn subscribe(root: &Path) -> io::Result<OwnedFd> {
    let kernel = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let changes = WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::ONLYDIR
        | WatchFlags::DONT_FOLLOW;
    for status in Status::ALL {
        let folder = root.join(status.to_string());
        std::fs::create_dir_all(&folder)?;
        inotify::add_watch(&kernel, &folder, changes)?;
    }
    Ok(kernel)
}

/// Takes everything that the kernel has to tell.
fn read(kernel: &OwnedFd, touched: &mut Touched) {
    let mut buffer = [MaybeUninit::uninit(); 1 << 14];
    let mut reader = inotify::Reader::new(kernel, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) => {
                let lost = ReadFlags::QUEUE_OVERFLOW | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
                touched.is_unsure |= event.events().intersects(lost);
                let name = event.file_name().and_then(|name| name.to_str().ok());
                touched.ids.extend(name.and_then(task_of));
            }
            Err(Errno::AGAIN) => return,
            Err(_) => {
                touched.is_unsure = true;
                return;
            }
        }
    }
}

/// The task that a name in a folder belongs to. What starts with a dot is being made, or none of ours.
fn task_of(name: &str) -> Option<TaskId> {
    if name.starts_with('.') {
        return None;
    }
    name.strip_suffix(".md").unwrap_or(name).parse().ok()
}
