//! Hands ready tasks out: by priority and age, under limits, to whoever starts agents.

use baton_core::task::dispatch::{Assignment, Load, Willing};

use crate::engine::{Engine, Fault};

/// Starts agents on tasks.
///
/// What breaks if an implementation lies: if `load` leaves out what runs, more is started than the limits allow; if `start` returns before the task
/// is claimed, the same task is offered again in the next round.
pub trait Dispatcher: Send + Sync {
    /// Who can be given work.
    fn willing(&self) -> Vec<Willing>;
    /// What runs already.
    fn load(&self) -> Load;
    /// Claims the task for the agent and sets it to work; says whether that happened. A task that somebody else has taken meanwhile is no error.
    fn start(&self, assignment: &Assignment) -> Result<bool, Fault>;
}

/// One round: everything that may start now is started. Gives what was.
pub fn dispatch(engine: &Engine, dispatcher: &dyn Dispatcher) -> Result<Vec<Assignment>, Fault> {
    let (willing, load, now) = (dispatcher.willing(), dispatcher.load(), engine.now());
    if willing.is_empty() {
        return Ok(Vec::new());
    }
    let assignments = engine.look(|board| board.dispatch(&willing, &load, now))?;
    let mut started = Vec::new();
    for assignment in assignments {
        match dispatcher.start(&assignment) {
            Ok(true) => started.push(assignment),
            Ok(false) => {}
            // Somebody was quicker, or it changed meanwhile: the next round sees it as it is.
            Err(Fault::Refused(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(started)
}
