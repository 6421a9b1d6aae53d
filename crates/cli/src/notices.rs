//! Who is told about tasks, as the configuration says; and what there is to tell, from the ledger.

use std::collections::VecDeque;
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
use crate::limits::{MISSED_MAX, NOTABLE_LINES, TELLING_RETRY};
use crate::tasks::read_board;
use crate::ui::text::count;

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

/// What happened to tasks that somebody should hear of.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// The newest, in the order of the ledger.
    pub(crate) moved: VecDeque<Moved>,
    /// How many older ones there were beyond the bound.
    pub(crate) dropped: usize,
}

impl Missed {
    /// Reads what happened after one position and up to another; of more than `most` the newest.
    fn read(visit: &Visit, after: u64, until: u64, most: usize) -> Result<Missed, Stop> {
        let mut missed = Missed::default();
        let until = until.min(visit.reader.size());
        if after >= until {
            return Ok(missed);
        }
        let board = read_board(visit)?.board;
        let mut pos = after;
        while pos < until {
            let lines = visit.reader.read(pos + 1, NOTABLE_LINES)?;
            for stored in lines.iter().take_while(|stored| stored.pos <= until) {
                let fact = Fact::read(stored)?;
                let (Some(TaskEvent::Transitioned(moved)), Some(task)) = (fact.event(), &fact.task) else {
                    continue;
                };
                let Some(task) = task.parse().ok().and_then(|id| board.get(&id)) else { continue };
                if moved.to.is_notable() {
                    missed.push(
                        Moved {
                            pos: fact.at.pos,
                            task: task.id.clone(),
                            title: task.title.clone(),
                            from: moved.from,
                            to: moved.to,
                            reason: moved.reason,
                            at: fact.at.time,
                        },
                        most,
                    );
                }
            }
            let Some(last) = lines.last() else { break };
            pos = last.pos;
        }
        Ok(missed)
    }

    fn push(&mut self, moved: Moved, most: usize) {
        self.moved.push_back(moved);
        if self.moved.len() > most {
            self.moved.pop_front();
            self.dropped += 1;
        }
    }

    /// What a person should know of those that nobody hears of.
    pub(crate) fn notice(&self) -> Option<String> {
        let dropped = count(self.dropped as u64, "notification");
        (self.dropped > 0)
            .then(|| format!("{dropped} of long ago went untold; at most {MISSED_MAX} are told at once"))
    }
}

/// What was told, in a file of its own: everything after one position and up to another.
const POSITION: &str = "notifications/position";

/// Who has this name keeps what is to be told; one at a time.
const TELLING: &str = "notifications/sending/telling";

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
    until: u64,
    _claim: Claim,
}

/// What became of the wait for a turn.
#[derive(Debug)]
pub(crate) enum Begun {
    Ours(Telling),
    /// A process that serves tells everything itself.
    Elsewhere,
    /// Another process tells, and did not come to an end in this time.
    Late,
}

/// Another process has the turn for longer than anybody waits.
pub(crate) fn late(layout: &Layout) -> CliError {
    let path = layout.root().join(TELLING);
    CliError::new(Code::LockHeld, "another process is telling what happened, and does not come to an end")
        .cause(format!("it holds {}", path.display()))
        .hint("ps -C baton -o pid,args")
}

impl Telling {
    /// Waits for its turn, for at most this long.
    pub(crate) fn begin(
        layout: &Layout,
        wait: Duration,
        is_told_elsewhere: &dyn Fn() -> bool,
    ) -> Result<Begun, CliError> {
        let (tree, end) = (tree(layout)?, Instant::now() + wait);
        let fail = |error: std::io::Error| CliError::io("open", &layout.root().join(TELLING), &error);
        loop {
            if let Some(claim) = tree.claim(TELLING).map_err(fail)? {
                return Ok(Begun::Ours(Telling { tree, from: 0, until: 0, _claim: claim }));
            }
            if is_told_elsewhere() {
                return Ok(Begun::Elsewhere);
            }
            if Instant::now() >= end {
                return Ok(Begun::Late);
            }
            std::thread::sleep(TELLING_RETRY);
        }
    }

    /// Puts into the outbox what nobody was told of: what happened since the last time, and from `since` on. Without either, nothing before now.
    pub(crate) fn catch_up(
        &mut self,
        notifier: &Notifier,
        visit: &Visit,
        since: Option<u64>,
    ) -> Result<Missed, Stop> {
        let now = visit.reader.size();
        let start = since.unwrap_or(now).min(now);
        let told = Told::read(&self.tree).filter(|told| told.until <= now);
        let told = told.unwrap_or(Told { from: start, until: start });
        let mut missed = Missed::read(visit, start, told.from, MISSED_MAX)?;
        let later = Missed::read(visit, told.until, now, MISSED_MAX)?;
        // Each within the bound, so that what is newest does not push out what was asked for.
        missed.moved.extend(later.moved);
        missed.dropped += later.dropped;
        let kept = notifier.keep(missed.moved.make_contiguous());
        kept.map_err(|error| CliError::io("write", &self.tree_path(visit), &error))?;
        (self.from, self.until) = (told.from.min(start), now);
        self.has_told(now);
        Ok(missed)
    }

    /// Up to where it caught up.
    pub(crate) fn until(&self) -> u64 {
        self.until
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

#[cfg(test)]
mod tests {
    use baton_core::task::Status;
    use baton_core::task::decide::{Move, New};
    use baton_runtime::{Engine, Ground};
    use baton_store::{Options, Workspace};

    use super::*;

    /// A ledger in which a task was blocked this often, and where in it.
    fn blocked(times: usize) -> (tempfile::TempDir, Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path().join("data"));
        let state = dir.path().join("state");
        let workspace = Workspace::create(&layout, &state, Options::default(), Duration::ZERO).unwrap();
        let ground = Ground::of(&workspace, dir.path().into(), Arc::new(SystemClock)).unwrap();
        let engine = Engine::open(ground, baton_runtime::Settings::default()).unwrap();
        let task = engine.create(&New::titled("work")).unwrap().0.id;
        for _ in 0..times {
            for to in [Status::Ready, Status::Blocked] {
                engine.transition(&Move { task: task.clone(), to, reason: "x".into() }).unwrap();
            }
        }
        let moved = engine.take_moved().into_iter().filter(|moved| moved.to == Status::Blocked);
        let places = moved.map(|moved| moved.pos).collect();
        engine.close().unwrap();
        workspace.close().unwrap();
        (dir, places)
    }

    #[test]
    fn what_was_missed_is_read_between_two_positions_and_the_oldest_beyond_the_bound_are_counted() {
        let (dir, places) = blocked(6);
        let visit = Visit::open(&Layout::new(dir.path().join("data"))).unwrap();
        let check = |after: u64, until: u64, most: usize, expected: &[u64], dropped: usize| {
            let missed = Missed::read(&visit, after, until, most).unwrap();
            let found: Vec<u64> = missed.moved.iter().map(|moved| moved.pos).collect();
            assert_eq!((found.as_slice(), missed.dropped), (expected, dropped), "{after}..={until} {most}");
            assert_eq!(missed.notice().is_some(), dropped > 0);
        };
        check(0, u64::MAX, 9, &places, 0);
        check(0, u64::MAX, 2, &places[4..], 4);
        check(places[3], u64::MAX, 9, &places[4..], 0);
        // However many came later: what is earlier is found.
        check(0, places[1], 2, &places[..2], 0);
        check(0, places[2], 2, &places[1..3], 1);
        check(places[1], places[1], 9, &[], 0);
    }
}
