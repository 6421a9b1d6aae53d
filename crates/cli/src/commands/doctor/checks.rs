//! What the doctor looks at. Reads only.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use baton_core::limits::CLOCK_SKEW_MS_MAX;
use baton_core::{KeyId, Timestamp};
use baton_ledger::merkle::Frontier;
use baton_ledger::record::Line;
use baton_runtime::tools::{Walled, wall_report};
use baton_store::disk::Mode;
use baton_store::journal::index::Index;
use baton_store::journal::recover::{self, Tail};
use baton_store::journal::segments;
use baton_store::keys::{self, KeyStore};
use baton_store::tasks::tree::Tree as _;
use baton_store::{History as _, Layout, OpenError, Visit, clock, lock, registry};

use super::{Status, Verdict, agents, places, tasks};
use crate::context::{Activity, Context, disk, visit};
use crate::limits::DISK_FREE_MIN;
use crate::notices::tree;
use crate::ui::shell;
use crate::ui::text::{bytes, count};
use crate::ui::time::{ago, duration};

/// Every check, in the order in which they matter. One that finds several things wrong says each on its own.
pub(super) fn run(ctx: &Context, layout: &Layout) -> Vec<Verdict> {
    let opened = visit(layout);
    let mut verdicts = vec![config(ctx, layout), ledger(layout, &opened)];
    if let Ok(visit) = &opened {
        verdicts.extend([checkpoint(visit), index(layout, visit)]);
        verdicts.extend(keys(ctx, visit));
        verdicts.push(clock(visit));
    }
    verdicts.extend(permissions(ctx, layout, opened.as_ref().ok()));
    verdicts.extend([disk_space(layout), locks(layout), quarantine(layout), wall()]);
    verdicts.extend(places::check(layout));
    verdicts.extend(agents::checks(ctx, layout));
    if let Ok(visit) = opened {
        verdicts.extend(tasks::checks(layout, visit));
    }
    verdicts
}

fn config(ctx: &Context, layout: &Layout) -> Verdict {
    match ctx.options(layout.root()) {
        Ok(options) => {
            let detail = format!(
                "durability {}, segments of {}, a checkpoint every {}",
                options.durability.as_str(),
                bytes(options.segment_bytes),
                count(options.checkpoint_every, "event")
            );
            Verdict::new("config", Status::Ok, detail)
        }
        Err(error) => {
            let place = error.causes.first().map(|place| format!(" ({place})")).unwrap_or_default();
            let verdict = Verdict::new("config", Status::Fail, format!("{}{place}", error.what));
            // The value may be the user's own, or come from a variable.
            let file = error.causes.first().and_then(|place| place.rsplitn(3, ':').nth(2));
            match (file, error.hint) {
                (Some(file), _) => verdict.advice(format!("edit {}", shell::word(file))),
                (None, Some(hint)) if hint.starts_with("unset ") => verdict.fix(hint),
                (None, Some(hint)) => verdict.see(hint),
                (None, None) => verdict,
            }
        }
    }
}

fn ledger(layout: &Layout, opened: &Result<Visit, OpenError>) -> Verdict {
    let verify = format!("baton verify {}", shell::path(layout.root()));
    let visit = match opened {
        Err(error @ OpenError::Cut { .. }) => {
            return Verdict::new("ledger", Status::Fail, error.to_string()).see("baton explain L005");
        }
        Err(error) => return Verdict::new("ledger", Status::Fail, error.to_string()).see(verify),
        Ok(visit) => visit,
    };
    let firsts = segments::list(&*disk(), layout).unwrap_or_default();
    let whole =
        format!("{} in {}", count(visit.reader.size(), "event"), count(firsts.len() as u64, "segment"));
    let unfinished = segments::unfinished(&*disk(), layout).unwrap_or_default();
    let is_in_use = Activity::observe(layout).has_owner();
    match &visit.reader.tail {
        Tail::Damaged { line, why } => {
            let detail = format!("{whole}, then line {line} does not fit: {why}");
            Verdict::new("ledger", Status::Fail, detail).see(verify)
        }
        Tail::Torn { why, .. } if !is_in_use => {
            let detail = format!("{whole}, then a write that was cut off: {why}");
            Verdict::new("ledger", Status::Warn, detail).fix("baton doctor --fix")
        }
        Tail::Clean | Tail::Filled if !unfinished.is_empty() && !is_in_use => {
            let detail = format!("{whole}, and a segment that was never finished: {}", unfinished.join(", "));
            Verdict::new("ledger", Status::Warn, detail).fix("baton doctor --fix")
        }
        // Opening reads the end and believes the index about the rest; only the verifier reads every line.
        Tail::Clean | Tail::Filled | Tail::Torn { .. } => {
            let detail = format!("it opens: {whole}; that no event was altered is checked by `{verify}`");
            Verdict::new("ledger", Status::Ok, detail)
        }
    }
}

