//! Sessions as the ledger has them: what they came to, and the ends of those that a death of Baton cut short.

use std::io;
use std::path::Path;

use baton_core::Timestamp;
use baton_core::ids::{AgentName, SessionId, TaskId, TraceId};
use baton_core::protocol::exit_signal::ExitSignal;
use baton_core::session::{EndReason, Ended, ProcessEnd, SessionEndedData, SessionEvent, View};
use baton_core::task::Status;
use baton_core::task::decide::{Ending, SessionEnded};
use baton_ledger::record::Line;
use baton_store::tasks::fold::LINES_AT_ONCE;
use baton_store::{History, ReadError};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value};

use super::actor::object;
use super::actor::state_event;
use super::broker::{live_dir, tmp_of, token, unmark_live};
use super::listing::ids_in;
use super::recorder::{Bound, Recorder};
use super::snapshot::Snapshot;
use super::spawning::SESSION_VARIABLE;
use crate::conduct::give_up;
use crate::engine::{Engine, Fault, From};
use crate::limits::OUTLIVED_GRACE;
use crate::process::end_leftovers;
use crate::work::{ending_of, sweep_homes};

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
    records(history, snapshot, &mut |line, kind, fields| {
        if let Some(Ok(event)) = SessionEvent::read(kind, fields) {
            each(line.at, &event);
        }
    })
}

/// Gives every state event of a session as whoever followed it got it, in order.
pub fn state_events(
    history: &dyn History,
    snapshot: &Snapshot,
    each: &mut dyn FnMut(Value),
) -> Result<(), ReadError> {
    records(history, snapshot, &mut |line, kind, fields| {
        if let Some(Ok(event)) = SessionEvent::read(kind, fields) {
            each(state_event(snapshot.id, &line.id.to_string(), line.at, &event));
        }
    })
}

/// The end of a session as the ledger has it, where it has one: Baton may have died before that was kept elsewhere.
fn recorded_end(
    history: &dyn History,
    snapshot: &Snapshot,
) -> Result<Option<(Timestamp, SessionEndedData)>, ReadError> {
    let mut end = None;
    records(history, snapshot, &mut |line, kind, fields| {
        let at = line.at;
        if kind == ENDED && end.is_none() {
            let data = serde_json::from_value(Value::Object(fields.clone()));
            end = data.ok().map(|data| (at, data));
        }
    })?;
    Ok(end)
}

/// The type of the event that a session ends with.
const ENDED: &str = "session.ended";

/// Takes when something was, what it is called, and what it says.
type Take<'a> = &'a mut dyn FnMut(&Line<'_>, &str, &Map<String, Value>);

/// Gives everything that the ledger has of a session beside its framing, in order.
fn records(history: &dyn History, snapshot: &Snapshot, each: Take<'_>) -> Result<(), ReadError> {
    let mut take = |trace: TraceId| -> Result<(), ReadError> {
        let (session, mut seq) = (snapshot.id.to_string(), 1);
        loop {
            let lines = history.read_trace(trace, seq, LINES_AT_ONCE)?;
            for stored in &lines {
                let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
                let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
                seq = line.seq + 1;
                let is_wanted = SessionEvent::TYPES.contains(&line.event_type) || line.event_type == ENDED;
                if line.session != Some(session.as_str()) || !is_wanted {
                    continue;
                }
                let payload = line.to_payload().map_err(damaged)?;
                if let baton_core::Payload::Other { event_type, fields } = &payload {
                    each(&line, event_type.as_str(), fields);
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
        // By its mark alone: also where nothing is known of it any more.
        end_leftovers(SESSION_VARIABLE, &id.to_string(), OUTLIVED_GRACE);
        let _ = std::fs::remove_dir_all(tmp_of(id));
        match Snapshot::load(&folder) {
            Ok(snapshot) => {
                let (task, agent) = (snapshot.task.clone(), snapshot.agent.clone());
                end_one(engine, snapshot, &folder)?;
                if let Some(task) = task {
                    engine.put_back(vec![told(engine, &task, &agent)?]);
                }
                seen.push(id);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // It may read the next time.
            Err(_) => continue,
        }
        unmark_live(dir, id);
    }
    sweep_homes();
    // A death between the end of a session and the judgement leaves a lease that nobody works under.
    let orphans = engine.look(|board| {
        let held =
            board.with_status(Status::InProgress).filter_map(|task| Some((task, task.lease.as_ref()?)));
        let ours = held.filter_map(|(task, lease)| {
            let id: SessionId = lease.session.as_ref()?.as_str().parse().ok()?;
            Some((id, Bound { task: task.id.clone(), run: lease.run, fence: lease.fence, trace: task.trace }))
        });
        ours.collect::<Vec<(SessionId, Bound)>>()
    })?;
    for (id, bound) in orphans {
        let folder = dir.join(id.to_string());
        match Snapshot::load(&folder) {
            Ok(snapshot) => end_one(engine, snapshot, &folder)?,
            // It was claimed for a session that never began.
            Err(error) if error.kind() == io::ErrorKind::NotFound => give_up(engine, &bound, BATON_DIED)?,
            Err(_) => {}
        }
    }
    Ok(seen)
}

/// What somebody should know of a task whose agent died with Baton.
fn told(engine: &Engine, task: &TaskId, agent: &AgentName) -> Result<String, Fault> {
    let now = engine.ground().clock.now();
    let found = engine.look(|board| board.get(task).map(|task| (task.status, task.not_before)))?;
    let (status, not_before) = found.unzip();
    let wait = not_before.flatten().map_or(0, |at| (at.unix_ms() - now.unix_ms()).max(0) / 1000);
    let status = status.map_or_else(String::new, |status| format!("; it is in {status}"));
    let wait = if wait > 0 { format!(" and is handed out in {wait} s") } else { String::new() };
    Ok(format!("{task}: agent {agent} was cut short by the end of Baton{status}{wait}"))
}

/// A signal that the agent wrote stands, also where Baton died before it was submitted. One that does not fit changes nothing.
fn submit_signal(engine: &Engine, snapshot: &Snapshot, bound: &Bound) -> Result<(), Fault> {
    let signal = snapshot.signal.as_deref().and_then(|text| ExitSignal::from_json(text).ok());
    let Some(signal) = signal.filter(|_| !snapshot.is_by_person) else { return Ok(()) };
    let (session, agent) = (token(snapshot.id), Some(snapshot.agent.clone()));
    match engine.submit(&bound.task, &From { session, agent, fence: Some(bound.fence) }, &signal) {
        Ok(_) | Err(Fault::Refused(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
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
    if snapshot.ended.is_none()
        && let Some((at, data)) = recorded_end(&*ground.journal, &snapshot)?
    {
        (snapshot.ended, snapshot.ended_at) = (Some(data), Some(at));
        snapshot.save(folder).map_err(Fault::files(folder.display().to_string()))?;
    }
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
        recorder.note(ENDED, fields, ground.clock.moment())?;
        recorder.close(data.reason.as_str(), ground.clock.moment())?;
        (snapshot.ended, snapshot.ended_at) = (Some(data), Some(ground.clock.now()));
        snapshot.is_cut_short = true;
        snapshot.continued = (recorder.trace() != snapshot.trace).then(|| recorder.trace());
        snapshot.save(folder).map_err(Fault::files(folder.display().to_string()))?;
    }
    let Some(bound) = bound else { return Ok(()) };
    submit_signal(engine, &snapshot, &bound)?;
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
