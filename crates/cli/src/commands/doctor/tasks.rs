//! What the doctor says about tasks: files that are not as the ledger says, edits that were not taken in, notifications that were given up.

use baton_core::TaskId;
use baton_core::task::Status as TaskStatus;
use baton_runtime::notify::dead_letters;
use baton_store::tasks::table::Table;
use baton_store::tasks::tree::{RealTree, Tree as _};
use baton_store::{History as _, Layout, Visit, lock};

use super::{Status, Verdict};
use crate::context::disk;
use crate::tasks::ReadBoard;
use crate::ui::text::{count, printable};

/// Names that are listed; more are counted.
const SHOWN_MAX: usize = 5;

pub(super) fn checks(layout: &Layout, visit: Visit) -> Vec<Verdict> {
    let mut verdicts = files(layout, visit);
    verdicts.extend(edits(layout));
    verdicts.extend(notifications(layout));
    verdicts
}

/// Whether every task has its file where it should be, and no file is nobody's.
fn files(layout: &Layout, visit: Visit) -> Vec<Verdict> {
    let warn = |detail: String| Verdict::new("tasks", Status::Warn, detail);
    let read = match ReadBoard::of(visit) {
        Ok(read) => read,
        Err(_) => return vec![warn("the board cannot be read".to_owned()).see("baton verify")],
    };
    let tasks = count(read.board.len() as u64, "task");
    // Whoever owns the directory knows more than what is saved, and takes in what people change.
    if matches!(lock::holder(layout), Ok(Some(_))) {
        let found = strange(layout, &read);
        let detail = format!("{tasks}; the process that owns the data directory looks after their files");
        return if found.is_empty() { vec![Verdict::new("tasks", Status::Ok, detail)] } else { found };
    }
    let (index, key) = (layout.index(), read.visit.reader.ledger().key);
    if Table::is_sound(&*disk(), &index, &key) == Some(false) {
        // Without it nobody knows how the files were left: whatever else there is to say comes after it is made anew.
        let detail = "index/tasks is not as Baton saved it: torn by a crash, or altered; it is not believed";
        return vec![warn(detail.to_owned()).fix("baton doctor --fix")];
    }
    let mut found = Vec::new();
    let changed = read.edited(read.board.tasks());
    if !changed.is_empty() {
        let names: Vec<&str> = changed.iter().take(SHOWN_MAX).map(TaskId::as_str).collect();
        let detail = format!("{} of {tasks} changed by hand or missing: {}", changed.len(), names.join(", "));
        found.push(warn(detail).fix("baton doctor --fix"));
    }
    let elsewhere = read.elsewhere();
    if !elsewhere.is_empty() {
        let detail = format!("{} where no task of that name is: {}", files_of(&elsewhere), shown(&elsewhere));
        found.push(warn(detail).fix("baton doctor --fix"));
    }
    found.extend(strange(layout, &read));
    if found.is_empty() {
        found.push(Verdict::new("tasks", Status::Ok, format!("{tasks}, each with its file")));
    }
    found
}

/// Files that are no task's, or not yet.
fn strange(layout: &Layout, read: &ReadBoard) -> Vec<Verdict> {
    let warn = |detail: String| Verdict::new("tasks", Status::Warn, detail);
    let mut found = Vec::new();
    let Strangers { new, nameless } = Strangers::of(layout, read);
    if !new.is_empty() {
        // Taken in, or told why not: what is wrong with it is the person's to mend.
        let detail = format!("{} not taken in yet: {}", files_of(&new), shown(&new));
        found.push(warn(detail).advice("baton doctor --fix takes it in, or says what is wrong with it"));
    }
    if !nameless.is_empty() {
        let detail = format!("{} not taken in: {}", files_of(&nameless), shown(&nameless));
        let advice = "move it elsewhere, or name it after a task, such as TASK-2026-02-09-057.md";
        found.push(warn(detail).advice(advice));
    }
    found
}

fn files_of(names: &[String]) -> String {
    count(names.len() as u64, "file")
}

fn shown(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN_MAX).map(|name| printable(name)).collect();
    shown.join(", ")
}

/// Files in the folders of tasks that are no task's.
#[derive(Default)]
struct Strangers {
    /// Named like a task that is not known: taken in by whoever looks next.
    new: Vec<String>,
    /// Named like no task: left alone.
    nameless: Vec<String>,
}

impl Strangers {
    fn of(layout: &Layout, read: &ReadBoard) -> Strangers {
        let mut found = Strangers::default();
        let Ok(tree) = RealTree::open(layout.root()) else { return found };
        for status in TaskStatus::ALL {
            for name in tree.list(&format!("tasks/{status}")).unwrap_or_default() {
                let Some(stem) = name.strip_suffix(".md").filter(|_| !name.starts_with('.')) else {
                    continue;
                };
                match stem.parse::<TaskId>() {
                    Ok(id) if read.board.get(&id).is_some() => {}
                    Ok(_) => found.new.push(format!("tasks/{status}/{name}")),
                    Err(_) => found.nameless.push(format!("tasks/{status}/{name}")),
                }
            }
        }
        found.new.sort();
        found.nameless.sort();
        found
    }
}

/// Edits that were not taken in, kept aside. What else is there was in the way, and no edit.
fn edits(layout: &Layout) -> Option<Verdict> {
    let tree = RealTree::open(layout.root()).ok()?;
    let names = tree.list("quarantine").unwrap_or_default();
    let is_edit = |name: &String| name.starts_with("TASK-") && name.ends_with(".md");
    let mut kept: Vec<String> = names.into_iter().filter(is_edit).collect();
    kept.sort();
    if kept.is_empty() {
        return None;
    }
    let edits = count(kept.len() as u64, "edit");
    let quarantine = layout.quarantine();
    let detail = format!("{edits} not taken in, kept in {}: {}", quarantine.display(), shown(&kept));
    Some(Verdict::new("edits", Status::Warn, detail).see("baton events --type task.edit_refused --json"))
}

/// Notifications that were given up.
fn notifications(layout: &Layout) -> Option<Verdict> {
    let tree = RealTree::open(layout.root()).ok()?;
    let dead = dead_letters(&tree).ok().filter(|dead| !dead.is_empty())?;
    let detail = format!("{} given up", count(dead.len() as u64, "notification"));
    Some(Verdict::new("notifications", Status::Warn, detail).see("baton notify ls"))
}
