//! What the doctor mends: permissions of secrets, what is in the way, a torn tail, the index. Nothing that could be evidence is touched.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use baton_store::disk::Mode;
use baton_store::journal::recover::{self, Tail};
use baton_store::keys::KeyStore;
use baton_store::lock::OwnerLock;
use baton_store::{History as _, Layout, OpenError};

use super::checks::mode;
use super::places;
use crate::context::{Context, disk, settled};
use crate::error::{CliError, Stop};
use crate::ui::Ui;
use crate::ui::text::count;

/// Mends what it can and says what it did.
pub(super) fn run(ctx: &Context, ui: &Ui, layout: &Layout) -> Result<Vec<String>, Stop> {
    let mut done = Vec::new();
    // Before anything is touched: whoever owns the data directory does the rest too.
    ctx.reach()?;
    // Whatever else there is: private keys that others can read do not wait for it.
    restrict(ctx, layout, &mut done)?;
    intact(layout)?;
    // Nothing opens while something else lies in the place of its files.
    places::clear(ctx, layout, &mut done)?;
    // Opening recovers; where that is refused, nothing else is touched either.
    let writing = ctx.write(ui)?;
    if writing.is_shared() {
        ui.note("the index is in use by the process that owns the data directory, and stays as it is");
        reconcile(ctx, ui)?;
        return Ok(done);
    }
    for name in &writing.opening.quarantined {
        let kept = layout.quarantine().join(name);
        done.push(format!("a write that was cut off was set aside in {}", kept.display()));
    }
    let was_broken = writing.opening.index_rebuilt;
    writing.close(ui)?;
    // Also where opening found nothing wrong with it: it does not look at all of it.
    forget_index(ctx, layout)?;
    let writing = ctx.write(ui)?;
    let events = count(writing.journal.size(), "event");
    writing.close(ui)?;
    // The board and the files of tasks went with the index: opening makes both from the ledger.
    reconcile(ctx, ui)?;
    if was_broken {
        done.push(format!("the index was missing or damaged, and was rebuilt from {events}"));
    } else {
        ui.note(&format!("the index was made anew from {events}"));
    }
    Ok(done)
}

/// Does what is due, and compares every file of every task with the ledger.
fn reconcile(ctx: &Context, ui: &Ui) -> Result<(), Stop> {
    let tasks = ctx.tasks(ui)?;
    let reconciled = tasks.tick().and_then(|_| tasks.reconcile()).map_err(Stop::from);
    let reconciled = tasks.finish(ui, reconciled)?;
    reconciled.notices.iter().for_each(|notice| ui.warn(notice));
    if reconciled.looked_at > 0 {
        ui.note(&format!(
            "the files of {} were compared with the ledger",
            count(reconciled.looked_at as u64, "task")
        ));
    }
    Ok(())
}

/// Refuses where the journal itself is not in order: then nothing is touched.
fn intact(layout: &Layout) -> Result<(), Stop> {
    // Another process may be writing at this moment.
    let open = || recover::open(&disk(), layout, Mode::Read);
    let opened = settled(layout, open, |opened| matches!(opened.tail, Tail::Damaged { .. }))?;
    match opened.tail {
        Tail::Damaged { line, why } => {
            let file = format!("segment {:020}", opened.end.segment);
            Err(OpenError::Damaged { line, file, why }.into())
        }
        Tail::Clean | Tail::Filled | Tail::Torn { .. } => Ok(()),
    }
}

/// Takes others' rights away from the directory of secrets and everything of this ledger in it.
fn restrict(ctx: &Context, layout: &Layout, done: &mut Vec<String>) -> Result<(), Stop> {
    let state_dir = ctx.state_dir()?;
    if let Some(mode) = mode(&state_dir).filter(|mode| mode & 0o077 != 0) {
        set_mode(&state_dir, mode & 0o700)?;
        done.push(format!("{} is private now", state_dir.display()));
    }
    // Whose secrets they are says the first line; without it only the directory around them is known.
    let ledger = recover::read_identity(&*disk(), layout)?;
    let keys = KeyStore::new(&state_dir, &ledger.origin);
    let exposed = keys.exposed().unwrap_or_default();
    if !exposed.is_empty() {
        keys.restrict().map_err(|error| CliError::io("restrict", keys.dir(), &error))?;
        done.extend(exposed.iter().map(|(path, _)| format!("{} is private now", path.display())));
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), CliError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|error| CliError::io("restrict", path, &error))
}

/// Removes the index, so that opening makes it anew from the journal. Only where the journal itself is in order: the index may be the last
/// witness of events that were cut off.
fn forget_index(ctx: &Context, layout: &Layout) -> Result<(), Stop> {
    let _lock = OwnerLock::acquire(layout, ctx.lock_wait()?).map_err(CliError::from)?;
    intact(layout)?;
    let dir = layout.index();
    let names =
        baton_store::disk::Disk::list(&*disk(), &dir).map_err(|error| CliError::io("list", &dir, &error))?;
    for name in names {
        let path = dir.join(name);
        fs::remove_file(&path).map_err(|error| CliError::io("remove", &path, &error))?;
    }
    Ok(())
}
