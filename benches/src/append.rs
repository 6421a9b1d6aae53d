//! Appending: one writer, many writers, with and without sync, against a raw loop and against SQLite.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::{Duration, Instant};

use baton_core::event::Durability;
use baton_ledger::body::Body;
use baton_ledger::hash::sha256;
use baton_store::History;
use rusqlite::Connection;

use crate::fixture::{self, Ledger, append_foreign, append_signed, temp_dir};
use crate::{Figure, Goal, median};

const ROUNDS: usize = 7;
const ONE_WRITER: u64 = 3_000;
const MANY: usize = 64;
const PER_WRITER: u64 = 500;

pub(crate) fn run() -> Vec<Figure> {
    let durable = fixture::make(1, 64, Durability::Commit);
    let unsynced = fixture::make(1, 64, Durability::None);
    let mut rates: [Vec<f64>; 7] = Default::default();
    let mut spreads = Vec::new();
    // Warm up: the first writes of a process leave no pre-fill.
    one_writer(&durable, 200, append_signed);
    for _ in 0..ROUNDS {
        rates[0].push(raw_loop(line_bytes()));
        rates[1].push(one_writer(&durable, ONE_WRITER, append_signed));
        rates[2].push(sqlite(ONE_WRITER));
        rates[3].push(one_writer(&durable, ONE_WRITER, append_foreign));
        let (rate, spread) = many_writers(&durable, append_signed);
        rates[4].push(rate);
        spreads.push(spread);
        rates[5].push(many_writers(&unsynced, append_signed).0);
        rates[6].push(many_writers(&durable, append_foreign).0);
    }
    let [raw, one, sqlite, one_foreign, many, no_sync, many_foreign] = rates.map(median);
    eprintln!(
        "events/s: raw {raw:.0}, one {one:.0}, SQLite {sqlite:.0}, 64 writers {many:.0}, without sync {no_sync:.0}; \
         signed elsewhere: one {one_foreign:.0}, 64 writers {many_foreign:.0}"
    );
    vec![
        Figure { name: "append.one_writer_vs_raw", value: one / raw, goal: Goal::AtLeast(0.65) },
        Figure { name: "append.one_writer_vs_sqlite", value: one / sqlite, goal: Goal::AtLeast(1.2) },
        Figure { name: "append.64_writers_vs_one", value: many / one, goal: Goal::AtLeast(6.0) },
        Figure { name: "append.64_writers_vs_no_sync", value: many / no_sync, goal: Goal::AtLeast(0.8) },
        Figure { name: "append.64_writers_p99_vs_p50", value: median(spreads), goal: Goal::AtMost(3.0) },
        Figure {
            name: "append.one_writer_signed_elsewhere_vs_raw",
            value: one_foreign / raw,
            goal: Goal::None,
        },
        Figure {
            name: "append.64_writers_signed_elsewhere_vs_one",
            value: many_foreign / one_foreign,
            goal: Goal::None,
        },
    ]
}

fn one_writer(ledger: &Ledger, count: u64, append: Append) -> f64 {
    let start = Instant::now();
    for n in 0..count {
        append(&ledger.journal, ledger.traces[0], &ledger.agents[0], n);
    }
    count as f64 / start.elapsed().as_secs_f64()
}

type Append = fn(&baton_store::FsJournal, baton_core::TraceId, &fixture::Agent, u64);

