//! What the doctor says about tasks: files that are not as the ledger says, edits that were not taken in, notifications that were given up.

use baton_core::TaskId;
use baton_core::task::Status as TaskStatus;
use baton_runtime::notify::dead_letters;
use baton_store::tasks::tree::{RealTree, Tree as _};
use baton_store::{Layout, Visit, lock};

use super::{Status, Verdict};
use crate::tasks::ReadBoard;
use crate::ui::text::{count, printable};

/// Names that are listed; more are counted.
const SHOWN_MAX: usize = 5;

pub(super) fn checks(layout: &Layout, visit: Visit) -> Vec<Verdict> {
    let mut verdicts = vec![files(layout, visit)];
    verdicts.extend(edits(layout));
    verdicts.extend(notifications(layout));
    verdicts
}

/// Whether every task has its file where it should be, and no file is nobody's.
fn files(layout: &Layout, visit: Visit) -> Verdict {
    let read = match ReadBoard::of(visit) {
        Ok(read) => read,
        Err(_) => return Verdict::new("tasks", Status::Warn, "the board cannot be read").fix("baton verify"),
    };
    let tasks = count(read.board.len() as u64, "task");
    // Whoever owns the directory knows more than what is saved, and takes in what people change.
    if matches!(lock::holder(layout), Ok(Some(_))) {
        let detail = format!("{tasks}; the process that owns the data directory looks after their files");
        return Verdict::new("tasks", Status::Ok, detail);
    }
    let changed = read.edited(read.board.tasks());
    if !changed.is_empty() {
        let names: Vec<&str> = changed.iter().take(SHOWN_MAX).map(TaskId::as_str).collect();
        let detail = format!("{} of {tasks} changed by hand or missing: {}", changed.len(), names.join(", "));
        return Verdict::new("tasks", Status::Warn, detail).fix("baton task ls");
    }
    let strangers = strangers(layout, &read);
    match strangers.as_slice() {
        [] => Verdict::new("tasks", Status::Ok, format!("{tasks}, each with its file")),
        found => {
            let shown: Vec<String> = found.iter().take(SHOWN_MAX).map(|name| printable(name)).collect();
            let detail = format!("{} not taken in: {}", count(found.len() as u64, "file"), shown.join(", "));
            Verdict::new("tasks", Status::Warn, detail).fix("baton doctor --fix")
        }
    }
}

/// Files in the folders of tasks that are no task's.
fn strangers(layout: &Layout, read: &ReadBoard) -> Vec<String> {
    let Ok(tree) = RealTree::open(layout.root()) else { return Vec::new() };
    let mut found = Vec::new();
    for status in TaskStatus::ALL {
        for name in tree.list(&format!("tasks/{status}")).unwrap_or_default() {
            let Some(stem) = name.strip_suffix(".md").filter(|_| !name.starts_with('.')) else { continue };
            let is_known = stem.parse::<TaskId>().is_ok_and(|id| read.board.get(&id).is_some());
            if !is_known {
                found.push(format!("tasks/{status}/{name}"));
            }
        }
    }
    found.sort();
    found
}

/// Edits that were not taken in, kept aside.
fn edits(layout: &Layout) -> Option<Verdict> {
    let tree = RealTree::open(layout.root()).ok()?;
    let names = tree.list("quarantine").unwrap_or_default();
    let mut kept: Vec<String> = names.into_iter().filter(|name| name.starts_with("TASK-")).collect();
    kept.sort();
    if kept.is_empty() {
        return None;
    }
    let shown: Vec<String> = kept.iter().take(SHOWN_MAX).map(|name| printable(name)).collect();
    let detail = format!(
        "{} not taken in, kept in {}: {}",
        count(kept.len() as u64, "edit"),
        layout.quarantine().display(),
        shown.join(", ")
    );
    Some(Verdict::new("edits", Status::Warn, detail).fix("baton events --type task.edit_refused --json"))
}

/// Notifications that were given up.
fn notifications(layout: &Layout) -> Option<Verdict> {
    let tree = RealTree::open(layout.root()).ok()?;
    let dead = dead_letters(&tree).ok().filter(|dead| !dead.is_empty())?;
    let detail = format!("{} given up", count(dead.len() as u64, "notification"));
    Some(Verdict::new("notifications", Status::Warn, detail).fix("baton notify ls"))
}
