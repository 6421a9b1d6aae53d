//! Beats that are too small a step to be recorded: they keep a lease alive all the same, and die with their file.

use baton_core::TaskId;
use baton_core::task::decide::{Holder, New};
use baton_core::task::{Refusal, Status};
use baton_runtime::{Engine, Fault};
use baton_store::History as _;
use baton_testkit::builders::agent;

use crate::world::World;

fn claimed(engine: &Engine) -> (TaskId, Holder) {
    let mut new = New::titled("long work");
    new.status = Status::Ready;
    let id = engine.create(&new).unwrap().0.id;
    let claimed = engine.claim(&id, &agent("ada"), None, None).unwrap();
    let holder =
        Holder { task: id.clone(), agent: agent("ada"), fence: claimed.lease.fence, beaten_until: None };
    (id, holder)
}

const SECOND_MS: i64 = 1000;

#[test]
fn a_beat_that_is_not_recorded_still_counts_for_everyone() {
    let world = World::new(1);
    let (journal, engine) = world.open("beats");
    let engine = engine.unwrap();
    let (id, holder) = claimed(&engine);
    world.clock.advance_ms(60 * SECOND_MS);
    let before = journal.size();
    engine.beat(&holder).unwrap();
    assert_eq!(journal.size(), before, "a step of a minute of five is not recorded");
    // Past what the ledger knows, within what the beat promised.
    world.clock.advance_ms(290 * SECOND_MS);
    assert_eq!(engine.tick().unwrap().acted, []);
    let refused = engine.claim(&id, &agent("bob"), None, None).unwrap_err();
    assert!(matches!(refused, Fault::Refused(Refusal::Held { .. })), "{refused}");
    engine.beat(&holder).unwrap();
    assert!(journal.size() > before, "a larger step is");
    world.clock.advance_ms(299 * SECOND_MS);
    assert_eq!(engine.tick().unwrap().acted, []);
    world.clock.advance_ms(SECOND_MS);
    assert_eq!(engine.tick().unwrap().acted, std::slice::from_ref(&id), "acted on at the very moment");
    let refused = engine.beat(&holder).unwrap_err();
    assert!(matches!(refused, Fault::Refused(Refusal::LostLease { .. })), "{refused}");
}

#[test]
fn the_scheduler_knows_when_an_unrecorded_beat_runs_out() {
    let world = World::new(2);
    let (_journal, engine) = world.open("beats");
    let engine = engine.unwrap();
    let (_, holder) = claimed(&engine);
    world.clock.advance_ms(60 * SECOND_MS);
    let until = engine.beat(&holder).unwrap();
    world.clock.advance_ms(245 * SECOND_MS);
    assert_eq!(engine.tick().unwrap().next, Some(until));
}
