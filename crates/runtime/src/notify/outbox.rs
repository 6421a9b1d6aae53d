//! Where notifications wait and where they end: one small file each, below the data directory.
//!
//! `notifications/outbox/` has what is to be sent, written before and removed after; `notifications/dead/` what was given up. A file is made beside its place
//! and gets its name when it is whole. `notifications/sending/` has the names of what somebody is just sending, so that of several processes one sends it,
//! and files that are being made. Nothing is synced: they survive the death of Baton, and a power cut costs at most the last ones, which the
//! ledger still has.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::Timestamp;
use baton_core::json::Sorted;
use baton_store::disk::unfinished_name;
use baton_store::tasks::tree::{Claim, Found, Tree};
use serde_json::{Value, json};

use super::letter::{DeadLetter, Kept, Letter};
use crate::limits::{NOTIFY_DEAD_MAX, NOTIFY_FILE_BYTES_MAX, NOTIFY_UNFINISHED_WAIT};

const DIR: &str = "notifications";
const OUTBOX: &str = "notifications/outbox";
const DEAD: &str = "notifications/dead";
const SENDING: &str = "notifications/sending";
/// How many dead letters were dropped.
const DROPPED: &str = "notifications/dropped.json";

#[derive(Debug)]
pub(super) struct Outbox {
    tree: Arc<dyn Tree>,
    dead: Mutex<Dead>,
}

/// The dead letters by their names, of which the first is the oldest.
#[derive(Debug)]
struct Dead {
    names: BTreeSet<String>,
    dropped: u64,
}

impl Outbox {
    /// Opens it, with what an earlier run could not deliver, oldest first. What is no letter is put among the dead as it is.
    pub(super) fn open(tree: Arc<dyn Tree>) -> io::Result<(Self, Vec<Letter>)> {
        for dir in [DIR, OUTBOX, DEAD, SENDING] {
            tree.make_dir(dir)?;
        }
        clear_unfinished(&*tree)?;
        for dir in [DIR, OUTBOX, DEAD] {
            for name in tree.list(dir)?.iter().filter(|name| name.ends_with(".tmp")) {
                let _ = tree.remove(&format!("{dir}/{name}"));
            }
        }
        let outbox = Outbox { dead: Mutex::new(Dead::load(&*tree)?), tree };
        let mut names = outbox.tree.list(OUTBOX)?;
        names.sort();
        let mut letters = Vec::new();
        for name in names {
            let path = format!("{OUTBOX}/{name}");
            let bytes = outbox.tree.read(&path, NOTIFY_FILE_BYTES_MAX);
            match bytes.ok().and_then(|(bytes, _)| Letter::from_file(&bytes)).filter(|l| l.name() == name) {
                Some(letter) => {
                    // Baton died between the two files of a letter that was given up or tried again: it is tried.
                    // Unless somebody is between the two at this moment.
                    let is_dead = outbox.dead().names.contains(&name);
                    if is_dead
                        && let Ok(Some(_claim)) = outbox.claim(&letter)
                        && outbox.has(&letter)
                    {
                        outbox.take_dead(&name);
                    }
                    letters.push(Letter { kept: Kept::Left, ..letter });
                }
                None => {
                    let mut dead = outbox.dead();
                    if outbox.tree.rename(&path, &format!("{DEAD}/{name}")).is_ok() {
                        dead.names.insert(name);
                    }
                }
            }
        }
        outbox.trim(&mut outbox.dead());
        Ok((outbox, letters))
    }

    fn dead(&self) -> MutexGuard<'_, Dead> {
        // The names are only hints about files; whatever panicked, the files count.
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a letter for this sender alone; `None` while another has it.
    pub(super) fn claim(&self, letter: &Letter) -> io::Result<Option<Claim>> {
        self.tree.claim(&format!("{SENDING}/{}", letter.name()))
    }

    /// Whether a letter is still to be sent.
    pub(super) fn has(&self, letter: &Letter) -> bool {
        matches!(self.tree.look(&format!("{OUTBOX}/{}", letter.name())), Ok(Some(_)))
    }