/// Whether the last kept checkpoint agrees with the tree.
fn checkpoint(visit: &Visit) -> Verdict {
    let fail = |detail: String| Verdict::new("checkpoint", Status::Fail, detail).see("baton verify");
    let size = match visit.notes.sizes() {
        Ok(sizes) => sizes.into_iter().rfind(|size| *size <= visit.reader.size()),
        Err(error) => return fail(error.to_string()),
    };
    let Some(size) = size else { return Verdict::new("checkpoint", Status::Ok, "none is kept yet") };
    let ledger = visit.reader.ledger();
    let (checkpoint, note) = match visit.notes.checkpoint(size) {
        Ok(Ok(read)) => read,
        Ok(Err(why)) => return fail(format!("the one at {size} does not read: {why}")),
        Err(error) => return fail(format!("the one at {size} does not read: {error}")),
    };
    if let Err(error) = note.check(&ledger.origin, &ledger.key) {
        return fail(format!("the one at {size} is not this ledger's: {error}"));
    }
    match Frontier::load(size, &mut |index| visit.reader.node(index)) {
        Ok(tree) if tree.root() == checkpoint.root => {
            let since = visit.reader.size() - size;
            let since = count(since, "event");
            let detail = format!("the one at {size} agrees with the index, {since} since");
            Verdict::new("checkpoint", Status::Ok, detail)
        }
        Ok(_) => fail(format!("the first {size} events are not those that were signed")),
        Err(error) => fail(error.to_string()),
    }
}

fn index(layout: &Layout, visit: &Visit) -> Verdict {
    let warn = |detail: String| Verdict::new("index", Status::Warn, detail).fix("baton doctor --fix");
    let size = visit.reader.size();
    let key = visit.reader.ledger().key;
    let Some(index) = Index::load(&*disk(), layout.index(), &key, Mode::Read) else {
        let is_there = layout.index().join("meta").exists();
        return warn(
            if is_there {
                "it does not read; every command reads the whole journal instead"
            } else {
                "it is missing; every command reads the whole journal instead"
            }
            .to_owned(),
        );
    };
    match recover::open(&disk(), layout, Mode::Read) {
        Ok(opened) if opened.is_rebuilt => {
            warn("it does not agree with the journal and is not used".to_owned())
        }
        _ if index.check().is_err() => warn("an entry or a node of its tree does not check".to_owned()),
        _ if index.count() < size && !Activity::observe(layout).has_owner() => {
            let behind = count(size - index.count(), "event");
            Verdict::new("index", Status::Ok, format!("behind by {behind}; the next writer catches up"))
        }
        _ => Verdict::new("index", Status::Ok, format!("covers {}", count(index.count(), "event"))),
    }
}

