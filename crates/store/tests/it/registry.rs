//! Agents' keys: a key that ends, ends everywhere.

use baton_core::{Role, TraceId};
use baton_ledger::body::Body;
use baton_ledger::seal::{Checked, Refusal};
use baton_store::registry::{self, Error};
use baton_store::{AppendError, History as _, Journal as _, MemoryJournal};
use baton_testkit::builders::{agent, decision, event, identity, new_trace, secret};
use serde_json::json;

#[test]
fn a_key_that_is_revoked_while_its_first_use_is_prepared_does_not_live_on_in_that_trace() {
    let (key, signer, worker) = (secret(1), secret(2), agent("worker"));
    let journal = MemoryJournal::new(identity(&key), &key).unwrap();
    registry::bind(&journal, &key, &worker, signer.public(), &[Role::Executor]).unwrap();
    let registered = registry::agent_key(&journal, &worker).unwrap().unwrap();

    let trace = new_trace();
    let mut first_use = decision(Vec::new());
    registry::preface(&journal, &key, trace, &registered, &mut first_use).unwrap();
    let body = Body::signed(event(trace, "note", json!({})), &signer).unwrap();
    first_use.events.push(Checked::just_signed(body, &signer));

    registry::revoke(&journal, &key, &worker, "left").unwrap();
    let refused = journal.append(first_use).unwrap_err();
    assert!(
        matches!(refused, AppendError::Refused(Refusal::HeadMoved { trace: TraceId::Ledger, .. })),
        "{refused}"
    );
    assert_eq!(journal.trace(trace), None);
    let again = registry::preface(&journal, &key, trace, &registered, &mut decision(Vec::new()));
    assert!(matches!(again, Err(Error::NoKey(_))), "{again:?}");
}

#[test]
fn what_is_batons_own_is_bound_to_nobody_else() {
    let (key, signer) = (secret(1), secret(2));
    let journal = MemoryJournal::new(identity(&key), &key).unwrap();
    let bind = |name, role| registry::bind(&journal, &key, &agent(name), signer.public(), &[role]);
    assert!(matches!(bind("worker", Role::System), Err(Error::OwnRole)));
    assert!(matches!(bind("baton", Role::Executor), Err(Error::OwnName(_))));
    bind("worker", Role::Executor).unwrap();
    let rotated = registry::rotate(&journal, &key, &agent("worker"), secret(3).public(), &[Role::System]);
    assert!(matches!(rotated, Err(Error::OwnRole)));
}

#[test]
fn a_key_that_is_revoked_just_after_its_first_use_in_a_trace_ends_there_too() {
    let (key, worker) = (secret(1), agent("worker"));
    let journal = MemoryJournal::new(identity(&key), &key).unwrap();
    let rounds = 40;
    for round in 0..rounds {
        let signer = secret(10 + round);
        registry::bind(&journal, &key, &worker, signer.public(), &[Role::Executor]).unwrap();
        let registered = registry::agent_key(&journal, &worker).unwrap().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let trace = new_trace();
                    let mut first_use = decision(Vec::new());
                    // Refused or not, as it happens; what counts is what is valid afterwards.
                    if registry::preface(&journal, &key, trace, &registered, &mut first_use).is_ok() {
                        let _ = journal.append(first_use);
                    }
                });
            }
            scope.spawn(|| while registry::revoke(&journal, &key, &worker, "left").is_err() {});
        });
        for summary in journal.traces() {
            assert!(!journal.keys(summary.trace).unwrap().is_valid(signer.id()), "round {round}");
        }
    }
}
