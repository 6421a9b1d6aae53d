//! Who writes when: of all callers that wait, one leads; it takes everything that waits, serves it with one write and one sync, and passes the
//! lead on.
//!
//! There is no thread of its own: a lone caller serves itself without a single switch of threads, and under load the running sync is the window
//! in which the next batch gathers. The queue is bounded; callers beyond the bound wait for room.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use baton_core::limits::QUEUE_DECISIONS_MAX;

/// Orders jobs of many threads; `A` is the answer to a job `J`.
#[derive(Debug)]
pub struct Sequencer<J, A> {
    gathering: Mutex<Gathering<J, A>>,
    room: Condvar,
}

/// What waits for the next leader.
#[derive(Debug)]
struct Gathering<J, A> {
    jobs: Vec<J>,
    round: Arc<Round<A>>,
    is_led: bool,
}

/// The callers whose jobs are served together. One signal wakes all of them, and another one the first, to lead.
#[derive(Debug)]
struct Round<A> {
    stage: Mutex<Stage<A>>,
    lead: Condvar,
    done: Condvar,
}

#[derive(Debug)]
enum Stage<A> {
    Waiting,
    /// The first of the round is to lead it.
    Leading,
    /// Answers in the order of the jobs, each taken once. Whoever was not answered learns it by finding nothing.
    Done(Vec<Option<A>>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A> Default for Round<A> {
    fn default() -> Self {
        Round { stage: Mutex::new(Stage::Waiting), lead: Condvar::new(), done: Condvar::new() }
    }
}

impl<J, A> Default for Sequencer<J, A> {
    fn default() -> Self {
        let gathering = Gathering { jobs: Vec::new(), round: Arc::default(), is_led: false };
        Sequencer { gathering: Mutex::new(gathering), room: Condvar::new() }
    }
}

impl<J, A> Sequencer<J, A> {
    /// Queues a job and returns its answer. `serve` is called by whoever leads, with everything that waits; it gives one answer for each job, in their
    /// order.
    ///
    /// `None` where the leader went away without answering; it panicked.
    pub fn submit(&self, job: J, serve: impl Fn(&[J]) -> Vec<A>) -> Option<A> {
        let mut gathering = lock(&self.gathering);
        while gathering.jobs.len() >= QUEUE_DECISIONS_MAX {
            gathering = self.room.wait(gathering).unwrap_or_else(PoisonError::into_inner);
        }
        let (place, round) = (gathering.jobs.len(), gathering.round.clone());
        gathering.jobs.push(job);
        let leads = !std::mem::replace(&mut gathering.is_led, true);
        drop(gathering);
        if leads || (place == 0 && round.is_called()) {
            self.lead(&serve);
        }
        round.answer(place)
    }

    /// Serves everything that waits, passes the lead on, then answers; also when serving panics.
    ///
    /// In this order, because those who are woken by an answer take the processor away from whoever woke them.
    fn lead(&self, serve: &impl Fn(&[J]) -> Vec<A>) {
        struct PassOn<'a, J, A> {
            sequencer: &'a Sequencer<J, A>,
            round: Arc<Round<A>>,
            answers: Vec<Option<A>>,
        }
        impl<J, A> Drop for PassOn<'_, J, A> {
            fn drop(&mut self) {
                let mut gathering = lock(&self.sequencer.gathering);
                gathering.is_led = !gathering.jobs.is_empty();
                let next = gathering.is_led.then(|| gathering.round.clone());
                drop(gathering);
                if let Some(next) = next {
                    *lock(&next.stage) = Stage::Leading;
                    next.lead.notify_one();
                }
                *lock(&self.round.stage) = Stage::Done(std::mem::take(&mut self.answers));
                self.round.done.notify_all();
            }
        }
        let mut gathering = lock(&self.gathering);
        let (jobs, round) = (std::mem::take(&mut gathering.jobs), std::mem::take(&mut gathering.round));
        drop(gathering);
        self.room.notify_all();
        let mut pass_on = PassOn { sequencer: self, round, answers: Vec::new() };
        pass_on.answers = serve(&jobs).into_iter().map(Some).collect();
    }
}

impl<A> Round<A> {
    /// Waits, as the first of a round, until it is to lead.
    fn is_called(&self) -> bool {
        let mut stage = lock(&self.stage);
        while matches!(*stage, Stage::Waiting) {
            stage = self.lead.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
        matches!(*stage, Stage::Leading)
    }

    fn answer(&self, place: usize) -> Option<A> {
        let mut stage = lock(&self.stage);
        loop {
            match &mut *stage {
                Stage::Done(answers) => return answers.get_mut(place).and_then(Option::take),
                Stage::Waiting | Stage::Leading => {
                    stage = self.done.wait(stage).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