/// Events per second, and how much longer the slowest hundredth waits than the middle.
fn many_writers(ledger: &Ledger, append: Append) -> (f64, f64) {
    let start = Instant::now();
    let mut waits: Vec<Duration> = thread::scope(|scope| {
        let writers: Vec<_> = (0..MANY)
            .map(|writer| {
                scope.spawn(move || {
                    let (agent, trace) = (&ledger.agents[writer], ledger.traces[0]);
                    let mut waits = Vec::with_capacity(PER_WRITER as usize);
                    for n in 0..PER_WRITER {
                        let start = Instant::now();
                        append(&ledger.journal, trace, agent, n);
                        waits.push(start.elapsed());
                    }
                    waits
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    let rate = (MANY as u64 * PER_WRITER) as f64 / start.elapsed().as_secs_f64();
    waits.sort_unstable();
    let at = |part: f64| waits[(waits.len() as f64 * part) as usize].as_secs_f64();
    (rate, at(0.99) / at(0.5))
}

/// The length of a stored line of the kind that is appended here.
fn line_bytes() -> usize {
    let ledger = fixture::make(1, 1, Durability::None);
    append_signed(&ledger.journal, ledger.traces[0], &ledger.agents[0], 1);
    let size = History::size(&ledger.journal);
    History::read(&ledger.journal, size, 1).expect("a line")[0].text.len() + 1
}

/// The same bytes, the same way of growing the file, and nothing else.
pub(crate) fn raw_loop(bytes: usize) -> f64 {
    const FILL: u64 = 1 << 20;
    let dir = temp_dir();
    let path = dir.path().join("raw");
    let file = OpenOptions::new().create_new(true).write(true).read(true).open(path).expect("a file");
    let (line, fill) = (vec![b'x'; bytes], vec![b'\n'; FILL as usize]);
    let (mut end, mut length) = (0u64, 0u64);
    let mut append = || {
        file.write_all_at(&line, end).expect("written");
        end += line.len() as u64;
        if end >= length {
            file.write_all_at(&fill, end).expect("filled");
            length = end + FILL;
        }
        file.sync_data().expect("synced");
    };
    (0..200).for_each(|_| append());
    let start = Instant::now();
    (0..ONE_WRITER).for_each(|_| append());
    ONE_WRITER as f64 / start.elapsed().as_secs_f64()
}

/// SQLite with a write-ahead log and full sync, doing the same signing and chaining, one transaction an event.
fn sqlite(count: u64) -> f64 {
    let dir = temp_dir();
    let ledger = fixture::make(1, 1, Durability::None);
    let connection = Connection::open(dir.path().join("events.db")).expect("a database");
    connection.pragma_update(None, "journal_mode", "WAL").expect("WAL");
    connection.pragma_update(None, "synchronous", "FULL").expect("FULL");
    connection
        .execute_batch(
            "CREATE TABLE events (pos INTEGER PRIMARY KEY, hash BLOB NOT NULL, line BLOB NOT NULL)",
        )
        .expect("a table");
    let mut insert =
        connection.prepare("INSERT INTO events (hash, line) VALUES (?1, ?2)").expect("a statement");
    let mut prev = sha256(b"");
    let mut append = |n| {
        let event = fixture::event(ledger.traces[0], &ledger.agents[0].name, n);
        let body = Body::signed(event, &ledger.agents[0].key).expect("a body");
        let mut line = body.canonical_bytes().to_vec();
        line.extend_from_slice(&body.sig.expect("signed").value.0);
        line.extend_from_slice(&prev.0);
        prev = sha256(&line);
        insert.execute((&prev.0[..], &line)).expect("inserted");
    };
    (0..200).for_each(&mut append);
    let start = Instant::now();
    (0..count).for_each(&mut append);
    count as f64 / start.elapsed().as_secs_f64()
}

/// Many writers for a while, to be looked at with a profiler; says how many events shared a sync.
pub(crate) fn profile() {
    let durable = fixture::make(1, 64, Durability::Commit);
    for _ in 0..6 {
        let before = History::size(&durable.journal);
        let (rate, spread) = many_writers(&durable, append_signed);
        let lines = History::read(&durable.journal, before + 1, usize::MAX >> 1).expect("lines");
        let writes = lines.iter().filter(|line| !line.text.contains(",\"commit\":")).count();
        eprintln!(
            "{rate:.0} events/s, p99/p50 {spread:.2}, {:.1} events a write",
            lines.len() as f64 / writes as f64
        );
    }
}
