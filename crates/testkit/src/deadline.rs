//! A deadline for a test: a hang becomes a failure with a name.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Runs a test in a thread of its own and ends the process if it takes longer.
///
/// A thread cannot be stopped, so the whole process ends; the message says which test it was.
pub fn within<T: Send + 'static>(seconds: u64, name: &str, test: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || {
        let result = test();
        let _ = done.send(());
        result
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(Duration::from_secs(seconds)) {
        eprintln!("{name}: not done after {seconds} s");
        std::process::exit(101);
    }
    match worker.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
