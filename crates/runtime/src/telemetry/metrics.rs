//! Numbers of this process: counters and histograms whose labels are closed sets, so that nothing an agent says makes them grow.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use baton_core::session::{ErrorCode, StateKind};

/// Upper ends of the buckets of durations, in milliseconds: from a file that is read to a build.
const BUCKETS_MS: [u64; 15] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000];

const STATES: usize = StateKind::ALL.len();
const CODES: usize = ErrorCode::ALL.len();

/// The numbers.
#[derive(Debug)]
pub struct Metrics {
    /// From the first state to the second.
    transitions: [[AtomicU64; STATES]; STATES],
    errors: [AtomicU64; CODES],
    tools: Histogram,
    hooks: Histogram,
}

/// How long things took.
#[derive(Debug)]
struct Histogram {
    /// One for each bucket, and one for what is beyond the last.
    counts: [AtomicU64; BUCKETS_MS.len() + 1],
    sum_ms: AtomicU64,
}

/// Those of this process.
pub fn metrics() -> Arc<Metrics> {
    static METRICS: OnceLock<Arc<Metrics>> = OnceLock::new();
    METRICS.get_or_init(Arc::default).clone()
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            transitions: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            errors: std::array::from_fn(|_| AtomicU64::new(0)),
            tools: Histogram::default(),
            hooks: Histogram::default(),
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_ms: AtomicU64::new(0) }
    }
}

impl Metrics {
    pub fn count_transition(&self, from: StateKind, to: StateKind) {
        self.transitions[from as usize][to as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_error(&self, code: ErrorCode) {
        self.errors[code as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn time_tool(&self, duration_ms: u64) {
        self.tools.add(duration_ms);
    }

    pub fn time_hook(&self, duration_ms: u64) {
        self.hooks.add(duration_ms);
    }

    /// Everything in the text format of Prometheus. What never happened has no line of its own.
    pub fn render(&self) -> String {
        let mut out = String::new();
        head(&mut out, "agent_state_transitions_total", "counter", "State changes of sessions.");
        for (from, row) in StateKind::ALL.iter().zip(&self.transitions) {
            for (to, count) in StateKind::ALL.iter().zip(row) {
                let labels = format!("from=\"{from}\",to=\"{to}\"");
                counter(&mut out, "agent_state_transitions_total", &labels, count);
            }
        }
        self.tools.render(&mut out, "tool_run_duration_ms", "How long runs of tools took, in milliseconds.");
        self.hooks.render(&mut out, "hook_run_duration_ms", "How long runs of hooks took, in milliseconds.");
        head(&mut out, "session_errors_total", "counter", "Errors of sessions.");
        for (code, count) in ErrorCode::ALL.iter().zip(&self.errors) {
            counter(&mut out, "session_errors_total", &format!("code=\"{code}\""), count);
        }
        out
    }
}

impl Histogram {
    fn add(&self, duration_ms: u64) {
        let bucket = BUCKETS_MS.iter().position(|end| duration_ms <= *end).unwrap_or(BUCKETS_MS.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ms.fetch_add(duration_ms, Ordering::Relaxed);
    }

    fn render(&self, out: &mut String, name: &str, help: &str) {
        head(out, name, "histogram", help);
        let mut below = 0;
        for (n, count) in self.counts.iter().enumerate() {
            below += count.load(Ordering::Relaxed);
            let end = BUCKETS_MS.get(n).map_or("+Inf".to_owned(), u64::to_string);
            let _ = writeln!(out, "{name}_bucket{{le=\"{end}\"}} {below}");
        }
        let _ = writeln!(out, "{name}_sum {}", self.sum_ms.load(Ordering::Relaxed));
        // The same number as in the last bucket, also while others count.
        let _ = writeln!(out, "{name}_count {below}");
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn counter(out: &mut String, name: &str, labels: &str, count: &AtomicU64) {
    let count = count.load(Ordering::Relaxed);
    if count > 0 {
        let _ = writeln!(out, "{name}{{{labels}}} {count}");
    }
}