    /// How often a letter that is still to be sent was tried, by whomever.
    pub(super) fn attempts(&self, letter: &Letter) -> Option<u32> {
        match self.tree.read(&format!("{OUTBOX}/{}", letter.name()), NOTIFY_FILE_BYTES_MAX) {
            // What is no letter any more counts as one that nobody tried since.
            Ok((bytes, _)) => Some(Letter::from_file(&bytes).map_or(letter.attempts, |there| there.attempts)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => self.has(letter).then_some(letter.attempts),
        }
    }

    /// Writes a letter that is to be sent, or how often it was tried.
    pub(super) fn put(&self, letter: &Letter) -> io::Result<()> {
        replace(&*self.tree, &format!("{OUTBOX}/{}", letter.name()), &letter.to_file())
    }

    /// Removes a letter that was delivered.
    pub(super) fn remove(&self, letter: &Letter) -> io::Result<()> {
        match self.tree.remove(&format!("{OUTBOX}/{}", letter.name())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Puts a letter among the dead; the oldest of too many goes.
    pub(super) fn bury(&self, letter: Letter, reason: String, at: Timestamp) -> io::Result<()> {
        let (name, outbox) = (letter.name(), format!("{OUTBOX}/{}", letter.name()));
        let mut file = Sorted(&DeadLetter::new(letter, reason, at).to_json()).to_string();
        file.push('\n');
        let mut dead = self.dead();
        replace(&*self.tree, &format!("{DEAD}/{name}"), file.as_bytes())?;
        dead.names.insert(name);
        let _ = self.tree.remove(&outbox);
        self.trim(&mut dead);
        Ok(())
    }

    fn trim(&self, dead: &mut Dead) {
        let before = dead.dropped;
        while dead.names.len() > NOTIFY_DEAD_MAX
            && let Some(oldest) = dead.names.pop_first()
        {
            let _ = self.tree.remove(&format!("{DEAD}/{oldest}"));
            dead.dropped += 1;
        }
        if dead.dropped != before {
            // A count that is a little behind after a crash is still a count.
            let text = json!({"v": 1, "dropped": dead.dropped}).to_string();
            let _ = replace(&*self.tree, DROPPED, text.as_bytes());
        }
    }

    fn take_dead(&self, name: &str) {
        self.dead().names.remove(name);
        // Most are not there.
        let _ = self.tree.remove(&format!("{DEAD}/{name}"));
    }

    pub(super) fn tree(&self) -> &dyn Tree {
        &*self.tree
    }

    /// Dead letters that were dropped because there were too many.
    pub(super) fn dropped(&self) -> u64 {
        self.dead().dropped
    }

    /// Puts a dead letter back among those to be sent, and gives whether that was done here: somebody else may be at it, or quicker. Written there
    /// before it goes here, so that it is never nowhere.
    pub(super) fn revive(&self, letter: &Letter) -> io::Result<bool> {
        let Some(_claim) = self.claim(letter)? else { return Ok(false) };
        if self.tree.look(&format!("{DEAD}/{}", letter.name()))?.is_none() {
            return Ok(false);
        }
        self.put(letter)?;
        self.take_dead(&letter.name());
        Ok(true)
    }
}

impl Dead {
    fn load(tree: &dyn Tree) -> io::Result<Self> {
        let dropped = tree.read(DROPPED, NOTIFY_FILE_BYTES_MAX).ok();
        let dropped = dropped.and_then(|(bytes, _)| serde_json::from_slice::<Value>(&bytes).ok());
        let dropped = dropped.and_then(|value| value["dropped"].as_u64()).unwrap_or(0);
        Ok(Dead { names: tree.list(DEAD)?.into_iter().collect(), dropped })
    }
}

/// The notifications that were given up, oldest first. Needs no notifier: whoever may look at the data directory may look at them.
pub fn dead_letters(tree: &dyn Tree) -> io::Result<Vec<DeadLetter>> {
    let mut names = tree.list(DEAD)?;
    names.sort();
    let read = |name: &String| tree.read(&format!("{DEAD}/{name}"), NOTIFY_FILE_BYTES_MAX).ok();
    let letters = names.iter().take(2 * NOTIFY_DEAD_MAX).filter_map(read);
    Ok(letters.filter_map(|(bytes, _)| DeadLetter::from_file(&bytes)).collect())
}

/// Removes what was being made, and the names of what was being sent, when whoever did it died.
fn clear_unfinished(tree: &dyn Tree) -> io::Result<()> {
    for name in tree.list(SENDING)? {
        let path = format!("{SENDING}/{name}");
        let Ok(Some(Found::File(stamp))) = tree.look(&path) else { continue };
        let age_ns = tree.now_ns().saturating_sub(stamp.modified_ns);
        if u128::try_from(age_ns).unwrap_or(0) <= NOTIFY_UNFINISHED_WAIT.as_nanos() {
            continue;
        }
        if name.ends_with(".tmp") {
            let _ = tree.remove(&path);
        } else {
            // A name that nobody has goes when it is given back.
            drop(tree.claim(&path));
        }
    }
    Ok(())
}

/// Gives a path another content in one step.
fn replace(tree: &dyn Tree, path: &str, bytes: &[u8]) -> io::Result<()> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let beside = format!("{SENDING}/{}", unfinished_name(name));
    tree.create(&beside, bytes)?;
    match tree.rename(&beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let exchanged = tree.exchange(&beside, path);
            if exchanged.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                // Somebody took it away in between.
                return tree.rename(&beside, path);
            }
            exchanged?;
            tree.remove(&beside)
        }
        renamed => renamed,
    }
}
