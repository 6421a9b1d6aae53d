//! A writer to be killed: many threads append to one ledger and print every acknowledgement, until the process dies.
//!
//! usage: hammer DATA_DIR WRITERS TRACE SEGMENT_BYTES [MOMENT COUNT]

use std::io::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use baton_core::TraceId;
use baton_store::disk::{Disk, RealDisk};
use baton_store::lock::OwnerLock;
use baton_store::{FsJournal, History as _, Journal as _, Layout, Options};
use baton_testkit::builders::{decision, note, secret};
use baton_testkit::kill_disk::{KillDisk, Moment};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_dir, writers, traces, segment_bytes, rest @ ..] = &arguments[..] else {
        return Err("usage: hammer DATA_DIR WRITERS TRACES SEGMENT_BYTES [MOMENT COUNT]".into());
    };
    let disk: Arc<dyn Disk> = match rest {
        [moment, count] => Arc::new(KillDisk::new(Moment::parse(moment).ok_or("a moment")?, count.parse()?)),
        _ => Arc::new(RealDisk),
    };
    let traces: Vec<TraceId> = traces.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let layout = Layout::new(data_dir);
    let _lock = OwnerLock::acquire(&layout, Duration::from_secs(60))?;
    let options =
        Options { segment_bytes: segment_bytes.parse()?, checkpoint_every: 64, ..Options::default() };
    let (journal, _) = FsJournal::open(disk, &layout, |_| Ok(secret(1)), options)?;
    // Numbers continue where this life begins, so that nothing is ever written twice on purpose.
    let base = journal.size() * 1_000_000;
    let journal = &journal;
    let traces = &traces;
    thread::scope(|scope| {
        for writer in 0..writers.parse::<u64>().unwrap_or(1) {
            scope.spawn(move || {
                for n in base.. {
                    let trace = traces[(writer as usize + n as usize) % traces.len()];
                    let count = 1 + n % 3;
                    let events = (0..count).map(|i| note(trace, writer, n * 3 + i)).collect();
                    if journal.append(decision(events)).is_err() {
                        return;
                    }
                    // One write for all lines of a decision: whole or cut at the end.
                    let lines: String = (0..count).map(|i| format!("{writer} {}\n", n * 3 + i)).collect();
                    if std::io::stdout().lock().write_all(lines.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(())
}
