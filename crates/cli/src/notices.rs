//! Who is told about tasks, as the configuration says; and what there is to tell, from the ledger.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::task::TaskEvent;
use baton_runtime::clock::SystemClock;
use baton_runtime::engine::Moved;
use baton_runtime::notify::{Notifier, Pace, Secret, Sink, Webhook};
use baton_store::tasks::fold::Fact;
use baton_store::tasks::obstacles;
use baton_store::tasks::tree::{Claim, RealTree, Tree};
use baton_store::{History as _, Layout, Visit};

use crate::config::Settings;
use crate::error::{CliError, Code, Stop};
use crate::tasks::read_board;

/// Lines that are read at once.
const LINES_AT_ONCE: usize = 1024;

/// Most that is told of what happened while nobody was there to tell.
const MISSED_MAX: usize = 1000;

/// This very binary, also after another one was installed in its place.
pub(crate) const MYSELF: &str = "/proc/self/exe";

/// Whoever is to be told.
pub(crate) fn sinks(settings: &Settings, dir: PathBuf) -> Result<Vec<Sink>, CliError> {
    let mut sinks = Vec::new();
    if let Some(words) = &settings.notify.command {
        sinks.push(Sink::Command { words: words.clone(), dir, warden: Some(MYSELF.into()) });
    }
    if let Some(webhook) = &settings.notify.webhook {
        let made =
            Secret::from_env(&webhook.secret_env).and_then(|secret| Webhook::new(&webhook.url, secret));
        let refused = |error: baton_runtime::notify::Refused| {
            CliError::new(Code::Config, "notify.webhook cannot be used").cause(error.to_string())
        };
        sinks.push(Sink::Webhook(made.map_err(refused)?));
    }
    Ok(sinks)
}

/// Starts telling. What waits since an earlier time is sent first.
pub(crate) fn start(layout: &Layout, sinks: Vec<Sink>) -> Result<Notifier, CliError> {
    let tree: Arc<dyn Tree> = Arc::new(tree(layout)?);
    if let Some(obstacle) = obstacles::of_notifications(&*tree).first() {
        return Err(CliError::in_the_way(Code::Io, &obstacle.at(layout.root())));
    }
    Notifier::start(tree, sinks, Arc::new(SystemClock), Pace::default())
        .map_err(|error| CliError::io("open", &layout.root().join("notifications"), &error))
}

pub(crate) fn tree(layout: &Layout) -> Result<RealTree, CliError> {
    RealTree::open(layout.root()).map_err(|error| CliError::io("open", layout.root(), &error))
}

