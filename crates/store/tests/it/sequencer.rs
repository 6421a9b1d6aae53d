//! Many callers, one write at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use baton_store::journal::sequencer::Sequencer;
use baton_testkit::deadline::within;

#[test]
fn every_caller_gets_its_own_answer_and_nobody_is_served_twice() {
    within(120, "answers", || {
        let sequencer: Sequencer<u64, u64> = Sequencer::default();
        let (serving, served) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for caller in 0..32u64 {
                let (sequencer, serving, served) = (&sequencer, &serving, &served);
                scope.spawn(move || {
                    for n in 0..3000u64 {
                        let job = caller * 10_000 + n;
                        let answer = sequencer.submit(job, |jobs| {
                            assert_eq!(serving.fetch_add(1, Ordering::SeqCst), 0, "two leaders at once");
                            served.fetch_add(jobs.len() as u64, Ordering::SeqCst);
                            let answers = jobs.iter().map(|job| job * 2).collect();
                            serving.fetch_sub(1, Ordering::SeqCst);
                            answers
                        });
                        assert_eq!(answer, Some(job * 2));
                    }
                });
            }
        });
        assert_eq!(served.load(Ordering::SeqCst), 32 * 3000);
    });
}

#[test]
fn a_leader_that_panics_leaves_nobody_waiting() {
    within(120, "panic", || {
        let sequencer: Sequencer<u64, u64> = Sequencer::default();
        let panicked = thread::scope(|scope| {
            scope.spawn(|| sequencer.submit(1, |_| panic!("on purpose"))).join().is_err()
        });
        assert!(panicked);
        let answer = sequencer.submit(2, <[u64]>::to_vec);
        assert_eq!(answer, Some(2), "the next one leads");
    });
}
