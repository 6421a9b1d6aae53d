//! Who is told about tasks, as the configuration says; and what there is to tell, from the ledger.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use baton_core::task::TaskEvent;
use baton_runtime::clock::SystemClock;
use baton_runtime::engine::Moved;
use baton_runtime::notify::{Notifier, Pace, Secret, Sink, Webhook};
use baton_store::tasks::fold::Fact;
use baton_store::tasks::obstacles;
use baton_store::tasks::tree::{RealTree, Tree};
use baton_store::{History as _, Layout, Visit};

use crate::config::Settings;
use crate::error::{CliError, Code, Stop};
use crate::tasks::read_board;

/// Lines that are read at once.
const LINES_AT_ONCE: usize = 1024;

/// Most that is told of what happened while nobody was there to tell.
const MISSED_MAX: usize = 1000;

/// Whoever is to be told.
pub(crate) fn sinks(settings: &Settings, dir: PathBuf) -> Result<Vec<Sink>, CliError> {
    let mut sinks = Vec::new();
    if let Some(words) = &settings.notify.command {
        sinks.push(Sink::Command { words: words.clone(), dir });
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

/// The position up to which everything was told, in a file of its own.
const POSITION: &str = "notifications/position";

/// Reads the position; where none is kept, nothing before now is told.
pub(crate) fn told_until(tree: &RealTree, now: u64) -> u64 {
    let read = tree.read(POSITION, 64).ok();
    let text = read.and_then(|(bytes, _)| String::from_utf8(bytes).ok());
    text.and_then(|text| text.trim().parse().ok()).filter(|pos| *pos <= now).unwrap_or(now)
}

/// Keeps the position. What is told twice has the same delivery id.
pub(crate) fn keep_told(tree: &RealTree, pos: u64) {
    let text = format!("{pos}\n");
    let _ = tree.make_dir("notifications");
    if tree.rewrite(POSITION, text.as_bytes(), None).is_err() {
        let _ = tree.create(POSITION, text.as_bytes());
    }
}

/// Without a server somebody has to tell what this command did, and the command does not wait for it: a process of its own does.
pub(crate) fn tell_beside(here: Option<&Path>, layout: &Layout, settings: &Settings, moved: &[Moved]) {
    let is_wanted = settings.notify.command.is_some() || settings.notify.webhook.is_some();
    let notable = moved.iter().filter(|moved| moved.to.is_notable());
    let (Some(first), true) = (notable.map(|moved| moved.pos).min(), is_wanted) else { return };
    let Ok(me) = std::env::current_exe() else { return };
    let since = (first - 1).to_string();
    let mut command = Command::new(me);
    command.args(["notify", "flush", "--since", &since, "-q", "--data-dir"]).arg(layout.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(here) = here {
        command.current_dir(here);
    }
    // Ctrl-C of whoever typed the command is not meant for it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let _ = command.spawn();
}

/// How long a process that only tells stays.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(120);