/// What happened to tasks after a position that somebody should hear of.
pub(crate) fn notable_since(visit: &Visit, since: u64) -> Result<Vec<Moved>, Stop> {
    let board = read_board(visit)?.board;
    let (mut pos, mut out) = (since, Vec::new());
    while pos < visit.reader.size() {
        let lines = visit.reader.read(pos + 1, LINES_AT_ONCE)?;
        for stored in &lines {
            pos = stored.pos;
            let fact = Fact::read(stored)?;
            let (Some(TaskEvent::Transitioned(moved)), Some(task)) = (fact.event(), &fact.task) else {
                continue;
            };
            let Some(task) = task.parse().ok().and_then(|id| board.get(&id)) else { continue };
            if moved.to.is_notable() {
                out.push(Moved {
                    pos: fact.at.pos,
                    task: task.id.clone(),
                    title: task.title.clone(),
                    from: moved.from,
                    to: moved.to,
                    reason: moved.reason,
                    at: fact.at.time,
                });
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    let extra = out.len().saturating_sub(MISSED_MAX);
    Ok(out.split_off(extra))
}

/// What was told, in a file of its own: everything after one position and up to another.
const POSITION: &str = "notifications/position";

/// Who has this name keeps what is to be told; one at a time.
const TELLING: &str = "notifications/sending/telling";

/// How often a name that another process has is tried again.
const TELLING_RETRY: Duration = Duration::from_millis(5);

/// What was told: everything after `from`, up to `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    from: u64,
    until: u64,
}

impl Told {
    fn read(tree: &RealTree) -> Option<Told> {
        let (bytes, _) = tree.read(POSITION, 64).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        let until = numbers.next()?.ok()?;
        Some(Told { from: numbers.next().unwrap_or(Ok(0)).ok()?, until })
    }

    fn text(self) -> String {
        format!("{} {}\n", self.until, self.from)
    }

    fn write(self, tree: &RealTree) {
        // What is told twice has the same delivery id.
        if tree.rewrite(POSITION, self.text().as_bytes(), None).is_err() {
            let _ = tree.create(POSITION, self.text().as_bytes());
        }
    }
}

/// The right to say what was told: nobody else tells meanwhile, so that nothing is told twice.
#[derive(Debug)]
pub(crate) struct Telling {
    tree: RealTree,
    from: u64,
    _claim: Claim,
}

impl Telling {
    /// Waits for its turn. `None` where a process that serves tells everything itself.
    pub(crate) fn begin(
        layout: &Layout,
        is_told_elsewhere: &dyn Fn() -> bool,
    ) -> Result<Option<Telling>, CliError> {
        let tree = tree(layout)?;
        let end = Instant::now() + TELLING_WAIT;
        let fail = |error: std::io::Error| CliError::io("open", &layout.root().join(TELLING), &error);
        loop {
            if let Some(claim) = tree.claim(TELLING).map_err(fail)? {
                return Ok(Some(Telling { tree, from: 0, _claim: claim }));
            }
            if is_told_elsewhere() {
                return Ok(None);
            }
            if Instant::now() >= end {
                let what = "another process is telling what happened, and does not come to an end";
                return Err(CliError::new(Code::LockHeld, what).hint("baton notify flush"));
            }
            std::thread::sleep(TELLING_RETRY);
        }
    }

    /// Puts into the outbox what nobody was told of: what happened since the last time, and from `since` on. Without either, nothing before now.
    /// Gives how many.
    pub(crate) fn catch_up(
        &mut self,
        notifier: &Notifier,
        visit: &Visit,
        since: Option<u64>,
    ) -> Result<usize, Stop> {
        let now = visit.reader.size();
        let start = since.unwrap_or(now).min(now);
        let told = Told::read(&self.tree).filter(|told| told.until <= now);
        let told = told.unwrap_or(Told { from: start, until: start });
        let mut missed = notable_since(visit, told.until)?;
        if start < told.from {
            let earlier = notable_since(visit, start)?.into_iter().filter(|moved| moved.pos <= told.from);
            missed.splice(0..0, earlier);
        }
        notifier.keep(&missed).map_err(|error| CliError::io("write", &self.tree_path(visit), &error))?;
        self.from = told.from.min(start);
        self.has_told(now);
        Ok(missed.len())
    }

    fn tree_path(&self, visit: &Visit) -> PathBuf {
        visit.layout.root().join("notifications/outbox")
    }

    /// Notes that everything up to here was told.
    pub(crate) fn has_told(&self, until: u64) {
        Told { from: self.from, until }.write(&self.tree);
    }
}

/// Notes that what happened after a position is to be told, whoever comes to it.
fn owe(layout: &Layout, since: u64) {
    if let Ok(tree) = tree(layout) {
        let _ = tree.make_dir("notifications");
        // Where something was told before, it is owed from there on already.
        let _ = tree.create(POSITION, Told { from: since, until: since }.text().as_bytes());
    }
}

/// Without a server somebody has to tell what this command did, and the command does not wait for it: a process of its own does.
pub(crate) fn tell_beside(here: Option<&Path>, layout: &Layout, settings: &Settings, moved: &[Moved]) {
    let is_wanted = settings.notify.command.is_some() || settings.notify.webhook.is_some();
    let notable = moved.iter().filter(|moved| moved.to.is_notable());
    let (Some(first), true) = (notable.map(|moved| moved.pos).min(), is_wanted) else { return };
    let Ok(me) = std::env::current_exe() else { return };
    owe(layout, first - 1);
    let since = (first - 1).to_string();
    let mut command = Command::new(me);
    command.args(["notify", "flush", "--since", &since, "-q", "--data-dir"]).arg(layout.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(here) = here {
        command.current_dir(here);
    }
    // Where a notification's command did this, what tells of it is no part of that command.
    command.env_remove("BATON_DELIVERY");
    // Ctrl-C of whoever typed the command is not meant for it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let _ = command.spawn();
}

/// How long a turn to tell is waited for; each is a moment.
const TELLING_WAIT: Duration = Duration::from_secs(30);

/// How long a process that only tells stays.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(120);