/// One verdict for each private key that cannot be used or is open to others.
fn keys(ctx: &Context, visit: &Visit) -> Vec<Verdict> {
    let fail = |detail: String| Verdict::new("keys", Status::Fail, detail);
    let ledger = visit.reader.ledger();
    let store = match ctx.state_dir() {
        Ok(dir) => KeyStore::new(&dir, &ledger.origin),
        Err(error) => return vec![fail(error.what)],
    };
    let mut found = Vec::new();
    match store.load(ledger.key.id()) {
        // What is open to others is listed below, whosever key it is.
        Ok(_) | Err(keys::Error::Exposed { .. }) => {}
        Err(error @ keys::Error::Missing { .. }) => {
            let detail = format!("{error}: nothing can be signed or appended here");
            found.push(fail(detail).see("baton explain L007"));
        }
        Err(error) => found.push(fail(error.to_string()).see("baton explain L009")),
    }
    let agents = registry::agent_keys(&visit.reader).unwrap_or_default();
    for key in kept(&store).into_iter().filter(|key| *key != ledger.key.id()) {
        let Err(error) = store.load(key) else { continue };
        if matches!(error, keys::Error::Exposed { .. }) {
            continue;
        }
        let owner = agents.iter().find(|agent| agent.public.id() == key);
        let verdict = match owner {
            Some(owner) if owner.is_valid => fail(format!("the key of agent {}: {error}", owner.agent)),
            Some(owner) => {
                let detail = format!("a former key of agent {}: {error}", owner.agent);
                Verdict::new("keys", Status::Warn, detail)
            }
            None => Verdict::new("keys", Status::Warn, format!("a key of nobody's: {error}")),
        };
        found.push(verdict.see("baton explain L009"));
    }
    match store.exposed() {
        Ok(mut exposed) => {
            exposed.sort_unstable();
            found.extend(exposed.iter().map(|(path, mode)| {
                fail(format!("{} is open to others (mode {mode:o})", path.display()))
                    .fix("baton doctor --fix")
            }));
        }
        // That the ledger's key is not there has been said.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !found.is_empty() => {}
        Err(error) => found.push(fail(format!("{}: {error}", store.dir().display()))),
    }
    if found.is_empty() {
        let detail = format!("the ledger's key is in {}", store.dir().display());
        found.push(Verdict::new("keys", Status::Ok, detail));
    }
    found
}

/// The keys that files are named after, in order.
fn kept(store: &KeyStore) -> Vec<KeyId> {
    let names = baton_store::disk::Disk::list(&*disk(), store.dir()).unwrap_or_default();
    let mut keys: Vec<KeyId> =
        names.iter().filter_map(|name| name.strip_suffix(".key")?.parse().ok()).collect();
    keys.sort_unstable();
    keys
}

/// One verdict for each directory that cannot be written or that others can enter.
fn permissions(ctx: &Context, layout: &Layout, opened: Option<&Visit>) -> Vec<Verdict> {
    let warn = |detail: String| Verdict::new("permissions", Status::Warn, detail);
    let mut found = Vec::new();
    let dirs = [layout.root().to_owned(), layout.events(), layout.artifacts(), layout.index()];
    for dir in dirs.iter().filter(|dir| dir.exists()) {
        if let Err(error) = rustix::fs::access(dir, rustix::fs::Access::WRITE_OK) {
            found.push(warn(format!("{} cannot be written: {error}; it can only be read", dir.display())));
        }
    }
    let state_dir = match ctx.state_dir() {
        Ok(dir) => dir,
        Err(error) => {
            found.push(warn(error.what));
            return found;
        }
    };
    match mode(&state_dir) {
        Some(mode) if mode & 0o077 != 0 => {
            let detail = format!("{} is open to others (mode {mode:o})", state_dir.display());
            found.push(warn(detail).fix("baton doctor --fix"));
        }
        Some(_) => {}
        None => found.push(warn(format!("{} is missing", state_dir.display()))),
    }
    if found.is_empty() {
        let exposed = opened.map(|visit| KeyStore::new(&state_dir, &visit.reader.ledger().origin).exposed());
        let are_private = matches!(exposed, Some(Ok(exposed)) if exposed.is_empty());
        let detail =
            if are_private { "data can be written, secrets are private" } else { "data can be written" };
        found.push(Verdict::new("permissions", Status::Ok, detail));
    }
    found
}

