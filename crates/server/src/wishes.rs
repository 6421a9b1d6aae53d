//! What all requests wish of tasks, granted by one thread: those that come while others are being recorded wait for each other, and share a sync.
//!
//! The files of what was granted are written by the same thread, when nobody waits or when they are late.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use baton_runtime::engine::{Granted, Wished};
use tokio::sync::oneshot;

use crate::house::House;
use crate::limits::{FILES_LATE, TOGETHER_MAX};
use crate::problem::Problem;

/// The way to the thread. Dropped, it waits until the thread has done what it has.
#[derive(Debug)]
pub struct Wishes {
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    wished: Wished,
    answer: oneshot::Sender<Granted>,
}

impl Wishes {
    pub fn start(house: House) -> io::Result<Wishes> {
        let (queue, jobs) = channel();
        let thread = std::thread::Builder::new().name("wishes".into()).spawn(move || run(&house, &jobs))?;
        Ok(Wishes { queue: Some(queue), thread: Some(thread) })
    }

    /// Has a wish granted. How many wait is bounded by how many requests there may be.
    pub async fn grant(&self, wished: Wished) -> Result<Granted, Problem> {
        let (answer, granted) = oneshot::channel();
        let lost = || Problem::unexpected("the request came to grief; it is in the log");
        let queue = self.queue.as_ref().ok_or_else(lost)?;
        queue.send(Job { wished, answer }).map_err(|_| lost())?;
        granted.await.map_err(|_| lost())
    }
}

impl Drop for Wishes {
    fn drop(&mut self) {
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(house: &House, jobs: &Receiver<Job>) {
    // Whoever waits learns of a panic by getting no answer; the next ones are served.
    while catch_unwind(AssertUnwindSafe(|| serve(house, jobs))).unwrap_or(true) {}
    while house.engine.write_files(TOGETHER_MAX) {}
}

/// Grants everything that waits, and writes the files that are late: at most as many as it grants. Gives whether more may come.
fn serve(house: &House, jobs: &Receiver<Job>) -> bool {
    let Some(batch) = next(house, jobs) else { return false };
    let count = batch.len();
    let (wishes, answers): (Vec<Wished>, Vec<_>) =
        batch.into_iter().map(|job| (job.wished, job.answer)).unzip();
    for (answer, granted) in answers.into_iter().zip(house.engine.grant_all(&wishes)) {
        // Whoever has gone does not want it any more.
        let _ = answer.send(granted);
    }
    house.commands.changed();
    house.engine.write_late_files(count, FILES_LATE);
    true
}

/// Everything that waits; as long as nothing does, files are written. `None` at the end.
fn next(house: &House, jobs: &Receiver<Job>) -> Option<Vec<Job>> {
    let first = loop {
        match jobs.try_recv() {
            Ok(job) => break job,
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if house.engine.write_files(1) => {}
            Err(TryRecvError::Empty) => break jobs.recv().ok()?,
        }
    };
    Some(std::iter::once(first).chain(jobs.try_iter().take(TOGETHER_MAX - 1)).collect())
}
