//! Hundreds of mock agents that stream at the same time: what a session costs in memory, that nothing is lost, and how long state events take.
//!
//! Each count is measured in a process of its own, so that neither what ran before nor the allocator's past is in the figures.

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use baton_core::event::Durability;
use baton_core::session::StateKind;
use serde_json::{Value, json};

use super::live::{Live, Place, is_state};
use crate::tasks::binary;
use crate::{Figure, Goal};

const FEW: usize = 10;
const MANY: usize = 200;
/// Sessions that take one short turn after the other while the rest streams: the delay that they see is measured.
const PROBES: usize = 4;
const PROBE_PAUSE: Duration = Duration::from_millis(10);
/// Before that every session says so much that everything that keeps the last part of it is full.
const FILL_TURNS: usize = 4;
const FILL_WORDS: usize = 500;
/// Turns of twenty pieces, ten a second.
const SLOW_TURNS: usize = 3;
const SLOW_PIECES: usize = 20;
const SLOW_TURN: Duration = Duration::from_secs(2);
/// A reader needs little; what it has is not the sessions'.
const READER_STACK: usize = 256 << 10;

pub(super) fn run() -> Vec<Figure> {
    let (few, many) = (measured(FEW), measured(MANY));
    let of = |value: &Value, key: &str| value[key].as_f64().expect("a figure");
    for (count, value) in [(FEW, &few), (MANY, &many)] {
        eprintln!(
            "{count} sessions: {:.0} KiB each, {} pieces in order, states after {:.2} ms p50, {:.2} ms p99 of {}",
            of(value, "bytes") / 1024.0,
            value["pieces"],
            of(value, "p50") * 1e3,
            of(value, "p99") * 1e3,
            value["samples"],
        );
    }
    vec![
        Figure {
            name: "sessions.200_streaming_mb_each",
            value: of(&many, "bytes") / 1e6,
            goal: Goal::AtMost(1.0),
        },
        Figure {
            name: "sessions.200_streaming_events_lost",
            value: of(&many, "lost"),
            goal: Goal::AtMost(0.0),
        },
        Figure {
            name: "sessions.state_p99_200_vs_10",
            value: of(&many, "p99") / of(&few, "p99"),
            goal: Goal::AtMost(10.0),
        },
    ]
}

fn measured(count: usize) -> Value {
    let own = std::env::current_exe().expect("a path");
    let output = Command::new(own)
        .args(["sessions-many", &count.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("it runs");
    // A piece that is missing or out of order ends it.
    assert!(output.status.success(), "{count} sessions: something was lost");
    serde_json::from_slice(&output.stdout).expect("figures")
}

/// The process that measures one count.
pub(crate) fn child(count: &str) -> ExitCode {
    let count: usize = count.parse().expect("a count");
    let place = Place::new(Durability::Commit);
    let words = [binary().display().to_string(), "mock-agent".to_owned()];
    // What every process has once is there before.
    let mut first = place.session(&words);
    first.prompt("echo once");
    first.follow_turn(&pieces("echo once"));
    first.stop();
    drop(first);
    let before = resident_bytes();
    let sessions: Vec<Live> = (0..count).map(|_| place.session(&words)).collect();
    let (barrier, streaming) = (Barrier::new(count), AtomicUsize::new(count - PROBES));
    let (all, latencies, most) = (AtomicUsize::new(0), Mutex::new(Vec::new()), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let sessions: Vec<Live> = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(resident_bytes(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(100));
            }
        });
        let readers: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(n, live)| {
                let (barrier, streaming, all, latencies) = (&barrier, &streaming, &all, &latencies);
                let read = move || {
                    let mut reader = Reader { live, heard: 0, delays: Vec::new() };
                    reader.fill(n);
                    barrier.wait();
                    if n < PROBES {
                        while streaming.load(Ordering::Relaxed) > 0 {
                            reader.turn("echo probe", &pieces("echo probe"));
                            thread::sleep(PROBE_PAUSE);
                        }
                    } else {
                        // Spread over the time of a turn, as sessions are.
                        let nth = u32::try_from(n - PROBES).unwrap_or(0);
                        thread::sleep(SLOW_TURN * nth / u32::try_from(count).unwrap_or(1));
                        let slow: Vec<String> = (1..=SLOW_PIECES).map(|n| format!("slow {n} ")).collect();
                        (0..SLOW_TURNS).for_each(|_| reader.turn("slow", &slow));
                        streaming.fetch_sub(1, Ordering::Relaxed);
                    }
                    all.fetch_add(reader.heard, Ordering::Relaxed);
                    latencies.lock().expect("no panic").append(&mut reader.delays);
                    reader.live
                };
                thread::Builder::new().stack_size(READER_STACK).spawn_scoped(scope, read).expect("a thread")
            })
            .collect();
        let sessions = readers.into_iter().map(|reader| reader.join().expect("nothing is lost")).collect();
        is_over.store(true, Ordering::Relaxed);
        watch.join().expect("watched");
        sessions
    });
    sessions.iter().for_each(Live::stop);
    drop(sessions);
    place.close();
    let mut latencies = latencies.into_inner().expect("no panic");
    latencies.sort_by(f64::total_cmp);
    let grown = most.into_inner().saturating_sub(before);
    let figures = json!({
        "bytes": grown as f64 / count as f64,
        "lost": 0.0,
        "pieces": all.into_inner(),
        "samples": latencies.len(),
        "p50": latencies[latencies.len() / 2],
        "p99": latencies[latencies.len() * 99 / 100],
    });
    println!("{figures}");
    ExitCode::SUCCESS
}

/// Whoever follows one session.
struct Reader {
    live: Live,
    heard: usize,
    /// From a prompt to the state that follows it, in seconds.
    delays: Vec<f64>,
}

impl Reader {
    fn fill(&mut self, n: usize) {
        let text: String = (0..FILL_WORDS).map(|word| format!("word-{n}-{word} ")).collect();
        let text = format!("echo {text}");
        let pieces = pieces(&text);
        for _ in 0..FILL_TURNS {
            self.live.prompt(&text);
            self.heard += self.live.follow_turn(&pieces);
        }
    }

    fn turn(&mut self, prompt: &str, pieces: &[String]) {
        let start = Instant::now();
        self.live.prompt(prompt);
        self.live.until(|item| is_state(item, StateKind::CallingLlm));
        self.delays.push(start.elapsed().as_secs_f64());
        self.heard += self.live.follow_turn(pieces);
    }
}

/// What the mock agent makes of a text that it says back.
fn pieces(text: &str) -> Vec<String> {
    text.split_whitespace().map(|word| format!("{word} ")).collect()
}

/// What this process has in memory.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("its own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line for it");
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().expect("a number") * 1024
}
