//! Sessions as the ledger has them: what they came to, and the ends of those that a death of Baton cut short.

use std::path::Path;

use baton_core::Timestamp;
use baton_core::ids::{SessionId, TraceId};
use baton_core::session::{EndReason, Ended, ProcessEnd, SessionEvent, View};
use baton_core::task::Status;
use baton_core::task::decide::{Ending, SessionEnded};
use baton_ledger::record::Line;
use baton_store::tasks::fold::LINES_AT_ONCE;
use baton_store::{History, ReadError};
use rustix::process::{Pid, Signal, kill_process_group};

use super::actor::object;
use super::broker::{ids_in, live_dir, tmp_of, unmark_live};
use super::recorder::{Bound, Recorder};
use super::snapshot::Snapshot;
use super::spawning::SESSION_VARIABLE;
use crate::engine::{Engine, Fault};
use crate::limits::OUTLIVED_GRACE;
use crate::process::end_leftovers;
use crate::work::ending_of;

/// The cause of an attempt that ended because Baton did.
pub const BATON_DIED: &str = "baton_died";

/// A session as its events make it: the same before and after a restart.
pub fn view(history: &dyn History, snapshot: &Snapshot) -> Result<View, ReadError> {
    let mut view = View::default();
    events(history, snapshot, &mut |_, event| view.apply(event))?;
    Ok(view)
}

/// Gives every event of a session, in order, and when it was.
pub fn events(
    history: &dyn History,
    snapshot: &Snapshot,
    each: &mut dyn FnMut(Timestamp, &SessionEvent),
) -> Result<(), ReadError> {
    let mut take = |trace: TraceId| -> Result<(), ReadError> {
        let (session, mut seq) = (snapshot.id.to_string(), 1);
        loop {
            let lines = history.read_trace(trace, seq, LINES_AT_ONCE)?;
            for stored in &lines {
                let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
                let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
                seq = line.seq + 1;
                if line.session != Some(session.as_str()) || !SessionEvent::TYPES.contains(&line.event_type) {
                    continue;
                }
                let payload = line.to_payload().map_err(damaged)?;
                if let baton_core::Payload::Other { event_type, fields } = &payload
                    && let Some(Ok(event)) = SessionEvent::read(event_type.as_str(), fields)
                {
                    each(line.at, &event);
                }
            }
            if lines.len() < LINES_AT_ONCE {
                return Ok(());
            }
        }
    };
    take(snapshot.trace)?;
    snapshot.continued.map_or(Ok(()), &mut take)
}

/// Sees to the sessions that were live when Baton died: their processes are ended, their ends recorded, their tasks judged. Gives their ids.
///
/// For whoever has just come to own the data directory: nothing of theirs runs yet.
pub fn recover(engine: &Engine, dir: &Path) -> Result<Vec<SessionId>, Fault> {
    let mut seen = Vec::new();
    for id in ids_in(&live_dir(dir)) {
        let folder = dir.join(id.to_string());
        if let Ok(snapshot) = Snapshot::load(&folder) {
            end_one(engine, snapshot, &folder)?;
            seen.push(id);
        }
        unmark_live(dir, id);
    }
    // A death between the end of a session and the judgement leaves a lease that nobody works under.
    let orphans = engine.look(|board| {
        let leases = board.with_status(Status::InProgress).filter_map(|task| task.lease.as_ref());
        leases.filter_map(|lease| lease.session.as_ref()?.as_str().parse().ok()).collect::<Vec<SessionId>>()
    })?;
    for id in orphans {
        let folder = dir.join(id.to_string());
        if let Ok(snapshot) = Snapshot::load(&folder) {
            end_one(engine, snapshot, &folder)?;
        }
    }
    Ok(seen)
}

fn end_one(engine: &Engine, mut snapshot: Snapshot, folder: &Path) -> Result<(), Fault> {
    let ground = engine.ground();
    let id = snapshot.id;
    let signal = |signal| {
        let process = snapshot.process.as_ref().filter(|process| process.is_alive(&ground.boot));
        let leader = process.and_then(|process| Pid::from_raw(i32::try_from(process.pid).ok()?));
        // One that is gone needs nothing more.
        leader.map(|leader| kill_process_group(leader, signal));
    };
    signal(Signal::TERM);
    end_leftovers(SESSION_VARIABLE, &id.to_string(), OUTLIVED_GRACE);
    signal(Signal::KILL);
    let _ = std::fs::remove_dir_all(tmp_of(id));
    let bound = snapshot
        .task
        .clone()
        .zip(snapshot.run)
        .zip(snapshot.fence)
        .map(|((task, run), fence)| Bound { task, run, fence, trace: snapshot.trace });
    if snapshot.ended.is_none() {
        let view = view(&*ground.journal, &snapshot)?;
        let trace = snapshot.continued.unwrap_or(snapshot.trace);
        let (journal, key) = (ground.journal.clone(), ground.ledger_key.clone());
        let recorder = Recorder::reopen(journal, key, id, bound.clone(), trace);
        let mut ended = Ended::new(ProcessEnd::Lost("Baton ended before it did".to_owned()));
        ended.is_asked = true;
        let data = ended.classify();
        recorder.record(&view.abandon(ground.clock.moment()))?;
        let fields = serde_json::to_value(&data).map(object).unwrap_or_default();
        recorder.note("session.ended", fields, ground.clock.moment())?;
        recorder.close(data.reason.as_str(), ground.clock.moment())?;
        (snapshot.ended, snapshot.ended_at) = (Some(data), Some(ground.clock.now()));
        snapshot.is_cut_short = true;
        snapshot.continued = (recorder.trace() != snapshot.trace).then(|| recorder.trace());
        snapshot.save(folder).map_err(Fault::files(folder.display().to_string()))?;
    }
    let Some(bound) = bound else { return Ok(()) };
    let termination = serde_json::to_value(&snapshot.ended).unwrap_or_default();
    let ending = match snapshot.ended.as_ref().filter(|ended| ended.reason == EndReason::Error) {
        Some(ended) => ending_of(Some(ended)).0,
        None => Ending::Failed { cause: BATON_DIED.to_owned() },
    };
    let ended = SessionEnded {
        task: bound.task,
        run: bound.run,
        fence: bound.fence,
        ending,
        result: None,
        termination,
    };
    match engine.session_end(&ended) {
        // A task that is not there any more has no run.
        Ok(_) | Err(Fault::Refused(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}
