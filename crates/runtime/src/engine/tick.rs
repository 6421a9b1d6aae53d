//! What is due: leases and heartbeats that ran out, tasks that waited for others. Does work for those alone.

use baton_core::protocol::CompletionReport;
use baton_core::task::Task;
use baton_core::task::decide::{FoundResult, RunEnded};
use baton_core::task::event::Completed;
use baton_core::{TaskId, Timestamp};
use baton_ledger::hash::sha256;

use super::{Engine, Fault, State};

/// What a round did, and when the next one is due.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ticked {
    /// Tasks that were acted on.
    pub acted: Vec<TaskId>,
    pub next: Option<Timestamp>,
}

/// Tasks that are made ready in one decision.
const PROMOTED_AT_ONCE: usize = 128;

impl Engine {
    /// Does everything that is due now.
    pub fn tick(&self) -> Result<Ticked, Fault> {
        let mut state = self.lock();
        self.tick_locked(&mut state)
    }

    pub(super) fn tick_locked(&self, state: &mut State) -> Result<Ticked, Fault> {
        self.catch_up(state)?;
        let now = self.now();
        let mut ticked = Ticked::default();
        let due: Vec<TaskId> = state.board.due(now).cloned().collect();
        for id in due {
            if self.expire(state, &id)? {
                ticked.acted.push(id);
            }
        }
        while state.board.promotable().next().is_some() {
            let moment = self.ground.clock.moment();
            ticked.acted.extend(state.board.promotable().take(PROMOTED_AT_ONCE).cloned());
            let promote = |board: &baton_core::task::Board, _: &super::Settings| {
                Ok(((), board.promote(PROMOTED_AT_ONCE, moment)))
            };
            self.act(state, promote)?;
        }
        for id in std::mem::take(&mut state.behind) {
            state.behind.insert(id.clone());
            self.project(state, &id);
        }
        let unfinished = state.unfinished.iter().filter(|(_, at)| **at <= now);
        for id in unfinished.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            state.unfinished.remove(&id);
            self.look_at_unfinished(state, &id)?;
        }
        ticked.next = self.next_due(state, now);
        Ok(ticked)
    }

    fn next_due(&self, state: &State, now: Timestamp) -> Option<Timestamp> {
        let beaten = state.board.due(now).filter_map(|id| state.beats.get(id)).min().copied();
        let unfinished = state.unfinished.values().min().copied();
        [beaten, state.board.next_after(now), unfinished].into_iter().flatten().min()
    }

    /// Looks at a run whose time is over, again at this very moment.
    fn expire(&self, state: &mut State, id: &TaskId) -> Result<bool, Fault> {
        let Some(task) = state.board.get(id).cloned() else { return Ok(false) };
        let Some(run) = task.live_run().map(|run| run.id) else { return Ok(false) };
        let beat = self.files.heartbeat(id, run);
        // A beat that was too small a step to be recorded still counts.
        let lease = task.lease.as_ref();
        let beaten_until =
            beat.zip(lease).map(|(beat, lease)| lease.beaten_until(beat.until, beat.lease_until));
        if let Some(until) = beaten_until.filter(|until| *until > self.now()) {
            state.beats.insert(id.clone(), until);
            return Ok(false);
        }
        state.beats.remove(id);
        let ended = RunEnded { task: id.clone(), beaten_until, result: self.found_result(&task) };
        let moment = self.ground.clock.moment();
        let (has_acted, _) = self.act(state, |board, settings| {
            let decided = board.expire(&ended, settings.rules, moment);
            Ok((decided.is_some(), decided.unwrap_or_default()))
        })?;
        Ok(has_acted)
    }

    /// What a run left in its result file without saying so.
    pub(super) fn found_result(&self, task: &Task) -> Option<FoundResult> {
        let lease = task.lease.as_ref()?;
        if task.said.report.is_some() {
            return None;
        }
        let bytes = match self.files.result_file(&task.id)? {
            Ok(bytes) => bytes,
            Err(error) => {
                let detail = error.to_string();
                return Some(FoundResult::Bad { digest: sha256(detail.as_bytes()), detail });
            }
        };
        let digest = sha256(&bytes);
        let bad = |detail: String| Some(FoundResult::Bad { digest, detail });
        let result = match CompletionReport::from_result_json(&bytes) {
            Ok(result) => result,
            Err(rejection) => return bad(rejection.to_string()),
        };
        if result.task != task.id {
            return bad(format!("taskId: expected {}, got {}", task.id, result.task));
        }
        if result.agent != lease.agent {
            return bad(format!("agentId: expected {}, got {}", lease.agent, result.agent));
        }
        let is_of_run = result.run.is_none_or(|run| run == lease.run);
        if !is_of_run || result.fence.is_some_and(|fence| fence != lease.fence) {
            // A result of another run is never applied; it is no nonsense either.
            return None;
        }
        Some(FoundResult::Report(Box::new(Completed {
            agent: result.agent,
            run_id: Some(lease.run),
            fence: lease.fence,
            outcome: result.report.outcome,
            digest,
            report: result.report.fields(),
            handoff_ref: result.handoff_ref,
        })))
    }
}