/// The permission bits of a path, where it exists.
pub(super) fn mode(path: &Path) -> Option<u32> {
    Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

fn disk_space(layout: &Layout) -> Verdict {
    match rustix::fs::statvfs(layout.root()) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let status = if free < DISK_FREE_MIN { Status::Warn } else { Status::Ok };
            let verdict = Verdict::new("disk", status, format!("{} free", bytes(free)));
            if status == Status::Ok {
                verdict
            } else {
                verdict.see(format!("df -h {}", shell::path(layout.root())))
            }
        }
        Err(error) => Verdict::new("disk", Status::Warn, error.to_string()),
    }
}

/// The year in which this was written; a clock before it is wrong.
const CLOCK_MIN: &str = "2025-01-01T00:00:00.000Z";
const CLOCK_MAX: &str = "2100-01-01T00:00:00.000Z";

fn clock(visit: &Visit) -> Verdict {
    let now = clock::now();
    let is_past = |text: &str| text.parse::<Timestamp>().is_ok_and(|limit| now >= limit);
    if !is_past(CLOCK_MIN) || is_past(CLOCK_MAX) {
        let detail = format!("it says {now}, which is not plausible");
        return Verdict::new("clock", Status::Warn, detail).advice("set the system's clock");
    }
    let last = visit.reader.read(visit.reader.size(), 1).ok();
    let last = last.as_ref().and_then(|lines| Some(Line::parse(lines.first()?.text.as_bytes()).ok()?.at));
    match last {
        Some(at) if at.unix_ms() - now.unix_ms() > CLOCK_SKEW_MS_MAX => {
            let ahead = duration((at.unix_ms() - now.unix_ms()).unsigned_abs() / 1000);
            let detail = format!("the last event is {ahead} in the future; the clock was or is wrong");
            Verdict::new("clock", Status::Warn, detail).advice("set the system's clock")
        }
        Some(at) => {
            Verdict::new("clock", Status::Ok, format!("plausible; the last event was {}", ago(at, now)))
        }
        None => Verdict::new("clock", Status::Ok, "plausible"),
    }
}

fn locks(layout: &Layout) -> Verdict {
    match lock::holder(layout) {
        Ok(None) => Verdict::new("lock", Status::Ok, "free"),
        Ok(Some(owner)) => {
            let detail = format!("held by process {} ({}), which is alive", owner.pid, owner.command);
            Verdict::new("lock", Status::Ok, detail)
        }
        Err(error) => Verdict::new("lock", Status::Warn, error.to_string()),
    }
}

fn quarantine(layout: &Layout) -> Verdict {
    // Never through a link in its place, which has a verdict of its own.
    match tree(layout).map(|tree| tree.list("quarantine")) {
        Ok(Ok(names)) if names.is_empty() => Verdict::new("quarantine", Status::Ok, "empty"),
        Ok(Ok(names)) => {
            let files = count(names.len() as u64, "file");
            let detail = format!("{files} set aside in {}", layout.quarantine().display());
            Verdict::new("quarantine", Status::Ok, detail)
                .see(format!("ls -l {}", shell::path(&layout.quarantine())))
        }
        Ok(Err(error)) => Verdict::new("quarantine", Status::Warn, error.to_string()),
        Err(error) => Verdict::new("quarantine", Status::Warn, error.what),
    }
}

/// What keeps the programs that tools run in their workspace.
fn wall() -> Verdict {
    match wall_report() {
        Walled::Landlock(abi) => Verdict::new(
            "wall",
            Status::Ok,
            format!("programs of tools are held by Landlock (version {abi})"),
        ),
        Walled::None(why) => {
            let detail = format!("programs of tools run with all of your rights: {why}");
            Verdict::new("wall", Status::Warn, detail)
                .advice("use Linux 5.13 or newer with landlock among its security modules")
        }
    }
}
