//! What lies in the place of a file or directory of Baton's own: said, and moved aside.

use baton_store::Layout;
use baton_store::lock::OwnerLock;
use baton_store::tasks::obstacles;

use super::{Status, Verdict};
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::limits::CLEAR_ROUNDS_MAX;
use crate::notices::tree;

/// One verdict for each thing that is in the way.
pub(super) fn check(layout: &Layout) -> Vec<Verdict> {
    let Ok(tree) = tree(layout) else { return Vec::new() };
    let verdict = |obstacle: &obstacles::Obstacle| {
        let status = if obstacle.stops_writing() { Status::Fail } else { Status::Warn };
        Verdict::new("places", status, obstacle.at(layout.root()).to_string()).fix("baton doctor --fix")
    };
    obstacles::all(&tree).iter().map(verdict).collect()
}

/// Moves everything that is in the way into `quarantine/`, and says so. What belongs in its place is made again by whoever opens next.
pub(super) fn clear(ctx: &Context, layout: &Layout, done: &mut Vec<String>) -> Result<(), Stop> {
    let tree = tree(layout)?;
    if obstacles::all(&tree).is_empty() {
        return Ok(());
    }
    // The owner itself has the lock already.
    let _lock = match ctx.is_served() {
        true => None,
        false => Some(OwnerLock::acquire(layout, ctx.lock_wait()?).map_err(CliError::from)?),
    };
    // What is behind one is found once it is gone.
    for _ in 0..CLEAR_ROUNDS_MAX {
        let found = obstacles::all(&tree);
        if found.is_empty() {
            return Ok(());
        }
        for obstacle in found {
            let path = layout.root().join(&obstacle.path);
            let name = obstacle.clear(&tree).map_err(|error| CliError::io("move aside", &path, &error))?;
            let kept = layout.quarantine().join(name);
            done.push(format!("{} was moved to {}", obstacle.at(layout.root()), kept.display()));
        }
    }
    match obstacles::all(&tree).first() {
        Some(obstacle) => Err(CliError::in_the_way(Code::Io, &obstacle.at(layout.root()))
            .cause("it was moved aside, and something was put there again each time")
            .into()),
        None => Ok(()),
    }
}
